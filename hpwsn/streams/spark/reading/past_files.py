"""Kept readings of a node, as the part of its log that is only in Parquet files any more.

A node keeps readings of its sensors in `DATA/readings/day=…/kind=…/*.parquet`, each row with its offset in
the log, and `DATA/readings/_state.json` says from which offset on they are not in files yet. So files and log
together give each reading once, in the order of the log, whatever the node merges meanwhile. Rows that were
too old, or of days that were too much, are not there any more, as in the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import sleep
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.reading.file_columns import SLICE, cast_column

T = TypeVar("T")

ROOT = "sensors"
LONGEST_FOLDER = 200
"""Bytes of a kind in the name of a folder."""
TRIES, PAUSE = 50, 0.1
"""How often a folder is read again, and the seconds between, while the node merges files in it."""


class NoReadings(HpwsnError):
    """A folder or a topic that has no kept readings."""


class Group(NamedTuple):
    """A row group with its first and last offset."""

    file: Path
    number: int
    first: int
    last: int


class PastFiles:
    """The kept readings in a folder that are on some topics, which are `sensors` or below."""

    def __init__(self, folder: str, topics: Sequence[str]) -> None:
        self._folder = Path(folder)
        self._topics = [topic.split(":") for topic in topics]
        for topic, steps in zip(topics, self._topics, strict=True):
            if steps[0] != ROOT or len(steps) > 3:
                raise NoReadings(
                    f"past: {topic} has no kept readings; read sensors, sensors:KIND or sensors:KIND:ID"
                )
        self._groups: dict[Path, list[Group]] = {}

    def end(self) -> int:
        """The first offset whose reading is not in files; 0 if the node has kept none yet."""
        state = self._folder / "_state.json"
        try:
            return int(json.loads(state.read_text("utf-8"))["next"])
        except FileNotFoundError:
            if not self._folder.parent.is_dir():
                raise NoReadings(
                    f"past: there is no {self._folder}; name the folder readings of a node's data directory"
                ) from None
            return 0
        except (ValueError, KeyError, TypeError) as error:
            raise NoReadings(f"past: {state} cannot be read: {error}; restart the node") from error

    def upto(self, after: int, before: int, rows: int) -> int:
        """The last offset of the next `rows` readings after an offset, but less than `before`."""
        return self._with_files(lambda files: self._upto(files, after, before, rows))

    def batches(self, after: int, upto: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The readings after an offset, up to and including another, in the order of the log."""
        table = self._with_files(lambda files: self._table(files, after, upto, schema))
        yield from table.to_batches(SLICE)

    def _with_files(self, work: Callable[[list[Path]], T]) -> T:
        """Do work on the files; again if one is merged into another meanwhile."""
        for _ in range(TRIES):
            files = self._list()
            # A file that came while another went may be missed once, but not twice.
            if files == self._list():
                try:
                    return work(files)
                except FileNotFoundError:
                    pass
            sleep(PAUSE)
        raise NoReadings(f"past: the files in {self._folder} change all the time; try again later")

    def _list(self) -> list[Path]:
        kinds = {steps[1] if _is_folder(steps) else "*" for steps in self._topics}
        found = {file for kind in kinds for file in self._folder.glob(f"day=*/kind={kind}/[0-9]*.parquet")}
        return sorted(found)

    def _between(self, files: list[Path], after: int, before: int) -> list[Group]:
        """The row groups that may have offsets between two others, by their first one."""
        self._groups = {file: self._groups.get(file) or _groups_of(file) for file in files}
        return sorted(
            (
                group
                for groups in self._groups.values()
                for group in groups
                if group.last > after and group.first < before
            ),
            key=lambda group: (group.first, group.file, group.number),
        )

    def _upto(self, files: list[Path], after: int, before: int, rows: int) -> int:
        found: set[int] = set()
        for group in self._between(files, after, before):
            ordered = sorted(found)
            if len(ordered) >= rows and ordered[rows - 1] < group.first:
                break
            table = self._rows(group, after, before - 1, ["offset"])
            found.update(table.column("offset").to_pylist())
        ordered = sorted(found)
        return ordered[rows - 1] if len(ordered) >= rows else before - 1

    def _table(self, files: list[Path], after: int, upto: int, schema: pa.Schema) -> pa.Table:
        whole = pa.schema([*schema, pa.field("\0", pa.int64())])
        tables = [whole.empty_table()]
        for group in self._between(files, after, upto + 1):
            table = self._rows(group, after, upto, None)
            columns = [_column(table, field) for field in schema]
            tables.append(pa.Table.from_arrays([*columns, table.column("offset")], schema=whole))
        table = pa.concat_tables(tables).sort_by("\0").combine_chunks()
        offsets = table.column("\0").to_pylist()
        # While files are merged, a row is in two of them.
        is_new = [n == 0 or offset != offsets[n - 1] for n, offset in enumerate(offsets)]
        return table.drop_columns("\0").filter(pa.array(is_new, pa.bool_())).cast(schema)

    def _rows(self, group: Group, after: int, upto: int, columns: list[str] | None) -> pa.Table:
        """The rows of a group between two offsets, on the topics, with the column `kind`."""
        wanted = None if columns is None else [*columns, "sensor"]
        with pq.ParquetFile(group.file) as file:
            kind = file.schema_arrow.metadata[b"kind"].decode()
            table = file.read_row_group(group.number, columns=wanted, use_threads=False)
        offsets = table.column("offset")
        mask = pc.and_(pc.greater(offsets, after), pc.less_equal(offsets, upto))
        topics = [steps for steps in self._topics if len(steps) == 1 or steps[1] == kind]
        if all(len(steps) == 3 for steps in topics):
            sensors = pa.array([steps[2] for steps in topics], pa.string())
            mask = pc.and_(mask, pc.is_in(table.column("sensor"), value_set=sensors))
        table = table.filter(mask)
        return table.append_column("kind", pa.array([kind] * table.num_rows, pa.string()))


def _is_folder(steps: Sequence[str]) -> bool:
    """Whether a topic names a kind that is the name of a folder; that of a long one is cut."""
    return len(steps) > 1 and len(steps[1].encode()) <= LONGEST_FOLDER


def _groups_of(file: Path) -> list[Group]:
    with pq.ParquetFile(file) as opened:
        metadata = opened.metadata
    names = [metadata.schema.column(place).name for place in range(metadata.num_columns)]
    place, found = names.index("offset"), []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(place).statistics
        found.append(Group(file, number, statistics.min, statistics.max))
    return found


def _column(table: pa.Table, field: pa.Field) -> pa.Array:
    """The column of a field of the events, or of what is known of the notification."""
    if field.name == "_offset":
        return cast_column(table.column("offset").combine_chunks(), field.type)
    if field.name == "_topic":
        parts = [table.column(name).combine_chunks() for name in ("kind", "sensor")]
        return pc.binary_join_element_wise(ROOT, *parts, ":")
    if field.name == "offset" or field.name not in table.schema.names:
        return pa.nulls(table.num_rows, field.type)
    return cast_column(table.column(field.name).combine_chunks(), field.type)
