"""`hpwsn status`, `top` and `profile` against real nodes, on a terminal and in scripts."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hpwsn_client import Client
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import ROOT, NodeProcess, environment, hpwsn
from tests.patience import PATIENCE, eventually

NOBODY = "http://127.0.0.1:9/wsn"


async def post(node: NodeProcess, path: str, **headers: str) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{node.base}{path}") as response,
    ):
        return response.status, await response.json()


# hpwsn status


async def test_status_shows_what_matters_on_one_screen(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        await client.notify("A", "x")
    told = hpwsn("status", "--url", node.url)
    assert (told.returncode, told.stderr) == (0, "")
    heading, empty, *facts = told.stdout.splitlines()
    assert "HPwsn" in heading and heading.endswith("  ready") and not empty
    assert [line.split("  ")[0] for line in facts] == [
        *("published", "delivered", "latency", "backlog", "dead letters", "resources", "journal", "process")
    ]
    assert facts[0].endswith("1 since the start")
    assert facts[3].endswith("0 subscriptions waiting for a retry")
    assert facts[5].endswith("1 topic, 0 subscriptions, 0 pull points")
    assert "\x1b" not in told.stdout


async def test_status_in_json_has_the_nodes_own_status_and_the_rest(node: NodeProcess) -> None:
    found = json.loads(hpwsn("status", "--json", "--url", node.url).stdout)
    assert {"ready", "alerts", "figures", "members", "node", "problems", "process", "latency"} <= set(found)
    assert (found["ready"], found["alerts"]) == (True, [])
    (member,) = found["members"]
    assert (member["name"], member["figures"]) == (found["node"], found["figures"])


def test_a_node_that_does_not_answer_is_status_1() -> None:
    told = hpwsn("status", "--url", NOBODY)
    assert (told.returncode, told.stdout) == (1, "")
    assert "no node answers" in told.stderr


async def test_a_node_that_is_not_ready_is_status_1_with_the_reason(tmp_path: Path) -> None:
    away = "stomp://127.0.0.1:9"
    with NodeProcess(tmp_path / "data", "--backbone", away) as node:
        told = hpwsn("status", "--url", node.url)
        assert told.returncode == 1
        assert "NOT READY" in told.stdout.splitlines()[0]
        assert "127.0.0.1:9" in told.stdout
        assert json.loads(hpwsn("status", "--json", "--url", node.url).stdout)["ready"] is False


async def test_status_names_the_members_of_a_cluster(tmp_path: Path) -> None:
    with (
        AdminProcess(tmp_path / "admin") as admin,
        Member(tmp_path / "a", "a", "c", admin.base) as first,
        Member(tmp_path / "b", "b", "c", admin.base),
    ):

        async def both() -> bool:
            shown = hpwsn("status", "--url", first.url).stdout.splitlines()
            return [line.split()[0] for line in shown[-3:]] == ["NAME", "a", "b"]

        await eventually(both)


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._main, other = pty.openpty()
        command = [sys.executable, "-m", "hpwsn", *arguments]
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=environment(), cwd=ROOT, close_fds=True
        )
        os.close(other)
        self.shown = ""

    def wait(self, words: str, times: int) -> None:
        """Read until the terminal has shown the words so often."""
        while self.shown.count(words) < times:
            assert select.select([self._main], [], [], PATIENCE)[0], self.shown
            self.shown += os.read(self._main, 65536).decode()

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit status."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(PATIENCE)
        finally:
            os.close(self._main)


async def test_watch_shows_the_screen_again_in_place_with_colours_on_a_terminal(node: NodeProcess) -> None:
    terminal = Terminal("status", "--watch", "0.1", "--url", node.url)
    terminal.wait("\x1b[H\x1b[2J", 3)
    terminal.wait("\x1b[32mready\x1b[0m", 3)
    assert terminal.interrupt() == 0


async def test_watch_goes_on_while_the_node_is_away(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        terminal = Terminal("status", "--watch", "0.1", "--url", node.url)
        terminal.wait("ready", 1)
        node.kill()
        terminal.wait("no node answers", 1)
        seen = terminal.shown.count("ready")
        node.start()
        terminal.wait("ready", seen + 2)
        assert terminal.interrupt() == 0


@pytest.mark.parametrize("command", ["status", "top"])
def test_an_interval_that_cannot_be_is_refused(command: str) -> None:
    for seconds in ("0", "-1", "nan", "86401"):
        told = hpwsn(command, f"--watch={seconds}", "--url", NOBODY)
        assert (told.returncode, told.stdout) == (2, ""), seconds


# hpwsn top


async def test_top_names_the_busiest_topics_and_the_slowest_consumers(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "delivery.retry_first=60") as node:
        assert "no events" in (told := hpwsn("top", "--url", node.url).stdout)
        assert "no notifications wait" in told
        async with Client(node.url) as client, Consumer(lambda number: 500) as slow:
            await client.subscribe("B", slow.url)
            await client.notify_many([("A:quiet", "x"), *[("B:busy", "x")] * 20, ("B:quiet", "x")])

            async def measured() -> bool:
                found = json.loads(hpwsn("top", "--json", "--number", "2", "--url", node.url).stdout)
                return [one["topic"] for one in found["topics"]][:1] == ["B:busy"] and bool(
                    found["subscriptions"]
                )

            await eventually(measured)
            found = json.loads(hpwsn("top", "--json", "--number", "2", "--url", node.url).stdout)
            assert len(found["topics"]) == 2
            assert [one["consumer"] for one in found["subscriptions"]] == [slow.url]
            told = hpwsn("top", "--url", node.url).stdout
            assert told.index("B:busy") < told.index("B:quiet")
            assert slow.url in told


# hpwsn profile


async def test_profile_names_functions_with_their_cpu_time(node: NodeProcess) -> None:
    async def publish() -> None:
        async with Client(node.url) as client:
            while True:
                await client.notify_many([("A", "x")] * 100)

    load = asyncio.create_task(publish())
    try:
        arguments = ("profile", "--seconds", "1", "--memory", "--url", node.url)
        told = await asyncio.to_thread(hpwsn, *arguments, "--json")
        shown = await asyncio.to_thread(hpwsn, *arguments)
    finally:
        load.cancel()
    found = json.loads(told.stdout)
    assert {"seconds", "samples", "cpu", "overhead", "threads", "functions", "memory"} == set(found)
    assert found["cpu"] > 0 and found["samples"] > 1
    assert any(one["file"].startswith("hpwsn/") for one in found["functions"])
    for one in found["functions"]:
        assert set(one) == {"function", "file", "line", "self", "total"}
        assert 0 <= one["self"] <= one["total"] + 0.001
    memory = found["memory"]
    assert {"objects", "frozen", "sampled", "paused", "took", "types"} == set(memory)
    assert {"dict", "str"} <= {one["type"] for one in memory["types"]}
    assert (shown.returncode, "the node paused for" in shown.stdout) == (0, True)
    assert "FUNCTION" in shown.stdout and "TYPE" in shown.stdout


async def test_there_is_one_profile_at_a_time_and_it_is_bounded(node: NodeProcess) -> None:
    both = {asyncio.create_task(post(node, "/profile?seconds=60")) for _ in range(2)}
    (refused,), (running,) = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    assert (refused.result()[0], list(refused.result()[1])) == (409, ["error"])
    assert hpwsn("profile", "--seconds", "0.1", "--url", node.url).returncode == 1
    for query in ("seconds=60.1", "seconds=0.009", "seconds=nan", "seconds=x", "memory=1", "second=1"):
        status, told = await post(node, f"/profile?{query}")
        assert (status, list(told)) == (400, ["error"]), query
    assert await asyncio.to_thread(node.terminate) == 0
    status, cut_short = await running
    assert (status, cut_short["seconds"] < 60) == (200, True)
    for seconds in ("60.1", "0", "x"):
        assert hpwsn("profile", "--seconds", seconds, "--url", NOBODY).returncode == 2


async def test_a_profile_needs_the_machine_or_the_token(node: NodeProcess) -> None:
    forwarded = {"X-Forwarded-For": "192.0.2.7"}
    status, told = await post(node, "/profile?seconds=0.1", **forwarded)
    assert (status, list(told)) == (401, ["error"])
    token = (node.data / "job.token").read_text().strip()
    bearer = {"Authorization": f"Bearer {token}"}
    assert (await post(node, "/profile?seconds=0.1", **forwarded, **bearer))[0] == 200
    wrong = {"Authorization": "Bearer wrong"}
    assert (await post(node, "/profile?seconds=0.1", **wrong))[0] == 401
    assert (await post(node, "/profile?seconds=0.1", Origin="http://evil.example"))[0] == 403


async def test_profiles_can_be_forbidden(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "monitoring.profiling=false") as node:
        status, told = await post(node, "/profile?seconds=0.1")
        assert (status, "monitoring.profiling" in told["error"]) == (403, True)
