"""MPS as the thesis prints it: a counter, the elapsed time and their quotient, every 500 messages."""

import pytest
from benchmarks import fragments
from benchmarks.frame import Row
from benchmarks.tools.load import Flow
from benchmarks.tools.mps import MpsMeter, mps_line, print_mps
from benchmarks.tools.sink import Tally


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_is_due_every_500_messages_and_counts_from_the_start() -> None:
    clock = Clock()
    meter = MpsMeter(500, clock)
    assert not meter.note(10_000), "it has not started"
    meter.start(1_000)
    for seconds, count in ((1, 1_499), (2, 1_500), (3, 1_700), (4, 3_100), (5, 3_499), (6, 3_500)):
        clock.now = 100.0 + seconds
        meter.note(count)
    meter.stop()
    assert not meter.note(9_000)
    assert meter.points == [(500, 2.0), (2_100, 4.0), (2_500, 6.0)]
    assert next(iter(meter.lines())) == "500 messages in 2.000 s, MPS 250"


def test_the_lines_go_to_standard_error_with_the_name_of_the_case(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    meter = MpsMeter(500, clock)
    meter.start(0)
    clock.now += 1
    meter.note(460)
    meter.note(920)
    print_mps("two levels", meter)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "    two levels: 920 messages in 1.000 s, MPS 920\n")


def test_no_time_at_all_is_no_division_by_zero() -> None:
    assert mps_line(500, 0.0) == "500 messages in 0.000 s, MPS 0"


def test_a_load_notes_what_its_consumers_have_received() -> None:
    tally, meter = Tally(), MpsMeter(2, Clock())
    flow = Flow([b"request"], 1, [tally], meter)
    meter.start(flow.received)
    tally.notifications = 3
    flow.pump()
    assert [count for count, _ in meter.points] == [3]


def test_ten_pieces_count_as_one_message() -> None:
    tally = fragments.WholeMessages()
    body = b"</wsnt:NotificationMessage>"
    for _ in range(25):
        tally.take(body, 0, len(body))
    assert tally.notifications == 2


def test_the_page_has_messages_bytes_and_cpu_of_each_case() -> None:
    name = "HPwsn, one node, 30,000 bytes, ten datagrams"
    rows = [Row(name, 500.0, "900.0 µs, 90%/5%"), Row("Spyne, 3,000 bytes", 1.0)]
    assert fragments.body_of(rows).splitlines() == [
        "|  | MPS | MB/s | CPU each |",
        "|---|---|---|---|",
        f"| {name} | 500 | 15.0 | 900.0 µs |",
    ]
