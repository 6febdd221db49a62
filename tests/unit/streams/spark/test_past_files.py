"""Kept readings as a part of the log: each once, in its order, while the node goes on with its files."""

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.sensors.history import history_writing
from hpwsn.streams.spark.reading import past_files
from hpwsn.streams.spark.reading.past_files import NoReadings, PastFiles
from tests.unit.sensors.history.history_examples import DAY, NOON, Log, commit, history_of, reading

SCHEMA = pa.schema(
    {
        "sensor": pa.string(),
        "kind": pa.string(),
        "time": pa.timestamp("us", "UTC"),
        "t": pa.float64(),
        "_offset": pa.int64(),
    }
)
READINGS = st.builds(
    lambda sensor, kind, day, t: reading(0, sensor, kind, NOON - day * DAY, t=t),
    st.sampled_from(["s1", "s2"]),
    st.sampled_from(["weather", "sea"]),
    st.integers(0, 2),
    st.floats(-9, 9),
)


async def keep(folder, commits, merge=False):
    """Keep readings, each commit in files of its own; the log that they are in."""
    log = Log()
    history = history_of(folder, log)
    await history.open()
    for items in commits:
        commit(history, log, items)
        await history._flush()
    if merge:
        folders = {}
        for file in sorted(history._catalogue, key=lambda file: file.first):
            folders.setdefault(file.folder, []).append(file)
        for files in folders.values():
            if len(files) > 1:
                # As in the moment before the merged ones go.
                history_writing.merge(folder, files)
    await history.close()
    return log


def read(files, end, limit, schema=SCHEMA):
    """All rows in steps of so many."""
    found, after = [], 0
    while after < end - 1:
        upto = files.upto(after, end, limit)
        assert after < upto < end
        rows = pa.Table.from_batches(files.batches(after, upto, schema), schema).to_pylist()
        assert len(rows) <= limit
        found, after = found + rows, upto
    return found


def expected(log, chosen):
    return [
        {
            "sensor": row.item.sensor,
            "kind": row.item.kind,
            "time": datetime.fromtimestamp(row.time / 1000, UTC),
            "t": row.item.values["t"],
            "_offset": offset,
        }
        for offset, row in sorted(log.rows.items())
        if chosen(row.item)
    ]


TOPICS = {
    ("sensors",): lambda item: True,
    ("sensors:sea",): lambda item: item.kind == "sea",
    ("sensors:sea:s1", "sensors:weather:s2"): lambda item: (
        (item.sensor, item.kind) in {("s1", "sea"), ("s2", "weather")}
    ),
    ("sensors:weather", "sensors:weather:s1"): lambda item: item.kind == "weather",
    ("sensors:none",): lambda item: False,
}


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.none() | READINGS, min_size=1, max_size=6), max_size=5),
    st.booleans(),
    st.integers(1, 7),
    st.sampled_from(sorted(TOPICS)),
)
def test_each_reading_of_the_topics_comes_once_in_the_order_of_the_log(commits, merge, limit, topics):
    with TemporaryDirectory() as folder:
        log = asyncio.run(keep(Path(folder), commits, merge))
        files = PastFiles(f"{folder}/readings", topics)
        end = files.end() if log.rows else 0
        assert end in (0, log.head + 1)
        assert read(files, end, limit) == expected(log, TOPICS[topics])


async def test_a_file_that_is_merged_while_it_is_read_costs_nothing(tmp_path, monkeypatch):
    log = await keep(tmp_path, [[reading(n, t=float(n))] for n in range(4)])
    files = PastFiles(str(tmp_path / "readings"), ["sensors"])
    history = history_of(tmp_path, log)
    await history.open()
    opened, real = [], past_files._groups_of

    def merge_first(file):
        if not opened:
            merged, old = history_writing.merge(
                tmp_path, sorted(history._catalogue, key=lambda each: each.first)
            )
            history_writing.remove_files(tmp_path, old)
            history._catalogue.change([merged], old)
        opened.append(file)
        return real(file)

    monkeypatch.setattr(past_files, "_groups_of", merge_first)
    assert read(files, files.end(), 3) == expected(log, lambda item: True)
    assert len(opened) > 1
    await history.close()


async def test_values_have_the_types_of_the_schema_and_fields_that_no_reading_has_are_null(tmp_path):
    await keep(tmp_path, [[reading(0, t=1.5), reading(1, h=2.0)]])
    files = PastFiles(str(tmp_path / "readings"), ["sensors:weather"])
    schema = pa.schema(
        {
            "t": pa.string(),
            "h": pa.int64(),
            "longitude": pa.float32(),
            "offset": pa.int64(),
            "_topic": pa.string(),
            "time": pa.string(),
        }
    )
    first, second = read(files, files.end(), 10, schema)
    assert (first["t"], first["h"], second["t"], second["h"]) == ("1.5", None, None, 2)
    assert (first["longitude"], first["offset"], first["_topic"]) == (10.0, None, "sensors:weather:s1")


@pytest.mark.parametrize("topic", ["virtual:mean", "traffic", "sensors:a:b:c"])
def test_other_topics_have_no_kept_readings(topic):
    with pytest.raises(NoReadings, match=f"{topic} has no kept readings; read sensors, sensors:KIND"):
        PastFiles("readings", [topic])


def test_a_folder_that_is_none_of_a_node_is_named(tmp_path):
    with pytest.raises(NoReadings, match="name the folder readings of a node's data directory"):
        PastFiles(str(tmp_path / "none" / "readings"), ["sensors"]).end()
    assert PastFiles(str(tmp_path / "readings"), ["sensors"]).end() == 0
    (tmp_path / "readings").mkdir()
    for text in ("{", "{}", json.dumps({"next": None})):
        (tmp_path / "readings" / "_state.json").write_text(text)
        with pytest.raises(NoReadings, match=r"_state\.json cannot be read"):
            PastFiles(str(tmp_path / "readings"), ["sensors"]).end()


async def test_files_that_come_and_go_all_the_time_end_with_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(past_files, "PAUSE", 0.0)
    await keep(tmp_path, [[reading(0)]])
    files = PastFiles(str(tmp_path / "readings"), ["sensors"])
    (path,) = (tmp_path / "readings").rglob("*.parquet")
    os.truncate(path, 0)
    monkeypatch.setattr(past_files, "_groups_of", lambda file: (tmp_path / "gone").read_bytes())
    with pytest.raises(NoReadings, match="change all the time"):
        files.upto(0, 2, 1)
