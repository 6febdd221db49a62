"""Dead letters: undeliverable notifications, kept until an operator resends or deletes them.

Delivery creates them in the transaction that moves the subscription's cursor past them. A resend is tried
once, before the backlog; a dead letter that fails again stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.subscriptions.subscription import State, Subscription
from hpwsn.broker.subscriptions.subscriptions import Subscriptions
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import DeadLetter

PAGE = 500
"""Dead letters read from the journal at once."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Dead letters by id, by subscription, or all of them."""

    ids: tuple[int, ...] = ()
    subscription: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The number of dead letters queued for resending, and of those that nobody gets any more.

    The subscription of the latter has ended, or their topic is internal now.
    """

    sent: int
    ended: int


class DeadLetters:
    """The dead letters of a node."""

    def __init__(self, journal: Journal, subscriptions: Subscriptions, delivery: Delivery) -> None:
        self._journal = journal
        self._subscriptions = subscriptions
        self._delivery = delivery

    async def page(self, limit: int, after: int, subscription: str | None) -> Sequence[DeadLetter]:
        """Dead letters with an id greater than `after`, oldest first."""
        return await self._journal.dead_letters(limit, after, subscription)

    async def get(self, id_: int) -> DeadLetter | None:
        """The dead letter with this id, or None."""
        return await self._journal.dead_letter(id_)

    def is_internal(self, letter: DeadLetter) -> bool:
        """Whether the topic of a dead letter is internal now, so that nobody gets its payload."""
        return self._delivery.withheld(letter.stored.notification)

    async def replay(self, selection: Selection) -> Replayed:
        """Resend the selected dead letters to their subscriptions."""
        sent = ended = 0
        async for letter in self._selected(selection):
            subscription = self._live(letter.subscription_id)
            if subscription is None or self.is_internal(letter):
                ended += 1
            else:
                self._delivery.replay(subscription, [letter.id])
                sent += 1
        return Replayed(sent, ended)

    async def drop(self, selection: Selection) -> int:
        """Delete the selected dead letters; return their number."""
        ids = [letter.id async for letter in self._selected(selection)]
        return await self._journal.drop_dead_letters(ids) if ids else 0

    async def _selected(self, selection: Selection) -> AsyncIterator[DeadLetter]:
        if selection.ids:
            for id_ in selection.ids:
                letter = await self._journal.dead_letter(id_)
                if letter is not None:
                    yield letter
            return
        after = 0
        while page := await self._journal.dead_letters(PAGE, after, selection.subscription):
            for letter in page:
                yield letter
            after = page[-1].id

    def _live(self, id_: str) -> Subscription | None:
        subscription = self._subscriptions.find(id_)
        return subscription if subscription is not None and subscription.state is State.LIVE else None
