"""Readings of the past: asked for by few at a time, and again while the history is busy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable

import pytest

from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.virtual.past_readings import AT_ONCE, PATIENCE, PAUSE, PastBusy, PastReadings
from tests.virtual_time import run

FOUND = [Reading("s1", "weather", 5, {"t": 1.0})]


class History:
    """Answers after a second, and is busy as often as it is told."""

    def __init__(self, busy: int = 0) -> None:
        self.busy = busy
        self.asked: list[tuple[set[str], int, int]] = []
        self.now = self.most = 0

    async def ask(self, sensors: Collection[str], begin: int, end: int) -> Iterable[Reading]:
        self.asked.append((set(sensors), begin, end))
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(1)
        self.now -= 1
        if self.busy:
            self.busy -= 1
            raise PastBusy("it reads the log")
        return FOUND


def past(history: History) -> PastReadings:
    made = PastReadings()
    made.ask = history.ask
    return made


def test_without_a_history_there_is_no_past() -> None:
    async def test() -> None:
        assert list(await PastReadings().of("hall", ["s1"], 0, lambda: 9)) == []

    run(test())


def test_a_busy_history_is_asked_again_up_to_the_time_of_then() -> None:
    async def test() -> None:
        history, loop = History(busy=2), asyncio.get_running_loop()
        found = await past(history).of("hall", ["s1"], 0, lambda: round(loop.time()))
        assert (list(found), history.asked) == (FOUND, [({"s1"}, 0, 0), ({"s1"}, 0, 2), ({"s1"}, 0, 4)])

    run(test())


def test_a_history_that_stays_busy_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        assert list(await past(History(busy=10**6)).of("hall", ["s1"], 0, lambda: 9)) == []
        assert PATIENCE <= loop.time() <= PATIENCE + 1 + PAUSE

    with caplog.at_level(logging.ERROR):
        run(test())
    assert "virtual sensor hall begins without readings of the past: it reads the log" in caplog.text


def test_few_ask_at_a_time() -> None:
    async def test() -> None:
        history = History()
        asking = past(history)
        await asyncio.gather(*[asking.of(str(number), ["s1"], 0, lambda: 9) for number in range(20)])
        assert (len(history.asked), history.most) == (20, AT_ONCE)

    run(test())
