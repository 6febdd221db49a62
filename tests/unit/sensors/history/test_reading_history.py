"""The history: what is committed is kept once, whatever happens, and queries see all of it."""

import asyncio
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.sensors.history import history_writing, page_search, reading_history, snapshot_queries
from hpwsn.sensors.history.event_filter import compile_event_filter
from hpwsn.sensors.history.history_query import HistoryBusy, HistoryDamaged, HistoryQuery
from hpwsn.sensors.physical.selection import Area
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from tests.patience import holds
from tests.unit.sensors.history.history_examples import (
    DAY,
    NOON,
    Log,
    commit,
    every_row,
    history_of,
    parquet_files,
    plainly,
    reading,
)


@pytest.fixture
async def opened(tmp_path):
    """Opens histories of one data directory, each over a log."""
    running = []

    async def open_one(log, **settings):
        history = history_of(tmp_path, log, **settings)
        await history.open()
        running.append(history)
        return history

    yield open_one
    for history in running:
        await history.close()


def offsets(rows):
    return [row.offset for row in rows]


async def test_readings_are_found_before_and_after_they_are_in_files(opened, tmp_path):
    log = Log()
    history = await opened(log)
    commit(history, log, [reading(2), reading(1), None, reading(0, sensor="s2")])
    assert offsets(await every_row(history, HistoryQuery())) == [4, 2, 1]
    assert not parquet_files(tmp_path)
    assert history.needed_from <= 1
    await history._flush()
    assert len(parquet_files(tmp_path)) == 1
    assert history.needed_from == 5
    found = await every_row(history, HistoryQuery())
    assert [row.item for row in found] == [reading(0, sensor="s2"), reading(1), reading(2)]
    assert await history.queries.readings(HistoryQuery(sensors=frozenset(["s1"])), 10) == [
        reading(1),
        reading(2),
    ]


async def test_a_flush_needs_nobody_and_comes_within_ten_seconds(opened, tmp_path, monkeypatch):
    assert reading_history.FLUSH < 10
    monkeypatch.setattr(reading_history, "FLUSH", 0.01)
    log = Log()
    history = await opened(log)
    commit(history, log, [reading()])
    await holds(lambda: bool(parquet_files(tmp_path)))


async def test_files_are_by_day_and_kind_and_their_rows_are_the_events(opened, tmp_path):
    log = Log()
    history = await opened(log)
    items = [
        reading(kind="weather"),
        reading(kind="sea", h=1.5),
        reading(time=NOON + DAY, place=(None, None)),
    ]
    commit(history, log, items)
    await history._flush()
    folders = {str(path.parent.relative_to(tmp_path)) for path in parquet_files(tmp_path)}
    assert folders == {
        "readings/day=2024-10-04/kind=weather",
        "readings/day=2024-10-04/kind=sea",
        "readings/day=2024-10-05/kind=weather",
    }
    (sea,) = (tmp_path / "readings/day=2024-10-04/kind=sea").iterdir()
    noon = datetime(2024, 10, 4, 12, tzinfo=UTC)
    assert pq.ParquetFile(sea).read().to_pylist() == [
        {"offset": 2, "sensor": "s1", "time": noon, "longitude": 10.0, "latitude": 50.0, "h": 1.5}
    ]
    assert sea.name == "0000000002-0000000002_120000000-120000000.parquet"


async def test_what_a_crash_kept_from_files_is_read_from_the_log_once(opened, tmp_path):
    log = Log(look=2)
    history = await opened(log)
    commit(history, log, [reading(n) for n in range(5)])
    await history._flush()
    commit(history, log, [reading(n) for n in range(5, 12)])
    # The process ends here; another one opens what it left.
    again = await opened(log)
    assert offsets(await every_row(again, HistoryQuery())) == list(range(1, 13))
    await again._flush()
    assert offsets(await every_row(again, HistoryQuery())) == list(range(1, 13))
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in parquet_files(tmp_path)) == 12


