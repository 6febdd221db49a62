"""The index of intervals: conjunctions as rows of hpwsn.matching.engine.interval_groups, each where its
channels are.

A group is found by its attributes, and asked only for events that have one of them. Where requests look at
more different channels than the groups have columns for, a row keeps the channels of one group, and its
conjunction is asked for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from itertools import islice
from typing import cast

from hpwsn.matching.engine.conjunction_index import Entry
from hpwsn.matching.engine.interval_groups import COLUMNS, Group, Tenants
from hpwsn.matching.engine.intervals import Row, TextCodes
from hpwsn.matching.engine.kernels import Kernel, match_repeated
from hpwsn.matching.language.predicates import Event

MOST_GROUPS = 16
"""Groups that there can be while each new row shares a channel with one of them."""

LOOKED_AT = 64
"""Groups that are asked whether they have room for a row that shares nothing with them."""

MOVES = 2
"""Rows that leave a segment under clearance with each change, on average."""

TOGETHER = 64
"""Rows that leave it at once, which is cheaper."""


class RowIndex:
    """Conjunctions that ask for at least one interval."""

    def __init__(self, codes: TextCodes, kernel: Callable[[], Kernel]) -> None:
        self._codes = codes
        self._kernel = kernel
        self._groups: dict[Group, None] = {}
        self._by_attribute: dict[str, dict[Group, None]] = {}
        self._clearing: list[Tenants] = []
        self._due = 0

    def __bool__(self) -> bool:
        return bool(self._groups)

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return sum(len(group.tenants) for group in self._groups)

    @property
    def capacity(self) -> int:
        """For how many rows there is memory."""
        return sum(tenants.segment.size for group in self._groups for tenants in group.tenants)

    @property
    def attributes(self) -> Container[str]:
        """Those that some row looks at."""
        return self._by_attribute

    def add(self, entry: Entry, row: Row) -> None:
        """Take a conjunction, which these are the intervals of."""
        entry.texts, entry.rest, wanted = row.texts, row.rest, len(row.bounds)
        group = self._group_for(row)
        if len(row.bounds) < wanted:
            entry.rest = entry.conjunction
        before, channels = len(group.tenants), len(group.channels)
        group.add(entry, row)
        if len(group.channels) != channels:
            for attribute, _ in islice(group.channels, channels, None):
                self._by_attribute.setdefault(attribute, {})[group] = None
        if len(group.tenants) != before:
            self._supersede(group)
        self._clear()

    def _group_for(self, row: Row) -> Group:
        """The group that has the row's channels or room for them; else a new one, or a part of the row."""
        channels = row.bounds.keys()
        sharing = self._groups_with(attribute for attribute, _ in channels)
        for group in sharing:
            if group.has(channels):
                return group
        # Of the others the newer ones have room, if one has.
        for group in (*sharing, *islice(reversed(self._groups), LOOKED_AT)):
            if group.has_room(channels):
                return group
        best = max(sharing, key=lambda group: len(group.channels.keys() & channels), default=None)
        if best is None or len(self._groups) < MOST_GROUPS or not best.channels.keys() & channels:
            best = Group()
            self._groups[best] = None
            kept = dict(islice(row.bounds.items(), COLUMNS))
        else:
            kept = {channel: row.bounds[channel] for channel in channels & best.channels.keys()}
        row.bounds = kept
        return best

    def _groups_with(self, attributes: Iterable[str]) -> Iterable[Group]:
        """Those that have a column for one of the attributes."""
        if len(self._groups) < 2:
            return self._groups
        return dict.fromkeys(group for name in attributes for group in self._by_attribute.get(name, ()))

    def remove(self, entry: Entry) -> None:
        """Forget a conjunction."""
        tenants, row = cast(tuple[Tenants, int], entry.place)
        tenants.remove(row)
        self._codes.release(entry.texts)
        segment = tenants.segment
        if not segment.live:
            self._drop(tenants)
        elif not segment.live & 63:
            self._supersede(tenants.group)
        self._clear()

    def _supersede(self, group: Group) -> None:
        for tenants in group.superseded():
            tenants.clearing = True
            self._clearing.append(tenants)

    def _drop(self, tenants: Tenants) -> None:
        tenants.group.tenants.remove(tenants)
        if tenants.clearing:
            self._clearing.remove(tenants)
        if not tenants.group.tenants:
            self._forget(tenants.group)

    def _forget(self, group: Group) -> None:
        del self._groups[group]
        for attribute in group.by_attribute:
            del self._by_attribute[attribute][group]
            if not self._by_attribute[attribute]:
                del self._by_attribute[attribute]

    def _clear(self) -> None:
        """Move some rows out of the segment that is being cleared, if enough are due."""
        if not self._clearing:
            return
        self._due += MOVES
        tenants = self._clearing[0]
        if self._due < min(TOGETHER, tenants.segment.live):
            return
        self._due = 0
        rows = tenants.last_rows(TOGETHER)
        while rows:
            before = len(tenants.group.tenants)
            rows = rows[tenants.group.open_for(tenants.segment.columns).take(tenants, rows) :]
            if len(tenants.group.tenants) != before:
                self._supersede(tenants.group)
        if not tenants.segment.live:
            self._drop(tenants)

    def match(self, event: Event, found: list[int]) -> int:
        """Append the ids of conjunctions that hold; how many were asked one by one."""
        asked, kernel, codes = 0, self._kernel(), self._codes
        for group in self._groups_with(event):
            looked = group.look(event)
            kinds = set(map(type, looked))
            if tuple in kinds:
                asked += self._match_repeated(group, event, found)
            elif (values := group.values(looked, kinds, codes)) is not None:
                for tenants in group.tenants:
                    asked += tenants.collect(kernel(tenants.segment, values), event, found, False)
        return asked

    def _match_repeated(self, group: Group, event: Event, found: list[int]) -> int:
        asked, values = 0, group.repeated_values(event, self._codes)
        for tenants in group.tenants:
            rows = match_repeated(tenants.segment, values[: tenants.segment.columns])
            asked += tenants.collect(rows, event, found, True)
        return asked
