"""Requests, streams and verdicts of the benchmark of stream services: wrong ones would prove anything."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import delivery_modes
from benchmarks.delivery_modes import Delivered
from benchmarks.services.consumer_process import Consumer
from benchmarks.services.feed import Feed
from benchmarks.services.held_search import search
from benchmarks.services.load_processes import stream_path
from benchmarks.services.methods import ALONE, CONTENT, THIS, TOPIC, connections
from benchmarks.services.outcomes import Outcome, busy_note, problem_of
from benchmarks.services.random_requests import (
    GET_ANPR,
    INTE_GPS,
    PREDICATES,
    SERVICES,
    kinds,
    matches,
    mixed_requests,
    random_records,
    random_requests,
    services_needed,
)
from benchmarks.services.rate_steps import descend
from benchmarks.services.receipts import Receipts
from benchmarks.services.service_tables import latency_table, method_tables, needed_table, rows_of
from benchmarks.services.spark_reading import definition
from benchmarks.services.stream_bytes import ANSWER, EventLines, chunk, get_stream

from hpwsn.matching.language.predicate_parser import parse_predicates
from hpwsn.matching.language.predicates import disjunction_holds
from hpwsn.streams.definition.definition_toml import parse_document

GOOD = Outcome(100, 10_000, 18_000, 18_000, 2.5, 9.0, {"node": 80.0}, {"node": 60.0}, 4.5)


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_requests_are_different_and_have_six_predicates_that_the_broker_reads_as_we_do(service):
    requests = random_requests(service, 300, seed=1)
    records = random_records(service, 200, seed=1)
    assert len({request.text for request in requests}) == 300
    for request, held in zip(requests, matches(requests, records), strict=True):
        assert len(request.predicates) == PREDICATES
        parsed = parse_predicates(request.text)
        assert [disjunction_holds(parsed, record) for record in records] == held.tolist()


def test_the_same_seed_gives_the_same_requests_and_fewer_are_the_first_of_more():
    assert mixed_requests(101, seed=5) == mixed_requests(400, seed=5)[:101]
    assert mixed_requests(10, seed=5) != mixed_requests(10, seed=6)


def test_about_eighteen_of_a_thousand_requests_match_an_event():
    requests = mixed_requests(1000, seed=18)
    for service in SERVICES:
        own = [request for request in requests if request.service is service]
        each = np.array(list(matches(own, random_records(service, 2000, seed=1)))).sum(axis=0)
        assert 16 < each.mean() < 20


def test_kinds_and_services_are_those_of_the_paper():
    requests = [one for service in SERVICES for one in random_requests(service, 1000, seed=18)]
    assert kinds(requests) == {"getANPR": 6, "inteGPS": 126}
    assert services_needed(requests) == {THIS: 2, ALONE: 132, TOPIC: 4, CONTENT: 4}


def test_bounds_lie_within_the_constraints():
    for request in random_requests(INTE_GPS, 300, seed=2):
        for name, _, value in request.predicates:
            attribute = INTE_GPS.attribute(name)
            assert attribute.low <= value <= attribute.high


def test_a_request_for_gps_goes_to_three_sources_by_content_and_to_one_service_by_this_method():
    requests = [request for request in mixed_requests(2, seed=1) if request.service is INTE_GPS]
    assert len(connections(THIS, 80, requests)) == 1
    assert len(connections(CONTENT, 80, requests)) == 3
    assert connections(TOPIC, 80, requests) == [
        (80, "/topics/fleet:buses/events?also=fleet%3Ataxis&also=fleet%3Alorries")
    ]
    assert stream_path(["a"], "x < 1") == "/topics/a/events?filter=x%20%3C%201"


def test_events_are_found_wherever_the_stream_is_cut():
    body = [b": after 0\n\n", b"id: 1\ndata: {}\n\nid: 2\nda", b'ta: {"a": "\\r\\n"}\n\n']
    stream = ANSWER + b"".join(map(chunk, body))
    for size in range(1, len(stream) + 1):
        lines = EventLines()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [line for piece in pieces for line in lines.feed(piece)] == [b"{}", b'{"a": "\\r\\n"}'], size
        assert lines.has_begun
    assert get_stream("/x").startswith(b"GET /x HTTP/1.1\r\n")


def test_a_refused_stream_is_an_error():
    with pytest.raises(ConnectionError, match="400"):
        EventLines().feed(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def test_a_consumer_counts_each_event_once_wherever_the_stream_is_cut():
    times = [1_700_000_000_000_000 + number for number in range(3)]
    events = b"".join(b'data: {"data": {"vid": 7, "sent": %d}}\n\n' % each for each in times)
    stream = ANSWER + chunk(b": after 0\n\n") + chunk(events)
    for size in range(1, len(stream) + 1):
        receipts, begun = Receipts(), asyncio.get_running_loop().create_future()
        consumer = Consumer("/", receipts, begun)
        for at in range(0, len(stream), size):
            consumer.data_received(stream[at : at + size])
        assert begun.done()
        assert receipts.count == 3, size
        assert receipts.stats(times[0], times[2])["deliveries"] == 2


def test_a_feed_knows_what_must_be_delivered():
    requests = mixed_requests(40, seed=18)
    feed = Feed("http://127.0.0.1:1", 10_000, requests, raw=True)
    assert feed.together == 50
    [anpr, gps] = feed._requests
    assert {topic for topic, _, _ in gps} == set(INTE_GPS.sources)
    records = random_records(GET_ANPR, 2000, seed=1)
    own = [request for request in requests if request.service is GET_ANPR]
    assert sum(count for _, _, count in anpr) == sum(held.sum() for held in matches(own, records))
    assert (anpr[0][1] % ((7,) * 50)).count(b'"sent": 7}') == 50


@pytest.mark.parametrize(
    ("stats", "accepted", "words"),
    [
        ({"deliveries": 100, "first": 2.0, "last": 3.0}, 50, ""),
        ({"deliveries": 100, "first": 2.0, "last": 3.0}, 40, "80% of the events accepted"),
        ({"deliveries": 98, "first": 2.0, "last": 3.0}, 50, "98% delivered in time"),
        ({"deliveries": 100, "first": 2.0, "last": 25.0}, 50, "latency grew from 2 to 25 ms"),
    ],
)
def test_a_load_is_sustained_if_all_is_accepted_and_delivered_and_no_backlog_grows(stats, accepted, words):
    assert problem_of(stats, wanted=100, sent=50, accepted=accepted) == words
    starved = problem_of(stats, wanted=100, sent=50, accepted=accepted, waited=0.6)
    assert starved == (words and f"{words}; the node waited 60% of the time for a core")


@pytest.mark.parametrize("limit", [1, 7, 400, 401, 900, 8000])
def test_the_search_finds_the_greatest_number_that_holds(limit):
    def measure(count):
        return replace(GOOD, requests=count, mean=10.0 if count <= limit else 31.0)

    found = search(measure, 30.0, first=400, most=8000)
    assert limit / 1.15 - 1 <= found.count <= limit
    assert found.reason.startswith("the search ends" if limit == 8000 else "at ")


def test_the_search_tries_a_disturbed_measurement_again_and_says_why_it_ended():
    disturbed = iter([40.0, 10.0])

    def measure(count):
        if count > 8:
            raise RuntimeError("fork: no memory")
        return replace(GOOD, requests=count, mean=next(disturbed, 10.0))

    found = search(measure, 30.0, first=8, most=9)
    assert found.count == 8
    assert "fork: no memory" in found.reason
    nothing = search(lambda count: replace(GOOD, problem="it stalls"), 30.0, first=4, most=8)
    assert (nothing.count, nothing.reason) == (0, "at 1: it stalls")


def test_a_load_that_was_not_sustained_has_a_reason_instead_of_a_latency():
    bad = replace(GOOD, requests=200, delivered=9000.0, problem="91% delivered in time")
    lines = latency_table("requests", [GOOD, bad], ["node"]).splitlines()
    assert lines[2] == "| 100 at 10,000 events/s | 18,000 | 2.50 | 9.00 | 80.0 | 60.0 | 4.50 |"
    assert "| 9,000 of 18,000 | not sustained: 91% delivered in time |  |" in lines[3]
    [row] = rows_of("this", bad)
    assert row.note == "91% delivered in time"
    assert all("latency" not in row.name for row in rows_of("this", bad))


def test_methods_have_no_value_beyond_what_they_sustain():
    bad = replace(GOOD, requests=200, problem="x")
    tables = method_tables(
        10_000, {THIS: [GOOD, replace(GOOD, requests=200)], ALONE: [GOOD, bad]}, (100, 200, 400)
    )
    latency = tables.split("\n\n")[0].splitlines()
    assert latency[2:] == ["| this | 2.50 | 2.50 | – |", "| one service per request | 2.50 | – | – |"]
    needed = needed_table({"getANPR": 6}, {THIS: 2})
    assert "| this | 2 | no |" in needed
    assert needed.endswith("6 of getANPR.")


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_the_definitions_of_the_services_are_valid(service):
    [found] = parse_document(definition(service))
    assert found.topic == service.topic


def test_delivery_modes_tell_which_costs_least_at_which_rate():
    found = {
        1: {"polling": Delivered(900.0, 500.0), "long connection": Delivered(90.0, 2.0)},
        10: {"polling": Delivered(80.0, 500.0), "long connection": Delivered(90.0, 2.0)},
        100: {"polling": Delivered(8.0, 500.0, "it stalls"), "long connection": Delivered(20.0, 3.0)},
    }
    cpu, latency = delivery_modes.verdicts(found)
    assert cpu.endswith("delivery: long connection at 1, 100 events/s; polling at 10 events/s")
    assert latency.endswith("ms: long connection at 1, 10, 100 events/s")
    assert "| polling | 900 | 80.0 | not sustained: it stalls |" in delivery_modes.body_of(found)
    [cpu, _] = delivery_modes.body_of({1: {"polling": Delivered(0.01, 500.0)}}).split("\n\n")
    assert cpu.endswith("| polling | less than the noise |")


def test_rates_descend_until_one_is_sustained_and_failed_ones_are_not_tried_again():
    def measure(count, rate):
        return replace(GOOD, requests=count, rate=rate, problem="x" if count * rate > 2_000_000 else "")

    def tried(first_again):
        found = descend(measure, (100, 400, 800), (10_000, 5000, 2500), first_again=first_again)
        return [(one.requests, one.rate) for one in found]

    assert tried(False) == [(100, 10_000), (400, 10_000), (400, 5000), (800, 5000), (800, 2500)]
    assert tried(True) == [(100, 10_000), (400, 10_000), (400, 5000), (800, 10_000), (800, 5000), (800, 2500)]


def test_a_run_on_a_busy_machine_is_marked():
    assert busy_note([GOOD]) == ()
    [note] = busy_note([GOOD, replace(GOOD, waited=0.6)])
    assert "60% of the time" in note
