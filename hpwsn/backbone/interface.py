"""The backbone port: one way in for publishers, one way out to the node.

An implementation promises that `send` returns only once the notifications can no longer be lost, and that
what it hands to the node arrives in the order in which it was sent.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hpwsn.journal.store.records import Arrival
from hpwsn.notification import Run


class Receive(Protocol):
    """Stores what a backbone brings, all or none."""

    def __call__(self, runs: Sequence[Run], arrival: Arrival | None = None) -> Awaitable[int]:
        """The offset of the first, with the commit; what else the arrival says is in the same transaction."""


@dataclass(frozen=True, slots=True)
class Screened:
    """What came from elsewhere, looked at: what is new, what cannot be taken and why, how many came again."""

    kept: Sequence[Run]
    refused: Sequence[tuple[Run, str]]
    repeated: int
    stored: Callable[[int], None]
    """To be called with the offset of the first that was kept, once all of them are stored."""


class Screen(Protocol):
    """Looks at notifications that did not come by a door of this node."""

    def __call__(self, runs: Sequence[Run], *, checked: bool) -> Screened:
        """Those that can be stored; of `checked` ones, which came by a door once, only ids are looked at."""


class Backbone(Protocol):
    """What a node needs of a backbone."""

    async def start(self, receive: Receive, screen: Screen) -> None:
        """Begin to hand notifications to `receive`; those of others only as far as `screen` keeps them."""

    async def send(self, runs: Sequence[Run]) -> int | None:
        """Carry runs, all or none; returns when they are safe, with the offset of the first notification.

        None where they are safe and their offsets are not known yet.
        """

    async def close(self) -> None:
        """Hand over what is under way and stop."""

    def holds(self) -> bool:
        """Whether something was accepted, and answered, that the journal's log does not have yet."""

    def problem(self) -> str | None:
        """Why this backbone is not ready, in plain words, or None when it is."""

    def figures(self) -> Mapping[str, Any]:
        """Its state for an operator."""
