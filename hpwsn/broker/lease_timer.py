"""Lease timers: end the leases of a registry on time, with one timer of the event loop per registry.

Termination times are on the wall clock, which can jump. So the timer sleeps for a bounded time and then
compares the clock again.
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
"""Seconds; bounds how late a lease ends after the wall clock was set forward."""


class LeaseRegistry(Protocol):
    """A registry of resources with leases: subscriptions, registrations."""

    lifetimes_changed: Listeners[()]

    def next_due(self) -> float | None:
        """When the next lease ends; None if none does."""

    async def expire(self, now: float) -> int:
        """End the leases that are due; return how many resources changed."""


class LeaseTimer(BackgroundTask):
    """Calls `expire` of a registry whenever a lease is due."""

    def __init__(self, registry: LeaseRegistry, clock: Callable[[], float]) -> None:
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
            log.error("expired resources could not be removed from the journal: %s", error)
