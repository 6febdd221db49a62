"""Windows close at their time, together if they are due together, whatever the clock does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hpwsn.sensors.virtual.closing_times import AT_ONCE, LONGEST_WAIT, SET_BACK, ClosingTimes
from tests.virtual_time import run


class Window:
    """Closes again and again, `every` milliseconds after it was due."""

    def __init__(self, due: int, every: int) -> None:
        self.due = due
        self.every = every
        self.closed = False
        self.anew: list[int] = []

    def begin_anew(self, now: int) -> None:
        self.anew.append(now)
        self.due = now + self.every


class Closings:
    """The closing times, a clock that can jump, and what was closed when."""

    def __init__(self) -> None:
        self.jumped = 0.0
        self.seen: list[tuple[int, list[Window]]] = []
        self.fails = False
        self.times: ClosingTimes[Window] = ClosingTimes(self.clock, self.close)

    def clock(self) -> float:
        return 1_790_000_000 + asyncio.get_running_loop().time() + self.jumped

    def now(self) -> int:
        return self.times.now() - 1_790_000_000_000

    def window(self, due: int, every: int = 1000) -> Window:
        found = Window(1_790_000_000_000 + due, every)
        self.times.add(found)
        return found

    def close(self, due: Sequence[Window], now: int) -> None:
        self.seen.append((self.now(), list(due)))
        for window in due:
            while window.due <= now:
                window.due += window.every
        if self.fails:
            raise ValueError("on purpose")


def test_each_window_closes_in_the_first_millisecond_in_which_it_is_due() -> None:
    async def test() -> None:
        closings = Closings()
        slow, fast = closings.window(2000, 2000), closings.window(500, 700)
        await asyncio.sleep(2.5)
        assert closings.seen == [(500, [fast]), (1200, [fast]), (1900, [fast]), (2000, [slow])]

    run(test())


def test_those_that_are_due_together_are_closed_together() -> None:
    async def test() -> None:
        closings = Closings()
        windows = [closings.window(1000) for _ in range(5)]
        await asyncio.sleep(1.5)
        assert closings.seen == [(1000, windows)]

    run(test())


def test_of_very_many_that_are_due_together_some_wait_for_the_next_turn() -> None:
    async def test() -> None:
        closings = Closings()
        windows = [closings.window(1000, every=10_000) for _ in range(2 * AT_ONCE + 1)]
        await asyncio.sleep(1.5)
        assert [len(due) for _, due in closings.seen] == [AT_ONCE, AT_ONCE, 1]
        assert [each for _, due in closings.seen for each in due] == windows

    run(test())


def test_one_that_was_due_before_is_closed_at_once() -> None:
    async def test() -> None:
        closings = Closings()
        late = closings.window(-5000)
        await asyncio.sleep(0.1)
        assert [windows for _, windows in closings.seen] == [[late]]

    run(test())


def test_what_is_over_is_not_closed_any_more() -> None:
    async def test() -> None:
        closings = Closings()
        over, goes_on = closings.window(1000), closings.window(1000)
        over.closed = True
        await asyncio.sleep(1.5)
        assert closings.seen == [(1000, [goes_on])]
        goes_on.closed = True
        closings.window(5000).closed = True
        await asyncio.sleep(10)
        assert len(closings.seen) == 1

    run(test())


def test_after_stop_nothing_is_closed() -> None:
    async def test() -> None:
        closings = Closings()
        closings.window(1000)
        closings.times.stop()
        await asyncio.sleep(10)
        assert closings.seen == []

    run(test())


def test_a_clock_that_jumps_ahead_is_noticed_within_a_second() -> None:
    async def test() -> None:
        closings = Closings()
        closings.window(3_600_000)
        await asyncio.sleep(10.3)
        closings.jumped = 3600.0
        await asyncio.sleep(LONGEST_WAIT)
        assert len(closings.seen) == 1

    run(test())


def test_a_clock_that_jumps_back_closes_nothing_before_it_is_due() -> None:
    async def test() -> None:
        closings = Closings()
        closings.window(10_000, 1000)
        await asyncio.sleep(5)
        closings.jumped = -20.0
        await asyncio.sleep(20)
        assert closings.seen == []
        await asyncio.sleep(5.5)
        assert [when for when, _ in closings.seen] == [10_000]

    run(test())


@pytest.mark.parametrize(("back", "anew"), [(SET_BACK - 1000, False), (SET_BACK + 2000, True)])
def test_windows_begin_anew_once_if_the_clock_goes_back_by_more_than_a_minute(back: int, anew: bool) -> None:
    async def test() -> None:
        closings = Closings()
        windows = [closings.window(10_000, 1000), closings.window(10_500, 1000)]
        over = closings.window(20_000)
        await asyncio.sleep(5)
        over.closed = True
        closings.jumped = -back / 1000
        await asyncio.sleep(5)
        assert [len(window.anew) for window in windows] == [anew, anew]
        assert over.anew == []
        assert bool(closings.seen) is anew

    run(test())


def test_a_failure_in_closing_does_not_end_the_others() -> None:
    async def test() -> None:
        closings = Closings()
        closings.window(1000)
        closings.fails = True
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        await asyncio.sleep(3.5)
        assert [when for when, _ in closings.seen] == [1000, 2000, 3000]

    run(test())
