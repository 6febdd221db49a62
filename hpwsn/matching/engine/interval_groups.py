"""Rows that look at the same few channels, in segments that grow and shrink with the number of live rows.

A group has at most 64 channels, each with a column. A full segment is copied into a larger one, up to the
largest, after which there is another; that takes milliseconds and happens three times. A segment that is too
large, half of holes or lacks a column is superseded: its rows are moved into the newest one, a few with each
change, so that memory follows the live rows and no change waits for a rebuild.
"""

from __future__ import annotations

import math
from collections.abc import Set
from struct import Struct
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.intervals import NUMBER, TEXT, TRUTH, Channel, Row, TextCodes, scalar_in_channel
from hpwsn.matching.engine.segments import Bounds, Numbers, Rows, Segment
from hpwsn.matching.language.predicates import Event, conjunction_holds
from hpwsn.matching.language.values import Scalar

COLUMNS = 64
"""Channels of one group."""

CODED = frozenset({TEXT, TRUTH})
"""Kinds of channel whose values have no order."""

SIZES = (1024, 4096, 16384, 65536)
"""Rows of a segment: the first that is twice as large as what the group holds, or the last."""

Looked = tuple[Scalar | tuple[Scalar, ...] | None, ...]
"""What an event has of a group's attributes."""

SPARE = 8
"""A segment so many times larger than the group's live rows is given up for a smaller one."""


class Tenants:
    """A segment with the entries of its rows."""

    __slots__ = ("clearing", "entries", "group", "ids", "segment")

    def __init__(self, group: Group, segment: Segment) -> None:
        self.group = group
        self.segment = segment
        # As objects, which are listed sooner than numbers that have to be made anew each time.
        self.ids: NDArray[np.object_] = np.zeros(segment.size, np.object_)
        self.entries: list[Entry | None] = []
        self.clearing = False

    def grow(self, size: int) -> None:
        """Make room for more rows."""
        self.segment.grow(size)
        self.ids = np.concatenate((self.ids, np.zeros(size - len(self.ids), np.object_)))

    def add(self, entry: Entry, bounds: Bounds) -> None:
        """Give the entry the next row."""
        self.ids[self.segment.count] = entry.id
        self.entries.append(entry)
        entry.place = (self, self.segment.add(bounds, bool(entry.rest)))

    def remove(self, row: int) -> None:
        """Take the entry out of a row."""
        self.segment.remove(row)
        self.entries[row] = None

    def last_rows(self, most: int) -> list[int]:
        """The last rows that are in use, at most so many; what lies behind them is forgotten."""
        entries = self.entries
        rows: list[int] = []
        for row in range(len(entries) - 1, -1, -1):
            if entries[row] is not None:
                rows.append(row)
                if len(rows) == most:
                    break
        del entries[rows[0] + 1 if rows else 0 :]
        return rows

    def take(self, other: Tenants, rows: list[int]) -> int:
        """Move rows over from other tenants, as many as there is room for at once; how many."""
        start = self.segment.count
        taken = self.segment.take(other.segment, np.array(rows))
        for row, place in zip(rows[:taken], range(start, start + taken), strict=True):
            entry = cast(Entry, other.entries[row])
            entry.place = (self, place)
            self.entries.append(entry)
            self.ids[place] = entry.id
            other.remove(row)
        return taken

    def collect(self, rows: Rows, event: Event, found: list[int], ask_all: bool) -> int:
        """Append the ids of rows that hold, after asking what is left over of them; how many were asked."""
        if not rows.size:
            return 0
        if not ask_all:
            if not self.segment.remainders:
                found += self.ids[rows].tolist()
                return 0
            asked = self.segment.remainder[rows]
            found += self.ids[rows[~asked]].tolist()
            rows = rows[asked]
        for entry in cast(list[Entry], [self.entries[row] for row in rows.tolist()]):
            if conjunction_holds(entry.conjunction if ask_all else entry.rest, event):
                found.append(entry.id)
        return len(rows)


