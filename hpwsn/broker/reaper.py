"""Ends lifetimes on time: one timer of the event loop for all of them.

The clock that counts is the wall clock, since that is what termination times are in; after a jump of it the
timer is simply set anew, so it sleeps at most a bounded while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hpwsn.broker.background import Background
from hpwsn.broker.subscriptions import Subscriptions
from hpwsn.errors import JournalUnavailable

log = logging.getLogger(__name__)

LONGEST_SLEEP = 30.0
"""Seconds; bounds how late a lifetime ends after the wall clock was set forward."""


class Reaper(Background):
    """Calls `Subscriptions.expire` when something is due."""

    def __init__(self, subscriptions: Subscriptions, clock: Callable[[], float]) -> None:
        super().__init__(self._run_when_due)
        self._subscriptions = subscriptions
        self._clock = clock
        self._changed = asyncio.Event()
        subscriptions.on_lifetimes = self._changed.set

    async def _run_when_due(self) -> None:
        while True:
            self._changed.clear()
            due = self._subscriptions.next_due()
            if due is not None and due <= self._clock():
                await self._expire()
                continue
            pause = LONGEST_SLEEP if due is None else min(LONGEST_SLEEP, due - self._clock())
            try:
                async with asyncio.timeout(max(0.0, pause)):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _expire(self) -> None:
        try:
            await self._subscriptions.expire(self._clock())
        except JournalUnavailable as error:
            log.error("ended subscriptions could not be removed from the journal: %s", error)
