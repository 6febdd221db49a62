"""Both ends of a link with lanes at the one and a store at the other: order, refusals, failures, garbage."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.broker.intake import Intake
from hpwsn.door.exchange import Post, Refusals, Reply
from hpwsn.door.lane import Lane, Lanes
from hpwsn.notification import Notification
from hpwsn.workers.core_link import Core, CoreLink
from hpwsn.workers.door_link import DoorLink
from hpwsn.workers.frames import BadFrame, Kind, encode_frame
from hpwsn_client.wsn.faults import TopicNotSupportedFault
from hpwsn_client.wsn.notify_scan import Encoded
from hpwsn_client.wsn.xml import Limits
from tests.raw_soap import envelope, notify

payload = re.compile(rb"<n[^>]*>([^<]*)</n>").search


def post(topic: str, text: str, before: str = "") -> bytes:
    body = envelope(notify(topic, f"{before}<n>{text}</n>"))
    head = f"POST /wsn HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Wire(asyncio.Transport):
    """Gives what is written to the other end, in pieces, in later turns of the loop."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.other: asyncio.Protocol | None = None
        self._random = random
        self._under_way = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        if self.other is not None:
            if not self._under_way:
                asyncio.get_running_loop().call_soon(self._deliver)
            self._under_way += data

    def _deliver(self) -> None:
        assert self.other is not None
        cut = self._random.randint(1, len(self._under_way))
        piece, self._under_way = self._under_way[:cut], self._under_way[cut:]
        if self._under_way:
            asyncio.get_running_loop().call_soon(self._deliver)
        if not self.closed:
            self.other.data_received(piece)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Bench:
    """A core that refuses the topic `bad`, and whose store fails now and then; a door; and connections."""

    def __init__(self, seed: int = 0, failures: float = 0.0) -> None:
        self.random, self.failures = Random(seed), failures
        self.log: list[str] = []
        self.wrong: list[BadFrame] = []
        self.full: list[bytes] = []
        core = Core(self._ready, lambda *_: None, Intake(self._send), self._answer)
        self.core = CoreLink(core, 1 << 20, self.wrong.append)
        limits = Limits()
        refusals = Refusals(limits, 1.0, lambda: datetime.now(UTC))
        self.drained = False
        self.reloaded = False
        self.door = DoorLink(
            limits,
            refusals,
            hold=lambda held: self.lanes.hold(held),
            drain=self._drain,
            reload=self._reload,
        )
        self.to_core, self.to_door = Wire(self.random), Wire(self.random)
        self.to_core.other, self.to_door.other = self.core, self.door
        self.core.connection_made(self.to_door)
        self.door.connection_made(self.to_core)
        self.lanes = Lanes(
            self.door, self.door, body_limit=1 << 20, arrive_within=60.0, hand_over=lambda *given: None
        )

    def _drain(self) -> None:
        self.drained = True

    def _reload(self) -> None:
        self.reloaded = True

    def _ready(self, messages: Sequence[Encoded]) -> list[Notification]:
        if any(message.topic is not None and message.topic.name == "bad" for message in messages):
            raise TopicNotSupportedFault("bad")
        return [Notification(*message[:4], 0.0) for message in messages]

    async def _send(self, notifications: Sequence[Notification]) -> bool:
        if self.random.random() < self.failures:
            await asyncio.sleep(0)
            return False
        self.log += [_text(each.content) for each in notifications]
        await asyncio.sleep(0)
        return True

    async def _answer(self, post: Post) -> Reply:
        self.full.append(post.data)
        await asyncio.sleep(0)
        if b">bad<" in post.data:
            return Reply(500, b"<fault/>", {"Content-Type": "text/xml"})
        self.log.append(_text(post.data))
        return Reply(202)

    def connect(self) -> tuple[Lane, Wire]:
        lane, wire = self.lanes(), Wire(self.random)
        lane.connection_made(wire)
        return lane, wire

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0)


def _text(content: bytes) -> str:
    found = payload(content)
    assert found is not None
    return found[1].decode()


def statuses(wire: Wire) -> list[int]:
    return [int(part[:3]) for part in wire.written.split(b"HTTP/1.1 ")[1:]]


