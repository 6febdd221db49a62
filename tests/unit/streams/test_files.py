"""Files as a stream: which, in which order, at which rate, and how their rows are read."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark import file_replay
from hpwsn.streams.spark.file_replay import FilesReader, files_of
from hpwsn.streams.spark.history import folder_name
from hpwsn.streams.spark.reading.file_columns import SLICE, count_rows, read_batches

SCHEMA = StructType([StructField("n", LongType()), StructField("s", StringType())])
ARROW = pa.schema({"n": pa.int64(), "s": pa.string()})


def rows_of(file, kind, schema=ARROW):
    return [row for batch in read_batches(str(file), kind, schema) for row in batch.to_pylist()]


def written(folder, name, numbers):
    (folder / name).write_text("s,n,more\r\n" + "".join(f'"x,\n{n}",{n},\n' for n in numbers))


@pytest.fixture
def folder(tmp_path):
    written(tmp_path, "b.csv", range(5, 8))
    written(tmp_path, "a.csv", range(5))
    (tmp_path / "other.txt").write_text("no")
    return tmp_path


def reader(folder, **options):
    return FilesReader({"path": str(folder), "format": "csv", **options}, SCHEMA)


def numbers(reader, start, end):
    return [
        n
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for n in batch.column("n").to_pylist()
    ]


def test_files_are_taken_in_order_and_new_ones_behind_them(folder):
    one = reader(folder, rows="6")
    limit = ReadMaxRows(6)
    first = one.latestOffset(one.initialOffset(), limit)
    assert (first["file"][-5:], first["row"]) == ("b.csv", 1)
    assert numbers(one, one.initialOffset(), first) == [0, 1, 2, 3, 4, 5]
    second = one.latestOffset(first, limit)
    assert numbers(one, first, second) == [6, 7]
    assert one.latestOffset(second, limit) == second
    assert one.partitions(second, second) == []
    written(folder, "c.csv", [8])
    third = one.latestOffset(second, limit)
    assert numbers(one, second, third) == [8]
    # What a checkpoint names is read again by another process just so.
    assert numbers(reader(folder), first, third) == [6, 7, 8]


def test_a_rate_is_kept_whatever_a_batch_takes_and_not_for_once(folder, monkeypatch):
    clock = iter([100.0, 101.0, 103.0, 103.1])
    monkeypatch.setattr(file_replay.time, "monotonic", lambda: next(clock))
    one, at, steps = reader(folder, rate="2"), {"file": "", "row": 0}, []
    for _ in range(4):
        end = one.latestOffset(at, ReadMaxRows(9))
        steps.append(len(numbers(one, at, end)))
        at = end
    assert steps == [0, 2, 4, 0]
    once = reader(folder, rate="2")
    once.prepareForTriggerAvailableNow()
    written(folder, "c.csv", [8])
    assert len(numbers(once, at, once.latestOffset(at, ReadMaxRows(9)))) == 2


def test_rows_of_every_format_are_events_of_the_schema(tmp_path):
    written(tmp_path, "a.csv", [1, 2])
    (tmp_path / "a.json").write_text('{"n": 1, "s": "x,\\n1"}\n\n{"n": 2, "s": "x,\\n2", "more": [1]}\n')
    pq.write_table(pa.table({"s": ["x,\n1", "x,\n2"], "n": [1, 2]}), tmp_path / "a.parquet")
    for kind in ("csv", "json", "parquet"):
        file = str(tmp_path / f"a.{kind}")
        assert rows_of(file, kind) == [{"n": 1, "s": "x,\n1"}, {"n": 2, "s": "x,\n2"}]
        assert count_rows(file, kind) == 2
        assert files_of(str(tmp_path), kind) == files_of(f"{tmp_path}/a.{kind[0]}*", kind)[:1] == [file]


def test_a_value_of_another_type_is_none_and_a_line_that_is_no_event_is_named(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"n": "many"}\n{"n": 2.5}\n{}\n')
    assert rows_of(file, "json") == [{"n": None, "s": None}] * 3
    for bad, words in (("{", "a.json:2 is not JSON"), ("[1]", "not a JSON object")):
        file.write_text(f"{{}}\n{bad}\n")
        with pytest.raises(HpwsnError, match=words):
            rows_of(file, "json")


def test_lines_that_differ_in_type_and_structure_are_events_too(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(
        '{"n": 1, "s": true}\n{"n": "2", "s": {"a": [1, "x: 2"]}}\n{"n": 3.0, "s": 4.50, "n2": null}\n'
        '{"s": "say \\"n\\": 5, \\u00e9 \\\\", "n": [1]}\n{"s": "a", "s": ": 5", "n": NaN}\n{"s": null}'
    )
    found = [(row["n"], row["s"]) for row in rows_of(file, "json")]
    assert found == [
        (1, "true"),
        (2, None),
        (3, "4.50"),
        (None, 'say "n": 5, é \\'),
        (None, ": 5"),
        (None, None),
    ]
    file.write_text("".join(f'{{"n": {n}, "s": "x"}}\n' for n in range(SLICE + 1)))
    assert [row["n"] for row in rows_of(file, "json")] == list(range(SLICE + 1))


def test_lines_of_csv_may_have_fewer_or_more_fields_and_a_file_may_be_empty(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('n,s\n1\n2,b,c\n\n3,""\n')
    assert rows_of(file, "csv") == [{"n": 1, "s": None}, {"n": 2, "s": "b"}, {"n": 3, "s": None}]
    assert count_rows(str(file), "csv") == 3
    for text in ("", "n,s\n"):
        file.write_text(text)
        assert rows_of(file, "csv") == []
        assert count_rows(str(file), "csv") == 0


def test_columns_of_parquet_are_cast_and_a_missing_one_is_null(tmp_path):
    moments = pa.array([1, 2], pa.timestamp("ns"))
    table = pa.table({"n": ["1", "x"], "s": [1.5, None], "t": moments, "b": [[1], [2]]})
    pq.write_table(table, tmp_path / "a.parquet")
    kinds = {
        "n": pa.int64(),
        "s": pa.string(),
        "t": pa.timestamp("us", "UTC"),
        "b": pa.int64(),
        "no": pa.bool_(),
    }
    first, second = rows_of(tmp_path / "a.parquet", "parquet", pa.schema(kinds))
    assert (first["n"], first["s"], first["t"].timestamp(), first["b"], first["no"]) == (
        1,
        "1.5",
        0.0,
        None,
        None,
    )
    assert (second["n"], second["s"]) == (None, None)


def test_names_that_look_alike_as_folders_have_folders_of_their_own():
    names = ["urn:a:b", "urn:a/b", "urn-a-b", "urn:a:b:", ".", "..", "_x", "x", "é", "ü"]
    names += ["l" * 300, "l" * 301]
    found = [folder_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}", one) for one in found)
    assert folder_name("urn-a-b") == "urn-a-b"
