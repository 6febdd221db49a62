"""What the benchmark of sensors expects, and how it judges: a wrong expectation would prove anything."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import pytest
from benchmarks.field.latencies import Latencies
from benchmarks.field.mqtt_gateways import arrays, packet, single_messages
from benchmarks.field.result_reader import Results
from benchmarks.field.schedule import (
    LATENESS,
    Schedule,
    array_of,
    milliseconds,
    sensor_id,
    time_text,
    virtual_name,
)
from benchmarks.services.stream_bytes import ANSWER, chunk

BEGAN = 1_700_000_000_000
SCHEDULE = Schedule(200, 10, 20, 300.0, 1000, BEGAN, 2.0)


def readings(schedule: Schedule) -> list[tuple[int, int, float]]:
    """All readings one by one: sensor, time, value."""
    found = []
    for number in range(schedule.posts):
        first = schedule.first_sensor(number)
        for at, text in enumerate(schedule.texts(number)):
            assert float(text) == schedule.value(first + at, number)
            found.append((first + at, schedule.time(number), float(text)))
    return found


def test_the_readings_of_a_schedule_have_its_rate_and_no_sensor_repeats_a_time():
    found = readings(SCHEDULE)
    assert len(found) == 600
    assert all(count == 1 for count in Counter((sensor, time) for sensor, time, _ in found).values())
    assert {time // 1000 for _, time, _ in found} == {BEGAN // 1000, BEGAN // 1000 + 1}
    assert Counter(sensor for sensor, _, _ in found) == dict.fromkeys(range(200), 3)


@pytest.mark.parametrize("rate", [100.0, 300.0, 777.0])
def test_expected_results_are_those_of_a_plain_computation(rate: float):
    schedule = replace(SCHEDULE, rate=rate, began=BEGAN + 1)
    windows: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for sensor, time, value in readings(schedule):
        key = virtual_name(sensor % schedule.virtual), (time // 1000 + 1) * 1000
        windows.setdefault(key, []).append((sensor, value))
    expected = schedule.expected(schedule.posts)
    assert expected.keys() == windows.keys()
    for key, taken in windows.items():
        values = [value for _, value in taken]
        assert expected[key].readings == len(values)
        assert expected[key].sensors == len({sensor for sensor, _ in taken})
        assert math.isclose(expected[key].value, sum(values) / len(values), rel_tol=1e-9)


def test_what_was_not_sent_is_not_expected():
    few = SCHEDULE.expected(3)
    assert sum(each.readings for each in few.values()) == 60
    assert not SCHEDULE.expected(0)


def test_a_body_has_one_reading_of_each_sensor_of_its_gateway():
    found = json.loads(array_of(SCHEDULE)(13))
    assert [each["sensor"] for each in found] == [sensor_id(number) for number in range(60, 80)]
    assert found[1] == {
        "sensor": "s00061",
        "time": time_text(SCHEDULE.time(13)),
        "temperature": SCHEDULE.value(61, 13),
    }
    [(topic, payload)] = arrays(SCHEDULE)(13)
    assert (topic, json.loads(payload)) == (b"\x00\x13gateways/3/readings", found)
    single = single_messages(SCHEDULE)(13)
    assert [topic for topic, _ in single] == [
        b"\x00\x17sensors/" + each["sensor"].encode() + b"/readings" for each in found
    ]
    assert [json.loads(payload) for _, payload in single] == [
        {name: value for name, value in each.items() if name != "sensor"} for each in found
    ]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384])
def test_a_packet_has_its_length_as_mqtt_writes_it(size: int):
    found = packet(0x32, b"x" * size)
    value = shift = 0
    at = 1
    while True:
        value |= (found[at] & 0x7F) << shift
        shift += 7
        at += 1
        if found[at - 1] < 0x80:
            break
    assert (found[0], value, found[at:]) == (0x32, size, b"x" * size)


def test_times_are_read_as_they_are_written():
    for time in (BEGAN, BEGAN + 1, BEGAN + 999):
        assert milliseconds(time_text(time)) == time
    assert time_text(0) == "1970-01-01T00:00:00.000Z"


async def judged(change=lambda key, event: [event]) -> dict:
    """The verdict on the results of SCHEDULE after a change of each of them."""
    results = Results()
    events = []
    for (name, end), wanted in SCHEDULE.expected(SCHEDULE.posts).items():
        event = {
            "sensor": name,
            "time": time_text(end),
            "count": wanted.readings,
            "sensors": wanted.sensors,
            "value": wanted.value,
        }
        events += change((name, end), event)
    lines = b"".join(b"data: %s\n\n" % json.dumps({"data": event}).encode() for event in events)
    results.data_received(ANSWER + chunk(b": after 0\n\n" + lines))
    assert results.count == len(events)
    found = results.judge(SCHEDULE, SCHEDULE.posts)
    assert results.count == 0
    return found


async def test_right_results_are_counted_with_their_readings_and_lag():
    found = await judged()
    assert found["expected"] == found["delivered"] == found["right"] == 20
    assert found["readings"] == 600
    assert found["repeated"] == found["foreign"] == 0
    assert found["lag"]["p50"] > LATENESS


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (lambda key, event: [], {"delivered": 0, "right": 0}),
        (lambda key, event: [event, event], {"repeated": 20}),
        (lambda key, event: [{**event, "count": event["count"] - 1}], {"right": 0}),
        (lambda key, event: [{**event, "sensors": 0}], {"right": 0}),
        (lambda key, event: [{**event, "value": event["value"] + 0.001}], {"right": 0}),
        (
            lambda key, event: [{**event, "time": time_text(key[1] + 10_000)}],
            {"foreign": 20, "right": 0, "delivered": 0},
        ),
    ],
)
async def test_a_missing_wrong_or_repeated_result_is_noticed(change, differs: dict[str, int]):
    found, good = await judged(change), await judged()
    names = ("expected", "delivered", "right", "repeated", "foreign")
    assert {name: found[name] for name in names if found[name] != good[name]} == differs


def test_latencies_tell_whether_a_backlog_grew():
    level = Latencies.of([(float(number), 20.0 + number % 3) for number in range(300)])
    rising = Latencies.of([(float(number), 2.0 * number) for number in range(300)])
    assert not level.grew
    assert rising.grew
    assert (rising.p50, rising.longest) == (300.0, 598.0)
    assert Latencies.of([]) == Latencies(0, 0, 0, 0, 0, 0)
