"""Writes rows into files of the history: new ones after each flush, and several small ones as one.

Everything here blocks, and runs in threads. A file is written under a hidden name, synced, and renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from hpwsn.sensors.history.history_files import (
    READINGS,
    RESULTS,
    HistoryFile,
    day_of,
    folder_of,
    kind_folder,
)
from hpwsn.sensors.history.history_query import Row
from hpwsn.sensors.history.history_rows import (
    KIND,
    MOST_QUANTITIES,
    quantities_of,
    reading_schema,
    reading_tables,
    result_table,
)
from hpwsn.sensors.history.history_state import HistoryState, save_state
from hpwsn.sensors.history.row_groups import BLOCK_ROWS, BlockWriter, OpenFiles, publish_file, slices
from hpwsn.sensors.readings.reading import Reading


def flush(
    data: Path, state: HistoryState, rows: Iterable[Row], upto: int
) -> tuple[HistoryState, list[HistoryFile]]:
    """Write all rows before an offset to files; the new state, and the new files.

    After an error there are no new files, and the old state holds.
    """
    number, written = state.number, []
    try:
        if not number:
            # From now on, files with higher numbers than the state's are leftovers.
            save_state(data, state)
        for (top, day, kind), some in _by_folder(rows).items():
            for table in result_tables(some) if top == RESULTS else reading_tables(kind, some):
                number += 1
                written.append(_write(data, top, day, kind_folder(kind), number, table))
        new = HistoryState(upto, number)
        save_state(data, new)
    except BaseException:
        for file in written:
            (data / file.path).unlink(missing_ok=True)
        raise
    return new, written


def result_tables(rows: Sequence[Row]) -> Iterator[pa.Table]:
    """Results as tables, as `reading_tables` has readings."""
    yield result_table(rows)


def _by_folder(rows: Iterable[Row]) -> dict[tuple[str, int, str], list[Row]]:
    found: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        item = row.item
        if isinstance(item, Reading):
            key = (READINGS, day_of(row.time), item.kind)
        else:
            key = (RESULTS, day_of(row.time), "")
        if key in found:
            found[key].append(row)
        else:
            found[key] = [row]
    return found


def _write(data: Path, top: str, day: int, kind: str, number: int, table: pa.Table) -> HistoryFile:
    temporary = _temporary(data / folder_of(top, day, kind), number)
    writer = BlockWriter(temporary, table.schema)
    try:
        for block in slices(table, BLOCK_ROWS):
            writer.write(block)
        size = writer.close()
    except BaseException:
        writer.discard()
        raise
    file = HistoryFile(top, day, kind, number, number, writer.start, writer.end, size)
    publish_file(data, temporary, file)
    return file


def merge(data: Path, several: Sequence[HistoryFile]) -> tuple[HistoryFile, list[HistoryFile]] | None:
    """Write files of one folder that follow each other as one; the new file, and those that are in it.

    None if no two of them fit together. The old files are still there. Memory is bounded by one block.
    """
    with OpenFiles(data) as files:
        together, schema = _fitting(files, several)
        if len(together) < 2:
            return None
        first, last = together[0], together[-1]
        temporary = _temporary(data / first.folder, first.first)
        writer = BlockWriter(temporary, schema)
        try:
            for block in _blocks(files, together, schema):
                writer.write(block)
            size = writer.close()
        except BaseException:
            writer.discard()
            raise
    merged = HistoryFile(
        first.top, first.day, first.kind, first.first, last.last, writer.start, writer.end, size
    )
    publish_file(data, temporary, merged)
    return merged, together


def _fitting(files: OpenFiles, several: Sequence[HistoryFile]) -> tuple[list[HistoryFile], pa.Schema]:
    """The first files that have few enough quantities together, and their common schema."""
    together: list[HistoryFile] = []
    quantities: set[str] = set()
    schema = None
    for file in several:
        schema = files.open(file).schema_arrow
        if file.top == READINGS:
            names = quantities.union(quantities_of(schema))
            if together and len(names) > MOST_QUANTITIES:
                break
            quantities = names
        together.append(file)
    if together[0].top == RESULTS:
        return together, schema
    kind = files.open(together[0]).schema_arrow.metadata[KIND].decode()
    return together, reading_schema(kind, sorted(quantities))


def _blocks(files: OpenFiles, several: Sequence[HistoryFile], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of files in blocks, with the columns of a schema."""
    parts: list[pa.Table] = []
    rows = 0
    for file in several:
        for group in files.ranges(file):
            table = _with_columns(files.read(file, group.number), schema)
            parts.append(table)
            rows += table.num_rows
            if rows >= BLOCK_ROWS:
                yield pa.concat_tables(parts)
                parts, rows = [], 0
    if parts:
        yield pa.concat_tables(parts)


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table.column(field.name)
        if field.name in table.schema.names
        else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def remove_files(data: Path, files: Iterable[HistoryFile]) -> None:
    """Remove files, and the folders of days that are empty then; what is gone already does not matter."""
    folders = set()
    for file in files:
        path = data / file.path
        path.unlink(missing_ok=True)
        folders.add(path.parent)
    for folder in folders:
        for place in (folder, folder.parent):
            if place.name.startswith(("day=", "kind=")):
                try:
                    place.rmdir()
                except OSError:
                    break


def _temporary(folder: Path, number: int) -> Path:
    return folder / f".{number:010}.new"
