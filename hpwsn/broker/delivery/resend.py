"""Sends that bypass the queue and go before the backlog, each tried once.

These are dead letters that an operator resends, and the current messages of its topics for a subscriber that
asks for the present state. A dead letter that fails again stays a dead letter.
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
    """The notifications of one send, and the callback for its outcome."""

    stored: Sequence[Stored]
    note: Callable[[Outcome], None]


async def next_letters(journal: Journal, backlog: Backlog, subscription: Subscription, size: int) -> Once:
    """The next dead letters to resend; deleted ones, and those of internal topics, are skipped."""
    letters = []
    for id_ in list(subscription.progress.replays or ())[:size]:
        letter = await journal.dead_letter(id_)
        if letter is None or backlog.withheld(letter.stored.notification):
            _end(subscription, id_, delivered=False)
        else:
            letters.append(letter)
    ids = [letter.id for letter in letters]
    return Once(
        [letter.stored for letter in letters],
        lambda outcome: _note_letters(journal, subscription, ids, outcome),
    )


def _note_letters(
    journal: Journal, subscription: Subscription, letters: Sequence[int], outcome: Outcome
) -> None:
    """Remove delivered and individually refused dead letters; retry a refused batch one by one."""
    progress = subscription.progress
    delivered = outcome.kind is OutcomeKind.DELIVERED
    if delivered:
        journal.drop_dead_letters(letters)
    if not delivered and outcome.status is None:
        give_up(subscription)
        log.warning(
            "subscription %s: the dead letters were not delivered: %s", subscription.id, outcome.reason
        )
    elif not delivered and len(letters) > 1:
        progress.alone = len(letters)
    else:
        for id_ in letters:
            _end(subscription, id_, delivered)
        progress.alone = max(0, progress.alone - len(letters))


def _end(subscription: Subscription, letter: int, delivered: bool) -> None:
    for note in (subscription.progress.replays or {}).pop(letter, ()):
        note(delivered)


def stop_telling(subscription: Subscription, letter: int, note: Callable[[bool], None]) -> None:
    """Tell `note` nothing more of a dead letter, which is still sent."""
    notes = (subscription.progress.replays or {}).get(letter)
    if notes and note in notes:
        notes.remove(note)


def give_up(subscription: Subscription) -> None:
    """Send no more dead letters; those that were to be sent were not delivered."""
    for letter in list(subscription.progress.replays or ()):
        _end(subscription, letter, delivered=False)
    subscription.progress.replays = None


async def next_present(journal: Journal, backlog: Backlog, subscription: Subscription, size: int) -> Once:
    """The next messages that are still current and match the content filter."""
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
        log.warning(
            "subscription %s: the present state was not delivered: %s", subscription.id, outcome.reason
        )
