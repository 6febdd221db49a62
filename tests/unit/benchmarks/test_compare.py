"""The comparison of two checkouts: its order, its statistics, and a load that notices what went wrong."""

import asyncio
import json

import pytest
from benchmarks.compare import (
    AFTER,
    BEFORE,
    MEMBER,
    WORKLOADS,
    Checkout,
    Result,
    Spread,
    as_json,
    as_text,
    candidate_name,
    in_turn,
    main,
    notifications_for,
    paired_ratios,
)
from benchmarks.tools.raw_load import (
    ACCEPTED,
    Consumer,
    Flow,
    Framer,
    Load,
    LoadError,
    Publisher,
    Reader,
    Receipts,
    Sample,
    event_requests,
    notify_requests,
    request,
)
from hypothesis import given
from hypothesis import strategies as st


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self):
        super().__init__()
        self.written = b""

    def write(self, data):
        self.written += data


def opened(protocol):
    protocol.connection_made(Wire())
    return protocol


def test_every_second_round_goes_backwards():
    order = [name for number in range(3) for name in in_turn([BEFORE, AFTER], number)]
    assert order == [BEFORE, AFTER, AFTER, BEFORE, BEFORE, AFTER]


def test_over_two_rounds_each_candidate_has_the_same_place_on_average():
    names = ["a", "b", "c", "d"]
    assert {in_turn(names, 0).index(name) + in_turn(names, 1).index(name) for name in names} == {3}


def test_a_spread_has_the_median_and_the_quartiles():
    assert Spread.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(2.0, 3.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.000"), (2.5, "2.50"), (148.64, "148.6"), (13880.1, "13,880")]
)
def test_a_spread_is_written_with_the_digits_that_say_something(value, text):
    assert str(Spread.of([value])) == f"{text} ({text} to {text})"


def test_ratios_are_taken_within_a_round():
    assert paired_ratios([2.0, 30.0], [1.0, 10.0]) == [2.0, 3.0]
    with pytest.raises(ValueError, match="longer"):
        paired_ratios([1.0], [1.0, 2.0])


def test_the_slowest_node_decides_how_many_whole_requests_are_sent():
    assert notifications_for([1000.0, 560.0], 1.0, 100) == 500
    assert notifications_for([3.0], 1.0, 100) == 100


def results():
    single = {BEFORE: [Sample(0.2, 1.0), Sample(0.4, 1.0)], AFTER: [Sample(0.1, 1.0), Sample(0.2, 1.0)]}
    member = {candidate_name(name, MEMBER): taken[::-1] for name, taken in single.items()}
    return [Result("notify", 1000, single), Result("cluster", 1000, {**single, **member})]


def test_the_report_has_both_checkouts_their_ratio_and_that_of_clusters():
    lines = as_text(results()).splitlines()
    assert lines[1].split("  ")[-3:] == [
        "300.0 (250.0 to 350.0)",
        "150.0 (125.0 to 175.0)",
        "0.500 (0.500 to 0.500)",
    ]
    assert [line.partition("  ")[0] for line in lines[2:4]] == [
        "cluster, alone",
        "cluster, in a cluster of one",
    ]
    assert lines[-1].split("  ")[-1] == "1.250 (0.875 to 1.625)"
    assert "cluster" not in as_text(results()[:1])


def test_the_file_has_every_sample_by_round(tmp_path):
    data = json.loads(as_json(results(), [Checkout(BEFORE, tmp_path)], 2))
    assert data["workloads"]["notify"]["cpu_us"] == {BEFORE: [200.0, 400.0], AFTER: [100.0, 200.0]}
    assert data[BEFORE]["folder"] == str(tmp_path)


def test_requests_hold_as_many_different_notifications_as_they_say():
    ((_, body),) = Framer().feed(notify_requests(3)[1])
    assert body.count(b"<m:reading ") == 3
    (((_, single),), ((_, several),)) = (Framer().feed(event_requests(each)[1]) for each in (1, 3))
    assert isinstance(json.loads(single), dict)
    assert len({each["sensor"] for each in json.loads(several)}) == 3


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.integers(1, 200))
def test_messages_are_the_same_however_they_are_cut(sizes, piece):
    bodies = [b"x" * size for size in sizes]
    data = b"".join(request("POST", "/", "A: b", body.decode()) for body in bodies)
    framer = Framer()
    found = [each for at in range(0, len(data), piece) for each in framer.feed(data[at : at + piece])]
    assert [body for _, body in found] == bodies


@pytest.mark.parametrize("piece", [1, 5, 7, 64, 10_000])
async def test_a_reader_counts_each_event_once_however_the_stream_is_cut(piece):
    receipts = Receipts()
    reader = opened(Reader(receipts, receipts.join()))
    data = b"HTTP/1.1 200 OK\r\n\r\nb\r\n: after 0\n\n\r\n" + b'1c\r\nid: 1\ndata: {"speed": 1}\n\n\r\n' * 9
    for at in range(0, len(data), piece):
        reader.data_received(data[at : at + piece])
    assert reader.began.done()
    assert receipts.counts == [9]


def test_a_consumer_counts_and_answers():
    receipts = Receipts()
    consumer = opened(Consumer(receipts, receipts.join()))
    consumer.data_received(notify_requests(3)[0] + notify_requests(1)[0])
    assert receipts.counts == [4]
    assert consumer._transport.written == ACCEPTED * 2


def a_flow(notifications, receipts=None, **limits):
    flow = Flow(Load((b"r",), 1, **limits), notifications, receipts or Receipts())
    flow.publishers.append(opened(Publisher(flow, 2)))
    return flow, flow.publishers[0]


async def test_a_flow_sends_its_number_and_ends_with_the_last_answer():
    flow, publisher = a_flow(3)
    flow.pump()
    assert publisher.transport.written == b"rr"
    publisher.data_received(ACCEPTED * 2)
    assert publisher.transport.written == b"rrr" and not flow.done.done()
    publisher.data_received(ACCEPTED)
    await flow.done
    flow.check()


async def test_a_flow_waits_for_receivers_and_lets_no_more_be_under_way():
    receipts = Receipts()
    receiver = receipts.join()
    flow, publisher = a_flow(2, receipts, under_way=1)
    receipts.on_change = flow.pump
    flow.pump()
    publisher.data_received(ACCEPTED)
    assert publisher.transport.written == b"r"
    receipts.add(receiver, 1)
    publisher.data_received(ACCEPTED)
    assert publisher.transport.written == b"rr" and not flow.done.done()
    receipts.add(receiver, 1)
    await flow.done
    flow.check()


async def test_a_loss_is_noticed_even_if_another_receiver_has_a_duplicate():
    receipts = Receipts()
    receivers = [receipts.join(), receipts.join()]
    flow, _ = a_flow(2, receipts)
    for receiver, count in zip(receivers, (1, 3), strict=True):
        receipts.add(receiver, count)
    with pytest.raises(LoadError, match="2 of 2 receivers"):
        flow.check()


async def test_a_refused_request_ends_the_load():
    flow, publisher = a_flow(2)
    flow.pump()
    publisher.data_received(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nfull")
    with pytest.raises(LoadError, match="503"):
        await flow.done


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--before", "nowhere"], "nowhere is not a checkout"),
        (["--rounds", "0"], "0 is not a number of rounds"),
        (["--seconds", "none"], "none is not a time"),
        (["--only", "nothing"], "invalid choice: 'nothing'"),
        (["--json", "no/such/folder"], "name one in a folder that exists"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("hpwsn: error: ") and words in last


def test_the_help_names_every_workload(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown and workload.about in shown for name, workload in WORKLOADS.items())