@pytest.mark.parametrize("flushed_before", [0, 3])
async def test_a_crash_between_the_files_and_the_state_neither_loses_nor_repeats(
    opened, tmp_path, monkeypatch, flushed_before
):
    log = Log()
    history = await opened(log)
    commit(history, log, [reading(n) for n in range(flushed_before)])
    await history._flush()
    commit(history, log, [reading(n, kind=f"k{n % 3}") for n in range(3, 9)])
    store, stored = history_writing.save_state, []

    def crash(data, state):
        stored.append(state)
        if state.next == log.head + 1:
            raise KeyboardInterrupt
        store(data, state)

    monkeypatch.setattr(history_writing, "save_state", crash)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # a crash removes nothing
    with pytest.raises(KeyboardInterrupt):
        history_writing.flush(tmp_path, history._state, history._pending, log.head + 1)
    monkeypatch.undo()
    left = parquet_files(tmp_path)
    assert len(left) == 3 + bool(flushed_before)
    again = await opened(log)
    assert len(parquet_files(tmp_path)) == bool(flushed_before)
    assert offsets(await every_row(again, HistoryQuery())) == list(range(1, log.head + 1))
    await again._flush()
    assert offsets(await every_row(again, HistoryQuery())) == list(range(1, log.head + 1))


async def test_a_crash_while_a_file_is_written_leaves_nothing_that_counts(opened, tmp_path):
    folder = tmp_path / "readings/day=2024-10-04/kind=weather"
    folder.mkdir(parents=True)
    (folder / ".0000000001.new").write_bytes(b"PAR1 half")
    history = await opened(Log())
    assert not list(folder.iterdir())
    assert not await every_row(history, HistoryQuery())


async def test_a_crash_in_a_merge_repeats_nothing(opened, tmp_path):
    log = Log()
    history = await opened(log)
    for n in range(4):
        commit(history, log, [reading(n)])
        await history._flush()
    files = sorted(history._catalogue, key=lambda file: file.first)
    merged, old = history_writing.merge(tmp_path, files)
    assert old == files
    assert len(parquet_files(tmp_path)) == 5
    again = await opened(log)
    assert parquet_files(tmp_path) == [tmp_path / merged.path]
    assert offsets(await every_row(again, HistoryQuery())) == [1, 2, 3, 4]


async def test_a_lost_state_is_told_by_the_files(opened, tmp_path):
    log = Log()
    history = await opened(log)
    commit(history, log, [reading(n) for n in range(3)])
    await history._flush()
    commit(history, log, [reading(3)])
    (tmp_path / "readings/_state.json").write_text("{")
    again = await opened(log)
    assert offsets(await every_row(again, HistoryQuery())) == [1, 2, 3, 4]


async def test_a_log_that_begins_anew_is_kept_beside_what_was_kept(opened, caplog):
    log = Log()
    history = await opened(log)
    commit(history, log, [reading(n) for n in range(3)])
    await history._flush()
    new = Log()
    again = await opened(new)
    assert "before what was kept" in caplog.text
    commit(again, new, [reading(9)])
    assert [row.time - NOON for row in await every_row(again, HistoryQuery())] == [0, 1, 2, 9]


async def test_a_disk_that_takes_nothing_costs_no_reading(opened, tmp_path, monkeypatch, caplog):
    log = Log()
    history = await opened(log)
    write = history_writing._write
    monkeypatch.setattr(reading_history, "MOST_PENDING", 6)

    def full(data, top, day, kind, number, table):
        if kind == "b":
            raise OSError(28, "No space left on device")
        return write(data, top, day, kind, number, table)

    monkeypatch.setattr(history_writing, "_write", full)
    commit(history, log, [reading(n, kind="ab"[n % 2]) for n in range(6)])
    assert not await history._flush()
    assert not parquet_files(tmp_path)
    assert "No space left" in caplog.text
    assert history.figures()["problem"]
    commit(history, log, [reading(6), reading(7)])
    assert history.figures()["behind"]
    assert history.figures()["pending"] == 6
    assert history.needed_from <= 1
    assert not await history._flush()
    assert caplog.text.count("No space left") == 1
    monkeypatch.setattr(history_writing, "_write", write)
    assert await history._flush()
    await history._catch_up()
    assert offsets(await every_row(history, HistoryQuery())) == list(range(1, 9))
    assert history.figures()["problem"] is None


