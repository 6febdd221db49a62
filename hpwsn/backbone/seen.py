"""Which frames have been stored already, so that one which comes again is dropped. Pure.

A source numbers its frames without gaps, so nearly all that it sent is one range of numbers, and a frame that
comes late, by way of another message broker, makes one more. Ranges are kept, not numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.backbone.frames import FrameId
from hpwsn.journal.records import FrameRange


class Seen:
    """Ranges of frame numbers by source."""

    def __init__(self, ranges: Iterable[FrameRange] = ()) -> None:
        self._ranges: dict[str, dict[int, int]] = {}
        for one in ranges:
            self._ranges.setdefault(one.source, {})[one.first] = one.last

    def __contains__(self, frame: FrameId) -> bool:
        ranges = self._ranges.get(frame.source, {})
        return any(first <= frame.number <= last for first, last in reversed(ranges.items()))

    def add(self, frame: FrameId) -> FrameRange:
        """Remember a frame; the range that it is in now, which is what has to be stored."""
        ranges = self._ranges.setdefault(frame.source, {})
        for first, last in reversed(ranges.items()):
            if frame.number == last + 1:
                ranges[first] = frame.number
                return FrameRange(frame.source, first, frame.number)
        ranges[frame.number] = frame.number
        return FrameRange(frame.source, frame.number, frame.number)
