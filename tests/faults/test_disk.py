"""A disk with no space, and a database that somebody else keeps locked: a clear 503, and recovery without a
restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.load import ROOT_TOPIC, Inbox, Key, judge, notify_keys
from tests.harness import NodeProcess
from tests.patience import eventually, patience
from tests.raw_soap import Reply, call, send, subscribe
from tests.small_disk import mounted

pytestmark = pytest.mark.needs_root

MIB = 2**20
LEFT = MIB
"""What the filler leaves of the small disk: room to start, and for some hundred notifications."""
SETTINGS = ("--set", "delivery.retry_first=0.02", "--set", "delivery.retry_max=0.1")
HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute(sys.argv[2])
print("locked", flush=True)
sys.stdin.read()
db.execute("ROLLBACK")
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A data directory on a file system of 8 MiB of its own."""
    with mounted(tmp_path / "data") as folder:
        yield folder


def fill(disk: Path, left: int = LEFT) -> Path:
    """Take all of the space but some, with one file to remove later; it may be called again."""
    filler = disk / "filler"
    # The node writes at the same time: less may be free by now than was measured.
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        file.write(b"\0" * (_space(disk) - left))
    return filler


def _space(disk: Path) -> int:
    answer = subprocess.run(
        ("stat", "--file-system", "--format", "%a %S", disk), capture_output=True, check=True
    )
    free, size = map(int, answer.stdout.split())
    return free * size


