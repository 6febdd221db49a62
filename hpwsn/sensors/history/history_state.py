"""What a restart needs to know of the history: how far the log is in files, and which files count.

The state is written after the files of a flush. So files with higher numbers are what a crash has left of an
unfinished flush, whose rows are still in the log. They are removed at the next start, as are files that were
merged into another one and are still there. The state lies beside the folders of the days; Spark and Arrow
pass over names that begin with `_`.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import NamedTuple

from hpwsn.durable_files import sync_folder, write_atomically
from hpwsn.sensors.history.history_files import (
    READINGS,
    HistoryFile,
    find_files,
    make_private,
    merged_away,
)
from hpwsn.sensors.history.history_query import HistoryDamaged

log = logging.getLogger(__name__)


class HistoryState(NamedTuple):
    """The first offset that is not in files, and the number of the last file."""

    next: int
    number: int


def load_state(data: Path) -> HistoryState | None:
    """The stored state; None if there is none yet."""
    try:
        stored = json.loads(_state_file(data).read_text("utf-8"))
        return HistoryState(int(stored["next"]), int(stored["number"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        log.error("%s cannot be read (%s); the files of readings tell what it had", _state_file(data), error)
        return None


def save_state(data: Path, state: HistoryState) -> None:
    """Store the state; it is on disk when this returns."""
    file = _state_file(data)
    make_private(file.parent)
    write_atomically(file, json.dumps(state._asdict()) + "\n", mode=0o600)
    sync_folder(file.parent)


def open_history(data: Path) -> tuple[HistoryState, list[HistoryFile]]:
    """The state and the files that count, after what a crash has left was removed."""
    state = load_state(data)
    files, leftovers = find_files(data)
    if state is None:
        # It is stored before the first file, so it was lost. Whatever is in the files counts.
        state = HistoryState(_next_offset(data, files), max((file.last for file in files), default=0))
    gone = {file for file in files if file.last > state.number}.union(merged_away(files))
    leftovers += [data / file.path for file in gone]
    for path in leftovers:
        path.unlink(missing_ok=True)
    if leftovers:
        log.info("removed %d files of readings that were not complete or merged into others", len(leftovers))
    return state, [file for file in files if file not in gone]


def _next_offset(data: Path, files: list[HistoryFile]) -> int:
    """The first offset after those in the files; what a damaged one had is read from the log again."""
    if not files:
        return 0
    from hpwsn.sensors.history.row_groups import OpenFiles

    last = -1
    with OpenFiles(data) as opened:
        for file in files:
            try:
                last = max(last, opened.last_offset(file))
            except HistoryDamaged as error:
                log.error("%s", error)
    return last + 1


def _state_file(data: Path) -> Path:
    return data / READINGS / "_state.json"
