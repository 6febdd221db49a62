"""Ends lifetimes on time: one timer of the event loop for all of them.

The clock that counts is the wall clock, since that is what termination times are in; after a jump of it the
timer is simply set anew, so it sleeps at most a bounded while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from hpwsn.background import BackgroundTask
from hpwsn.errors import JournalUnavailable
from hpwsn.listeners import Listeners

log = logging.getLogger(__name__)

LONGEST_SLEEP = 30.0
"""Seconds; bounds how late a lifetime ends after the wall clock was set forward."""


class Mortal(Protocol):
    """A registry whose members end: subscriptions, registrations."""

    lifetimes_changed: Listeners[()]

    def next_due(self) -> float | None:
        """When the next lifetime runs out."""

    async def expire(self, now: float) -> int:
        """End what is due; returns how many changed."""


class Reaper(BackgroundTask):
    """Calls `expire` of a registry when something is due."""

    def __init__(self, registry: Mortal, clock: Callable[[], float]) -> None:
        super().__init__(self._run_when_due)
        self._registry = registry
        self._clock = clock
        self._changed = asyncio.Event()
        registry.lifetimes_changed.add(self._changed.set)

    async def _run_when_due(self) -> None:
        while True:
            self._changed.clear()
            due = self._registry.next_due()
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
            await self._registry.expire(self._clock())
        except JournalUnavailable as error:
            log.error("what has ended could not be removed from the journal: %s", error)