async def test_commits_that_it_was_not_told_of_are_read_from_the_log(opened):
    log = Log()
    history = await opened(log)
    log.add([reading(0), reading(1)])
    commit(history, log, [reading(2)])
    await history._catch_up()
    commit(history, log, [reading(3)])
    assert offsets(await every_row(history, HistoryQuery())) == [1, 2, 3, 4]


async def test_a_node_without_readings_holds_no_retention_back_and_writes_nothing(opened, tmp_path):
    log = Log()
    history = await opened(log)
    commit(history, log, [None] * 7)
    await history._flush()
    assert history.needed_from == 8
    assert not (tmp_path / "readings").exists()


async def test_closing_writes_what_is_pending(tmp_path):
    log = Log()
    history = history_of(tmp_path, log)
    await history.open()
    commit(history, log, [reading()])
    await history.close()
    assert len(parquet_files(tmp_path)) == 1
    looks = log.looks
    again = history_of(tmp_path, log)
    await again.open()
    assert offsets(await every_row(again, HistoryQuery())) == [1]
    assert log.looks == looks + 1
    await again.close()


async def test_whether_a_sensor_has_a_reading_at_a_time(opened):
    log = Log()
    history = await opened(log)
    commit(history, log, [reading(n, sensor=f"s{n % 3}") for n in range(30)])
    await history._flush()
    commit(history, log, [reading(n, sensor=f"s{n % 3}") for n in range(30, 40)])
    keys = [(f"s{n % 3}", NOON + n) for n in range(40)]
    assert await history.queries.has(keys) == set(keys)
    assert await history.queries.has(
        [("s0", NOON + 1), ("s9", NOON), ("s0", NOON - DAY), ("s1", NOON + 1)]
    ) == {("s1", NOON + 1)}
    assert await history.queries.has([]) == set()


async def test_a_query_goes_on_when_its_files_are_merged_or_gone(opened, tmp_path, monkeypatch, caplog):
    log = Log()
    history = await opened(log)
    for n in range(20):
        commit(history, log, [reading(n)])
        await history._flush()
    days, real = history._catalogue.days, history._catalogue
    await history.tidy()
    assert len(parquet_files(tmp_path)) == 1

    class Stale:
        """The first look has the files from before the merge."""

        looks = 0

        @property
        def days(self):
            Stale.looks += 1
            return days if Stale.looks == 1 else real.days

        def __iter__(self):
            return iter(real)

        def change(self, added, removed):
            real.change(added, removed)

    monkeypatch.setattr(history, "_catalogue", Stale())
    assert len(await every_row(history, HistoryQuery())) == 20
    assert Stale.looks == 2
    monkeypatch.undo()
    assert not caplog.text
    shutil.rmtree(tmp_path / "readings/day=2024-10-04")
    assert await every_row(history, HistoryQuery()) == []
    assert "1 files of readings are gone" in caplog.text


async def test_a_damaged_file_is_named(opened, tmp_path):
    log = Log()
    history = await opened(log)
    commit(history, log, [reading()])
    await history._flush()
    (file,) = parquet_files(tmp_path)
    os.truncate(file, 20)
    with pytest.raises(HistoryDamaged, match=r"kind=weather/.* move it away"):
        await history.queries.page(HistoryQuery(), 10)


