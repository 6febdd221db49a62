"""The readings of the log: all of them, page by page, and nothing of other topics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest

from hpwsn.journal import Journal
from hpwsn.notification import INTERNAL, Run
from hpwsn.sensors.intake import reading_log
from hpwsn.sensors.intake.reading_log import ReadingLog
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import SensorRuns
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.runs import run_of

TOPIC = Topic.parse("sensors:weather:s1")
RUNS = SensorRuns("s1", "weather", TOPIC)


def readings(*times: int) -> Run:
    return RUNS.run(tuple(Reading("s1", "weather", time, {"t": 1.0}) for time in times))


def internal(run: Run) -> Run:
    run.target = INTERNAL
    return run


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = Journal(tmp_path / "journal.db", reserve=1 << 16)
    await journal.open()
    yield journal
    await journal.close()


async def all_keys(log: ReadingLog, after: int = 0) -> tuple[int, list[tuple[str, int]], int]:
    """The last offset, all keys, and how many pages had some."""
    found: list[tuple[str, int]] = []
    at, pages = -1, 0
    while after != at:
        at = after
        after, keys = await log.keys(at)
        found += keys
        pages += bool(keys)
    return after, found, pages


def log_of(journal: Journal, head: int, topics: Collection[str] = (str(TOPIC),)) -> ReadingLog:
    return ReadingLog(journal, lambda: topics, lambda: head)


async def test_the_keys_of_all_readings_are_read_in_their_order(journal: Journal) -> None:
    runs = [
        readings(3, 1),
        run_of("hall", b"<x/>"),
        run_of(TOPIC, b"<x/>"),
        internal(readings(9)),
        readings(2),
    ]
    await journal.append(runs)
    assert await all_keys(log_of(journal, 6)) == (6, [("s1", 3), ("s1", 1), ("s1", 2)], 1)
    assert await all_keys(log_of(journal, 6), after=1) == (6, [("s1", 1), ("s1", 2)], 1)
    assert await all_keys(log_of(journal, 6), after=6) == (6, [], 0)


async def test_nothing_beyond_the_head_is_read(journal: Journal) -> None:
    await journal.append([readings(1), readings(2)])
    assert await all_keys(log_of(journal, 1)) == (1, [("s1", 1)], 1)


async def test_a_log_without_sensors_is_not_read(journal: Journal) -> None:
    await journal.append([run_of("hall", b"<x/>")])
    assert await all_keys(log_of(journal, 1, topics=())) == (1, [], 0)


async def test_no_page_is_larger_than_allowed(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_log, "AT_ONCE", 4)
    for at in range(10):
        await journal.append([readings(*range(10 * at, 10 * at + 3))])
    upto, keys, pages = await all_keys(log_of(journal, 30))
    assert (upto, keys) == (30, [("s1", 10 * at + n) for at in range(10) for n in range(3)])
    assert pages >= 5
