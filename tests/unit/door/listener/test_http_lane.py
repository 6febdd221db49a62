"""One connection of the lane without a socket: every split, the order of answers, and the bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import takewhile

import pytest

from hpwsn.door.listener import http_lane as module
from hpwsn.door.listener.http_exchange import Post, Reply
from hpwsn.door.listener.http_lane import Lane, Lanes
from hpwsn.door.listener.http_statistics import HttpStatistics
from hpwsn.door.listener.request_head import Heads
from hpwsn.histogram import Timings

ORDINARY = b"POST /wsn HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 5\r\n\r\n"
OTHER = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """Keeps what is written, and what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.paused = self.closed = self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False

    def close(self) -> None:
        self.closed = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    abort = close

    @property
    def statuses(self) -> list[int]:
        return [int(part[:3]) for part in self.written.split(b"HTTP/1.1 ")[1:]]


class Notify:
    """Takes bodies that begin with n, so many at once, and stores them when the test says so."""

    def __init__(self, together: int) -> None:
        self.together = together
        self.bodies: list[bytes] = []
        self.waiting: list[Callable[[bool], None]] = []

    def offer(
        self, bodies: Sequence[bytes], stored: Callable[[bool], None], traces: Sequence[str | None]
    ) -> int:
        taken = list(takewhile(lambda data: data.startswith(b"n"), bodies[: self.together]))
        if taken:
            self.bodies += taken
            self.waiting.append(stored)
        return len(taken)

    async def store(self, stored: bool = True) -> None:
        waiting, self.waiting = self.waiting, []
        for tell in waiting:
            tell(stored)
        await turns()


