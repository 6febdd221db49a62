"""What benchmarks measure with: a load and a consumer that count wrongly would prove anything."""

import asyncio

import pytest
from benchmarks.tools.forwarding import envelope_of, extract
from benchmarks.tools.load import Busy, Flow, Publisher, Sample
from benchmarks.tools.messages import READING, envelope, payload, request, varied
from benchmarks.tools.sink import ANSWER, Arrivals, Sink, Tally
from benchmarks.tools.spyne_path import extract as extract_with_spyne
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.operations.notifications import parse_notify
from hpwsn_client.wsn.soap.envelope import parse_envelope

URL = "http://127.0.0.1:8080/wsn"


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.aborted = True


def opened(protocol):
    protocol.connection_made(Wire())
    return protocol


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(1, 2000))
def test_a_consumer_counts_the_same_however_requests_are_cut(sizes, piece):
    tally = Tally()
    sink = opened(Sink(tally))
    data = b"".join(request(URL, envelope(messages=size)) for size in sizes)
    for at in range(0, len(data), piece):
        sink.data_received(data[at : at + piece])
    assert (tally.posts, tally.notifications) == (len(sizes), sum(sizes))
    assert sink._transport.written == ANSWER * len(sizes)


def test_a_consumer_notes_when_each_number_came_first():
    clock = iter([1.0, 2.0])
    arrivals = Arrivals(lambda: next(clock))
    sink = opened(Sink(arrivals))
    for numbers in ((1, 2), (2, 3)):
        content = b"".join(b"<m:n>%09d</m:n>" % number for number in numbers)
        sink.data_received(request(URL, content))
    assert arrivals.times == {1: 1.0, 2: 1.0, 3: 2.0}


@given(st.integers(1, 5), st.integers(1, 60))
def test_a_publisher_counts_answers_however_they_are_cut_and_sends_as_many_anew(answers, piece):
    flow = Flow([b"request"], 2, ())
    publisher = opened(Publisher(flow))
    flow.publishers.append(publisher)
    flow.pump()
    assert publisher.transport.written == b"request" * 8
    data = ANSWER * answers
    for at in range(0, len(data), piece):
        publisher.data_received(data[at : at + piece])
    assert (flow.accepted, flow.sent) == (2 * answers, 2 * (8 + answers))


def test_a_publisher_takes_no_other_answer_for_an_accepted_one():
    flow = Flow([b"request"], 1, ())
    publisher = opened(Publisher(flow))
    publisher.data_received(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
    assert "500" in flow.failure
    assert publisher.transport.aborted


def test_no_more_is_under_way_than_the_slowest_consumer_allows():
    slow, fast = Tally(), Tally()
    flow = Flow([b"x"], 500, (slow, fast))
    flow.publishers.append(opened(Publisher(flow)))
    flow.pump()
    assert flow.sent == 1000
    fast.notifications = 1000
    flow.pump()
    assert flow.sent == 1000
    slow.notifications = 500
    flow.pump()
    assert flow.sent == 1500


@pytest.mark.parametrize("read", [extract, extract_with_spyne])
def test_the_references_take_out_every_message_with_its_topic(read):
    found = read(envelope("bench:a", READING, 3))
    assert [topic for topic, _ in found] == ["bench/a"] * 3
    for (_, message), value in zip(found, (b"0.0", b"7.1", b"14.2"), strict=True):
        assert b"<m:value>%b</m:value>" % value in message


def test_what_the_limit_forwards_is_a_notify_of_the_same_payloads():
    sent = envelope_of([message for _, message in extract(envelope(messages=2))])
    messages = parse_notify(parse_envelope(sent).body)
    assert [message.payload for message in messages] == [varied(READING, number) for number in range(2)]


@pytest.mark.parametrize("size", [3_000, 30_000])
def test_a_payload_has_the_size_it_is_named_by(size):
    assert len(payload(size)) == size


@pytest.mark.parametrize(
    ("server", "load", "warns"), [(0.99, 0.3, False), (0.5, 0.95, False), (0.3, 0.2, True)]
)
def test_a_run_in_which_neither_side_had_its_core_warns_the_reader(server, load, warns):
    busy = Busy()
    busy.rate("good", lambda: Sample(100.0, 0.98, 0.5))()
    busy.rate("other", lambda: Sample(100.0, server, load))()
    assert ("busy machine" in busy.warning()) is warns
    assert busy.note("good") == "9,800.0 µs, 98%/50%"
