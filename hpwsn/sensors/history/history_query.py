"""What a query of the history asks for, and the page that it gets.

Rows are in the order of their times, and of their offsets in the log where times are equal. A page ends with
the place after which the next one begins. It may end early, since a page takes a bounded time: then all rows
before that place were looked at, however few are in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hpwsn.errors import HpwsnError
from hpwsn.sensors.history.history_files import READINGS, RESULTS, HistoryFile
from hpwsn.sensors.physical.selection import Area
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import event_of

Item = Reading | Mapping[str, Any]
"""A reading, or the event of a result of a virtual sensor."""

_is_cursor = re.compile(r"(-?[0-9]{1,17})_(-?[0-9]{1,18})", re.ASCII).fullmatch


class Place(NamedTuple):
    """The place of a row in the order of all rows; the cursor of a page has it as a text."""

    time: int
    offset: int

    def cursor(self) -> str:
        """The place as a text that needs no escaping in a URL."""
        return f"{self.time}_{self.offset}"


class Row(NamedTuple):
    """A reading or a result, with its place."""

    time: int
    offset: int
    item: Item

    @property
    def place(self) -> Place:
        """Where the row is in the order of all rows."""
        return Place(self.time, self.offset)

    def event(self) -> Mapping[str, Any]:
        """The row as the event that subscribers got."""
        return event_of(self.item) if isinstance(self.item, Reading) else self.item


class Page(NamedTuple):
    """Rows in order, and the place after which more may follow; None if there are no more."""

    rows: Sequence[Row]
    after: Place | None


class Snapshot(NamedTuple):
    """What there is when a query begins: the data directory, its files by day, and the rows in memory."""

    data: Path
    days: Mapping[int, Sequence[HistoryFile]]
    pending: Iterable[Row]


class HistoryBusy(HpwsnError):
    """A query takes too long, or too many of them wait; the text says what to do."""


class HistoryDamaged(HpwsnError):
    """A file of the history cannot be read; the text names it."""

    def __init__(self, path: Path, file: HistoryFile, error: object) -> None:
        super().__init__(f"{path} cannot be read: {error}; move it away to go on without its rows")
        self.file = file


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which rows are meant; what is None does not matter.

    `sensors` are ids of physical sensors, or with `virtual` names of virtual ones. `start` is the first time
    that is meant, and `end` the first that is not, in milliseconds. `wanted` decides about each row.
    """

    sensors: frozenset[str] | None = None
    virtual: bool = False
    kind: str | None = None
    area: Area | None = None
    start: int | None = None
    end: int | None = None
    wanted: Callable[[Item], bool] | None = field(default=None, compare=False)

    @property
    def top(self) -> str:
        """The folder with these rows."""
        return RESULTS if self.virtual else READINGS

    def covers(self, start: int, end: int) -> bool:
        """Whether rows from one time to another, both included, may be meant."""
        return (self.start is None or end >= self.start) and (self.end is None or start < self.end)


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn: the rows of a query, or of them one quantity only, as `png` or `svg`.

    `unit_of` gives the unit of a sensor's quantity, and None where nobody knows it; threads call it.
    """

    query: HistoryQuery
    form: str
    quantity: str | None = None
    unit_of: Callable[[str, str], str | None] = field(default=lambda *_: None, compare=False)


def parse_cursor(text: str) -> Place | None:
    """The place in a cursor; None for any other text."""
    found = _is_cursor(text)
    return None if found is None else Place(int(found[1]), int(found[2]))
