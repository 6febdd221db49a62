"""The last result: in memory since it was made, and in the log over a restart."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hpwsn.journal import Journal
from hpwsn.sensors.templates.reading_windows import ClosedWindow
from hpwsn.sensors.templates.result import Before, Result, result_of
from hpwsn.sensors.virtual.last_results import LastResult, LastResults
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.formats.json_events import encode_event
from tests.runs import run_of
from tests.unit.sensors.virtual.virtual_field import START, template

BANDS = [{"name": "warm", "low": 24}, {"name": "hot", "low": 30}]
HALL = template("hall", bands=BANDS)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = Journal(tmp_path / "journal.db", reserve=1 << 16)
    await journal.open()
    yield journal
    await journal.close()


@pytest.fixture
def tree() -> TopicTree[Any]:
    return TopicTree()


def result(value: float, end: int = 1000) -> Result:
    found = result_of(HALL, "degC", ClosedWindow(START + end, {("s1", START): value}), None)
    assert found is not None
    return found


async def publish(journal: Journal, tree: TopicTree[Any], payload: bytes, time: float = 100.0) -> None:
    offset = await journal.append([run_of("virtual:hall", payload, time=time)])
    tree.retain(HALL.topic, offset)


async def test_there_is_none_before_the_first(journal: Journal, tree: TopicTree[Any]) -> None:
    assert await LastResults(journal, tree).of(HALL, 0.0) is None


async def test_the_one_that_was_noted_last_is_known(journal: Journal, tree: TopicTree[Any]) -> None:
    results = LastResults(journal, tree)
    results.note(result(20, 1000))
    results.note(result(25, 2000))
    assert await results.of(HALL, 0.0) == LastResult(START + 2000, Before(25.0, ("warm",)))
    results.forget("hall")
    assert await results.of(HALL, 0.0) is None


@pytest.mark.parametrize(("value", "states"), [(20.5, ()), (25, ("warm",)), (31, ("warm", "hot"))])
async def test_after_a_restart_it_is_the_current_message_of_the_topic(
    value: float, states: tuple[str, ...], journal: Journal, tree: TopicTree[Any]
) -> None:
    await publish(journal, tree, encode_event(result(value).event()))
    found = await LastResults(journal, tree).of(HALL, 100.0)
    assert found == LastResult(START + 1000, Before(float(value), states))


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_value_of_another_quantity_is_not_held(
    restarted: bool, journal: Journal, tree: TopicTree[Any]
) -> None:
    results = LastResults(journal, tree)
    if restarted:
        await publish(journal, tree, encode_event(result(25).event()))
    else:
        results.note(result(25))
    other = template("hall", bands=BANDS, quantity="other")
    assert await results.of(other, 0.0) == LastResult(START + 1000, Before(None, ("warm",)))


async def test_what_was_published_before_the_definition_was_made_is_not_its_past(
    journal: Journal, tree: TopicTree[Any]
) -> None:
    await publish(journal, tree, encode_event(result(20).event()), time=99.9)
    assert await LastResults(journal, tree).of(HALL, 100.0) is None


@pytest.mark.parametrize(
    "payload",
    [b"<x/>", b"not XML", encode_event({"time": "yesterday"}), encode_event({"time": 3}), encode_event({})],
)
async def test_an_event_of_somebody_else_is_no_result(
    payload: bytes, journal: Journal, tree: TopicTree[Any]
) -> None:
    await publish(journal, tree, payload)
    assert await LastResults(journal, tree).of(HALL, 0.0) is None


async def test_a_log_that_cannot_be_read_is_told_and_stops_nothing(
    journal: Journal, tree: TopicTree[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await publish(journal, tree, encode_event(result(20).event()))
    with closing(sqlite3.connect(tmp_path / "journal.db")) as damage, damage:
        damage.execute("ALTER TABLE log RENAME TO gone")
    with caplog.at_level(logging.WARNING):
        assert await LastResults(journal, tree).of(HALL, 0.0) is None
    assert "the last result of virtual:hall cannot be read" in caplog.text
