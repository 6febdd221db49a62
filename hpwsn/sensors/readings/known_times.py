"""The times of the accepted readings of each sensor, by which duplicates are found.

Of each sensor the newest times are kept in order, and from which time on they are complete. An older time is
not known here, and the caller looks for it in the history. Most readings are newer than all before, which is
one comparison. Times are whole milliseconds, in arrays, so that 100,000 sensors take some 50 MB.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

KEPT = 64
"""Times of a sensor that are kept at least, if it has as many."""
STORED = 16
"""Times of a sensor that survive a restart."""
MOST_LATE = 10_000
"""Older times of all sensors that are remembered until the history has them."""
ALWAYS = -(1 << 62)
"""Before every time."""

_entry = struct.Struct("<HHq")


class KnownTimes:
    """What is known of each sensor; `complete_from` holds for sensors of which nothing is known."""

    def __init__(self, complete_from: int = ALWAYS) -> None:
        self.complete_from = complete_from
        self._times: dict[str, array[int]] = {}
        """Of each sensor the time from which on the rest is complete, and the times in order."""
        self._late: dict[tuple[str, int], None] = {}

    def __len__(self) -> int:
        return len(self._times)

    def has(self, sensor: str, time: int) -> bool | None:
        """Whether there was a reading of that time; None if the history must be asked."""
        times = self._times.get(sensor)
        if times is None:
            return False if time >= self.complete_from else (sensor, time) in self._late or None
        if time > times[-1]:
            return False
        at = bisect_left(times, time, 1)
        if at < len(times) and times[at] == time:
            return True
        return False if time >= times[0] else (sensor, time) in self._late or None

    def note(self, sensor: str, time: int) -> None:
        """A reading of that time was accepted."""
        times = self._times.get(sensor)
        if times is None:
            times = self._times[sensor] = array("q", (self.complete_from,))
        if time < times[0]:
            self._late[sensor, time] = None
            if len(self._late) > MOST_LATE:
                del self._late[next(iter(self._late))]
            return
        if len(times) == 1 or time > times[-1]:
            times.append(time)
        elif time != times[-1]:
            at = bisect_left(times, time, 1)
            if at == len(times) or times[at] != time:
                times.insert(at, time)
        if len(times) > 2 * KEPT:
            _trim(times, KEPT)

    def forget(self, sensor: str) -> None:
        """The sensor was removed: if it is registered again, the history is asked for its times."""
        times = self._times.pop(sensor, None)
        if times is not None and len(times) > 1:
            self.complete_from = max(self.complete_from, times[-1] + 1)

    def pieces(self) -> Iterator[bytes]:
        """What `restore` takes up after a restart, sensor by sensor; with changes meanwhile or without."""
        for sensor in list(self._times):
            times = self._times.get(sensor)
            if times is not None and len(times) > 1:
                last = array("q", times)
                if len(last) > STORED + 1:
                    _trim(last, STORED)
                name = sensor.encode()
                yield _entry.pack(len(name), len(last) - 1, last[0]) + name + last[1:].tobytes()

    def restore(self, data: bytes) -> None:
        """Take up joined `pieces`; ValueError if they are damaged, and nothing changes."""
        found: dict[str, array[int]] = {}
        at = 0
        while at < len(data):
            if at + _entry.size > len(data):
                raise ValueError("the last entry is cut off")
            length, count, complete_from = _entry.unpack_from(data, at)
            name_end = at + _entry.size + length
            end = name_end + 8 * count
            times = array("q", (complete_from,))
            times.frombytes(data[name_end:end])
            if len(times) != count + 1 or any(later <= time for time, later in pairwise(times[1:])):
                raise ValueError("the times of an entry are not complete or not in order")
            if not count or times[1] < complete_from:
                raise ValueError("an entry has no times, or too early ones")
            found[data[at + _entry.size : name_end].decode()] = times
            at = end
        self._times.update(found)


def _trim(times: array[int], kept: int) -> None:
    """Keep the newest times; the rest is complete from the oldest of these on."""
    del times[1:-kept]
    times[0] = times[1]
