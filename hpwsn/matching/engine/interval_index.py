"""The index of intervals: conjunctions as rows in groups that share channels (`interval_groups`).

Groups are found by attribute, and an event visits only groups that have one of its attributes. If requests
use more channels than the groups have columns for, a row keeps only the channels of one group, and the whole
conjunction is evaluated for each match.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from itertools import islice
from typing import cast

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.interval_groups import MAX_COLUMNS, GroupSegment, IntervalGroup
from hpwsn.matching.engine.intervals import IntervalRow, TextCodes
from hpwsn.matching.engine.kernels import Kernel, match_repeated
from hpwsn.matching.language.predicates import Event

MAX_GROUPS = 16
"""Groups allowed while each new row shares a channel with one of them."""

MAX_ROOM_CHECKS = 64
"""Groups checked for room if a row shares no channel with them."""

MOVES_PER_CHANGE = 2
"""Rows that leave a draining segment per change, on average."""

MOVE_BATCH = 64
"""Rows that are moved at once, which is cheaper than one by one."""


class IntervalIndex:
    """Conjunctions with at least one interval."""

    def __init__(self, codes: TextCodes, kernel: Callable[[], Kernel]) -> None:
        self._codes = codes
        self._kernel = kernel
        self._groups: dict[IntervalGroup, None] = {}
        self._by_attribute: dict[str, dict[IntervalGroup, None]] = {}
        self._draining: list[GroupSegment] = []
        self._due = 0

    def __bool__(self) -> bool:
        return bool(self._groups)

    @property
    def segments(self) -> int:
        """The number of segments."""
        return sum(len(group.segments) for group in self._groups)

    @property
    def capacity(self) -> int:
        """The number of rows that memory is allocated for."""
        return sum(group_segment.segment.size for group in self._groups for group_segment in group.segments)

    @property
    def attributes(self) -> Container[str]:
        """The attributes that have a column."""
        return self._by_attribute

    def add(self, entry: Entry, row: IntervalRow) -> None:
        """Add a conjunction, given as its intervals."""
        entry.texts, entry.rest, wanted = row.texts, row.rest, len(row.bounds)
        group = self._group_for(row)
        if len(row.bounds) < wanted:
            entry.rest = entry.conjunction
        before, channels = len(group.segments), len(group.channels)
        group.add(entry, row)
        if len(group.channels) != channels:
            for attribute, _ in islice(group.channels, channels, None):
                self._by_attribute.setdefault(attribute, {})[group] = None
        if len(group.segments) != before:
            self._supersede(group)
        self._drain()

    def _group_for(self, row: IntervalRow) -> IntervalGroup:
        """Return the group for a row: one with its channels or with room for them, or a new one.

        With too many groups, the row is cut to the channels of the group that shares the most.
        """
        channels = row.bounds.keys()
        sharing = self._groups_with(attribute for attribute, _ in channels)
        for group in sharing:
            if group.has_columns(channels):
                return group
        # The newest groups are the likeliest to have room.
        for group in (*sharing, *islice(reversed(self._groups), MAX_ROOM_CHECKS)):
            if group.has_room(channels):
                return group
        best = max(sharing, key=lambda group: len(group.channels.keys() & channels), default=None)
        if best is None or len(self._groups) < MAX_GROUPS or not best.channels.keys() & channels:
            best = IntervalGroup()
            self._groups[best] = None
            kept = dict(islice(row.bounds.items(), MAX_COLUMNS))
        else:
            kept = {channel: row.bounds[channel] for channel in channels & best.channels.keys()}
        row.bounds = kept
        return best

    def _groups_with(self, attributes: Iterable[str]) -> Iterable[IntervalGroup]:
        """Return the groups that have a column for one of the attributes."""
        if len(self._groups) < 2:
            return self._groups
        return dict.fromkeys(group for name in attributes for group in self._by_attribute.get(name, ()))

    def remove(self, entry: Entry) -> None:
        """Remove a conjunction."""
        group_segment, row = cast(tuple[GroupSegment, int], entry.place)
        group_segment.remove(row)
        self._codes.release(entry.texts)
        segment = group_segment.segment
        if not segment.live:
            self._drop(group_segment)
        elif not segment.live & 63:
            self._supersede(group_segment.group)
        self._drain()

    def _supersede(self, group: IntervalGroup) -> None:
        for group_segment in group.superseded():
            group_segment.draining = True
            self._draining.append(group_segment)

    def _drop(self, group_segment: GroupSegment) -> None:
        group_segment.group.segments.remove(group_segment)
        if group_segment.draining:
            self._draining.remove(group_segment)
        if not group_segment.group.segments:
            self._forget(group_segment.group)

    def _forget(self, group: IntervalGroup) -> None:
        del self._groups[group]
        for attribute in group.by_attribute:
            del self._by_attribute[attribute][group]
            if not self._by_attribute[attribute]:
                del self._by_attribute[attribute]

    def _drain(self) -> None:
        """Move a batch of rows out of the first draining segment, if enough moves are due."""
        if not self._draining:
            return
        self._due += MOVES_PER_CHANGE
        group_segment = self._draining[0]
        if self._due < min(MOVE_BATCH, group_segment.segment.live):
            return
        self._due = 0
        rows = group_segment.last_rows(MOVE_BATCH)
        while rows:
            before = len(group_segment.group.segments)
            rows = rows[
                group_segment.group.open_for(group_segment.segment.columns).take(group_segment, rows) :
            ]
            if len(group_segment.group.segments) != before:
                self._supersede(group_segment.group)
        if not group_segment.segment.live:
            self._drop(group_segment)

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that match; return how many were evaluated one by one."""
        evaluated, kernel, codes = 0, self._kernel(), self._codes
        for group in self._groups_with(event):
            raw = group.raw_values(event)
            kinds = set(map(type, raw))
            if tuple in kinds:
                evaluated += self._match_repeated(group, event, found)
            elif (values := group.values(raw, kinds, codes)) is not None:
                for group_segment in group.segments:
                    evaluated += group_segment.collect(
                        kernel(group_segment.segment, values), event, found, False
                    )
        return evaluated

    def _match_repeated(self, group: IntervalGroup, event: Event, found: list[int]) -> int:
        evaluated, values = 0, group.repeated_values(event, self._codes)
        for group_segment in group.segments:
            rows = match_repeated(group_segment.segment, values[: group_segment.segment.columns])
            evaluated += group_segment.collect(rows, event, found, True)
        return evaluated
