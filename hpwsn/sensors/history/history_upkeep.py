"""Which files of the history are merged, and which go: decisions without I/O.

A folder gets a small file with every flush. Sixteen neighbours below one of the sizes in TIERS become one
file, so that each row is written again only a few times. The files of a day that is over become as few as
possible once none was added for QUIET seconds. Files of LARGE bytes stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from hpwsn.sensors.history.history_files import DAY, HistoryFile

TOGETHER = 16
"""Neighbours that are merged on a day that goes on."""
TIERS = (256 << 10, 4 << 20, 64 << 20)
LARGE = 64 << 20
MOST_BYTES = 256 << 20
"""Bytes of the files of one merge."""
MOST_FILES = 1000
QUIET = 3600.0


class MergePlan:
    """Chooses what is merged next; remembers since when each folder is quiet."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}
        """The number of the last file in a folder, and when it was first seen."""
        self._given_up: dict[str, int] = {}
        self._damaged: set[HistoryFile] = set()

    def next(self, files: Iterable[HistoryFile], now: float) -> list[HistoryFile]:
        """Files of one folder that follow each other and are to be one; none if all is well."""
        folders: dict[str, list[HistoryFile]] = {}
        for file in files:
            folders.setdefault(file.folder, []).append(file)
        self._seen = {name: seen for name, seen in self._seen.items() if name in folders}
        for name, several in folders.items():
            several.sort(key=lambda file: file.first)
            last = several[-1].last
            if self._seen.get(name, (None, 0.0))[0] != last:
                self._seen[name] = last, now
            quiet = now - self._seen[name][1] >= QUIET and (several[0].day + 1) * DAY <= now * 1000
            for limit, least in ((LARGE, 2),) if quiet else tuple((tier, TOGETHER) for tier in TIERS):
                for run in _runs(several, limit, self._damaged):
                    if len(run) >= least and self._given_up.get(name) != run[0].first:
                        return run
        return []

    def give_up(self, run: Sequence[HistoryFile]) -> None:
        """Plan these no more, since they do not fit together."""
        self._given_up[run[0].folder] = run[0].first

    def leave(self, damaged: HistoryFile) -> None:
        """Merge a file with no other, since it cannot be read."""
        self._damaged.add(damaged)


def _runs(
    files: Sequence[HistoryFile], limit: int, damaged: Collection[HistoryFile]
) -> Iterator[list[HistoryFile]]:
    """Neighbours that are smaller than a limit, in runs that one merge can take."""
    run: list[HistoryFile] = []
    size = 0
    for file in files:
        left = file.size >= limit or file in damaged
        if left or size + file.size > MOST_BYTES or len(run) == MOST_FILES:
            yield run
            run, size = [], 0
        if not left:
            run.append(file)
            size += file.size
    yield run


def outlived(files: Collection[HistoryFile], now: float, age: float, limit: int) -> set[HistoryFile]:
    """The files beyond the limits of age and size."""
    gone = set(outdated(files, now, age))
    return gone.union(beyond([file for file in files if file not in gone], limit))


def outdated(files: Iterable[HistoryFile], now: float, age: float) -> list[HistoryFile]:
    """The files whose rows are all older than an age in seconds."""
    before = (now - age) * 1000
    return [file for file in files if file.end < before]


def beyond(files: Iterable[HistoryFile], limit: int) -> list[HistoryFile]:
    """The files of the oldest days without which the rest has at most so many bytes.

    Of the newest day, only so many of its oldest files go as must.
    """
    by_day: dict[int, list[HistoryFile]] = {}
    for file in files:
        by_day.setdefault(file.day, []).append(file)
    size = sum(file.size for several in by_day.values() for file in several)
    days = sorted(by_day)
    found: list[HistoryFile] = []
    for day in days[:-1]:
        if size <= limit:
            return found
        found += by_day[day]
        size -= sum(file.size for file in by_day[day])
    for file in sorted(by_day[days[-1]], key=lambda file: file.last) if days else ():
        if size <= limit:
            break
        found.append(file)
        size -= file.size
    return found
