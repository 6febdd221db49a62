"""What goes out once, beside the queue and before what waits: which is next, and what becomes of it.

That is dead letters that an operator wants delivered after all, of which those that fail again stay dead
letters, and the current messages of its topics for a subscriber that asks for the present state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpwsn.broker.delivery.backlog import Backlog
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Stored

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Once:
    """What is in one send, and who is told of its outcome."""

    stored: Sequence[Stored]
    note: Callable[[Outcome], None]


async def next_letters(journal: Journal, subscription: Subscription, size: int) -> Once:
    """The next dead letters that are still there; those that are not are forgotten."""
    replays = subscription.progress.replays or {}
    letters = [
        letter
        for id_ in list(replays)[:size]
        if (letter := await journal.dead_letter(id_)) is not None or replays.pop(id_, None)
    ]
    ids = [letter.id for letter in letters]
    return Once(
        [letter.stored for letter in letters],
        lambda outcome: _note_letters(journal, subscription, ids, outcome),
    )


def _note_letters(
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


async def next_present(journal: Journal, backlog: Backlog, subscription: Subscription, size: int) -> Once:
    """The next current messages that still are, and are wanted."""
    present = subscription.progress.present
    batch = present[:size]
    found = await journal.read(batch)
    last = found[-1].offset if found else batch[-1]
    subscription.progress.present = [offset for offset in present if offset > last]
    wanted = [stored for stored in found if backlog.is_present(stored, subscription)]
    return Once(wanted, lambda outcome: _note_present(subscription, outcome))


def _note_present(subscription: Subscription, outcome: Outcome) -> None:
    if outcome.kind is not OutcomeKind.DELIVERED:
        subscription.progress.present = ()
        log.warning("subscription %s: the present state was not taken: %s", subscription.id, outcome.reason)
