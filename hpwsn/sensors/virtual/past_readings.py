"""Readings of the past for virtual sensors that begin: asked for by few at a time, and again if need be.

After a crash the history reads the log first, and may be busy for a while. A result of some of its readings
would be wrong, so a virtual sensor rather waits, at most PATIENCE; then it begins without the past.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable

from hpwsn.errors import HpwsnError
from hpwsn.sensors.readings.reading import Reading

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Virtual sensors that look for readings at the same time."""
PAUSE = 1.0
"""Seconds until a busy history is asked again."""
PATIENCE = 300.0
"""Seconds after which a virtual sensor begins without the past."""

Ask = Callable[[Collection[str], int, int], Awaitable[Iterable[Reading]]]
"""The readings of sensors from one time, included, to another, excluded, in milliseconds."""


class PastBusy(HpwsnError):
    """The history cannot answer now, and may be asked again."""


async def _none(sensors: Collection[str], begin: int, end: int) -> Iterable[Reading]:
    return ()


class PastReadings:
    """Asks the history; `ask` gives what it has, or raises PastBusy. By default there is none."""

    def __init__(self) -> None:
        self.ask: Ask = _none
        self._places = asyncio.Semaphore(AT_ONCE)

    async def of(
        self, name: str, sensors: Collection[str], begin: int, end: Callable[[], int]
    ) -> Iterable[Reading]:
        """The readings of sensors for a virtual sensor; `end` is called when the history is asked."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while True:
            try:
                async with self._places:
                    return await self.ask(sensors, begin, end())
            except PastBusy as error:
                if loop.time() >= until:
                    log.error("virtual sensor %s begins without readings of the past: %s", name, error)
                    return ()
                log.warning("virtual sensor %s waits for readings of the past: %s", name, error)
            await asyncio.sleep(PAUSE)