class Numbered:
    """One publisher of large notifications, and what was accepted and refused of them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.accepted: list[Key] = []
        self.refused: list[Key] = []

    async def publish(self) -> Reply:
        """Send the next one."""
        key = Key(0, 0, len(self.accepted) + len(self.refused) + 1)
        body = notify_keys([key]).replace(b"<m ", f"<m padding='{'x' * 8000}' ".encode())
        reply = await send(self.url, body)
        (self.accepted if reply.status == 202 else self.refused).append(key)
        return reply

    async def publish_until(self, condition: Callable[[Reply], bool], most: int = 2000) -> Reply:
        """Go on until an answer is as wanted."""
        for _ in range(most):
            reply = await self.publish()
            if condition(reply):
                return reply
        raise AssertionError(f"{most} notifications were answered, the last with {reply.status}")


async def readiness(node: NodeProcess) -> tuple[int, list[str]]:
    """The status of /readyz and the problems that it names."""
    reply = await send(f"{node.base}/readyz", b"", method="GET")
    return reply.status, json.loads(reply.body)["problems"]


def reason(reply: Reply) -> str:
    """The words of a fault."""
    return reply.content.findtext("faultstring") or ""


async def subscribe_until_refused(node: NodeProcess) -> Reply:
    """Subscribe to something else; the first few still find room where a larger write has failed."""
    for number in range(200):
        reply = await call(node.url, subscribe(f"http://127.0.0.1:1/{number}", "elsewhere"))
        if reply.status != 200:
            return reply
    raise AssertionError("200 subscriptions found room on a full disk")


async def test_a_full_disk_is_a_clear_503_and_goes_on_when_there_is_space(small_disk: Path) -> None:
    with NodeProcess(small_disk, *SETTINGS) as node:
        async with Inbox() as inbox, Inbox() as late:
            await inbox.subscribe(node.url)
            filler = fill(small_disk)
            publisher = Numbered(node.url)
            full = await publisher.publish_until(lambda reply: reply.status != 202)
            assert (full.status, full.headers["Retry-After"].isdigit()) == (503, True)
            assert "full" in reason(full)
            assert "free space" in reason(full)
            status, problems = await readiness(node)
            assert (status, ["full" in problem for problem in problems]) == (503, [True])
            assert (await send(f"{node.base}/healthz", b"", method="GET")).status == 200
            fill(small_disk, left=0)
            refused = await subscribe_until_refused(node)
            assert (refused.status, refused.headers["Retry-After"].isdigit()) == (503, True)
            assert "full" in reason(refused)
            await inbox.wait_for(publisher.accepted)

            filler.unlink()
            await publisher.publish_until(lambda reply: reply.status == 202, most=1)
            assert (await readiness(node))[0] == 200
            await late.subscribe(node.url)
            for _ in range(20):
                await publisher.publish_until(lambda reply: reply.status == 202, most=1)
            await inbox.wait_for(publisher.accepted)
            await late.wait_for(publisher.accepted[-20:])
            assert judge("inbox", publisher.accepted, inbox.keys()).good
            assert not set(publisher.refused) & set(inbox.keys())
            assert late.keys() == publisher.accepted[-20:]
        assert "Traceback" not in node.log()


async def test_a_node_is_ready_again_when_there_is_space_without_a_publisher(small_disk: Path) -> None:
    """Who sends requests only to nodes that are ready would otherwise never send this one another."""
    with NodeProcess(small_disk, *SETTINGS) as node:
        filler = fill(small_disk)
        await Numbered(node.url).publish_until(lambda reply: reply.status == 503)
        assert (await readiness(node))[0] == 503
        filler.unlink()

        async def ready() -> bool:
            return (await readiness(node))[0] == 200

        await eventually(ready)


async def test_a_node_killed_on_a_full_disk_has_all_that_it_accepted(small_disk: Path) -> None:
    with NodeProcess(small_disk, *SETTINGS) as node:
        async with Inbox() as inbox:
            reference = await inbox.subscribe(node.url)
            assert (await call(reference, "<w:PauseSubscription/>")).status == 200
            filler = fill(small_disk)
            publisher = Numbered(node.url)
            await publisher.publish_until(lambda reply: reply.status == 503)
            await asyncio.to_thread(node.kill)
            filler.unlink()
            await asyncio.to_thread(node.start)
            assert (await call(reference, "<w:ResumeSubscription/>")).status == 200
            await publisher.publish_until(lambda reply: reply.status == 202, most=1)
            await inbox.wait_for(publisher.accepted)
            assert judge("inbox", publisher.accepted, inbox.keys()).good
            assert not set(publisher.refused) & set(inbox.keys())


async def test_a_node_started_on_a_full_disk_delivers_what_it_has(small_disk: Path) -> None:
    with NodeProcess(small_disk, *SETTINGS) as node:
        async with Inbox(lambda number: 503) as inbox:
            await inbox.subscribe(node.url)
            filler = fill(small_disk)
            publisher = Numbered(node.url)
            await publisher.publish_until(lambda reply: reply.status == 503)
            await asyncio.to_thread(node.kill)
            fill(small_disk, left=0)
            inbox.answer = lambda number: 202
            await asyncio.to_thread(node.start)
            await inbox.wait_for(publisher.accepted)
            assert judge("inbox", publisher.accepted, inbox.keys()).good
            filler.unlink()
            await publisher.publish_until(lambda reply: reply.status == 202, most=1)
            await inbox.wait_for(publisher.accepted)


@contextlib.contextmanager
def locked(data: Path, statement: str) -> Iterator[None]:
    """Another process with a transaction on the journal."""
    command = (sys.executable, "-c", HOLDER, str(data / "journal.db"), statement)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        try:
            yield
        finally:
            holder.communicate()


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
async def test_a_locked_database_is_a_clear_503_and_goes_on_when_it_is_free(
    node: NodeProcess, statement: str
) -> None:
    async with Inbox() as inbox, Inbox() as late:
        await inbox.subscribe(node.url)
        publisher = Numbered(node.url)
        await publisher.publish_until(lambda reply: reply.status == 202, most=1)
        with locked(node.data, statement):
            refused = await publisher.publish()
            assert (refused.status, refused.headers["Retry-After"].isdigit()) == (503, True)
            assert "locked" in reason(refused)
            status, problems = await readiness(node)
            assert (status, ["locked" in problem for problem in problems]) == (503, [True])
            subscribing = await call(node.url, subscribe(late.url, ROOT_TOPIC))
            assert (subscribing.status, subscribing.headers["Retry-After"].isdigit()) == (503, True)
            await inbox.wait_for(publisher.accepted)
        for _ in range(10):
            await publisher.publish_until(lambda reply: reply.status == 202, most=1)
        assert (await readiness(node))[0] == 200
        await inbox.wait_for(publisher.accepted)
        assert inbox.keys() == publisher.accepted
        assert late.requests == []
    assert "Traceback" not in node.log()


async def test_many_publishers_at_a_locked_database_are_refused_together(node: NodeProcess) -> None:
    """Each try waits for the lock for a second; one after the other they would wait for minutes."""
    publishers = [Numbered(node.url) for _ in range(30)]
    with locked(node.data, "BEGIN IMMEDIATE"):
        async with patience():
            replies = await asyncio.gather(*(publisher.publish() for publisher in publishers))
    assert {reply.status for reply in replies} == {503}


async def test_a_node_started_on_a_locked_database_delivers_and_takes_more_when_it_is_free(
    tmp_path: Path,
) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with Inbox(lambda number: 503) as inbox:
            await inbox.subscribe(node.url)
            publisher = Numbered(node.url)
            await publisher.publish_until(lambda reply: len(publisher.accepted) == 5)
            await asyncio.to_thread(node.terminate)
            inbox.answer = lambda number: 202
            with locked(node.data, "BEGIN EXCLUSIVE"):
                await asyncio.to_thread(node.start)
                await inbox.wait_for(publisher.accepted)
                assert (await publisher.publish()).status == 503
            await publisher.publish_until(lambda reply: reply.status == 202, most=1)
            await inbox.wait_for(publisher.accepted)
        assert judge("inbox", publisher.accepted, inbox.keys()).good
