"""`serve --workers 2`: any door serves any address, and no death of a process loses or reorders anything."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import raw_soap
from tests.harness import ROOT, NodeProcess, environment, eventually
from tests.raw_soap import call, envelope, notify, subscribe

WORKERS = ("--workers", "2")
ADDRESS = "w:PullPoint/a:Address"
HEAD = "POST /wsn HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n"


def post(topic: str, text: str) -> bytes:
    body = envelope(notify(topic, f"<n>{text}</n>"))
    return HEAD.format(len(body)).encode() + body


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One node with two doors."""
    folder = tmp_path_factory.mktemp("workers")
    with NodeProcess(folder / "data", *WORKERS, "--set", "server.connections=40") as node:
        yield node


async def status(node: NodeProcess) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, session.get(f"{node.base}/status") as response:
        found: dict[str, Any] = await response.json()
        return found


async def doors(node: NodeProcess) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = (await status(node))["doors"]
    return found


async def pull_point(node: NodeProcess, topic: str) -> str:
    address = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    assert (await call(node.url, subscribe(address, topic))).status == 200
    return address


async def pull_all(address: str) -> list[str]:
    """All that waits, to the last; each answer confirms the one before."""
    found: list[str] = []
    while True:
        reply = await call(address, "<w:GetMessages><w:MaximumNumber>1000</w:MaximumNumber></w:GetMessages>")
        texts = ["".join(m[0].itertext()) for m in reply.content.iterfind(".//w:Message", raw_soap.NAMES)]
        if not texts:
            return found
        found += texts


class Publisher:
    """One connection that pipelines numbered notifications and counts what is accepted."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.accepted = 0

    async def run(self, port: int, most: int) -> None:
        """Until all are answered, or the connection is lost."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            sent = 0
            while self.accepted < most:
                batch = range(sent, min(sent + 20, most))
                writer.write(b"".join(post("load", f"{self.name}-{number}") for number in batch))
                sent += len(batch)
                for _ in batch:
                    answer = await reader.readuntil(b"\r\n\r\n")
                    assert answer.startswith(b"HTTP/1.1 202 ")
                    self.accepted += 1
        writer.close()


def check(publishers: list[Publisher], stored: list[str]) -> None:
    """Nothing accepted is missing, and each connection's are in their order, once."""
    for publisher in publishers:
        numbers = [int(text.split("-")[1]) for text in stored if text.startswith(f"{publisher.name}-")]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= publisher.accepted


async def publish_until_both_have_some(node: NodeProcess, topic: str) -> int:
    sent = 0

    async def both() -> bool:
        nonlocal sent
        # Doors take turns, and the question below has one too: a single one would always find the same door.
        for _ in range(2):
            assert (await call(node.url, notify(topic, f"<n>{sent}</n>"))).status == 202
            sent += 1
        return all(door["notifications"] for door in (await doors(node)).values())

    await eventually(both)
    return sent


async def test_any_door_serves_any_address_and_operators_see_each_door(crowd: NodeProcess) -> None:
    address = await pull_point(crowd, "any")
    sent = await publish_until_both_have_some(crowd, "any")
    assert await pull_all(address) == [str(number) for number in range(sent)]
    figures = await doors(crowd)
    assert list(figures) == ["1", "2"]
    assert sum(door["notifications"] for door in figures.values()) == sent
    async with aiohttp.ClientSession() as session, session.get(f"{crowd.base}/metrics") as response:
        lines = (await response.text()).splitlines()
    for number, door in figures.items():
        assert f"hpwsn_doors_{number}_pid {door['pid']}" in lines
        assert f"hpwsn_doors_{number}_restarts 0" in lines


async def test_a_repeated_id_is_stored_once_whichever_doors_it_comes_to(crowd: NodeProcess) -> None:
    address = await pull_point(crowd, "ids")
    for number in range(2):
        header = f'<hp:MessageId xmlns:hp="urn:hpwsn:1">twice {number}</hp:MessageId>'
        body = notify("ids", f"<n>{number}</n>")
        replies = await asyncio.gather(*(call(crowd.url, body, headers=header) for _ in range(8)))
        assert {reply.status for reply in replies} == {202}
    assert await pull_all(address) == ["0", "1"]