async def test_too_many_queries_are_told_to_wait(opened, monkeypatch):
    history = await opened(Log())
    monkeypatch.setattr(snapshot_queries, "MOST_QUERIES", 1)
    some = asyncio.gather(
        *(history.queries.page(HistoryQuery(), 1) for _ in range(2)), return_exceptions=True
    )
    first, second = await some
    assert not first.rows
    assert isinstance(second, HistoryBusy)
    monkeypatch.setattr(snapshot_queries, "MOST_QUERIES", 0)
    assert await history.queries.readings(HistoryQuery(), 1) == []


async def test_a_page_that_takes_long_ends_early_and_the_next_goes_on(opened, monkeypatch):
    log = Log()
    history = await opened(log)
    for n in range(6):
        commit(history, log, [reading(n * 10), reading(n * 10 + 5)])
        await history._flush()
    monkeypatch.setattr(page_search, "WORK", -1.0)
    page = await history.queries.page(HistoryQuery(), 1000)
    assert len(page.rows) < 12
    assert page.after is not None
    assert offsets(await every_row(history, HistoryQuery())) == list(range(1, 13))


async def test_a_page_that_can_bring_nothing_in_time_says_what_to_ask(opened, monkeypatch):
    log = Log()
    history = await opened(log)
    commit(history, log, [reading(0)])
    await history._flush()
    monkeypatch.setattr(page_search, "MOST_WORK", -1.0)
    with pytest.raises(HistoryBusy, match="shorter time"):
        await history.queries.page(HistoryQuery(), 10, page_search.Place(NOON, 0))


SENSORS, KINDS = ("s1", "s2", "ä-3"), ("weather", "sea")
TIMES = st.integers(-5, 5).map(lambda n: NOON + n * DAY // 4)
PLACES = st.sampled_from([(None, None), (179.0, 10.0), (-179.0, -10.0), (0.0, 0.0), (10.0, 50.0)])
VALUES = st.dictionaries(st.sampled_from("tph"), st.sampled_from([-1.5, 0.0, 3.0]), min_size=1)
READINGS = st.builds(
    lambda sensor, kind, time, place, values: reading(0, sensor, kind, time, place, **values),
    st.sampled_from(SENSORS),
    st.sampled_from(KINDS),
    TIMES,
    PLACES,
    VALUES,
)
AREAS = st.sampled_from([Area(-180, -90, 180, 90), Area(170, -20, -170, 20), Area(0, 0, 20, 60)])
FILTERS = st.sampled_from(["t > 0", "sensor = 's1' and not exists(p)", "h in (0, 3)", "kind like 'w%'"])
QUERIES = st.builds(
    lambda sensors, kind, area, start, end, text: HistoryQuery(
        sensors,
        False,
        kind,
        area,
        start,
        end,
        text and compile_event_filter(ContentFilter(DIALECT_PREDICATES, text, ())),
    ),
    st.none() | st.frozensets(st.sampled_from((*SENSORS, "none")), max_size=2),
    st.none() | st.sampled_from(KINDS),
    st.none() | AREAS,
    st.none() | TIMES,
    st.none() | TIMES,
    st.none() | FILTERS,
)


@settings(max_examples=60)
@given(
    st.lists(st.lists(READINGS, min_size=1, max_size=6), max_size=8),
    st.lists(st.integers(0, 7)),
    st.lists(QUERIES, min_size=1, max_size=5),
    st.integers(1, 7),
)
def test_a_query_is_a_plain_selection_over_all_readings(commits, flushes, queries, limit):
    async def compare():
        with TemporaryDirectory() as folder:
            log = Log()
            history = history_of(Path(folder), log)
            await history.open()
            for n, items in enumerate(commits):
                commit(history, log, items)
                if n in flushes:
                    await history._flush()
                if n == 5:
                    await history.tidy()
            for query in queries:
                expected = plainly(log.rows.values(), query)
                assert await every_row(history, query, limit) == expected
                assert await every_row(history, query, limit, latest=True) == expected[::-1]
                page = await history.queries.page(query, 1000)
                assert (page.rows, page.after) == (expected, None)
            await history.close()

    asyncio.run(compare())
