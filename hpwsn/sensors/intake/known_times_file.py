"""The file that keeps the times of accepted readings over a restart, so that duplicates are found after it.

It is written every PERIOD seconds and at the end, and says up to which offset it has the readings of the log.
After a crash the rest is read from the log. Without a usable file the whole log is read, if retention has
removed nothing of it. Otherwise nothing is known of the sensors: their times up to now, and as far ahead as
readings may be, are then looked for in the history.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from hpwsn.background import BackgroundTask, in_slices, in_thread
from hpwsn.durable_files import write_atomically
from hpwsn.sensors.readings.known_times import ALWAYS, KnownTimes

log = logging.getLogger(__name__)

PERIOD = 60.0
"""Seconds between two writes."""
FIRST = 1
"""The first offset of every log."""

ReadKeys = Callable[[int], Awaitable[tuple[int, Sequence[tuple[str, int]]]]]
"""Reads the sensors and times of readings in the log, from an offset on; returns the next offset before them.

The offset does not grow any more once everything was read."""

_MAGIC = b"known times 1\n"
_head = struct.Struct("<qq")


class KnownTimesFile:
    """Keeps the times; `head` is the last offset of the log whose readings are noted."""

    def __init__(self, path: Path, times: KnownTimes, head: Callable[[], int]) -> None:
        self._path = path
        self._times = times
        self._head = head
        self._stored: int | None = None
        self._task = BackgroundTask(self._write_periodically)

    async def open(self, oldest: int, read_log: ReadKeys, latest: int) -> None:
        """Take up the file and the log after it.

        `oldest` is the first offset of the log, `latest` the latest time that an accepted reading can have.
        """
        head = self._head()
        upto = await self._take_up(oldest, head)
        if upto is None and oldest <= FIRST:
            upto = FIRST - 1
        if upto is None:
            self._times.complete_from = latest + 1
        else:
            await self._read_on(upto, read_log)
        self._task.start()

    async def _take_up(self, oldest: int, head: int) -> int | None:
        """Take up the file, and return the last offset whose readings it has; None if it is of no use."""
        try:
            data = await in_thread(self._path.read_bytes)
            if not data.startswith(_MAGIC):
                raise ValueError("it is not a file of times")
            upto, complete_from = _head.unpack_from(data, len(_MAGIC))
            if not oldest <= upto + 1 <= head + 1:
                raise ValueError(f"it ends at offset {upto}, where the log does not go on")
            self._times.restore(data[len(_MAGIC) + _head.size :])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, struct.error) as error:
            log.warning("the times of readings in %s are not usable: %s", self._path, error)
            return None
        self._times.complete_from = complete_from
        return int(upto)

    async def _read_on(self, after: int, read_log: ReadKeys) -> None:
        at = -1
        while after != at:
            at = after
            after, keys = await read_log(at)
            await in_slices(self._note(keys))

    def _note(self, keys: Sequence[tuple[str, int]]) -> Iterator[None]:
        for sensor, time in keys:
            self._times.note(sensor, time)
            yield

    async def _write_periodically(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            await self.write()

    async def write(self) -> None:
        """Write the file, if the log has grown."""
        upto = self._head()
        if upto == self._stored or not (len(self._times) or self._times.complete_from > ALWAYS):
            return
        parts = [_MAGIC, _head.pack(upto, self._times.complete_from)]
        await in_slices(_collect(self._times, parts))
        try:
            await in_thread(write_atomically, self._path, b"".join(parts), mode=0o600)
            self._stored = upto
        except OSError as error:
            log.warning("the times of readings cannot be written to %s: %s", self._path, error)

    async def close(self) -> None:
        """Write the file for the next start."""
        await self._task.close()
        with suppress(OSError):
            await self.write()


def _collect(times: KnownTimes, parts: list[bytes]) -> Iterator[None]:
    for piece in times.pieces():
        parts.append(piece)
        yield
