"""Readings over HTTP: events once they are stored, or rejected readings with a reason, and never nothing."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.producer import register
from tests.raw_soap import call
from tests.sensor_node import SensorNode, ago, sensor, series

LIMITS = {"readings_limit": 5, "rejected_kept": 10, "max_age": "1 h", "max_ahead": "1 min"}
BODY_LIMIT = 1 << 16
REASONS = ("malformed", "unknown-sensor", "unknown-quantity", "unit", "range", "time", "duplicate")
PLACE = {"longitude": 12.5, "latitude": -41.0}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SensorNode]:
    """One node with low limits; each test has sensors of its own."""
    limit = f"--set=server.body_limit={BODY_LIMIT}"
    with SensorNode(tmp_path_factory.mktemp("readings") / "data", limit, sensors=dict(LIMITS)) as running:
        yield running


@pytest.fixture
def s(node: SensorNode) -> str:
    """The id of a new sensor."""
    name = f"s{uuid.uuid4().hex}"
    node.register(sensor(name, place=PLACE))
    return name


def errors(*reasons: str) -> list[dict[str, Any]]:
    return [{"index": at, "reason": reason} for at, reason in enumerate(reasons)]


def test_a_reading_is_an_event_on_the_topic_of_its_sensor(node: SensorNode, s: str) -> None:
    time = ago(10)[:23]
    assert node.post({"time": f"{time}Z", "t": 21}, sensor=s) == (
        202,
        {"accepted": 1, "rejected": 0, "errors": []},
    )
    assert node.events(f"sensors:weather:{s}") == [
        {"sensor": s, "kind": "weather", "time": f"{time}Z", **PLACE, "t": 21}
    ]


def test_every_form_is_taken_at_both_addresses(node: SensorNode, s: str) -> None:
    times = iter([ago(100 - n)[:23] + "Z" for n in range(20)])
    posted = 0
    for path, more in ((f"/sensors/{s}/readings", {}), ("/readings", {"sensor": s})):
        for form in ("application/json", None, "application/x-www-form-urlencoded"):
            one = {**more, "time": next(times), "t": 1}
            assert node.ask("POST", path, one, form).body["accepted"] == 1
            posted += 1
        lines = b"".join(json.dumps({**more, "time": next(times), "t": 1}).encode() + b"\n" for _ in range(2))
        assert node.ask("POST", path, lines, "application/x-ndjson; charset=utf-8").body["accepted"] == 2
        header = ",".join([*more, "time", "t [degF]"])
        rows = "".join(",".join([*more.values(), next(times), "33.8"]) + "\r\n" for _ in range(2))
        assert node.ask("POST", path, f"{header}\r\n{rows}".encode(), "text/csv").body["accepted"] == 2
        posted += 4
    assert [event["t"] for event in node.events(f"sensors:weather:{s}")] == [1] * posted


def test_each_reason_is_answered_counted_and_kept(node: SensorNode, s: str) -> None:
    time = ago()
    before = node.figures["rejected"]
    assert tuple(sorted(before)) == tuple(sorted(REASONS))
    wrong = [
        {"sensor": s, "t": "warm"},
        {"sensor": "nobody", "t": 1},
        {"sensor": s, "x": 1},
        {"sensor": s, "t": {"value": 1, "unit": "m"}},
        {"sensor": s, "t": 60.1},
    ]
    assert node.post(*wrong) == (422, {"accepted": 0, "rejected": 5, "errors": errors(*REASONS[:5])})
    good = {"sensor": s, "t": 1, "time": time}
    found = node.post({"sensor": s, "t": 1, "time": ago(3601)}, {**good, "time": ago(-61)}, good, good)
    assert found == (
        202,
        {
            "accepted": 1,
            "rejected": 3,
            "errors": [
                {"index": 0, "reason": "time"},
                {"index": 1, "reason": "time"},
                {"index": 3, "reason": "duplicate"},
            ],
        },
    )
    after = node.figures["rejected"]
    assert {reason: after[reason] - before[reason] for reason in REASONS} == {
        **dict.fromkeys(REASONS, 1),
        "time": 2,
    }
    kept = node.rejected()[:8]
    assert [each["reason"] for each in kept][::-1] == [*REASONS[:6], "time", "duplicate"]
    assert [each["reading"] for each in kept][:2:-1] == wrong
    assert [each["sensor"] for each in kept][::-1] == [s, "nobody", *[s] * 6]
    assert all(each["detail"] and each["source"] == "http" for each in kept)
    assert [each["reading"] for each in node.rejected(sensor=s, reason="duplicate")] == [good]


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (b"", "application/json"),
        (b"[]", "application/json"),
        (b"{", "application/json"),
        (b"\xff", "application/json"),
        (b"[" * 50_000, "application/json"),
        (b"\n", "application/x-ndjson"),
        (b"t\n", "text/csv"),
        (b"t,t\n1,2\n", "text/csv"),
    ],
)
def test_data_without_readings_is_kept_whole(node: SensorNode, s: str, body: bytes, form: str) -> None:
    before = node.figures["rejected"]["malformed"]
    status, answer = node.ask("POST", f"/sensors/{s}/readings", body, form)
    assert status == 422
    assert (answer["accepted"], answer["rejected"], answer["errors"]) == (0, 1, errors("malformed"))
    assert answer["error"]
    assert node.figures["rejected"]["malformed"] == before + 1
    kept = node.rejected(sensor=s)
    assert len(kept) == 1
    assert kept[0]["reading"][:2000] == body.decode("utf-8", "replace")[:2000]


def test_wrong_lines_and_rows_do_not_concern_the_others(node: SensorNode, s: str) -> None:
    lines = b'{"t": 1\n{"t": 2}\n5\n{"t": 3}'
    found = node.ask("POST", f"/sensors/{s}/readings", lines, "application/x-ndjson").body
    assert (found["accepted"], [each["index"] for each in found["errors"]]) == (2, [0, 2])
    rows = b"t,time\n1\n2,\nx,\n"
    found = node.ask("POST", f"/sensors/{s}/readings", rows, "text/csv").body
    assert (found["accepted"], [each["index"] for each in found["errors"]]) == (1, [0, 2])
    assert [event["t"] for event in node.events(f"sensors:weather:{s}")] == [2, 3, 2]


def test_another_content_type_is_415(node: SensorNode, s: str) -> None:
    status, body = node.ask("POST", "/readings", b"<t>1</t>", "application/xml")
    assert status == 415
    assert "application/x-ndjson" in body["error"]


def test_a_body_may_be_as_long_as_allowed_and_not_one_byte_more(node: SensorNode, s: str) -> None:
    reading = json.dumps({"sensor": s, "t": 1}).encode()
    assert node.ask("POST", "/readings", reading.ljust(BODY_LIMIT)).status == 202
    status, body = node.ask("POST", "/readings", reading.ljust(BODY_LIMIT + 1))
    assert status == 413
    assert body["error"]


def test_a_request_may_have_as_many_readings_as_allowed_and_not_one_more(node: SensorNode, s: str) -> None:
    readings = series(s, 6)
    status, body = node.post(*readings)
    assert status == 413
    assert "sensors.readings_limit" in body["error"]
    assert node.post(*readings[:5]).body["accepted"] == 5


def test_an_unknown_sensor_in_the_address_is_a_reason_like_others(node: SensorNode) -> None:
    assert node.post({"t": 1}, {"t": 2}, sensor="nobody") == (
        422,
        {"accepted": 0, "rejected": 2, "errors": errors("unknown-sensor", "unknown-sensor")},
    )
    # Without auto_register, a kind does not register it.
    assert node.post({"sensor": "nobody", "kind": "weather", "t": 1}).status == 422
    assert node.ask("GET", "/sensors/nobody").status == 404


def test_no_more_rejected_readings_are_kept_than_allowed(node: SensorNode, s: str) -> None:
    for _ in range(3):
        node.post(*[{"sensor": s, "x": n} for n in range(5)])
    page = node.get("/readings/rejected", limit=4)
    assert (page["total"], len(page["items"])) == (10, 4)
    assert [each["reading"]["x"] for each in node.rejected()] == [4, 3, 2, 1, 0] * 2


@pytest.mark.parametrize("query", ["reason=bad", "colour=red", "after=x", "after=-1", "limit=0"])
def test_a_wrong_parameter_of_the_list_is_told(node: SensorNode, query: str) -> None:
    assert node.ask("GET", f"/readings/rejected?{query}").status == 400


def test_a_gateway_with_an_unknown_registration_is_refused(node: SensorNode, s: str) -> None:
    header = {"Hpwsn-Registration": "nobody"}
    found = node.ask("POST", "/readings", {"sensor": s, "t": 1}, headers=header)
    assert 400 <= found.status < 500
    assert node.events(f"sensors:weather:{s}") == []


async def test_where_registrations_are_required_a_gateway_shows_its_own(tmp_path: Path) -> None:
    with SensorNode(tmp_path / "data", "--set=registrations.required=true") as node:
        node.register(sensor("s1"))
        found = node.post({"sensor": "s1", "t": 1})
        assert found.status == 403
        assert "registrations.required" in found.body["error"]
        assert node.figures["readings"] == 0
        # Rejected readings are not published, and so need no registration.
        assert node.post({"sensor": "s1", "t": 99}).status == 422
        reply = await call(node.url, register(None, "sensors:weather:s1"))
        assert reply.status == 200, reply.body
        address = reply.content.findtext("{*}PublisherRegistrationReference/{*}Address")
        assert address is not None
        for shown in (address, address.rpartition("/")[2]):
            header = {"Hpwsn-Registration": shown}
            assert node.ask("POST", "/sensors/s1/readings", {"t": 2}, headers=header).status == 202
        node.register(sensor("s2"))
        assert node.ask("POST", "/sensors/s2/readings", {"t": 2}, headers=header).status == 403
        assert [event["t"] for event in node.events("sensors:weather:s1")] == [2, 2]


def test_of_equal_requests_at_the_same_time_each_reading_is_taken_once(node: SensorNode, s: str) -> None:
    readings = series(s, 5)
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda _: node.post(*readings), range(32)))
    assert sum(each.body["accepted"] for each in found) == 5
    assert all(each.body["accepted"] + each.body["rejected"] == 5 for each in found)
    assert sorted(event["time"] for event in node.events(f"sensors:weather:{s}")) == sorted(
        f"{each['time'][:23]}Z" for each in readings
    )


@pytest.mark.parametrize("history", [True, False])
@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_duplicates_are_found_after_a_restart(tmp_path: Path, end: str, history: bool) -> None:
    settings: dict[str, object] = {"history": str(history).lower()}
    with SensorNode(tmp_path / "data", sensors=settings) as node:
        node.register(sensor("s1"), sensor("s2"))
        # More than the times that are in the file.
        readings = [*series("s1", 40), *series("s2", 2)]
        assert node.post(*readings).body["accepted"] == 42
        assert node.post({"sensor": "s1", "x": 1}).status == 422
        getattr(node, end)()
        node.start()
        known = readings if history else readings[-18:]
        again = node.post(*known)
        assert again == (
            422,
            {"accepted": 0, "rejected": len(known), "errors": errors(*["duplicate"] * len(known))},
        )
        assert len(node.events("sensors:weather:s1")) == 40
        assert node.rejected(reason="unknown-quantity")[0]["reading"] == {"sensor": "s1", "x": 1}
        assert node.post(*series("s1", 1, start=5)).body["accepted"] == 1


def test_readings_of_a_sensor_that_only_auto_register_knows(tmp_path: Path) -> None:
    with SensorNode(tmp_path / "data", sensors={"auto_register": "true", "limit": 2}) as node:
        first = {
            "sensor": "new",
            "kind": "quake",
            "m": {"value": 5, "unit": "m/s"},
            "longitude": 1,
            "latitude": 2,
        }
        assert node.post(first, {"sensor": "new", "m": 6}).body["accepted"] == 2
        assert node.post({"sensor": "other", "m": 5}).body["errors"] == errors("unknown-sensor")
        found = node.get("/sensors/new")
        assert (found["kind"], found["quantities"], found["place"]) == (
            "quake",
            {"m": {"unit": "m/s"}},
            {"longitude": 1.0, "latitude": 2.0},
        )
        node.kill()
        node.start()
        assert node.post({"m": 7}, sensor="new").body["accepted"] == 1
        assert [event["m"] for event in node.events("sensors:quake:new")] == [5, 6, 7]
        assert node.post({**first, "sensor": "third"}).status == 202
        assert node.post({**first, "sensor": "fourth"}).body["errors"] == errors("unknown-sensor")


def test_a_fixed_topic_tree_without_the_topic_refuses_the_request(tmp_path: Path) -> None:
    topics = tmp_path / "topics.toml"
    topics.write_text("[topics.hall]\n")
    with SensorNode(tmp_path / "data", f"--set=topics.url={topics}") as node:
        node.register(sensor("s1"))
        found = node.post({"sensor": "s1", "t": 1})
        assert 400 <= found.status < 500
        assert "sensors:weather:s1" in found.body["error"]
        assert node.figures["readings"] == 0
