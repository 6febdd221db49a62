"""Links between nodes over real sockets, with a network in between that loses, repeats, reorders and cuts."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from benchmarks.tools.lossy_relay import LossyRelay

from hpwsn.routing.links import udp
from hpwsn.routing.links.links import Links
from hpwsn.routing.links.udp_sending import LinkOptions
from hpwsn.routing.wire.frames import Kind, encode_frame, encode_pair, encode_record, greeting_key
from tests.harness import quiet_port
from tests.patience import eventually, holds

SECRET = b"the cluster's secret"


class Peer:
    """Links, and what they brought."""

    def __init__(self, name: str, secret: bytes = SECRET, **options: int | float) -> None:
        self.received: list[tuple[str, bytes]] = []
        self.states: list[tuple[str, bool]] = []
        self.links = Links(
            name,
            secret,
            LinkOptions(**options),  # type: ignore[arg-type]
            on_message=lambda member, payload: self.received.append((member, payload)),
            on_state=lambda member, up: self.states.append((member, up)),
        )

    @property
    def payloads(self) -> list[bytes]:
        return [payload for _, payload in self.received]


@asynccontextmanager
async def running(*peers: Peer) -> AsyncIterator[list[tuple[str, int]]]:
    places = [await peer.links.start() for peer in peers]
    try:
        yield places
    finally:
        for peer in peers:
            await peer.links.close(0.0)


@asynccontextmanager
async def relay_to(
    place: tuple[str, int], **faults: float
) -> AsyncIterator[tuple[LossyRelay, tuple[str, int]]]:
    relay = LossyRelay(place, **faults)  # type: ignore[arg-type]
    try:
        yield relay, await relay.start()
    finally:
        await relay.close()


def messages(number: int, size: int) -> list[bytes]:
    chance = random.Random(number)
    return [index.to_bytes(4, "big") + chance.randbytes(size) for index in range(number)]


@pytest.mark.parametrize("reliable", [False, True])
async def test_messages_of_every_size_arrive_in_order_and_none_is_lost_on_a_good_network(
    reliable: bool,
) -> None:
    a, b = Peer("a"), Peer("b")
    sent = [*messages(3000, 500), *messages(20, 300_000), b"", b"last"]
    async with running(a, b) as places:
        a.links.set_members({"a": places[0], "b": places[1]})
        for payload in sent:
            assert a.links.send("b", payload, reliable=reliable)
        await holds(lambda: len(b.received) >= len(sent))
    # A message of one datagram may overtake one of many only where datagrams were reordered.
    assert b.payloads == sent
    assert {member for member, _ in b.received} == {"a"}


async def test_many_senders_at_once_do_not_overrun_a_receiver() -> None:
    senders = [Peer(f"n{number}") for number in range(10)]
    receiver = Peer("r", buffer_bytes=600_000)
    async with running(receiver, *senders) as places:
        for sender in senders:
            sender.links.set_members({"r": places[0]})
        for payload in messages(60, 20_000):
            for sender in senders:
                sender.links.send("r", payload, reliable=False)
        await holds(lambda: len(receiver.received) == 600)


async def test_udp_over_a_bad_network_loses_messages_never_halves_repeats_or_invents_any() -> None:
    a, b = Peer("a", reassembly_timeout=0.3), Peer("b", reassembly_timeout=0.3)
    sent = [*messages(600, 2000), *messages(30, 30_000)]
    async with running(a, b) as places, relay_to(places[1], loss=0.05, twice=0.1, late=0.1) as (_, place):
        a.links.set_members({"b": place})
        for payload in sent:
            a.links.send("b", payload, reliable=False)
        await holds(lambda: not a.links.waiting("b"))
        await holds(lambda: len(b.received) > 300)
        figures = b.links.figures()["udp"]
    assert set(b.payloads) <= set(sent)
    assert len(b.payloads) == len(set(b.payloads))
    assert figures["replayed"] > 0


async def test_tcp_gives_all_in_order_and_once_though_its_connection_is_cut_again_and_again() -> None:
    a, b = Peer("a"), Peer("b")
    sent = messages(400, 20_000)
    async with running(a, b) as places, relay_to(places[1]) as (relay, place):
        a.links.set_members({"b": place})
        for number, payload in enumerate(sent):
            assert a.links.send("b", payload, reliable=True)
            if number % 100 == 50:
                before = len(b.received)
                await holds(lambda before=before: len(b.received) > before)  # type: ignore[misc]
                relay.cut_connections()
        await holds(lambda: len(b.received) >= len(sent))
        await holds(lambda: not a.links.waiting("b"))
    assert b.payloads == sent
    assert ("b", False) in a.states


async def test_what_waits_for_a_member_goes_to_it_when_it_is_back_at_another_address() -> None:
    a, first, second = Peer("a"), Peer("b"), Peer("b")
    async with running(a, second) as (_, second_place):
        async with running(first) as (place,):
            a.links.set_members({"b": place})
            a.links.send("b", b"one", reliable=True)
            a.links.send("b", b"eins", reliable=False)
            await holds(lambda: len(first.received) == 2)
        a.links.send("b", b"two", reliable=True)
        a.links.set_members({"b": second_place})
        a.links.send("b", b"zwei", reliable=False)
        await holds(lambda: len(second.received) == 2)
    assert sorted(second.payloads) == [b"two", b"zwei"]


async def test_frames_recorded_before_are_dropped_in_this_life_and_in_the_next() -> None:
    async with AsyncExitStack() as stack:
        a = Peer("a")
        await stack.enter_async_context(running(a))
        b = Peer("b")
        (place,) = await stack.enter_async_context(running(b))
        relay, relayed = await stack.enter_async_context(relay_to(place))
        a.links.set_members({"b": relayed})
        b.links.set_members({"a": ("127.0.0.1", 9)})
        a.links.send("b", b"once", reliable=False)
        await holds(lambda: b.payloads == [b"once"])
        recorded = list(relay.recorded)
        for frame in recorded * 2:
            relay.inject(frame)
        a.links.send("b", b"after", reliable=False)
        await holds(lambda: b.payloads == [b"once", b"after"])

        other = Peer("b")
        (other_place,) = await stack.enter_async_context(running(other))
        other.links.set_members({"a": ("127.0.0.1", 9)})
        again, moved = await stack.enter_async_context(relay_to(other_place))
        for frame in recorded * 2:
            again.inject(frame)
        a.links.set_members({"b": moved})
        a.links.send("b", b"to the next", reliable=False)
        await holds(lambda: other.payloads == [b"to the next"])


async def test_a_receiver_that_began_anew_at_the_same_address_is_greeted_again() -> None:
    a, b = Peer("a"), Peer("b")
    async with running(a), AsyncExitStack() as stack:
        (place,) = await stack.enter_async_context(running(b))
        relay, relayed = await stack.enter_async_context(relay_to(place))
        a.links.set_members({"b": relayed})
        a.links.send("b", b"one", reliable=False)
        await holds(lambda: b.payloads == [b"one"])
        other = Peer("b")
        (relay._target,) = await stack.enter_async_context(running(other))

        async def arrives() -> bool:
            a.links.send("b", b"two", reliable=False)
            return b"two" in other.payloads

        await eventually(arrives)


@pytest.mark.parametrize("reliable", [False, True])
async def test_another_secret_is_refused_and_both_logs_say_why(
    reliable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = Peer("a"), Peer("b", b"another")
    async with running(a, b) as places:
        a.links.set_members({"b": places[1]})
        b.links.set_members({"a": places[0]})
        a.links.send("b", b"x", reliable=reliable)
        b.links.send("a", b"x", reliable=reliable)

        def told() -> bool:
            texts = [record.getMessage() for record in caplog.records if "secret" in record.getMessage()]
            return any("'a'" in text for text in texts) and any("'b'" in text for text in texts)

        await holds(told)
    assert (a.received, b.received) == ([], [])


async def test_what_waits_for_an_absent_member_is_bounded_and_goes_in_order_when_it_comes() -> None:
    a, b = Peer("a", queue_bytes=100_000), Peer("b")
    async with running(a), relay_to(("127.0.0.1", 9)) as (relay, place):
        relay.cut = True
        a.links.set_members({"b": place})
        sent = messages(150, 1000)
        taken = [payload for payload in sent if a.links.send("b", payload, reliable=True)]
        assert taken == sent[: len(taken)]
        assert 90 <= len(taken) < 100
        assert a.links.figures()["tcp"]["dropped"] == 150 - len(taken)
        async with running(b) as (relay._target,):
            relay.cut = False
            await holds(lambda: len(b.received) == len(taken))
            assert b.payloads == taken
        a.links.set_members({})
        assert not a.links.send("b", b"x", reliable=True)
        assert not a.links.send("b", b"x", reliable=False)


async def test_a_stranger_that_speaks_another_protocol_harms_nobody_and_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    a, b = Peer("a"), Peer("b")
    async with running(a, b) as places:
        for _ in range(5):
            reader, writer = await asyncio.open_connection(*places[1])
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
        a.links.set_members({"b": places[1]})
        a.links.send("b", b"x", reliable=True)
        await holds(lambda: b.payloads == [b"x"])
        assert b.links.figures()["tcp"]["refused"] == 5
    assert len([record for record in caplog.records if "127.0.0.1" in record.getMessage()]) == 1


async def test_a_recorded_greeting_holds_one_connection_at_most_and_not_that_of_its_sender() -> None:
    a, b = Peer("a"), Peer("b")
    frame = encode_frame(Kind.HELLO, b"a", 1, 0, encode_pair(1, 0), greeting_key(SECRET, "a", "b"))
    async with running(a, b) as places, AsyncExitStack() as stack:
        a.links.set_members({"b": places[1]})
        a.links.send("b", b"one", reliable=True)
        await holds(lambda: b.payloads == [b"one"])
        for _ in range(10):
            reader, writer = await asyncio.open_connection(*places[1])
            stack.callback(writer.close)
            writer.write(encode_record(frame))
            assert await reader.readexactly(4)
        await holds(lambda: b.links.figures()["tcp"]["connections_in"] == 2)
        a.links.send("b", b"two", reliable=True)
        await holds(lambda: b.payloads == [b"one", b"two"])
    assert a.states[0] == ("b", True)
    assert len(a.states) == 1


async def test_who_sent_once_and_is_no_member_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver, senders = Peer("r"), [Peer("a"), Peer("b"), Peer("c")]
    async with running(receiver, *senders) as places:
        receiver.links.set_members({"a": places[1], "b": places[2]})
        for number, sender in enumerate(senders):
            if number == 2:
                assert receiver.links.figures()["udp"]["senders"] == 2
                monkeypatch.setattr(udp, "FORGET_SECONDS", 0.0)
                receiver.links.set_members({"b": places[2]})
            sender.links.set_members({"r": places[0]})
            sender.links.send("r", b"x", reliable=False)
            await holds(lambda number=number: len(receiver.received) == number + 1)  # type: ignore[misc]
        assert receiver.links.figures()["udp"]["senders"] == 2


async def test_what_is_too_long_for_udp_goes_by_tcp() -> None:
    a, b = Peer("a", fragment_size=512, queue_bytes=200_000), Peer("b")
    async with running(a, b) as places:
        a.links.set_members({"b": places[1]})
        sent = messages(1, 1_000_000)[0]
        assert a.links.send("b", sent, reliable=False)
        await holds(lambda: b.payloads == [sent])
        assert a.links.figures()["udp"]["messages_sent"] == 0


async def test_a_relay_that_closes_ends_a_connection_that_never_said_anything() -> None:
    async with relay_to(("127.0.0.1", 9)) as (_, place):
        reader, writer = await asyncio.open_connection(*place)
    assert await reader.read() == b""
    writer.close()


async def test_a_relay_closes_a_connection_that_it_has_not_begun_to_serve() -> None:
    relay = LossyRelay(("127.0.0.1", quiet_port()))
    with socket.create_connection(await relay.start()) as client:
        # Turn by turn: by the time that an event woke this test, the connection would be served.
        while not relay.connections:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await relay.close()
        assert await asyncio.to_thread(client.recv, 1) == b""


async def test_a_large_message_lets_others_pass_and_keeps_the_order_of_its_topic():
    one, two = Peer("one"), Peer("two")
    large, after, other = random.Random(1).randbytes(24 << 20), b"after it", b"of another topic"
    async with running(one, two) as (_, place):
        one.links.set_members({"two": place})
        assert one.links.send_large("two", (large[:1000], large[1000:]), "A", "key")
        assert one.links.send("two", after, reliable=False, topic="A")
        assert one.links.send("two", other, reliable=True, topic="B")
        assert one.links.bulk_bytes > len(large)
        await holds(lambda: len(two.payloads) == 3)
        assert two.payloads == [other, large, after]
        await holds(lambda: not one.links.bulk_bytes)
        assert one.links.send("two", after, reliable=False, topic="A")
        await holds(lambda: two.payloads[3:] == [after])
