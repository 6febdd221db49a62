"""The events log: what was noted is listed after a restart, within its bounds."""

import json
from pathlib import Path

import pytest

from hpwsn.monitoring.events_log import BURST, LONGEST, REFILL, EventsLog


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(folder: Path, clock: Clock, kept: int = 100) -> EventsLog:
    return EventsLog(folder / "events.log", clock=clock, kept=kept)


def texts(log: EventsLog) -> list[str]:
    return [event.text for event in log.newest_first()]


def test_events_are_listed_newest_first_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock)
    log.started("one")
    clock.now += 1.5
    log.note("topics", "A:B was added", "mia")
    log.close("two")
    again = opened(tmp_path, clock)
    assert [event.described() for event in again.newest_first()] == [
        {"time": "2023-11-14T22:13:21.500000+00:00", "kind": "stop", "text": "two", "who": ""},
        {"time": "2023-11-14T22:13:21.500000+00:00", "kind": "topics", "text": "A:B was added", "who": "mia"},
        {"time": "2023-11-14T22:13:20+00:00", "kind": "start", "text": "one", "who": ""},
    ]
    assert (tmp_path / "events.log").stat().st_mode & 0o777 == 0o600


def test_a_start_after_a_clean_stop_is_no_crash_and_any_other_is(tmp_path: Path, clock: Clock) -> None:
    first = opened(tmp_path, clock)
    assert not first.started("first")
    first.close("stop")
    second = opened(tmp_path, clock)
    assert not second.started("second")
    second.close()
    third = opened(tmp_path, clock)
    assert third.started("third")
    assert [event.kind for event in third.newest_first()][:2] == ["start", "crash"]
    third.close("stop")


def test_lines_that_a_crash_cut_are_left_out_and_the_next_one_is_whole(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock)
    log.note("a", "kept")
    log.note("a", "cut")
    log.close()
    path = tmp_path / "events.log"
    path.write_bytes(path.read_bytes()[:-5])
    again = opened(tmp_path, clock)
    assert again.problem is not None
    assert "1 lines" in again.problem
    assert texts(again) == ["kept"]
    again.note("a", "after")
    again.close()
    assert texts(opened(tmp_path, clock)) == ["after", "kept"]


@pytest.mark.parametrize("data", [b"\x00\xff\n", b"{}\n", b"[1]\n", b'{"n": "x"}\n', b"nothing"])
def test_a_file_that_is_no_log_is_told_and_does_no_harm(tmp_path: Path, clock: Clock, data: bytes) -> None:
    (tmp_path / "events.log").write_bytes(data)
    log = opened(tmp_path, clock)
    log.started("up")
    log.close()
    assert texts(log)[0] == log.problem
    assert texts(opened(tmp_path, clock))[:2] == [log.problem, "up"]


def test_the_number_of_events_is_bounded_in_memory_and_on_disk(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock, kept=10)
    for number in range(20):
        log.note(f"kind {number}", str(number))
    assert len(log) == 10
    log.note("kind", "20")
    log.close()
    lines = (tmp_path / "events.log").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == [str(number) for number in range(11, 21)]
    assert texts(opened(tmp_path, clock, kept=10)) == texts(log)


def test_a_text_is_cut_at_its_limit(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock)
    log.note("a", "x" * LONGEST)
    log.note("a", "y" * (LONGEST + 1))
    assert texts(log) == ["y" * (LONGEST - 1) + "…", "x" * LONGEST]
    log.close()


def test_of_one_kind_so_many_are_listed_and_the_rest_is_summed_up(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock)
    for number in range(BURST):
        log.note("subscription", f"s{number}")
    log.note("subscription", "alone")
    log.note("topics", "of another kind")
    assert texts(log)[:2] == ["of another kind", f"s{BURST - 1}"]
    log.tick()
    assert len(log) == BURST + 1
    clock.now += REFILL
    log.tick()
    assert texts(log)[0] == "alone"
    for number in range(1000):
        log.note("subscription", f"t{number}")
    clock.now += REFILL - 1
    log.tick()
    assert texts(log)[0] == "alone"
    clock.now += 1
    log.tick()
    assert texts(log)[0] == "1000 more events of this kind; the last: t999"
    log.note("subscription", "unlisted")
    log.close("stop")
    assert texts(log)[:2] == ["stop", "unlisted"]


def test_steady_events_are_summed_up_once_in_a_while(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock, kept=1000)
    for _ in range(3600):
        clock.now += 1
        log.note("subscription", "again")
        log.tick()
    assert len(log) <= BURST + 3600 / REFILL + 1
    log.close()


def test_a_clock_that_is_set_back_stops_nothing(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock)
    log.note("a", "one")
    clock.now -= 1_000_000
    log.note("a", "two")
    log.tick()
    assert texts(log) == ["two", "one"]
    log.close()


def test_pages_follow_each_other_while_events_come(tmp_path: Path, clock: Clock) -> None:
    log = opened(tmp_path, clock)
    for number in range(5):
        log.note("a", str(number))
    first, following = log.page(2)
    log.note("a", "new")
    second, last = log.page(2, following)
    third, end = log.page(2, last)
    assert [event.text for event in (*first, *second, *third)] == ["4", "3", "2", "1", "0"]
    assert end is None
    assert log.page(6)[1] is None
    assert log.page(5)[1] is not None
    log.close()


def test_a_disk_that_takes_nothing_is_told_once(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log = EventsLog(tmp_path / "missing" / "events.log", clock=clock)
    log.note("a", "one")
    log.note("a", "two")
    log.close()
    assert caplog.text.count("cannot be written") == 1
    assert texts(log) == ["two", "one"]