def exercise(seed: int, failures: float) -> None:
    """Several connections send good and bad Notifies; each is answered, and stored where that says so."""

    async def run() -> None:
        bench = Bench(seed, failures)
        connections = [bench.connect() for _ in range(3)]
        topics = [bench.random.choices(("good", "other", "bad"), (4, 2, 1), k=12) for _ in connections]
        for at in range(12):
            for who, (lane, _) in enumerate(connections):
                lane.data_received(post(topics[who][at], f"{who}-{at}"))
                if bench.random.random() < 0.3:
                    await asyncio.sleep(0)
        await bench.until(lambda: all(len(statuses(wire)) == 12 for _, wire in connections))
        for who, (_, wire) in enumerate(connections):
            stored = [int(text.split("-")[1]) for text in bench.log if text.startswith(f"{who}-")]
            answered = statuses(wire)
            assert stored == sorted(stored)
            assert stored == [at for at in range(12) if answered[at] == 202]
            if not failures:
                assert answered == [500 if topic == "bad" else 202 for topic in topics[who]]
            assert set(answered) <= {202, 500, 503}
        assert not bench.core._blocked
        assert not bench.core._unseen
        assert not bench.door._told

    asyncio.run(run())


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_answers_are_right_and_the_order_of_a_connection_is_kept_behind_refusals(seed: int) -> None:
    exercise(seed, 0.0)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_what_fails_to_be_stored_never_changes_the_order_unnoticed(seed: int) -> None:
    exercise(seed, 0.3)


async def test_what_is_not_ordinary_is_answered_by_the_core_and_in_its_turn() -> None:
    bench = Bench()
    lane, wire = bench.connect()
    for number in range(3):
        lane.data_received(post("good", str(number), "<!-- unusual -->" if number == 1 else ""))
    await bench.until(lambda: statuses(wire) == [202, 202, 202])
    assert len(bench.full) == 1
    assert bench.log == ["0", "1", "2"]


async def test_a_notify_larger_than_a_frame_goes_to_the_full_door() -> None:
    bench = Bench()
    bench.door._most = 10
    lane, wire = bench.connect()
    lane.data_received(post("good", "1"))
    await bench.until(lambda: statuses(wire) == [202])
    assert len(bench.full) == 1


async def test_connections_are_read_no_more_while_the_core_is_behind() -> None:
    bench = Bench()
    lane, wire = bench.connect()
    bench.door.pause_writing()
    lane.data_received(post("good", "1"))
    lane.data_received(post("good", "2"))
    assert not bench.door._told
    bench.door.resume_writing()
    await bench.until(lambda: statuses(wire) == [202, 202])
    assert bench.log == ["1", "2"]


async def test_a_door_is_told_to_reload_and_to_drain_and_tells_that_it_is_ready() -> None:
    bench = Bench()
    bench.door.ready()
    bench.core.reload()
    bench.core.drain()
    assert await bench.core.ready
    await bench.until(lambda: bench.drained)
    assert bench.reloaded


@pytest.mark.parametrize("kind", [Kind.SETTLED, Kind.REPLY, Kind.DRAIN, Kind.PUBLISH, Kind.SEEN, Kind.FULL])
async def test_a_frame_that_makes_no_sense_to_the_core_ends_the_link(kind: Kind) -> None:
    bench = Bench()
    bench.core.data_received(encode_frame(kind, b"\xff"))
    assert bench.to_door.closed
    assert len(bench.wrong) == 1


@pytest.mark.parametrize("kind", [Kind.SETTLED, Kind.REPLY, Kind.PUBLISH, Kind.READY])
async def test_a_frame_that_makes_no_sense_to_a_door_ends_the_door(kind: Kind) -> None:
    bench = Bench()
    bench.door.data_received(encode_frame(kind, b"\xff"))
    assert bench.to_core.closed
    assert isinstance(await bench.door.lost, BadFrame)


async def test_a_door_ends_with_its_core() -> None:
    bench = Bench()
    bench.door.connection_lost(None)
    assert await bench.door.lost is None


async def test_a_door_that_ends_before_it_is_ready_is_noticed() -> None:
    bench = Bench()
    bench.core.connection_lost(None)
    assert not await bench.core.ready
