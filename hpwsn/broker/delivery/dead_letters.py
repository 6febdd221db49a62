"""Dead letters: undeliverable notifications, kept until an operator resends or deletes them.

Delivery creates them in the transaction that moves the subscription's cursor past them. A resend is tried
once, before the backlog; a dead letter that fails again stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.delivery.resend import stop_telling
from hpwsn.broker.subscriptions.subscription import State, Subscription
from hpwsn.broker.subscriptions.subscriptions import Subscriptions
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import DeadLetter, DeadLetterGroup

PAGE = 500
"""Dead letters read from the journal at once."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Dead letters by id, by subscription, by the reason of a group, by both, or all of them."""

    ids: tuple[int, ...] = ()
    subscription: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of the selected dead letters."""

    sent: int
    """Queued for resending: the sum of `delivered`, `failed` and `pending`."""
    ended: int
    """The subscription has ended."""
    internal: int
    """The topic is internal now, so that nobody gets these."""
    delivered: int
    failed: int
    """Tried once more and not delivered, or deleted meanwhile."""
    pending: int
    """Not tried yet, as those of a paused subscription."""


class _Outcomes:
    """Counts the outcomes of a replay, and tells when all are known."""

    def __init__(self) -> None:
        self.sent = self.delivered = self.failed = 0
        self._all_known = asyncio.Event()

    def note(self, delivered: bool) -> None:
        """Count one outcome."""
        self.delivered += delivered
        self.failed += not delivered
        if not self.pending:
            self._all_known.set()

    @property
    def pending(self) -> int:
        """How many outcomes are not known yet."""
        return self.sent - self.delivered - self.failed

    async def wait(self, seconds: float) -> None:
        """Wait until all outcomes are known, at most so long."""
        while self.pending and seconds > 0:
            self._all_known.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._all_known.wait()
            except TimeoutError:
                return


class DeadLetters:
    """The dead letters of a node."""

    def __init__(self, journal: Journal, subscriptions: Subscriptions, delivery: Delivery) -> None:
        self._journal = journal
        self._subscriptions = subscriptions
        self._delivery = delivery

    async def page(self, limit: int, after: int, which: Selection) -> Sequence[DeadLetter]:
        """Dead letters with an id greater than `after`, oldest first; `which` has no ids."""
        return await self._journal.dead_letters(limit, after, which.subscription, which.reason)

    async def count(self, which: Selection) -> int:
        """The number of dead letters; `which` has no ids."""
        return await self._journal.dead_letter_count(which.subscription, which.reason)

    async def groups(self) -> Sequence[DeadLetterGroup]:
        """The dead letters by subscription and reason, the largest group first."""
        return await self._journal.dead_letter_groups()

    async def get(self, id_: int) -> DeadLetter | None:
        """The dead letter with this id, or None."""
        return await self._journal.dead_letter(id_)

    def is_internal(self, letter: DeadLetter) -> bool:
        """Whether the topic of a dead letter is internal now, so that nobody gets its payload."""
        return self._delivery.withheld(letter.stored.notification)

    async def replay(self, selection: Selection, wait: float = 0.0) -> Replayed:
        """Resend the selected dead letters, and wait up to `wait` seconds for the outcomes."""
        outcomes, ended, internal = _Outcomes(), 0, 0
        queued: list[tuple[Subscription, int]] = []
        try:
            async for letter in self._selected(selection):
                subscription = self._live(letter.subscription_id)
                if subscription is None:
                    ended += 1
                elif self.is_internal(letter):
                    internal += 1
                else:
                    outcomes.sent += 1
                    queued.append((subscription, letter.id))
                    self._delivery.replay(subscription, letter.id, outcomes.note)
            await outcomes.wait(wait)
            return Replayed(
                outcomes.sent, ended, internal, outcomes.delivered, outcomes.failed, outcomes.pending
            )
        finally:
            # Nobody waits any more: repeated replays of a paused subscription must not add up.
            for each in queued if outcomes.pending else ():
                stop_telling(*each, outcomes.note)

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
        while page := await self.page(PAGE, after, selection):
            for letter in page:
                yield letter
            after = page[-1].id

    def _live(self, id_: str) -> Subscription | None:
        subscription = self._subscriptions.find(id_)
        return subscription if subscription is not None and subscription.state is State.LIVE else None
