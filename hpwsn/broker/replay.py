"""Dead letters that an operator wants delivered after all: which are next, and what became of them.

They go out before what waits, once; those that fail again stay dead letters.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hpwsn.broker.push_request import Outcome, OutcomeKind
from hpwsn.broker.subscription import Subscription
from hpwsn.journal.journal import Journal
from hpwsn.journal.records import DeadLetter

log = logging.getLogger(__name__)


async def next_letters(journal: Journal, subscription: Subscription, size: int) -> list[DeadLetter]:
    """The next ones that are still there; those that are not are forgotten."""
    replays = subscription.progress.replays or {}
    return [
        letter
        for id_ in list(replays)[:size]
        if (letter := await journal.dead_letter(id_)) is not None or replays.pop(id_, None)
    ]


def note_replayed(
    journal: Journal, subscription: Subscription, letters: Sequence[int], outcome: Outcome
) -> None:
    """Strike off what was delivered, and what the consumer refused alone; several refused go one by one."""
    progress = subscription.progress
    delivered = outcome.kind is OutcomeKind.DELIVERED
    if delivered:
        journal.drop_dead_letters(letters)
    if not delivered and outcome.status is None:
        progress.replays = None
        log.warning("subscription %s: dead letters stay: %s", subscription.id, outcome.reason)
    elif not delivered and len(letters) > 1:
        progress.alone = len(letters)
    else:
        for id_ in letters:
            (progress.replays or {}).pop(id_, None)
        progress.alone = max(0, progress.alone - len(letters))