class Soap:
    """Answers 200 to all."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def answer_broker(self, post: Post) -> Reply:
        self.bodies.append(post.data)
        return Reply(200, b"<a/>")

    def overtaken(self, post: Post) -> Reply:
        return Reply(503)

    def too_late(self, hint: object) -> Reply:
        return Reply(408)


class Bench:
    """A lane on a wire."""

    def __init__(self, together: int = module.TOGETHER) -> None:
        self.wire, self.notify, self.soap = Wire(), Notify(together), Soap()
        self.handed_over: list[bytes] = []
        self.timings = Timings()
        self.statistics = HttpStatistics(self.timings)
        self.lanes = Lanes(
            self.soap,  # type: ignore[arg-type]
            self.notify.offer,
            heads=Heads(1000),
            arrive_within=10.0,
            hand_over=lambda transport, data: self.handed_over.append(data),
            statistics=self.statistics,
        )
        self.lane: Lane = self.lanes()
        self.lane.connection_made(self.wire)

    def feed(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.lane.data_received(piece)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("together", [1, module.TOGETHER])
async def test_requests_are_the_same_wherever_they_are_split(together: int) -> None:
    stream = ORDINARY + b"n0000" + ORDINARY + b"n1111"
    for at in range(len(stream)):
        bench = Bench(together)
        bench.feed(stream[:at], stream[at:])
        await bench.notify.store()
        assert bench.notify.bodies == [b"n0000", b"n1111"]
        assert bench.wire.statuses == [202, 202]


async def test_a_head_in_many_pieces_goes_to_the_full_lane_with_all_of_them() -> None:
    bench = Bench()
    bench.feed(*(ORDINARY[at : at + 1] for at in range(module.HEAD_READS)))
    assert bench.handed_over == [ORDINARY[: module.HEAD_READS]]


async def test_answers_wait_for_the_store() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000")
    assert bench.wire.written == b""
    await bench.notify.store()
    assert bench.wire.statuses == [202]


async def test_other_bodies_are_answered_alone_and_in_their_turn() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000" + ORDINARY + b"other" + ORDINARY + b"n1111")
    await turns()
    assert bench.soap.bodies == []
    assert bench.notify.bodies == [b"n0000"]
    await bench.notify.store()
    await turns()
    assert bench.wire.statuses == [202, 200]
    assert bench.notify.bodies == [b"n0000", b"n1111"]
    await bench.notify.store()
    assert bench.wire.statuses == [202, 200, 202]
    assert not bench.wire.paused


@pytest.mark.parametrize("together", [1, module.TOGETHER])
async def test_what_could_not_be_stored_together_is_tried_alone_in_order(together: int) -> None:
    bench = Bench(together)
    bench.feed(ORDINARY + b"n0000" + ORDINARY + b"n1111")
    await bench.notify.store(False)
    await turns()
    assert bench.soap.bodies == [b"n0000", b"n1111"]
    assert bench.wire.statuses == [200, 200]


@pytest.mark.parametrize("first_to_be_told", [0, 1])
async def test_what_could_not_be_stored_is_not_put_behind_what_came_later(first_to_be_told: int) -> None:
    bench = Bench(together=1)
    bench.feed(ORDINARY + b"n0000" + ORDINARY + b"n1111")
    outcomes = [(bench.notify.waiting[0], False), (bench.notify.waiting[1], True)]
    for tell, stored in (outcomes[first_to_be_told], outcomes[1 - first_to_be_told]):
        tell(stored)
        await turns()
    assert bench.soap.bodies == []
    assert bench.wire.statuses == [503, 202]


async def test_what_comes_in_one_read_has_one_fate_and_heads_of_other_lengths_are_no_obstacle() -> None:
    bench = Bench()
    longer = ORDINARY.replace(b"Length: 5", b"Length: 7")
    bench.feed(ORDINARY + b"n0000" + longer + b"n111111" + ORDINARY + b"n2222" + ORDINARY + b"other")
    assert bench.notify.bodies == [b"n0000", b"n111111", b"n2222"]
    assert len(bench.notify.waiting) == 1
    await bench.notify.store()
    assert bench.wire.statuses == [202, 202, 202, 200]


async def test_more_than_are_taken_together_are_taken_one_after_another() -> None:
    bench = Bench()
    bench.feed((ORDINARY + b"n0000") * (module.TOGETHER + 1))
    assert len(bench.notify.waiting) == 2
    await bench.notify.store()
    assert bench.wire.statuses == [202] * (module.TOGETHER + 1)


async def test_of_several_requests_that_are_refused_together_none_overtakes_those_behind() -> None:
    bench = Bench(together=2)
    bench.feed((ORDINARY + b"n0000") * 2 + (ORDINARY + b"n1111") * 2)
    refused, stored = bench.notify.waiting
    stored(True)
    refused(False)
    await turns()
    assert bench.soap.bodies == []
    assert bench.wire.statuses == [503, 503, 202, 202]


async def test_an_empty_line_before_a_request_is_for_the_full_lane() -> None:
    bench = Bench()
    bench.feed(b"\r\n\r\n" + ORDINARY + b"n0000")
    assert bench.handed_over == [b"\r\n\r\n" + ORDINARY + b"n0000"]


async def test_a_connection_is_handed_over_when_all_before_is_answered() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000" + OTHER + ORDINARY)
    assert bench.wire.paused
    assert bench.handed_over == []
    assert len(bench.lanes) == 1
    await bench.notify.store()
    assert bench.handed_over == [OTHER + ORDINARY]
    assert not bench.wire.paused
    assert len(bench.lanes) == 0


async def test_reading_pauses_when_too_many_are_unanswered() -> None:
    bench = Bench()
    bench.feed((ORDINARY + b"n0000") * (module.MOST_UNANSWERED + 1))
    assert len(bench.notify.bodies) == module.MOST_UNANSWERED
    assert bench.wire.paused
    await bench.notify.store()
    assert len(bench.notify.bodies) == module.MOST_UNANSWERED + 1
    assert not bench.wire.paused


async def test_reading_pauses_when_too_much_is_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 9)
    bench = Bench()
    bench.feed((ORDINARY + b"n0000") * 3)
    assert len(bench.notify.bodies) == 2
    assert bench.wire.paused


async def test_reading_pauses_while_answers_are_not_taken() -> None:
    bench = Bench()
    bench.lane.pause_writing()
    assert bench.wire.paused
    bench.feed(ORDINARY + b"n0000")
    assert bench.notify.bodies == []
    bench.lane.resume_writing()
    assert bench.notify.bodies == [b"n0000"]


async def test_nothing_is_taken_after_a_last_request() -> None:
    bench = Bench()
    last = ORDINARY.replace(b"Host", b"Connection: close\r\nHost")
    bench.feed(last + b"n0000" + ORDINARY + b"n1111")
    assert not bench.wire.closed
    await bench.notify.store()
    assert bench.notify.bodies == [b"n0000"]
    assert bench.wire.ended


async def test_time_runs_out_for_heads_and_bodies_and_never_while_we_work() -> None:
    silent, head, body, working = Bench(), Bench(), Bench(), Bench()
    head.feed(ORDINARY[:20])
    body.feed(ORDINARY + b"n0")
    working.feed(ORDINARY + b"n0000")
    for bench in (silent, head, body, working):
        bench.lane.check_time(asyncio.get_running_loop().time() + 9, 10)
        assert not bench.wire.closed
        assert bench.wire.statuses == []
        bench.lane.check_time(asyncio.get_running_loop().time() + 11, 10)
    assert silent.wire.closed
    assert head.wire.closed
    assert body.wire.statuses == [408]
    assert not working.wire.closed


async def test_a_connection_between_requests_may_be_quiet_for_long() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000")
    await bench.notify.store()
    bench.lane.check_time(asyncio.get_running_loop().time() + 3600, 10)
    assert not bench.wire.closed
    bench.lane.check_time(asyncio.get_running_loop().time() + module.IDLE_FOR + 1, 10)
    assert bench.wire.closed


async def test_a_drain_ends_what_is_idle_now_and_what_is_busy_with_its_answer() -> None:
    idle, busy = Bench(), Bench()
    busy.feed(ORDINARY + b"n0000" + ORDINARY + b"n1111")
    for bench in (idle, busy):
        bench.lanes.draining = True
        bench.lane.drain()
    assert idle.wire.closed
    assert not busy.wire.closed
    await busy.notify.store()
    assert busy.wire.statuses == [202, 202]
    assert busy.wire.ended


async def test_what_has_not_begun_is_forgotten_with_its_connection() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000" + ORDINARY + b"other")
    bench.wire.close()
    bench.lane.connection_lost(None)
    await bench.notify.store()
    await turns()
    assert bench.soap.bodies == []
    assert bench.wire.written == b""
    assert len(bench.lanes) == 0


async def test_a_drain_hands_nothing_over() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000" + OTHER)
    bench.lanes.draining = True
    bench.lane.drain()
    await bench.notify.store()
    assert bench.wire.statuses == [202]
    assert bench.handed_over == []
    assert bench.wire.ended


async def test_a_client_that_sends_no_more_has_its_answers_before_the_end() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000" + ORDINARY + b"n1111")
    assert bench.lane.eof_received()
    assert not bench.wire.closed
    await bench.notify.store()
    assert bench.wire.statuses == [202, 202]
    assert bench.wire.closed


async def test_a_client_that_sends_no_more_and_waits_for_nothing_is_let_go() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0")
    assert not bench.lane.eof_received()


async def test_what_a_client_had_sent_before_its_end_is_taken_though_reading_was_paused() -> None:
    bench = Bench()
    bench.feed((ORDINARY + b"n0000") * (module.MOST_UNANSWERED + 2))
    assert bench.lane.eof_received()
    await bench.notify.store()
    assert not bench.wire.closed
    await bench.notify.store()
    assert len(bench.wire.statuses) == module.MOST_UNANSWERED + 2
    assert bench.wire.closed


async def test_the_last_answers_stay_while_requests_come_that_nobody_takes() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000")
    bench.lanes.draining = True
    bench.lane.drain()
    bench.feed(ORDINARY + b"n1111")
    await bench.notify.store()
    assert bench.wire.statuses == [202]
    assert bench.wire.ended
    assert not bench.wire.closed
    bench.feed(ORDINARY + b"n2222")
    assert bench.notify.bodies == [b"n0000"]


async def test_a_client_that_never_reads_has_as_much_time_as_for_a_request() -> None:
    bench = Bench()
    bench.lane.pause_writing()
    bench.lane.check_time(asyncio.get_running_loop().time() + 9, 10)
    assert not bench.wire.closed
    bench.lane.check_time(asyncio.get_running_loop().time() + 11, 10)
    assert bench.wire.closed


async def test_answers_are_counted_and_timed_once_for_each_request() -> None:
    bench = Bench()
    bench.feed(ORDINARY + b"n0000" + ORDINARY + b"n1111")
    await turns()
    assert (sum(bench.timings.accept.counts), bench.statistics.requests) == (0, {"soap": {"2xx": 0}})
    await bench.notify.store()
    assert (sum(bench.timings.accept.counts), bench.statistics.requests) == (2, {"soap": {"2xx": 2}})
    bench.feed(ORDINARY + b"other")
    await turns()
    assert (sum(bench.timings.accept.counts), bench.statistics.requests) == (2, {"soap": {"2xx": 3}})
