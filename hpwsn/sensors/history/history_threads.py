"""The threads of the history, and the work on files that they do.

Writing, queries, past readings, the search for keys, and pictures have threads of their own, so that none
waits for another. Each function loads the libraries when it is first called: a node without readings loads
none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from hpwsn.sensors.history.history_files import HistoryFile
from hpwsn.sensors.history.history_query import (
    HistoryDamaged,
    HistoryQuery,
    Page,
    Picture,
    Place,
    Row,
    Snapshot,
)
from hpwsn.sensors.history.history_state import HistoryState

if TYPE_CHECKING:
    from hpwsn.sensors.history.plot_series import Chart


class HistoryThreads:
    """Pools of threads by their work."""

    def __init__(self) -> None:
        self.write = ThreadPoolExecutor(2, thread_name_prefix="history-write")
        self.read = ThreadPoolExecutor(2, thread_name_prefix="history-read")
        self.keys = ThreadPoolExecutor(1, thread_name_prefix="history-keys")
        self.past = ThreadPoolExecutor(1, thread_name_prefix="history-past")
        self.draw = ThreadPoolExecutor(1, thread_name_prefix="history-draw")

    def close(self) -> None:
        """Wait for the work under way; what has not begun is cancelled."""
        for pool in (self.write, self.read, self.keys, self.past, self.draw):
            pool.shutdown(cancel_futures=True)


def flush_rows(
    data: Path, state: HistoryState, rows: list[Row], upto: int
) -> tuple[HistoryState, list[HistoryFile]]:
    """`history_writing.flush`."""
    from hpwsn.sensors.history.history_writing import flush

    return flush(data, state, rows, upto)


def merge_files(data: Path, files: list[HistoryFile]) -> tuple[HistoryFile, list[HistoryFile]] | None:
    """`history_writing.merge`."""
    from hpwsn.sensors.history.history_writing import merge

    return merge(data, files)


def remove(data: Path, files: Iterable[HistoryFile]) -> None:
    """`history_writing.remove_files`."""
    from hpwsn.sensors.history.history_writing import remove_files

    remove_files(data, files)


def page_of_rows(snapshot: Snapshot, query: HistoryQuery, limit: int, after: Place | None) -> Page:
    """`PageSearch.find`."""
    from hpwsn.sensors.history.page_search import PageSearch

    return PageSearch(snapshot, query, limit, after).find()


def present_keys(
    snapshot: Snapshot, keys: Sequence[tuple[str, int]]
) -> tuple[set[tuple[str, int]], list[HistoryDamaged]]:
    """`page_search.find_keys`."""
    from hpwsn.sensors.history.page_search import find_keys

    return find_keys(snapshot, keys)


def series_of(snapshot: Snapshot, picture: Picture) -> Chart:
    """`plot_series.collect`."""
    from hpwsn.sensors.history.plot_series import collect

    return collect(snapshot, picture)


def draw_chart(chart: Chart, form: str) -> bytes:
    """`reading_plot.draw`."""
    from hpwsn.sensors.history.reading_plot import draw

    return draw(chart, form)
