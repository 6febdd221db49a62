"""The memory of a subscription's deliveries, on which every decision about its next step is based.

`Progress` is the state of the machine in `delivery_steps`; only that machine and the driver change it.
`worn_out` tells which notifications of a failed attempt are given up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpwsn.broker.lifetimes.retry import RetryPolicy
from hpwsn.broker.push.request import OutcomeKind

Attempt = Sequence[tuple[int, float]]
"""Offsets and their publication times."""


@dataclass(slots=True)
class Progress:
    """What delivery remembers between two attempts."""

    busy: bool = False
    """A send or a read of the journal is under way."""
    attempt: int = 0
    kind: OutcomeKind | None = None
    same: int = 0
    tried: int = 0
    """What went wrong last, how often in a row before, and the newest offset that was there each time."""
    alone: int = 0
    """How many notifications are to be sent one by one, since together they were refused."""
    first_failure: float | None = None
    """On the loop's clock, which nobody sets: a jump of the wall clock must not use up the retries."""
    announced: bool = False
    """The consumer said during a send that it is reachable: if the send fails, repeat it without a pause."""
    delivered: int = 0
    dropped: int = 0
    failures: int = 0
    last_error: str | None = None
    expired: int = 0
    replays: dict[int, list[Callable[[bool], None]]] | None = None
    """Dead letters, by id, that an operator wants sent again, and who is told whether each was delivered.

    None rather than empty, as with most subscriptions.
    """
    present: Sequence[int] = ()
    """Offsets of current messages that the subscriber wants sent once more."""

    def note_delivered(self, count: int) -> None:
        """Count a delivery, also beside the queue: the consumer no longer fails."""
        self.delivered += count
        self.attempt, self.same, self.first_failure, self.announced = 0, 0, None, False

    def sent_alone(self, count: int) -> None:
        """Count notifications that left the queue among those that are sent one by one."""
        if self.alone:
            self.alone = max(0, self.alone - count)


def worn_out(
    progress: Progress, policy: RetryPolicy, attempt: Attempt, now: float, clock: float
) -> list[int]:
    """The oldest offsets of a failed attempt whose retries are exhausted, by time or by attempts."""
    assert progress.first_failure is not None
    first, dead = progress.first_failure, []
    for offset, published in attempt:
        attempts = progress.same if offset <= progress.tried else 0
        if not policy.exhausted(max(first, now - (clock - published)), now, attempts):
            break
        dead.append(offset)
    return dead
