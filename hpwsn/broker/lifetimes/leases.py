"""Leases of subscriptions and registrations: when each one ends, and which requested ends are granted.

`Lifetimes` is a timer heap. It only knows the end of each key: the clock is an argument, and the caller
destroys the resource. A renewed or discarded key leaves a stale entry in the heap, which is removed when it
reaches the top or when stale entries are the majority. `end_of` turns a requested termination time into an
end, or raises the standard's Unacceptable fault. WS-BaseNotification 1.3, sections 4.2 and 6.1.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Generic, TypeVar

from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.times import Duration, Termination

TimeFault = type[faults.UnacceptableInitialTerminationTimeFault | faults.UnacceptableTerminationTimeFault]
K = TypeVar("K", bound=Hashable)

# Below this many stale entries a rebuild costs more than it frees.
_SLACK = 64


class Lifetimes(Generic[K]):
    """Keys and the time at which each of them ends."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._live: dict[K, tuple[float, int]] = {}
        self._sequence = 0

    def __len__(self) -> int:
        """The number of keys that have an end."""
        return len(self._live)

    def set(self, key: K, when: float | None) -> None:
        """Set or replace the end of a key; None means never."""
        if when is None:
            self.discard(key)
            return
        if math.isnan(when):
            raise ValueError(f"{key!r} cannot end at {when}; give a time in seconds, or None for never")
        self._sequence += 1
        self._live[key] = (when, self._sequence)
        # The sequence is unique, so that keys are never compared.
        heapq.heappush(self._heap, (when, self._sequence, key))
        self._compact()

    def discard(self, key: K) -> None:
        """Remove the key if it is known."""
        if self._live.pop(key, None) is not None:
            self._compact()

    def due(self, now: float) -> list[K]:
        """Remove and return the keys that have ended, earliest first; equal times in the order of `set`."""
        keys: list[K] = []
        while (when := self.next_due()) is not None and when <= now:
            key = heapq.heappop(self._heap)[2]
            del self._live[key]
            keys.append(key)
        return keys

    def next_due(self) -> float | None:
        """When the next key ends; None if no key has an end."""
        while self._heap:
            when, sequence, key = self._heap[0]
            if self._live.get(key) == (when, sequence):
                return when
            heapq.heappop(self._heap)
        return None

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [(when, sequence, key) for key, (when, sequence) in self._live.items()]
            heapq.heapify(self._heap)


def end_of(
    termination: Termination, now: float, fault: TimeFault, longest: float, setting: str
) -> float | None:
    """The granted end in seconds since the epoch, None for never.

    A request without a termination time gets the longest lease, `longest` seconds (0: no limit), which
    `setting` configures. `fault` is raised for a time that is not in the future, is later than the longest
    lease, or is outside the calendar.
    """
    maximum = datetime.fromtimestamp(now + longest, UTC) if longest else None
    if termination is None:
        return None if maximum is None else now + longest
    moment = _moment(termination, now, fault)
    if moment <= datetime.fromtimestamp(now, UTC):
        raise fault(f"the requested time {moment.isoformat()} is not in the future", maximum_time=maximum)
    if maximum is not None and moment > maximum:
        raise fault(
            f"the requested time {moment.isoformat()} is later than this node grants"
            f" ({setting} is {longest:g} s)",
            maximum_time=maximum,
        )
    return moment.timestamp()


def _moment(termination: datetime | Duration, now: float, fault: TimeFault) -> datetime:
    if isinstance(termination, datetime):
        return termination
    try:
        return termination.after(datetime.fromtimestamp(now, UTC))
    except ValueError as error:
        raise fault(f"the requested duration ends outside the calendar: {error}") from error