class Group:
    """Rows that look at the same few channels."""

    __slots__ = ("_pack", "_plain", "_values", "by_attribute", "channels", "tenants")

    def __init__(self) -> None:
        self.channels: dict[Channel, int] = {}
        self.by_attribute: dict[str, list[tuple[int, str]]] = {}
        self.tenants: list[Tenants] = []
        self._learn_shape()

    def _learn_shape(self) -> None:
        """Room for an event's values; columns of numbers, one to an attribute, take them as they are."""
        self._plain = all(kind is NUMBER for _, kind in self.channels)
        self._pack = Struct(f"{len(self.channels)}d").pack_into
        self._values: Numbers = np.full(self._width(), math.nan)

    @property
    def live(self) -> int:
        """How many rows are in use."""
        return sum(tenants.segment.live for tenants in self.tenants)

    def has(self, channels: Set[Channel]) -> bool:
        """Whether all the channels have columns here."""
        return channels <= self.channels.keys()

    def has_room(self, channels: Set[Channel]) -> bool:
        """Whether they would."""
        return len(self.channels.keys() | channels) <= COLUMNS

    def add(self, entry: Entry, row: Row) -> None:
        """Take a row."""
        columns = self.channels
        if not self.has(row.bounds.keys()):
            for channel in row.bounds:
                if channel not in columns:
                    self._add_column(channel)
        bounds = [(columns[channel], low, high) for channel, (low, high) in row.bounds.items()]
        self.open_for(max(bounds)[0] + 1).add(entry, bounds)

    def _add_column(self, channel: Channel) -> None:
        column = self.channels[channel] = len(self.channels)
        self.by_attribute.setdefault(channel[0], []).append((column, channel[1]))
        self._learn_shape()
        for tenants in self.tenants:
            if column < tenants.segment.columns and channel[1] in CODED:
                tenants.segment.look_up(column)

    def open_for(self, columns: int) -> Tenants:
        """Where the next row goes: a new segment where the last lacks a column or cannot grow."""
        last = self.tenants[-1] if self.tenants else None
        if last is None or last.clearing or last.segment.columns < columns or last.segment.full:
            wanted = 2 * self.live
            size = next((size for size in SIZES if size >= wanted), SIZES[-1])
            if last and not last.clearing and last.segment.columns >= columns and size > last.segment.size:
                last.grow(size)
                return last
            segment = Segment(size, self._width())
            for (_, kind), column in self.channels.items():
                if kind in CODED:
                    segment.look_up(column)
            last = Tenants(self, segment)
            self.tenants.append(last)
        return last

    def superseded(self) -> list[Tenants]:
        """Those whose rows should move into the newest segment, and that were not told so yet."""
        newest = self.tenants[-1].segment
        return [
            tenants
            for tenants in self.tenants
            if not tenants.clearing
            and (
                tenants.segment.holes * 2 >= tenants.segment.size
                or (tenants.segment.size > SIZES[0] and tenants.segment.size > SPARE * self.live)
                or (
                    tenants.segment is not newest
                    and (tenants.segment.size < newest.size or not tenants.segment.full)
                )
            )
        ]

    def _width(self) -> int:
        """Columns that a segment of today has, in fours as kernels take them; older ones may have fewer."""
        return len(self.channels) + 3 & ~3

    def look(self, event: Event) -> Looked:
        """What the event has of the group's attributes."""
        return tuple(map(event.get, self.by_attribute))

    def values(self, looked: Looked, kinds: Set[type], codes: TextCodes) -> Numbers | None:
        """A single value for each column, of what the event was found to have; None if that is nothing.

        The array is used again for the next event.
        """
        if kinds == _NOTHING:
            return None
        if not self._plain or not kinds <= _NUMBERS:
            looked = tuple(self._converted(looked, codes))
        elif len(kinds) > 1:
            looked = tuple([math.nan if value is None else value for value in looked])
        self._pack(self._values, 0, *looked)  # type: ignore[arg-type]
        return self._values

    def _converted(self, looked: Looked, codes: TextCodes) -> list[float]:
        """What was found as each column sees it."""
        numbers = [math.nan] * len(self.channels)
        for value, channels in zip(looked, self.by_attribute.values(), strict=True):
            if value is not None:
                for column, kind in channels:
                    numbers[column] = (
                        value
                        if kind is NUMBER and type(value) is float
                        else scalar_in_channel(cast(Scalar, value), kind, codes)
                    )
        return numbers

    def repeated_values(self, event: Event, codes: TextCodes) -> list[tuple[float, ...]]:
        """The same where attributes may have several."""
        values: list[tuple[float, ...]] = [(math.nan,)] * self._width()
        for name, value in event.items():
            several = value if type(value) is tuple else (cast(Scalar, value),)
            for column, kind in self.by_attribute.get(name, ()):
                values[column] = tuple(scalar_in_channel(v, kind, codes) for v in several) or (math.nan,)
        return values


_NOTHING = frozenset({type(None)})
_NUMBERS = frozenset({float, type(None)})
