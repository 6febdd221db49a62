"""Definitions of virtual sensors: by API and file, changed and removed while used, limited, and kept."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import hpwsn
from tests.patience import holds, until
from tests.sensor_node import SensorNode, ago, sensor
from tests.virtual_users import ahead, by_soap, by_stream, define, has, ready, state, state_is

LEAST: dict[str, Any] = {"quantity": "t", "every": 1}
FULL = {
    "kind": "weather",
    "tags": ["roof", "北京"],
    "area": [115, 39, 117, 41],
    "quantity": "t",
    "combine": "median",
    "every": 2.5,
    "lateness": 0.5,
    "quorum": 2,
    "silence": "hold",
    "outliers": 3,
    "bands": [{"name": "warm", "low": 24}, {"name": "exactly", "low": 1, "high": 1}],
    "hysteresis": 0.5,
    "text": "{name}: {value:.1f} {unit} ({states})",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SensorNode]:
    with SensorNode(tmp_path_factory.mktemp("shared") / "data", sensors={"linger": "0.2 s"}) as node:
        node.register(sensor("s1"))
        yield node


def test_a_definition_is_made_shown_listed_replaced_and_removed(shared: SensorNode) -> None:
    made = shared.ask("PUT", "/virtual/hall", FULL)
    assert made.status == 201
    assert made.body.items() >= {**FULL, "name": "hall", "topic": "virtual:hall", "state": "idle"}.items()
    assert shared.get("/virtual/hall") == made.body
    again = shared.ask("PUT", "/virtual/hall", {**LEAST, "name": "hall"})
    assert (again.status, again.body["every"], "kind" in again.body) == (200, 1, False)
    assert shared.get("/virtual/hall") == again.body
    # What is shown can be sent again, without what is not of the definition.
    given = {key: value for key, value in made.body.items() if key in FULL}
    assert shared.ask("PUT", "/virtual/hall", given).body == made.body
    assert made.body in shared.get("/virtual")["items"]
    assert shared.ask("DELETE", "/virtual/hall").status == 204
    for method in ("GET", "DELETE"):
        gone = shared.ask(method, "/virtual/hall")
        assert (gone.status, "no virtual sensor 'hall'" in gone.body["error"]) == (404, True)


def test_the_list_comes_in_pages_sorted_by_name(shared: SensorNode) -> None:
    names = [f"page-{number}" for number in range(5)]
    for name in reversed(names):
        define(shared, name)
    found, after = [], {}
    while True:
        page = shared.get("/virtual", limit=2, **after)
        assert len(page["items"]) <= 2
        found += [each["name"] for each in page["items"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert [name for name in found if name.startswith("page-")] == names
    for name in names:
        shared.ask("DELETE", f"/virtual/{name}")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "the field quantity is missing"),
        ({"quantity": "t"}, "the field every is missing"),
        ({**LEAST, "evry": 1}, "the field 'evry' is unknown; known fields are"),
        ({**LEAST, "every": 0.05}, "every is 0.05; give a duration from 100 ms to 7 d"),
        ({**LEAST, "combine": "average"}, "combine is 'average'; give one of mean, median"),
        ({**LEAST, "name": "other"}, "the field 'name' is unknown"),
        ({**LEAST, "text": "{temperature}"}, "the field {temperature} is unknown"),
        ({**LEAST, "text": "\ud800"}, "text is '\\ud800'"),
        ({**LEAST, "bands": [{"name": "x"}]}, "the band 'x' has no bound; give low, high or both"),
        ({**LEAST, "area": "1,2,3"}, "give west,south,east,north in degrees"),
        ([LEAST], "must be a JSON object"),
        (b"{", "JSON"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(body: Any, words: str, shared: SensorNode) -> None:
    define(shared, "kept", **FULL)
    before = shared.get("/virtual/kept")
    refused = shared.ask("PUT", "/virtual/kept", body)
    assert (refused.status, words in refused.body["error"]) == (400, True), refused
    assert shared.get("/virtual/kept") == before


@pytest.mark.parametrize("name", ["a%20b", "1st", "a:b", "x" * 201, "%2F"])
def test_a_name_that_no_topic_can_have_is_refused(name: str, shared: SensorNode) -> None:
    refused = shared.ask("PUT", f"/virtual/{name}", LEAST)
    assert (refused.status, "is not valid; give at most 200" in refused.body["error"]) == (400, True)


def test_parameters_that_are_not_known_are_refused(shared: SensorNode) -> None:
    for method, path in (
        ("GET", "/virtual?names=x"),
        ("GET", "/virtual?state=runs"),
        ("GET", "/virtual/hall?x=1"),
        ("PUT", "/virtual/hall?x=1"),
        ("DELETE", "/virtual/hall?x=1"),
    ):
        assert shared.ask(method, path, LEAST if method == "PUT" else None).status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_page_of_another_server_changes_nothing(method: str, shared: SensorNode) -> None:
    define(shared, "guarded")
    headers = {"Origin": "https://evil.example"}
    body = FULL if method == "PUT" else None
    assert shared.ask(method, "/virtual/guarded", body, headers=headers).status == 403
    assert shared.get("/virtual/guarded")["every"] == 0.2


def test_a_request_that_is_too_large_is_refused(shared: SensorNode) -> None:
    body = json.dumps(LEAST).encode()
    assert shared.ask("PUT", "/virtual/large", body.ljust(1 << 20)).status == 201
    assert shared.ask("PUT", "/virtual/large", body.ljust((1 << 20) + 1)).status == 413


@pytest.mark.parametrize(
    ("every", "seconds"), [("10s", 10), ("500 ms", 0.5), ("1 min", 60), ("PT1H", 3600), (2.5, 2.5)]
)
def test_a_duration_is_a_number_of_seconds_or_a_text(
    every: object, seconds: float, shared: SensorNode
) -> None:
    assert define(shared, "timed", every=every, lateness=every)["every"] == seconds
    assert shared.get("/virtual/timed")["lateness"] == seconds


async def test_a_new_definition_takes_effect_while_it_is_used(shared: SensorNode) -> None:
    define(shared, "changing", combine="min", bands=[{"name": "warm", "low": 24}])
    async with by_soap(shared, "virtual:changing") as got:
        await ready(shared, "changing")
        (reading,) = ahead([30])
        assert shared.post(reading).status == 202
        await has(got, 1)
        changed = define(shared, "changing", combine="max", bands=[{"name": "hot", "low": 24}])
        assert changed["state"] == "running"
        await ready(shared, "changing")
        (reading,) = ahead([35])
        assert shared.post(reading, {**reading, "t": 34, "time": ago(-0.9)}).status == 202
        await holds(lambda: any(event["value"] == 35 for event in got()))
        first, last = got()[0], next(event for event in got() if event["value"] == 35)
        assert (first["states"], last["states"]) == (["warm"], ["hot"])
        assert state(shared, "changing") == "running"
    await state_is(shared, "changing", "idle")


async def test_a_definition_that_is_removed_while_it_is_used_stops_and_can_come_back(
    shared: SensorNode,
) -> None:
    define(shared, "removed", bands=[{"name": "warm", "low": 24}])
    async with by_stream(shared, "virtual:removed") as got:
        await ready(shared, "removed")
        assert shared.post(*ahead([30])).status == 202
        await has(got, 1)
        assert shared.ask("DELETE", "/virtual/removed").status == 204
        assert shared.figures["running"] == 0
        # Its former subscribers get the results of the new one, which has no past.
        assert define(shared, "removed", bands=[{"name": "warm", "low": 24}], every=0.5)["state"] == "running"
        await ready(shared, "removed")
        assert shared.post(*ahead([31], every=0.5)).status == 202
        await holds(lambda: got()[-1]["value"] == 31)
    # The reading of before may lie in the first window of the new one, which is longer.
    assert got()[1]["changed"] is True


def limits(tmp_path: Path, **settings: object) -> SensorNode:
    return SensorNode(tmp_path / "data", sensors={"linger": "0.2 s", **settings})


def test_as_many_as_the_limit_are_defined_and_kept(tmp_path: Path) -> None:
    with limits(tmp_path, virtual_limit=2) as node:
        define(node, "a")
        define(node, "b")
        define(node, "a", combine="max")
        refused = node.ask("PUT", "/virtual/c", LEAST)
        assert (refused.status, "sensors.virtual_limit allows (2)" in refused.body["error"]) == (503, True)
        assert node.ask("DELETE", "/virtual/b").status == 204
        define(node, "c")
        before = node.get("/virtual")["items"]
        node.kill()
        node.start()
        assert node.get("/virtual")["items"] == before
        assert [each["name"] for each in before] == ["a", "c"]
        assert (node.figures["virtual"], node.figures["running"]) == (2, 0)


async def test_a_window_holds_as_many_readings_as_its_limit_and_the_rest_is_history(tmp_path: Path) -> None:
    with limits(tmp_path, window_readings=3) as node:
        node.register(sensor("s1"))
        define(node, "small", every=1, combine="count")
        async with by_stream(node, "virtual:small") as got:
            await ready(node, "small")
            (reading,) = ahead([1], every=1)
            begin = reading["time"][:-9]
            readings = [{**reading, "time": f"{begin}{number}00+00:00"} for number in range(5)]
            assert node.post(*readings[:3]).body["accepted"] == 3
            assert node.get("/virtual/small")["refused"] == 0
            assert node.post(*readings[3:]).body["accepted"] == 2
            assert node.get("/virtual/small")["refused"] == 2
            (event,) = (await has(got, 1))[:1]
            assert (event["value"], event["count"]) == (3, 3)
            assert node.get("/virtual/small")["late"] == 0
            assert node.post({"t": 1, "time": ago(60)}, sensor="s1").status == 202
            await holds(lambda: node.get("/virtual/small")["late"] == 1)
        assert len(node.events("sensors:weather:s1")) == 6


TEMPLATES = """\
[virtual.hall]
quantity = "t"
every = "10 s"
bands = [{ name = "warm", low = 24 }]

