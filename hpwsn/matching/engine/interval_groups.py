"""Groups of interval rows that use the same channels, in segments that follow the number of live rows.

A group has at most 64 channels, each with a column. A full segment is copied into a larger one up to the
largest size, which happens three times and takes milliseconds; after that a new segment is added. A segment
that is too large, is half empty or lacks a column is superseded: a few of its rows move into the newest
segment with each change. So memory follows the live rows, and no change waits for a rebuild.
"""

from __future__ import annotations

import math
from collections.abc import Set
from struct import Struct
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.intervals import (
    NUMBER,
    TEXT,
    TRUTH,
    Channel,
    IntervalRow,
    TextCodes,
    scalar_in_channel,
)
from hpwsn.matching.engine.segments import Bounds, Floats, RowNumbers, Segment
from hpwsn.matching.language.predicates import Event, conjunction_holds
from hpwsn.matching.language.values import Scalar

MAX_COLUMNS = 64
"""Channels of one group."""

UNORDERED_KINDS = frozenset({TEXT, TRUTH})
"""Kinds of channel whose values have no order."""

SIZES = (1024, 4096, 16384, 65536)
"""Rows of a segment: the first size that is twice the group's live rows, or the last."""

RawValues = tuple[Scalar | tuple[Scalar, ...] | None, ...]
"""An event's values of a group's attributes; None where the event lacks one."""

SHRINK_RATIO = 8
"""A segment this many times larger than the group's live rows is superseded."""


class GroupSegment:
    """A segment of a group, with the entries of its rows."""

    __slots__ = ("draining", "entries", "group", "ids", "segment")

    def __init__(self, group: IntervalGroup, segment: Segment) -> None:
        self.group = group
        self.segment = segment
        # An array of objects: listing them is faster than creating Python integers each time.
        self.ids: NDArray[np.object_] = np.zeros(segment.size, np.object_)
        self.entries: list[Entry | None] = []
        self.draining = False

    def grow(self, size: int) -> None:
        """Enlarge the segment to `size` rows."""
        self.segment.grow(size)
        self.ids = np.concatenate((self.ids, np.zeros(size - len(self.ids), np.object_)))

    def add(self, entry: Entry, bounds: Bounds) -> None:
        """Append a row for the entry."""
        self.ids[self.segment.count] = entry.id
        self.entries.append(entry)
        entry.place = (self, self.segment.add(bounds, bool(entry.rest)))

    def remove(self, row: int) -> None:
        """Remove a row's entry."""
        self.segment.remove(row)
        self.entries[row] = None

    def last_rows(self, most: int) -> list[int]:
        """Return the last live rows, at most `most`; drops the entry slots behind them."""
        entries = self.entries
        rows: list[int] = []
        for row in range(len(entries) - 1, -1, -1):
            if entries[row] is not None:
                rows.append(row)
                if len(rows) == most:
                    break
        del entries[rows[0] + 1 if rows else 0 :]
        return rows

    def take(self, other: GroupSegment, rows: list[int]) -> int:
        """Move rows from another segment, as many as one pack holds; return how many."""
        start = self.segment.count
        taken = self.segment.take(other.segment, np.array(rows))
        for row, place in zip(rows[:taken], range(start, start + taken), strict=True):
            entry = cast(Entry, other.entries[row])
            entry.place = (self, place)
            self.entries.append(entry)
            self.ids[place] = entry.id
            other.remove(row)
        return taken

    def collect(self, rows: RowNumbers, event: Event, found: list[int], evaluate_all: bool) -> int:
        """Append the ids of rows whose rest holds too; return how many rests were evaluated.

        `evaluate_all` evaluates the whole conjunction of every row.
        """
        if not rows.size:
            return 0
        if not evaluate_all:
            if not self.segment.remainders:
                found += self.ids[rows].tolist()
                return 0
            partial = self.segment.remainder[rows]
            found += self.ids[rows[~partial]].tolist()
            rows = rows[partial]
        for entry in cast(list[Entry], [self.entries[row] for row in rows.tolist()]):
            if conjunction_holds(entry.conjunction if evaluate_all else entry.rest, event):
                found.append(entry.id)
        return len(rows)


