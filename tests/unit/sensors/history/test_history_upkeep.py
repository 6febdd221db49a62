"""Age, size and compaction of kept readings, at their edges; and which part of the log is still needed."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.sensors.history import history_upkeep, history_writing, reading_history
from hpwsn.sensors.history.committed_results import result_item
from hpwsn.sensors.history.history_files import READINGS, HistoryFile
from hpwsn.sensors.history.history_query import HistoryBusy, HistoryQuery, Row
from hpwsn.sensors.history.history_upkeep import MergePlan, beyond, outdated
from tests.unit.sensors.history.history_examples import (
    DAY,
    NOON,
    Log,
    commit,
    every_row,
    history_of,
    parquet_files,
    reading,
)

TODAY = NOON // DAY


def file(number, *, day=TODAY, size=10, kind="weather", end=None, last=None):
    begin = day * DAY
    return HistoryFile(READINGS, day, kind, number, last or number, begin, end or begin + 1000, size)


class Clock:
    def __init__(self):
        self.now = NOON / 1000

    def __call__(self):
        return self.now


def test_a_file_goes_once_its_last_reading_is_too_old():
    files = [file(n, end=NOON - 3_600_000 + n) for n in (-1, 0, 1)]
    assert outdated(files, NOON / 1000, 3600.0) == files[:1]


def test_the_oldest_days_go_until_the_rest_has_the_size():
    files = [
        file(n, day=TODAY - day, size=size) for n, (day, size) in enumerate([(0, 5), (2, 10), (1, 7), (2, 1)])
    ]
    assert beyond(files, 23) == []
    assert set(beyond(files, 22)) == {files[1], files[3]}
    assert set(beyond(files, 12)) == {files[1], files[3]}
    assert set(beyond(files, 11)) == {files[1], files[3], files[2]}
    assert beyond([], 0) == []


def test_of_the_newest_day_only_its_oldest_files_go():
    files = [file(n, size=4) for n in (3, 1, 2)]
    assert [each.first for each in beyond(files, 8)] == [1]
    assert [each.first for each in beyond(files, 7)] == [1, 2]
    assert [each.first for each in beyond(files, 0)] == [1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=12), st.integers(0, 60))
def test_what_stays_has_the_size_and_nothing_goes_without_need(described, limit):
    files = [file(n, day=TODAY - day, size=size) for n, (day, size) in enumerate(described)]
    gone = beyond(files, limit)
    rest = [each for each in files if each not in gone]
    assert sum(each.size for each in rest) <= limit
    if gone and rest:
        assert max(each.day for each in gone) <= min(each.day for each in rest)
    newest = max((each.day for each in gone), default=0)
    last = [each for each in gone if each.day == newest][-1:]
    if rest and rest[0].day == newest:
        assert sum(each.size for each in (*rest, *last)) > limit


def test_sixteen_small_neighbours_are_merged_and_fifteen_are_not():
    plan, files = MergePlan(), [file(n) for n in range(1, 17)]
    assert plan.next(files[:15], NOON / 1000) == []
    assert plan.next(files, NOON / 1000) == files
    large = [*files[:8], file(9, size=history_upkeep.LARGE), *files[9:]]
    assert MergePlan().next(large, NOON / 1000) == []


def test_a_day_that_is_over_and_quiet_becomes_one_file():
    files = [file(1, day=TODAY - 1), file(2, day=TODAY - 1, size=5 << 20), file(3, kind="sea", day=TODAY - 1)]
    plan, now = MergePlan(), NOON / 1000
    assert plan.next(files, now) == []
    assert plan.next(files, now + history_upkeep.QUIET - 1) == []
    assert plan.next([*files, file(4, day=TODAY - 1)], now + history_upkeep.QUIET) == []
    assert plan.next(files[:2], now + 2 * history_upkeep.QUIET) == []  # its last file changed again
    assert plan.next(files[:2], now + 3 * history_upkeep.QUIET) == files[:2]


def test_what_cannot_be_merged_is_left():
    files = [file(n) for n in range(1, 18)]
    plan = MergePlan()
    plan.leave(files[8])
    assert plan.next(files, NOON / 1000) == []
    plan = MergePlan()
    plan.give_up(plan.next(files, NOON / 1000))
    assert plan.next(files, NOON / 1000) == []


async def test_readings_go_by_age_and_their_folders_with_them(tmp_path):
    clock, log = Clock(), Log()
    history = history_of(tmp_path, log, age=DAY / 1000, clock=clock)
    await history.open()
    commit(history, log, [reading(0), reading(time=NOON - DAY), reading(1, kind="sea")])
    await history._flush()
    await history.tidy()
    assert len(parquet_files(tmp_path)) == 3  # one is exactly as old as it may be
    clock.now += 0.001
    await history.tidy()
    assert [row.time for row in await every_row(history, HistoryQuery())] == [NOON, NOON + 1]
    clock.now += 2 * DAY
    await history.tidy()
    assert await every_row(history, HistoryQuery()) == []
    assert not list((tmp_path / "readings").glob("day=*"))
    assert history.figures()["bytes"] == history.figures()["files"] == 0
    await history.close()


@pytest.mark.parametrize(("less", "left"), [(0, 3), (1, 2)])
async def test_the_oldest_day_goes_beyond_the_size_and_not_at_it(less, left, tmp_path):
    log = Log()
    history = history_of(tmp_path, log)
    await history.open()
    commit(history, log, [reading(time=NOON - n * DAY) for n in range(3)])
    await history._flush()
    size = sum(path.stat().st_size for path in parquet_files(tmp_path))
    assert history.figures()["bytes"] == size
    history._size = size - less
    await history.tidy()
    times = [row.time for row in await every_row(history, HistoryQuery())]
    assert times == [NOON - n * DAY for n in reversed(range(left))]
    await history.close()


EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "quantity": st.sampled_from(["t", "", 3]),
        "unit": st.sampled_from(["degC", None]),
        "value": st.none() | st.floats(-1e20, 1e20) | st.integers(-(10**9), 10**9) | st.just("x"),
        "count": st.integers(0, 9) | st.just(True),
        "sensors": st.integers(0, 9),
        "states": st.lists(st.sampled_from(["low", "high"])) | st.just("low"),
        "changed": st.booleans() | st.just("no"),
        "text": st.text(max_size=5),
        "more": st.integers(),
    },
)
QUANTITIES = st.dictionaries(st.sampled_from(["t", "h", "p"]), st.floats(-1e300, 1e300), min_size=1)


@settings(max_examples=40)
@given(st.lists(st.lists(EVENTS | QUANTITIES, min_size=1, max_size=4), min_size=1, max_size=6))
def test_rows_are_the_same_in_memory_in_files_and_in_merged_files(commits):
    async def compare():
        with TemporaryDirectory() as folder:
            log = Log()
            history = history_of(Path(folder), log)
            await history.open()
            for items in commits:
                for fields in items:
                    _take(history, log, fields)
                seen = await _rows(history)
                await history._flush()
                assert await _rows(history) == seen
            for top in ("readings", "virtual"):
                files = sorted((each for each in history._catalogue if each.top == top), key=_number)
                if len(files) > 1:
                    merged, old = history_writing.merge(Path(folder), files)
                    history._catalogue.change([merged], old)
                    history_writing.remove_files(Path(folder), old)
            assert await _rows(history) == seen
            await history.close()

    asyncio.run(compare())


def _take(history, log, fields):
    """Commit a reading with these quantities, or a result with these fields."""
    if fields and fields.keys() <= {"t", "h", "p"}:
        commit(history, log, [reading(time=NOON + log.head % 3, **fields)])
    else:
        history._pending.append(Row(NOON, log.head + 1, result_item("v", NOON, fields)))
        commit(history, log, [None])


async def _rows(history):
    return [await every_row(history, HistoryQuery(virtual=virtual)) for virtual in (False, True)]


def _number(each):
    return each.first


async def test_tidying_merges_what_the_plan_says_and_loses_nothing(tmp_path):
    log = Log()
    history = history_of(tmp_path, log)
    await history.open()
    for n in range(33):
        commit(history, log, [reading(n, **{f"q{n % 4}": float(n)})])
        await history._flush()
    before = await every_row(history, HistoryQuery())
    await history.tidy()
    assert await every_row(history, HistoryQuery()) == before
    assert [pq.ParquetFile(path).metadata.num_rows for path in parquet_files(tmp_path)] == [33]
    await history.close()


class TestNeededFrom:
    """What retention of the log must leave."""

    async def test_follows_commits_while_no_reading_waits(self, tmp_path):
        log = Log()
        history = history_of(tmp_path, log)
        await history.open()
        assert history.needed_from == 1
        for _ in range(3):
            commit(history, log, [None] * 1000)
            assert history.needed_from == log.head + 1
        await history.close()

    async def test_stays_at_the_first_reading_that_is_only_in_memory(self, tmp_path):
        log = Log()
        history = history_of(tmp_path, log)
        await history.open()
        commit(history, log, [None] * 10)
        await history._flush()
        commit(history, log, [reading(0)])
        assert history.needed_from == 11
        commit(history, log, [None] * 10)
        assert history.needed_from == 11
        await history._flush()
        assert history.needed_from == 22
        await history.close()

    async def test_a_flush_under_way_is_not_over(self, tmp_path, monkeypatch):
        log, seen = Log(), []
        history = history_of(tmp_path, log)
        await history.open()
        write = history_writing._write
        monkeypatch.setattr(
            history_writing, "_write", lambda *args: (seen.append(history.needed_from), write(*args))[1]
        )
        commit(history, log, [reading(0)])
        await history._flush()
        assert (seen, history.needed_from) == ([0], 2)
        await history.close()

    async def test_stays_while_the_disk_takes_nothing_or_the_log_is_ahead(self, tmp_path, monkeypatch):
        log = Log()
        history = history_of(tmp_path, log)
        await history.open()

        def full(*_):
            raise OSError(28, "No space left on device")

        write = history_writing._write
        monkeypatch.setattr(history_writing, "_write", full)
        monkeypatch.setattr(reading_history, "MOST_PENDING", 2)
        for n in range(5):
            commit(history, log, [None, reading(n)])
            await history._flush()
            assert history.needed_from <= 1
        monkeypatch.setattr(history_writing, "_write", write)
        await history._flush()
        await history._catch_up()
        await history._flush()
        assert history.needed_from == 11
        assert len(await every_row(history, HistoryQuery())) == 5
        await history.close()

    async def test_what_the_log_has_lost_meanwhile_was_not_needed(self, tmp_path):
        log = Log()
        history = history_of(tmp_path, log)
        await history.open()
        commit(history, log, [reading(0), None])
        await history._flush()
        commit(history, log, [None] * 5)
        for offset in range(1, history.needed_from):
            log.rows.pop(offset, None)
        again = history_of(tmp_path, log)  # as after a crash
        await again.open()
        assert len(await every_row(again, HistoryQuery())) == 1
        assert again.needed_from == log.head + 1
        await again.close()
        await history.close()


async def test_a_query_waits_for_what_is_only_in_the_log_or_says_so(tmp_path, monkeypatch):
    log = Log()
    history = history_of(tmp_path, log)
    await history.open()
    log.add([reading(0)])
    commit(history, log, [reading(1)])
    assert history.figures()["behind"]
    assert len(await every_row(history, HistoryQuery())) == 2  # the flush task reads the log
    monkeypatch.setattr(reading_history, "CATCH_UP", 0.0)
    history._fall_behind()
    history._wake.clear()
    with pytest.raises(HistoryBusy, match=r"some readings are only in the log .* try again later"):
        await history.queries.page(HistoryQuery(), 10)
    await history._catch_up()
    assert len(await every_row(history, HistoryQuery())) == 2
    await history.close()
