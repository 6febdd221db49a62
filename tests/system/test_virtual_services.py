"""Virtual sensors whose results a stream service makes: its job runs while somebody uses them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.needs import need
from tests.patience import eventually, holds
from tests.sensor_node import SensorNode, ago, sensor
from tests.spark import cheap_environment
from tests.system.test_streams_agent import jobs_of
from tests.virtual_users import by_stream, define, state, state_is

URI = "urn:virtual:warm"
SERVICE = f"""\
uri = "{URI}"
topic = "virtual:warm"

[inputs.readings]
source = "topic"
topic = "sensors:weather"
schema = "sensor STRING, t DOUBLE"

[[ops]]
op = "filter"
where = "t > 30"
"""
AGENT = ("--set", "streams.agent=true", "--set", "streams.master=local[1]")
RESTARTS = ("--set", "streams.restarts=1000")


def services(node: SensorNode) -> list[str]:
    return [each["uri"] for each in node.get("/streams")["items"]]


def refused(node: SensorNode, service: str, name: str = "warm") -> str:
    answer = node.ask("PUT", f"/virtual/{name}", {"quantity": "t", "every": 1, "service": service})
    assert answer.status == 400, answer
    return str(answer.body["error"])


def test_a_node_that_runs_no_services_refuses_one(tmp_path: Path) -> None:
    with SensorNode(tmp_path / "node") as node:
        assert "set streams.agent = true, or leave service out" in refused(node, SERVICE)
        assert node.get("/virtual")["items"] == []


async def test_a_service_that_cannot_run_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with SensorNode(tmp_path / "node", *AGENT, *RESTARTS) as node:
        assert "service: " in refused(node, "uri = \n")
        assert "its topic is virtual:warm; write topic = 'virtual:hot'" in refused(node, SERVICE, "hot")
        assert "fitler" in refused(node, SERVICE.replace("filter", "fitler"))
        function = SERVICE.replace('op = "filter"\nwhere = "t > 30"', 'op = "function"\nfunction = "a:b"')
        assert "streams.agent_functions = true" in refused(node, function)
        # A service of that uri which somebody has posted.
        other = SERVICE.replace("virtual:warm", "other").encode()
        assert node.ask("POST", "/streams", other.replace(b"urn:other", URI.encode())).status == 201
        assert f"this node already runs {URI}" in refused(node, SERVICE)
        assert node.get("/virtual")["items"] == []
        assert services(node) == [URI]


async def test_a_service_that_is_not_allowed_any_more_still_ends_with_its_last_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    function = SERVICE.replace(
        'op = "filter"\nwhere = "t > 30"', 'op = "function"\nfunction = "copy:copy"\nschema = "t DOUBLE"'
    )
    settings: dict[str, object] = {"linger": "0.2 s"}
    allowing = (*AGENT, *RESTARTS, "--set", "streams.agent_functions=true")
    with SensorNode(tmp_path / "node", *allowing, sensors=settings) as node:
        define(node, "warm", service=function)
        async with by_stream(node, "virtual:warm"):
            await holds(lambda: services(node) == [URI])
            node.kill()
    with SensorNode(tmp_path / "node", *AGENT, *RESTARTS, sensors=settings) as node:
        await holds(lambda: services(node) == [])
        assert "streams.agent_functions = true" in refused(node, function, "other")


async def test_a_service_that_somebody_else_posted_is_neither_stopped_nor_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    settings: dict[str, object] = {"linger": "0.2 s"}
    with SensorNode(tmp_path / "node", *AGENT, "--set", "streams.restarts=0", sensors=settings) as node:
        define(node, "warm", service=SERVICE)
        other = SERVICE.replace("t > 30", "t > 40")
        assert node.ask("POST", "/streams", other.encode()).status == 201
        await holds(lambda: node.get(f"/streams/{URI}")["state"] == "failed")
        async with by_stream(node, "virtual:warm"):
            await holds(lambda: f"already runs {URI} with another definition" in node.log())
        await state_is(node, "warm", "idle")
        assert "t > 40" in str(node.get(f"/streams/{URI}")["plan"])
        assert node.ask("DELETE", f"/streams/{URI}").status == 204


async def test_the_service_is_there_while_somebody_uses_its_virtual_sensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Java its job never runs, which shows no less when the node starts and stops it."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    settings: dict[str, object] = {"linger": "0.2 s"}
    with SensorNode(tmp_path / "node", *AGENT, *RESTARTS, sensors=settings) as node:
        found = define(node, "warm", service=SERVICE)
        assert (found["service"], found["state"], services(node)) == (SERVICE, "idle", [])
        async with by_stream(node, "virtual:warm"):
            await holds(lambda: services(node) == [URI])
            shown = node.get("/virtual/warm")
            assert (shown["state"], shown["members"], shown["late"]) == ("running", None, None)
            # Another definition replaces the service while it is used.
            hotter = SERVICE.replace("t > 30", "t > 40")
            define(node, "warm", service=hotter)
            await holds(
                lambda: services(node) == [URI] and "t > 40" in str(node.ask("GET", f"/streams/{URI}").body)
            )
        await holds(lambda: services(node) == [])
        assert state(node, "warm") == "idle"
        async with by_stream(node, "virtual:warm"):
            await holds(lambda: services(node) == [URI])
            node.kill()
        # Nobody uses it after the restart, so the node stops what it finds.
        node.start()
        await holds(lambda: services(node) == [])
        assert node.ask(
            "POST", "/subscriptions", {"callback": "http://127.0.0.1:9/", "topic": "virtual"}
        ).status
        await holds(lambda: services(node) == [URI])
        node.terminate()
        node.start()
        await state_is(node, "warm", "running")
        await holds(lambda: services(node) == [URI])
        assert node.ask("DELETE", "/virtual/warm").status == 204
        await holds(lambda: services(node) == [])


async def test_a_spark_job_makes_the_results_and_ends_with_the_last_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("Java 17 or later")
    for name, value in cheap_environment(tmp_path / "conf").items():
        monkeypatch.setenv(name, value)
    settings: dict[str, object] = {"linger": "0.2 s"}
    with SensorNode(tmp_path / "node", *AGENT, "--set", "streams.stop_timeout=2s", sensors=settings) as node:
        try:
            node.register(sensor("s1"), sensor("s2"))
            define(node, "warm", service=SERVICE)
            async with by_stream(node, "virtual:warm") as got:

                async def comes() -> bool:
                    # The job begins with the readings that come once it runs.
                    assert node.post({"time": ago(), "t": 35.5}, {"time": ago(1), "t": 3}, sensor="s1").status
                    return bool(got())

                await eventually(comes)
                events: list[dict[str, Any]] = got()
                assert {(event["sensor"], event["t"]) for event in events} == {("s1", 35.5)}
                assert node.get(f"/streams/{URI}")["state"] == "running"
            await holds(lambda: services(node) == [] and not jobs_of(node))
            assert state(node, "warm") == "idle"
        finally:
            for one in jobs_of(node):
                with suppress(ProcessLookupError):
                    one.kill()
