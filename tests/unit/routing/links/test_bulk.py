"""The queue of large messages to one member, and how they are split and parsed."""

from __future__ import annotations

from hpwsn.notification import LARGE
from hpwsn.routing.links.bulk import BulkQueue
from hpwsn.routing.wire.fragments import LargeMessage, Reassembly, Splitting, split_message
from hpwsn.routing.wire.payloads import encode_payload, parse_large_payload
from hpwsn.routing.wire.publication import LargePayload, Publication, PublicationId
from hpwsn.routing.wire.router_messages import Ack, Leg, encode_large, encode_messages, parse_large
from tests.runs import run_of


def pieces_of(queue: BulkQueue, frame: int = 0) -> list[bytes]:
    found = []
    while queue:
        found.append(queue.next(frame).content)
        frame += 1
    return found


def test_a_message_in_parts_is_split_as_if_it_were_joined():
    parts = (b"abc", b"", b"defghij", b"k")
    for room in range(1, 14):
        splitting = Splitting(7, parts, room)
        made = []
        while not splitting.done:
            made.append(splitting.next())
        assert made == list(split_message(7, b"".join(parts), room))


def test_messages_leave_in_order_and_are_there_until_their_last_frame_is_confirmed():
    queue = BulkQueue()
    assert queue.add(1, (b"abcd",), 2, "A", "first")
    assert queue.add(2, (b"e",), 2, "A", None)
    assert (queue.bytes, queue.has("A"), queue.has("B")) == (5, True, False)
    assert pieces_of(queue, 10) == [b"ab", b"cd", b"e"]
    queue.confirmed(11)
    assert (queue.bytes, queue.has("A")) == (5, True)
    queue.confirmed(12)
    assert (queue.bytes, queue.has("A")) == (1, True)
    queue.confirmed(13)
    assert (queue.bytes, queue.has("A")) == (0, False)


def test_a_message_is_not_queued_twice_until_it_is_confirmed():
    queue = BulkQueue()
    assert queue.add(1, (b"ab",), 2, "A", "key")
    assert not queue.add(2, (b"ab",), 2, "A", "key")
    assert pieces_of(queue) == [b"ab"]
    assert not queue.add(3, (b"ab",), 2, "A", "key")
    queue.confirmed(1)
    assert queue.add(4, (b"ab",), 2, "A", "key")


def test_after_a_restart_all_unconfirmed_messages_are_sent_from_their_beginning():
    queue = BulkQueue()
    for number, text in enumerate((b"abcd", b"efgh", b"ijkl")):
        queue.add(number, (text,), 2, "A", number)
    assert [queue.next(frame).content for frame in range(5)] == [b"ab", b"cd", b"ef", b"gh", b"ij"]
    queue.confirmed(3)
    queue.restart()
    assert pieces_of(queue, 5) == [b"ef", b"gh", b"ij", b"kl"]


def test_a_large_message_is_returned_in_pieces_and_the_only_one_is_never_dropped():
    reassembly = Reassembly(timeout=1.0, max_bytes=100, max_messages=4, large=500, keep_one=True)
    fragments = list(split_message(1, bytes(1000), 100))
    for fragment in fragments[:-1]:
        assert reassembly.add(None, fragment, 0.0) is None
    assert reassembly.add(None, fragments[-1], 0.0) == LargeMessage(tuple(bytes(100) for _ in range(10)))
    assert (reassembly.bytes, reassembly.crowded_out) == (0, 0)


def test_a_large_publication_survives_the_way_in_pieces():
    run = run_of("A:B", b"<m>" + b"x" * LARGE + b"</m>", message_id="m1", time=12.5)
    payload = encode_payload(run.first)
    assert isinstance(payload, LargePayload)
    publication = Publication(PublicationId("a", 1, 2), "A:B", payload, 1, Leg.UP, 1, 2)
    whole = b"".join(encode_large(publication))
    for size in (1000, 70_000, 1 << 20, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        (parsed,) = parse_large(pieces)
        assert isinstance(parsed, Publication)
        assert isinstance(parsed.payload, LargePayload)
        assert parsed._replace(payload=b"") == publication._replace(payload=b"")
        found = parse_large_payload(parsed.topic, parsed.payload)
        assert found.first.content == run.first.content
        assert (found.message_id, found.time) == ("m1", 12.5)


def test_other_large_messages_are_parsed_too():
    ack = Ack(Leg.DIRECT, "a", 1, tuple(range(1000)))
    whole = encode_messages([ack, ack])
    assert parse_large([whole[at : at + 100] for at in range(0, len(whole), 100)]) == [ack, ack]