async def test_one_connection_changes_between_lanes_as_often_as_it_likes(crowd: NodeProcess) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", crowd.port)
    create = envelope("<w:CreatePullPoint/>")
    other = HEAD.format(len(create)).encode() + create
    large = post("lanes", "x" * 300_000)
    health = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    writer.write(post("lanes", "1") + other + post("lanes", "2") + other + health)
    writer.write(large + post("lanes", "3"))
    answers = b""
    while answers.count(b"HTTP/1.1 ") < 7:
        answers += await reader.read(65536)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"202", b"200", b"202", b"200", b"200", b"202", b"202"]
    writer.close()


async def test_connections_count_over_all_doors(crowd: NodeProcess) -> None:
    refused, kept = False, []
    async with asyncio.timeout(20):
        while not refused:
            reader, writer = await asyncio.open_connection("127.0.0.1", crowd.port)
            kept.append(writer)
            if len(kept) % 2:
                writer.write(post("count", "1"))
            else:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            refused = b" 503 " in await reader.readuntil(b"\r\n\r\n")
    assert 20 < len(kept) <= 41
    for writer in kept:
        writer.close()

    async def room() -> bool:
        with contextlib.suppress(aiohttp.ClientError):
            return sum(door["connections"] for door in (await doors(crowd)).values()) <= 1
        return False

    await eventually(room)


async def test_a_port_that_another_node_has_is_refused(crowd: NodeProcess) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hpwsn", "serve", *WORKERS),
        *("--port", str(crowd.port), "--data", str(crowd.data.parent / "second")),
        env=environment(),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    _, words = await process.communicate()
    assert process.returncode == 1
    assert b"cannot listen on" in words


async def test_a_killed_door_loses_nothing_accepted_and_is_replaced(crowd: NodeProcess) -> None:
    address = await pull_point(crowd, "load")
    publishers = [Publisher(f"p{number}") for number in range(8)]
    work = [asyncio.create_task(each.run(crowd.port, 3000)) for each in publishers]

    async def under_way() -> bool:
        return sum(each.accepted for each in publishers) > 200

    await eventually(under_way)
    before = await doors(crowd)
    os.kill(before["1"]["pid"], signal.SIGKILL)
    await asyncio.gather(*work)
    check(publishers, await pull_all(address))

    async def replaced() -> bool:
        now = (await doors(crowd))["1"]
        return now["restarts"] == 1 and now["pid"] not in (0, before["1"]["pid"])

    await eventually(replaced)
    assert "door 1 ended with signal 9" in crowd.log()

    async def takes_connections() -> bool:
        for number in range(2):
            assert (await call(crowd.url, notify("after", f"<n>{number}</n>"))).status == 202
        return (await doors(crowd))["1"]["notifications"] > before["1"]["notifications"]

    await eventually(takes_connections)


async def test_a_killed_core_takes_its_doors_along_and_finds_all_when_it_is_back(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", *WORKERS).start()
    address = await pull_point(node, "load")
    publishers = [Publisher(f"p{number}") for number in range(4)]
    work = [asyncio.create_task(each.run(node.port, 100_000)) for each in publishers]

    async def under_way() -> bool:
        return sum(each.accepted for each in publishers) > 200

    await eventually(under_way)
    pids = [door["pid"] for door in (await doors(node)).values()]
    node.kill()
    await asyncio.gather(*work)

    async def gone() -> bool:
        return not any(Path(f"/proc/{pid}/fd/0").exists() for pid in pids)

    await eventually(gone)
    with node:
        check(publishers, await pull_all(address))
        # The port, the doors and the drain of a node that was killed before are as ever.
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        begun = post("last", "1")
        writer.write(begun + begun[:-5])
        await reader.readuntil(b"\r\n\r\n")
        ended = asyncio.create_task(asyncio.to_thread(node.terminate))

        async def stopping() -> bool:
            return "stopping" in node.log()

        await eventually(stopping)
        writer.write(begun[-5:])
        assert b" 202 " in await reader.read()
        assert await ended == 0
        writer.close()
    assert "Traceback" not in node.log()
    assert "ResourceWarning" not in node.log()


async def test_a_signal_to_the_whole_group_drains_as_one_to_the_core_does(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *WORKERS, prefix=("setsid",)) as node:
        assert (await call(node.url, notify("a", "<n>1</n>"))).status == 202
        os.killpg(node.pid, signal.SIGTERM)
        assert await asyncio.to_thread(node._reap, 30) == 0
        assert "ended with" not in node.log()
