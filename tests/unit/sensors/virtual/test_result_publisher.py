"""Results are published in order, once each, also if the node cannot store anything for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpwsn.broker.admission.admission import Source
from hpwsn.notification import Run, split_payloads
from hpwsn.sensors.templates.reading_windows import ClosedWindow
from hpwsn.sensors.templates.result import Result, result_of
from hpwsn.sensors.virtual import result_publisher
from hpwsn.sensors.virtual.result_publisher import BATCH, PAUSE, WAITING, ResultPublisher
from hpwsn_client.wsn.formats.json_events import decode_event
from hpwsn_client.wsn.soap.faults import Busy, TopicNotSupportedFault
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.unit.sensors.virtual.virtual_field import START, template
from tests.virtual_time import run

TOPIC = Topic.parse("virtual:hall")
OTHER = Topic.parse("virtual:roof")


def result(number: int) -> Result:
    found = result_of(template(), "degC", ClosedWindow(START + number, {("s1", START): number}), None)
    assert found is not None
    return found


class Log:
    """In place of the admission: appends, unless it is busy."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.appends: list[int] = []
        self.busy = 0
        self.fails: Exception | None = None
        self.unknown: set[Topic] = set()

    def admit_own(self, made: Run) -> None:
        if made.topic in self.unknown:
            raise TopicNotSupportedFault(f"{made.topic} is unknown")

    async def append(self, runs: Sequence[Run], source: Source) -> None:
        await asyncio.sleep(0)
        if self.busy:
            self.busy -= 1
            raise Busy("the disk is full")
        if self.fails is not None:
            raise self.fails
        self.appends.append(len(runs))
        self.runs += runs

    @property
    def values(self) -> list[object]:
        return [
            decode_event(payload)["value"] for each in self.runs for payload in split_payloads(each.payloads)
        ]


def publisher(log: Log) -> ResultPublisher:
    return ResultPublisher(log)  # type: ignore[arg-type]


def test_results_are_published_in_order_and_in_batches() -> None:
    async def test() -> None:
        log = Log()
        results = publisher(log)
        results.publish((TOPIC, result(number)) for number in range(BATCH + 1))
        results.publish([(OTHER, result(BATCH + 1))])
        await asyncio.sleep(1)
        assert log.values == list(range(BATCH + 2))
        assert (log.appends, results.published, results.dropped) == ([BATCH, 2], BATCH + 2, 0)
        assert [str(each.topic) for each in log.runs[-2:]] == ["virtual:hall", "virtual:roof"]
        event = decode_event(next(iter(split_payloads(log.runs[7].payloads))))
        assert event == result(7).event()

    run(test())


def test_while_nothing_can_be_stored_results_wait_and_keep_their_order() -> None:
    async def test() -> None:
        log = Log()
        log.busy = 3
        results = publisher(log)
        results.publish([(TOPIC, result(0)), (TOPIC, result(1))])
        await asyncio.sleep(PAUSE / 2)
        results.publish([(TOPIC, result(2))])
        await asyncio.sleep(4 * PAUSE)
        assert (log.values, results.published) == ([0, 1, 2], 3)

    run(test())


def test_the_oldest_results_go_first_once_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WAITING == 100_000
    monkeypatch.setattr(result_publisher, "WAITING", 5)

    async def test() -> None:
        log = Log()
        results = publisher(log)
        results.publish((TOPIC, result(number)) for number in range(5))
        assert results.dropped == 0
        results.publish([(TOPIC, result(5))])
        assert results.dropped == 1
        await asyncio.sleep(1)
        assert log.values == [1, 2, 3, 4, 5]

    run(test())


def test_results_on_a_topic_that_is_unknown_are_counted_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        log = Log()
        log.unknown = {TOPIC}
        results = publisher(log)
        for number in range(3):
            results.publish([(TOPIC, result(number)), (OTHER, result(number))])
            await asyncio.sleep(1)
        assert (log.values, results.dropped, results.published) == ([0, 1, 2], 3, 3)
        assert caplog.text.count("the results of virtual:hall are not published") == 1
        log.unknown = set()
        results.publish([(TOPIC, result(3))])
        await asyncio.sleep(1)
        assert log.values == [0, 1, 2, 3]

    with caplog.at_level(logging.WARNING):
        run(test())


def test_a_result_that_cannot_be_encoded_takes_no_other_with_it() -> None:
    async def test() -> None:
        log = Log()
        results = publisher(log)
        results.publish([(TOPIC, result(0)), (TOPIC, replace(result(1), text="\ufffe")), (TOPIC, result(2))])
        await asyncio.sleep(1)
        assert (log.values, results.dropped) == ([0, 2], 1)

    run(test())


def test_what_failed_unexpectedly_is_published_with_the_next_results(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        log = Log()
        log.fails = ValueError("on purpose")
        results = publisher(log)
        results.publish([(TOPIC, result(0))])
        await asyncio.sleep(1)
        log.fails = None
        results.publish([(TOPIC, result(1))])
        await asyncio.sleep(1)
        assert log.values == [0, 1]

    run(test())
    assert "results of virtual sensors were not published" in caplog.text


def test_close_publishes_what_waits_unless_nothing_can_be_stored() -> None:
    async def test(busy: int) -> list[object]:
        log = Log()
        log.busy = busy
        results = publisher(log)
        results.publish([(TOPIC, result(0))])
        await results.close()
        return log.values

    assert run(test(0)) == [0]
    assert run(test(100)) == []