class IntervalGroup:
    """Rows that use the same few channels."""

    __slots__ = ("_only_numbers", "_pack", "_values", "by_attribute", "channels", "segments")

    def __init__(self) -> None:
        self.channels: dict[Channel, int] = {}
        self.by_attribute: dict[str, list[tuple[int, str]]] = {}
        self.segments: list[GroupSegment] = []
        self._reset_values()

    def _reset_values(self) -> None:
        """Allocate the array of an event's values; groups of numbers only need no conversion."""
        self._only_numbers = all(kind is NUMBER for _, kind in self.channels)
        self._pack = Struct(f"{len(self.channels)}d").pack_into
        self._values: Floats = np.full(self._width(), math.nan)

    @property
    def live(self) -> int:
        """The number of live rows."""
        return sum(group_segment.segment.live for group_segment in self.segments)

    def has_columns(self, channels: Set[Channel]) -> bool:
        """Whether the group has columns for all the channels."""
        return channels <= self.channels.keys()

    def has_room(self, channels: Set[Channel]) -> bool:
        """Whether the group can add columns for all the channels."""
        return len(self.channels.keys() | channels) <= MAX_COLUMNS

    def add(self, entry: Entry, row: IntervalRow) -> None:
        """Add a row, and columns for its new channels."""
        columns = self.channels
        if not self.has_columns(row.bounds.keys()):
            for channel in row.bounds:
                if channel not in columns:
                    self._add_column(channel)
        bounds = [(columns[channel], low, high) for channel, (low, high) in row.bounds.items()]
        self.open_for(max(bounds)[0] + 1).add(entry, bounds)

    def _add_column(self, channel: Channel) -> None:
        column = self.channels[channel] = len(self.channels)
        self.by_attribute.setdefault(channel[0], []).append((column, channel[1]))
        self._reset_values()
        for group_segment in self.segments:
            if column < group_segment.segment.columns and channel[1] in UNORDERED_KINDS:
                group_segment.segment.use_codes(column)

    def open_for(self, columns: int) -> GroupSegment:
        """Return the segment for the next row; a new one if the last lacks columns or cannot grow."""
        last = self.segments[-1] if self.segments else None
        if last is None or last.draining or last.segment.columns < columns or last.segment.full:
            wanted = 2 * self.live
            size = next((size for size in SIZES if size >= wanted), SIZES[-1])
            if last and not last.draining and last.segment.columns >= columns and size > last.segment.size:
                last.grow(size)
                return last
            segment = Segment(size, self._width())
            for (_, kind), column in self.channels.items():
                if kind in UNORDERED_KINDS:
                    segment.use_codes(column)
            last = GroupSegment(self, segment)
            self.segments.append(last)
        return last

    def superseded(self) -> list[GroupSegment]:
        """Return segments that are not draining yet and whose rows should move to the newest one."""
        newest = self.segments[-1].segment
        return [
            group_segment
            for group_segment in self.segments
            if not group_segment.draining
            and (
                group_segment.segment.holes * 2 >= group_segment.segment.size
                or (
                    group_segment.segment.size > SIZES[0]
                    and group_segment.segment.size > SHRINK_RATIO * self.live
                )
                or (
                    group_segment.segment is not newest
                    and (group_segment.segment.size < newest.size or not group_segment.segment.full)
                )
            )
        ]

    def _width(self) -> int:
        """Columns of a new segment, a multiple of four for the kernels; older segments can have fewer."""
        return len(self.channels) + 3 & ~3

    def raw_values(self, event: Event) -> RawValues:
        """Return the event's values of the group's attributes."""
        return tuple(map(event.get, self.by_attribute))

    def values(self, raw: RawValues, kinds: Set[type], codes: TextCodes) -> Floats | None:
        """Convert the raw values to one number per column; None if the event has none of the attributes.

        The next call reuses the array.
        """
        if kinds == _NOTHING:
            return None
        if not self._only_numbers or not kinds <= _NUMBERS:
            raw = tuple(self._converted(raw, codes))
        elif len(kinds) > 1:
            raw = tuple([math.nan if value is None else value for value in raw])
        self._pack(self._values, 0, *raw)  # type: ignore[arg-type]
        return self._values

    def _converted(self, raw: RawValues, codes: TextCodes) -> list[float]:
        """Return the raw values as each column reads them."""
        numbers = [math.nan] * len(self.channels)
        for value, channels in zip(raw, self.by_attribute.values(), strict=True):
            if value is not None:
                for column, kind in channels:
                    numbers[column] = (
                        value
                        if kind is NUMBER and type(value) is float
                        else scalar_in_channel(cast(Scalar, value), kind, codes)
                    )
        return numbers

    def repeated_values(self, event: Event, codes: TextCodes) -> list[tuple[float, ...]]:
        """Return all values of each column, for events that repeat attributes."""
        values: list[tuple[float, ...]] = [(math.nan,)] * self._width()
        for name, value in event.items():
            several = value if type(value) is tuple else (cast(Scalar, value),)
            for column, kind in self.by_attribute.get(name, ()):
                values[column] = tuple(scalar_in_channel(v, kind, codes) for v in several) or (math.nan,)
        return values


_NOTHING = frozenset({type(None)})
_NUMBERS = frozenset({float, type(None)})
