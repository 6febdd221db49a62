"""Servers that a node needs, and other nodes, come and go: its alerts and its events log tell of it."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess, quiet_port
from tests.patience import PATIENCE, eventually
from tests.slapd import Slapd

AT_ONCE = ("--set", "monitoring.alert_after=0", "--set", "monitoring.alert_keep=0")


async def items(node: NodeProcess, path: str) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession() as session, session.get(node.base + path) as answer:
        found: list[dict[str, Any]] = (await answer.json())["items"]
        return found


async def alerted(node: NodeProcess, name: str) -> bool:
    return name in [one["name"] for one in await items(node, "/alerts")]


async def not_alerted(node: NodeProcess, name: str) -> bool:
    return not await alerted(node, name)


async def logged(node: NodeProcess, kind: str, text: str) -> bool:
    events = await items(node, "/events-log")
    return any(one["kind"] == kind and text in one["text"] for one in events)


async def test_a_directory_that_goes_and_comes_back_is_told(slapd: Slapd, tmp_path: Path) -> None:
    fast = ("--set", "topics.retry_max=0.2", "--set", f"topics.start_wait={PATIENCE}")
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *fast, *AT_ONCE) as node:
        assert not await logged(node, "problem", "directory")
        await asyncio.to_thread(slapd.kill)
        await eventually(lambda: alerted(node, "DirectoryUnreachable"))
        await eventually(lambda: logged(node, "problem", "the topic directory is away: "))
        await asyncio.to_thread(slapd.start)
        await eventually(lambda: not_alerted(node, "DirectoryUnreachable"))
        await eventually(lambda: logged(node, "problem", "the topic directory is back"))


async def test_servers_that_are_away_at_the_start_are_critical(tmp_path: Path) -> None:
    away = (
        "--topics",
        f"ldap://127.0.0.1:{quiet_port()}/ou=topics,dc=hpwsn",
        "--set",
        "topics.start_wait=0.1",
    )
    backbone = ("--backbone", f"stomp://127.0.0.1:{quiet_port()}")
    with NodeProcess(tmp_path / "data", *away, *backbone, *AT_ONCE) as node:
        await eventually(lambda: alerted(node, "DirectoryUnreachable"))
        await eventually(lambda: alerted(node, "BackboneAway"))
        found = {one["name"]: one for one in await items(node, "/alerts")}
        assert found["DirectoryUnreachable"]["severity"] == found["BackboneAway"]["severity"] == "critical"
        assert "not ready" in found["BackboneAway"]["text"]
        await eventually(lambda: logged(node, "problem", "the backbone is away: "))


async def test_members_that_come_and_die_are_told(tmp_path: Path) -> None:
    with (
        AdminProcess(tmp_path / "admin") as admin,
        Member(tmp_path / "one", "one", "c", admin.base, *AT_ONCE) as one,
    ):
        with Member(tmp_path / "two", "two", "c", admin.base) as two:
            await eventually(lambda: logged(one, "node", "node two is alive"))
            assert not await alerted(one, "NodesDead")
            await asyncio.to_thread(two.kill)
            await eventually(lambda: alerted(one, "NodesDead"))
            await eventually(lambda: logged(one, "node", "node two is dead"))
        await asyncio.to_thread(admin.terminate)
        await eventually(lambda: alerted(one, "AdminUnreachable"))
