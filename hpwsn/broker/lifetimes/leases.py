"""One timer heap for the lifetimes of all resources: subscriptions, pull points, registrations.

It owns when each key ends and nothing else: the clock is an argument, and destroying a resource is for
the one that asked (WS-BaseNotification 1.3, section 6: scheduled termination). A key that is renewed or
discarded leaves its old entry in the heap until it surfaces, or until such entries are the majority.

What a termination time that somebody asks for comes to, or the standard's fault for it.

None is for ever, or as long as the node grants; a past, zero or negative time, one beyond what is granted
and one outside of the calendar are the Unacceptable fault of the operation. WS-BaseNotification 1.3,
sections 4.2 and 6.1.
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


def end_of(
    termination: Termination, now: float, fault: TimeFault, longest: float, setting: str
) -> float | None:
    """The end in seconds since the epoch, None for never; `setting` names the one for the longest."""
    maximum = datetime.fromtimestamp(now + longest, UTC) if longest else None
    if termination is None:
        return None if maximum is None else now + longest
    moment = _moment(termination, now, fault)
    if moment <= datetime.fromtimestamp(now, UTC):
        raise fault(f"the time asked for, {moment.isoformat()}, is not in the future", maximum_time=maximum)
    if maximum is not None and moment > maximum:
        raise fault(
            f"the time asked for, {moment.isoformat()}, is later than this node grants"
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
        raise fault(f"the duration asked for leads outside of the calendar: {error}") from error


K = TypeVar("K", bound=Hashable)

# Below this many stale entries a rebuild costs more than it frees.
_SLACK = 64


class Lifetimes(Generic[K]):
    """Keys with the time at which each of them ends."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._live: dict[K, tuple[float, int]] = {}
        self._sequence = 0

    def __len__(self) -> int:
        """How many keys have an end."""
        return len(self._live)

    def set(self, key: K, when: float | None) -> None:
        """Let the key end at `when` and at no other time; None is never."""
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
        """Forget the key, known or not."""
        if self._live.pop(key, None) is not None:
            self._compact()

    def due(self, now: float) -> list[K]:
        """Take out the keys whose time has come, earliest first and in the order they were set."""
        keys: list[K] = []
        while (when := self.next_due()) is not None and when <= now:
            key = heapq.heappop(self._heap)[2]
            del self._live[key]
            keys.append(key)
        return keys

    def next_due(self) -> float | None:
        """When the next key ends, or None where none will."""
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
