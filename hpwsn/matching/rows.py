"""The index of intervals: conjunctions as rows of hpwsn.matching.groups, each where its channels are.

A group is found by its attributes, and asked only for events that have one of them. Where requests look at
more different channels than the groups have columns for, a row keeps the channels of one group, and its
conjunction is asked for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import cast

import numpy as np

from hpwsn.matching.entries import Entry
from hpwsn.matching.groups import COLUMNS, Group, Tenants
from hpwsn.matching.intervals import Row, TextCodes, is_repeated
from hpwsn.matching.kernels import Kernel, match_repeated
from hpwsn.matching.predicates import Event

MOST_GROUPS = 16
"""Groups that there can be while each new row shares a channel with one of them."""

LOOKED_AT = 64
"""Groups that are asked whether they have room for a row that shares nothing with them."""

MOVES = 2
"""Rows that leave a segment under clearance with each change, on average."""

TOGETHER = 64
"""Rows that leave it at once, which is cheaper."""

BATCH = 16
"""Events that a kernel gets at once: with more, what it finds fills the caches."""


class RowIndex:
    """Conjunctions that ask for at least one interval."""

    def __init__(self, codes: TextCodes, kernel: Callable[[], Kernel]) -> None:
        self._codes = codes
        self._kernel = kernel
        self._groups: dict[Group, None] = {}
        self._by_attribute: dict[str, dict[Group, None]] = {}
        self._clearing: list[Tenants] = []
        self._due = 0

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return sum(len(group.tenants) for group in self._groups)

    @property
    def capacity(self) -> int:
        """For how many rows there is memory."""
        return sum(tenants.segment.size for group in self._groups for tenants in group.tenants)

    def has_column(self, attribute: str) -> bool:
        """Whether some row looks at the attribute."""
        return attribute in self._by_attribute

    def add(self, entry: Entry, row: Row) -> None:
        """Take a conjunction, which these are the intervals of."""
        entry.texts = row.texts
        group = self._group_for(row)
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
        row.remainder = row.remainder or len(kept) < len(channels)
        row.bounds = kept
        return best

    def _groups_with(self, attributes: Iterable[str]) -> Iterable[Group]:
        """Those that have a column for one of the attributes."""
        if len(self._groups) == 1:
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

    def match(self, events: Sequence[Event], found: Sequence[list[int]]) -> int:
        """Append the ids of conjunctions that hold to each event's; how many were asked one by one."""
        if not self._groups:
            return 0
        asked, plain = 0, []
        for event, ids in zip(events, found, strict=True):
            if is_repeated(event):
                asked += self._match_repeated(event, ids)
            else:
                plain.append((event, ids))
        for start in range(0, len(plain), BATCH):
            asked += self._match_plain(plain[start : start + BATCH])
        return asked

    def _match_plain(self, events: list[tuple[Event, list[int]]]) -> int:
        asked, kernel, codes = 0, self._kernel(), self._codes
        for group in self._groups_with(name for event, _ in events for name in event):
            looked = [
                (values, event, ids)
                for event, ids in events
                if (values := group.values(event, codes)) is not None
            ]
            if not looked:
                continue
            array = np.array([values for values, _, _ in looked])
            for tenants in group.tenants:
                for rows, (_, event, ids) in zip(kernel(tenants.segment, array), looked, strict=True):
                    asked += tenants.collect(rows, event, ids, False)
        return asked

    def _match_repeated(self, event: Event, found: list[int]) -> int:
        asked = 0
        for group in self._groups_with(event):
            values = group.repeated_values(event, self._codes)
            for tenants in group.tenants:
                rows = match_repeated(tenants.segment, values[: tenants.segment.columns])
                asked += tenants.collect(rows, event, found, True)
        return asked
