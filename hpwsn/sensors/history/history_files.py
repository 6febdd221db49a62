"""The files of the history: their names, and which of them there are.

Readings are in `DATA/readings/day=YYYY-MM-DD/kind=KIND`, results of virtual sensors in
`DATA/virtual/day=YYYY-MM-DD`; the day is that of the time of a row, in UTC. The name of a file says which of
the files it has in it, by their numbers, and the first and last time of its rows as HHMMSSmmm:
`0000000012-0000000027_015000123-015959999.parquet`. So nobody opens a file to see whether a query or an age
concerns it. Numbers grow with every file that is written. A merged file has the numbers of all it was merged
from; what is left of these after a crash lies within its numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from hpwsn.durable_files import sync_folder

READINGS, RESULTS = "readings", "virtual"
"""The folders in the data directory."""
DAY = 86_400_000
"""Milliseconds of a day."""
LONGEST_FOLDER = 200
"""Bytes of a kind in the name of a folder; a longer one is cut, and gets a hash."""

_EPOCH = date(1970, 1, 1).toordinal()
_is_file = re.compile(r"([0-9]{10,18})-([0-9]{10,18})_([0-9]{9})-([0-9]{9})\.parquet", re.ASCII).fullmatch
_is_day = re.compile(r"day=([0-9]{4}-[0-9]{2}-[0-9]{2})", re.ASCII).fullmatch


class HistoryFile(NamedTuple):
    """One Parquet file; `start` and `end` are the first and the last time of its rows in milliseconds."""

    top: str
    """READINGS or RESULTS."""
    day: int
    """Days since 1970."""
    kind: str
    """As in the name of the folder; empty for results."""
    first: int
    last: int
    start: int
    end: int
    size: int
    """Bytes."""

    @property
    def folder(self) -> str:
        """The folder in the data directory."""
        return folder_of(self.top, self.day, self.kind)

    @property
    def path(self) -> str:
        """The path in the data directory."""
        begin = self.day * DAY
        times = f"{_clock(self.start - begin)}-{_clock(self.end - begin)}"
        return f"{self.folder}/{self.first:010}-{self.last:010}_{times}.parquet"

    def holds(self, other: HistoryFile) -> bool:
        """Whether the other file was merged into this one."""
        return self.first <= other.first and other.last <= self.last and self is not other


def day_of(time: int) -> int:
    """The day of a time in milliseconds."""
    return time // DAY


def day_text(day: int) -> str:
    """The day as YYYY-MM-DD."""
    return date.fromordinal(_EPOCH + day).isoformat()


def kind_folder(kind: str) -> str:
    """The kind as the name of a folder can have it."""
    encoded = kind.encode()
    if len(encoded) <= LONGEST_FOLDER:
        return kind
    return f"{encoded[:LONGEST_FOLDER].decode(errors='ignore')}-{sha256(encoded).hexdigest()[:16]}"


def folder_of(top: str, day: int, kind: str) -> str:
    """The folder of a day's rows in the data directory; `kind` is empty for results."""
    return f"{top}/day={day_text(day)}" + (f"/kind={kind}" if kind else "")


def parse_path(top: str, day_name: str, kind: str, name: str, size: int) -> HistoryFile | None:
    """The file with this name; None if it is not one of the history."""
    named, on = _is_file(name), _is_day(day_name)
    if named is None or on is None:
        return None
    try:
        day = date.fromisoformat(on[1]).toordinal() - _EPOCH
    except ValueError:
        return None
    start, end = day * DAY + _milliseconds(named[3]), day * DAY + _milliseconds(named[4])
    return HistoryFile(top, day, kind, int(named[1]), int(named[2]), start, end, size)


class Catalogue:
    """Which files there are, by day; a snapshot stays as it is whatever comes and goes."""

    def __init__(self, files: Iterable[HistoryFile] = ()) -> None:
        self._days: dict[int, tuple[HistoryFile, ...]] = {}
        self.size = 0
        """Bytes of all files."""
        self.change(files, ())

    def __iter__(self) -> Iterator[HistoryFile]:
        for files in self._days.values():
            yield from files

    def __len__(self) -> int:
        return sum(map(len, self._days.values()))

    @property
    def days(self) -> Mapping[int, tuple[HistoryFile, ...]]:
        """A snapshot of the files by day."""
        return self._days.copy()

    def change(self, added: Iterable[HistoryFile], removed: Iterable[HistoryFile]) -> None:
        """Add files, and remove others; those that are not there do not matter."""
        come, go = _by_day(added), _by_day(removed)
        for day in come.keys() | go.keys():
            before = self._days.get(day, ())
            gone = set(go.get(day, ()))
            left = (*[file for file in before if file not in gone], *come.get(day, ()))
            self.size += sum(file.size for file in left) - sum(file.size for file in before)
            if left:
                self._days[day] = left
            else:
                self._days.pop(day, None)


def _by_day(files: Iterable[HistoryFile]) -> dict[int, list[HistoryFile]]:
    found: dict[int, list[HistoryFile]] = {}
    for file in files:
        found.setdefault(file.day, []).append(file)
    return found


def find_files(data: Path) -> tuple[list[HistoryFile], list[Path]]:
    """The files of the history in the data directory, and what an interrupted write has left there."""
    files: list[HistoryFile] = []
    unfinished: list[Path] = []
    for top in (READINGS, RESULTS):
        for day in _folders(data / top, "day="):
            places = [(day, "")] if top == RESULTS else []
            if top == READINGS:
                places = [(kind, kind.name.removeprefix("kind=")) for kind in _folders(day, "kind=")]
            for folder, kind in places:
                for entry in os.scandir(folder):
                    if entry.name.startswith(".") and entry.name.endswith(".new"):
                        unfinished.append(Path(entry.path))
                    elif file := parse_path(top, day.name, kind, entry.name, entry.stat().st_size):
                        files.append(file)
    return files, unfinished


def merged_away(files: Iterable[HistoryFile]) -> list[HistoryFile]:
    """The files that a merged one has in it."""
    by_folder: dict[str, list[HistoryFile]] = {}
    for file in files:
        by_folder.setdefault(file.folder, []).append(file)
    found: list[HistoryFile] = []
    for several in by_folder.values():
        several.sort(key=lambda file: (file.first, -file.last))
        widest = several[0]
        for file in several[1:]:
            if widest.holds(file):
                found.append(file)
            else:
                widest = file
    return found


def make_private(folder: Path) -> None:
    """Create a folder and its parents for this user alone; their names are on disk when this returns."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def _folders(parent: Path, prefix: str) -> list[Path]:
    try:
        entries = sorted(os.scandir(parent), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    return [Path(entry.path) for entry in entries if entry.name.startswith(prefix) and entry.is_dir()]


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}{seconds // 60 % 60:02}{seconds % 60:02}{rest:03}"


def _milliseconds(clock: str) -> int:
    return (int(clock[:2]) * 3600 + int(clock[2:4]) * 60 + int(clock[4:6])) * 1000 + int(clock[6:])