[virtual.roof]
quantity = "t"
every = 1
"""


def reload(node: SensorNode, words: str) -> None:
    """SIGHUP, and wait for what the log says then."""
    seen = node.log().count(words)
    os.kill(node.pid, signal.SIGHUP)
    until(lambda: node.log().count(words) > seen, node.log)


def test_the_file_of_templates_defines_at_start_and_at_sighup(tmp_path: Path) -> None:
    file = tmp_path / "virtual.toml"
    file.write_text(TEMPLATES)
    with limits(tmp_path, templates=file, virtual_limit=3) as node:
        assert [each["name"] for each in node.get("/virtual")["items"]] == ["hall", "roof"]
        assert node.get("/virtual/hall")["bands"] == [{"name": "warm", "low": 24}]
        define(node, "own")
        file.write_text(TEMPLATES.replace("10 s", "20 s"))
        reload(node, "defined 1 virtual sensor from")
        assert node.get("/virtual/hall")["every"] == 20
        # What cannot be used changes nothing, and the node goes on.
        for text, words in (
            (TEMPLATES.replace("every = 1", "every = 0"), "virtual sensor 'roof': every is 0"),
            ("[virtual.hall", "it is not TOML"),
            (f"{TEMPLATES}[virtual.more]\nquantity = 't'\nevery = 1\n", "sensors.virtual_limit allows (3)"),
            (f"{TEMPLATES}service = '''\nuri = 'x'\n'''\n", "this node runs no services"),
        ):
            file.write_text(text)
            reload(node, words)
            assert node.get("/virtual/hall")["every"] == 20
        file.unlink()
        reload(node, "cannot be read: No such file")
        # A definition that is not in the file any more stays, until somebody removes it.
        file.write_text("[virtual.roof]\nquantity = 't'\nevery = 2\n")
        reload(node, "defined 1 virtual sensor from")
        names = {each["name"]: each["every"] for each in node.get("/virtual")["items"]}
        assert names == {"hall": 20, "own": 0.2, "roof": 2}
        node.terminate()
        node.start()
        assert {each["name"]: each["every"] for each in node.get("/virtual")["items"]} == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (TEMPLATES.replace("quantity", "quality"), "virtual sensor 'hall': the field 'quality' is unknown"),
        (b"\xff", "is not a text in UTF-8"),
    ],
)
def test_a_node_does_not_start_with_a_file_that_cannot_be_used(
    text: str | bytes | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "virtual.toml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    given = ("--data", str(tmp_path / "data"), "--set", f"sensors.templates={file}")
    for command in (("serve", "--port", "0"), ("check-config",)):
        done = hpwsn(*command, *given)
        assert (done.returncode, words in done.stderr + done.stdout) == (1, True), json.dumps(done.stderr)
        assert "sensors.templates" in done.stderr + done.stdout
        assert "Traceback" not in done.stderr
