"""What the admin node tells operators of all nodes: session, histories, alerts, events log, live stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hpwsn.monitoring.node_history import FIGURES
from hpwsn_client import __version__
from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess
from tests.live_stream import live
from tests.patience import eventually

AT_ONCE = ("--set", "monitoring.alert_after=0", "--set", "monitoring.alert_keep=0")


async def get(node: NodeProcess, path: str, status: int = 200) -> Any:
    async with aiohttp.ClientSession() as session, session.get(node.base + path) as answer:
        assert answer.status == status, await answer.text()
        assert answer.content_type == "application/json"
        return await answer.json()


async def events(node: NodeProcess) -> list[str]:
    """The texts of the events about nodes, the oldest first."""
    items = (await get(node, "/events-log?limit=1000"))["items"]
    assert all(item.keys() == {"time", "kind", "text", "who"} for item in items)
    return [item["text"] for item in reversed(items) if item["kind"] == "node"]


async def samples(node: NodeProcess, name: str, figure: str = "topics") -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{node.base}/history?node={name}&metrics={figure}") as answer,
    ):
        found = await answer.json()
    return sum(value is not None for value in found["series"][figure]["mean"]) if answer.status == 200 else 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("monitoring")


@pytest.fixture(scope="module")
def admin(folder: Path) -> Iterator[AdminProcess]:
    with AdminProcess(folder / "admin") as running:
        yield running


@pytest.fixture(scope="module")
def member(folder: Path, admin: AdminProcess) -> Iterator[Member]:
    with Member(folder / "one", "one", "plant", admin.base) as running:
        yield running


async def test_a_session_says_that_it_is_the_admin_node(admin: AdminProcess) -> None:
    session = await get(admin, "/session")
    assert datetime.fromisoformat(session.pop("time")).utcoffset() is not None
    topics = session.pop("topics")
    assert (topics["source"], topics["editable"]) == ("none", False)
    assert "/nodes/NAME/topics" in topics["why_not"]
    assert session == {
        "node": "admin",
        "kind": "admin",
        "version": __version__,
        "principal": "anonymous",
        "may": ["publish", "subscribe", "read", "manage", "stream", "operate"],
    }


async def test_the_history_of_each_node_comes_from_its_heartbeats(
    admin: AdminProcess, member: Member
) -> None:
    async def enough() -> bool:
        return await samples(admin, "one") >= 3

    await eventually(enough)
    found = await get(admin, "/history?node=one&range=1h")
    assert (found["step"], set(found["series"])) == (5, set(FIGURES))
    assert found["series"]["memory"].keys() == {"min", "mean", "max"}
    cluster = await get(admin, "/cluster")
    (node,) = (node for one in cluster["clusters"] for node in one["nodes"])
    assert node["figures"]["memory"] > 1 << 20
    assert set(node["figures"]) <= set(FIGURES)


async def test_a_history_needs_a_known_node(admin: AdminProcess, member: Member) -> None:
    async def known() -> bool:
        return await samples(admin, "one") > 0

    await eventually(known)
    assert "one" in (await get(admin, "/history?node=two", 404))["error"]
    assert "node is missing" in (await get(admin, "/history", 400))["error"]
    assert "range" in (await get(admin, "/history?node=one&range=1y", 400))["error"]


@pytest.mark.parametrize("path", ["/nowhere", "/api/nowhere", "/status"])
async def test_an_unknown_address_is_told_in_json(admin: AdminProcess, path: str) -> None:
    assert "openapi.json" in (await get(admin, path, 404))["error"]


async def test_another_method_is_told_in_json(admin: AdminProcess) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{admin.base}/cluster") as answer,
    ):
        assert (answer.status, answer.headers["Allow"]) == (405, "GET,HEAD")
        assert "GET" in (await answer.json())["error"]


async def test_a_live_stream_is_relayed_as_it_comes(admin: AdminProcess, member: Member) -> None:
    async with live(admin, "?kinds=status,topology", path="/nodes/one") as stream:
        assert (await stream.until("status"))["node"] == "one"
        assert (await stream.until("status"))["node"] == "one"
    async with live(member, "?kinds=topology", path="/nodes/one") as stream:
        topology = await stream.until("topology")
        assert [one["name"] for one in topology["clusters"]] == ["plant"]


async def test_a_node_that_dies_and_returns_is_seen_everywhere(tmp_path: Path) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin", *AT_ONCE))
        stack.enter_context(Member(tmp_path / "one", "one", "plant", admin.base))
        two = stack.enter_context(Member(tmp_path / "two", "two", "plant", admin.base))
        await admin.comes_to(lambda: admin.states() == {"one": "alive", "two": "alive"})
        async with live(admin, "?kinds=status,topology,alerts") as stream:
            assert set(await stream.until("status")) >= {"nodes", "clusters", "heartbeat"}
            two.kill()
            topology: dict[str, Any] = {"clusters": []}
            while states(topology).get("two") != "dead":
                topology = await stream.until("topology")
            alerts: dict[str, Any] = {"items": []}
            # On a busy machine there are alerts of late heartbeats too, which pass.
            while [one["name"] for one in alerts["items"]] != ["NodeDead:two"]:
                alerts = await stream.until("alerts")
        (alert,) = alerts["items"]
        assert alert.keys() == {"name", "severity", "since", "text", "remedy", "view"}
        assert (alert["name"], alert["severity"], alert["view"]) == ("NodeDead:two", "critical", "topology")
        assert "two" in alert["text"] and "Start the node again" in alert["remedy"]
        assert await get(admin, "/alerts") == {"items": [alert], "next": None, "total": 1}
        (dead,) = (
            node
            for one in (await get(admin, "/cluster"))["clusters"]
            for node in one["nodes"]
            if node["name"] == "two"
        )
        assert (dead["state"], dead["figures"]) == ("dead", None)
        assert dead["heartbeat_age"] > 0

        again = Member(tmp_path / "two", "two", "plant", admin.base)
        stack.enter_context(again)

        async def no_alert() -> bool:
            return (await get(admin, "/alerts"))["total"] == 0

        await eventually(no_alert)
        urls = {"one": "plant joined", "two": "plant joined"}
        told = await events(admin)
        assert [text.partition(": ")[0] for text in told] == [
            f"node one of cluster {urls['one']}",
            f"node two of cluster {urls['two']}",
            "node two of cluster plant died",
            "node two of cluster plant returned",
        ]


def states(topology: dict[str, Any]) -> dict[str, str]:
    return {node["name"]: node["state"] for one in topology["clusters"] for node in one["nodes"]}


async def forget(node: NodeProcess, name: str, **headers: str) -> tuple[int, str]:
    """The status and the text of an answer."""
    async with (
        aiohttp.ClientSession() as session,
        session.delete(f"{node.base}/nodes/{name}", headers=headers) as answer,
    ):
        return answer.status, await answer.text()


async def test_an_operator_forgets_a_dead_node_and_never_one_that_lives(tmp_path: Path) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin", *AT_ONCE))
        one = stack.enter_context(Member(tmp_path / "one", "one", "plant", admin.base))
        two = stack.enter_context(Member(tmp_path / "two", "two", "plant", admin.base))
        await admin.comes_to(lambda: admin.states() == {"one": "alive", "two": "alive"})
        status, told = await forget(admin, "two")
        assert (status, "two" in told, "alive" in told) == (409, True, True)
        status, told = await forget(admin, "three")
        assert (status, "three" in told) == (404, True)
        two.kill()
        await admin.comes_to(lambda: admin.states()["two"] == "dead")
        assert (await forget(admin, "two", Origin="http://evil.example"))[0] == 403
        assert (await forget(one, "two"))[0] == 404
        assert admin.states()["two"] == "dead"
        assert await forget(admin, "two") == (204, "")
        assert admin.states() == {"one": "alive"}
        items = (await get(admin, "/events-log"))["items"]
        told_of = [(item["kind"], item["text"], item["who"]) for item in items]
        assert ("action", "DELETE /nodes/two", "anonymous") in told_of
        assert ("node", "node two was removed", "") in told_of

        async def gone_here_too() -> bool:
            found = await get(one, "/cluster")
            return [node["name"] for part in found["clusters"] for node in part["nodes"]] == ["one"]

        await eventually(gone_here_too)


async def test_what_is_known_survives_a_restart(tmp_path: Path) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin"))
        stack.enter_context(Member(tmp_path / "one", "one", "plant", admin.base))

        async def enough() -> bool:
            return await samples(admin, "one") >= 2

        await eventually(enough)
        before = await samples(admin, "one")
        port = int(admin.base.rpartition(":")[2])
        assert await asyncio.to_thread(admin.terminate) == 0
        again = stack.enter_context(AdminProcess(tmp_path / "admin", port=port))
        assert await samples(again, "one") >= before
        assert (await events(again))[0].startswith("node one of cluster plant joined")
        kinds = [item["kind"] for item in (await get(again, "/events-log"))["items"]]
        assert {"start", "stop"} <= set(kinds)
        cluster = await get(again, "/cluster")
        assert cluster["partial"] is None
