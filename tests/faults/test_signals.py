"""The signals that end a node, once, twice, under load and with a consumer that hangs: in time, and without
a loss."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults import odd_consumer as odd
from tests.faults.load import ROOT_TOPIC, Inbox, Key, Publisher, judge, notify_keys
from tests.faults.odd_consumer import OddConsumer
from tests.harness import NodeProcess, quiet_port
from tests.patience import PATIENCE, eventually
from tests.raw_soap import call, send, subscribe

DRAIN = 1.0
SETTINGS = ("--set", "delivery.retry_first=0.02", "--set", "delivery.retry_max=0.1")
# A node that waits for a hanging consumer ends too late for any test.
SETTINGS += ("--set", "delivery.response_timeout=1d")
SETTINGS += ("--set", f"server.drain_timeout={DRAIN:g}")


def ends(node: NodeProcess) -> int:
    """The exit status of a node that was told to end."""
    assert node.process is not None
    status = node.process.wait(PATIENCE)
    node.close()
    return status


@contextlib.asynccontextmanager
async def load(url: str, count: int = 3) -> AsyncIterator[list[Publisher]]:
    """Publishers that publish until the end of the block."""
    stop = asyncio.Event()
    publishers = [Publisher(number, url) for number in range(count)]
    async with asyncio.TaskGroup() as tasks:
        for publisher in publishers:
            tasks.create_task(publisher.run(stop))
        try:
            yield publishers
        finally:
            stop.set()


async def test_sigterm_twice_under_load_ends_cleanly_and_loses_nothing(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", *SETTINGS, port=quiet_port()).start()
    async with Inbox() as inbox, OddConsumer(odd.never) as hanging:
        with contextlib.closing(node):
            await inbox.subscribe(node.url)
            await call(node.url, subscribe(hanging.url, ROOT_TOPIC))
            async with load(node.url) as publishers:
                await inbox.wait(lambda i: len(i.requests) >= 30)
                assert node.process is not None
                node.process.send_signal(signal.SIGTERM)

                async def draining() -> bool:
                    return "stopping" in node.log()

                await eventually(draining)
                assert node.process.poll() is None
                node.process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(ends, node) == 0
                hanging.behaviour = odd.take
                await asyncio.to_thread(node.start)
                for publisher in publishers:
                    publisher.answered.clear()
                    await publisher.answered.wait()
            accepted = [key for publisher in publishers for key in publisher.accepted]
            await inbox.wait_for(accepted)
            await hanging.wait(lambda c: set(accepted) <= set(c.taken))
    assert judge("inbox", accepted, inbox.keys()).good
    assert judge("hanging", accepted, hanging.taken).good
    assert "Traceback" not in node.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_drain_with_a_hanging_consumer_ends_within_its_time(
    tmp_path: Path, number: signal.Signals
) -> None:
    node = NodeProcess(tmp_path / "data", *SETTINGS).start()
    key = Key(0, 0, 1)
    async with OddConsumer(odd.never) as hanging:
        with contextlib.closing(node):
            await call(node.url, subscribe(hanging.url, ROOT_TOPIC))
            assert (await send(node.url, notify_keys([key]))).status == 202
            await hanging.wait(lambda c: c.attempts == 1)
            began = time.monotonic()
            assert node.process is not None
            node.process.send_signal(number)
            assert await asyncio.to_thread(ends, node) == 0
            assert time.monotonic() - began >= DRAIN  # It was given its time.
            hanging.behaviour = odd.take
            await asyncio.to_thread(node.start)
            await hanging.wait(lambda c: c.taken == [key])
    assert "Traceback" not in node.log()


async def test_a_drain_lets_a_slow_consumer_finish_and_does_not_repeat_its_delivery(tmp_path: Path) -> None:
    settings = (*SETTINGS[:-1], f"server.drain_timeout={PATIENCE}")
    node = NodeProcess(tmp_path / "data", *settings).start()
    async with OddConsumer(odd.take_when_released) as slow:
        with contextlib.closing(node):
            await call(node.url, subscribe(slow.url, ROOT_TOPIC))
            assert (await send(node.url, notify_keys([Key(0, 0, 1)]))).status == 202
            await slow.wait(lambda c: c.attempts == 1)
            assert node.process is not None
            node.process.send_signal(signal.SIGTERM)

            async def draining() -> bool:
                return "stopping" in node.log()

            await eventually(draining)
            slow.released.set()
            assert await asyncio.to_thread(ends, node) == 0
            await asyncio.to_thread(node.start)
            assert (await send(node.url, notify_keys([Key(0, 0, 2)]))).status == 202
            await slow.wait(lambda c: len(c.taken) >= 2)
    assert slow.taken == [Key(0, 0, 1), Key(0, 0, 2)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_while_the_node_starts_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    """A supervisor may change its mind; the node must not go on as if it had not been told."""
    node = NodeProcess(tmp_path / "data", *SETTINGS)
    with contextlib.closing(node):
        starting = asyncio.create_task(asyncio.to_thread(node.start))

        async def opened() -> bool:
            return (node.data / "journal.db").exists()

        await eventually(opened)
        assert node.process is not None
        node.process.send_signal(number)
        with contextlib.suppress(AssertionError):
            await starting
        assert await asyncio.to_thread(ends, node) == 0
    assert "Traceback" not in node.log()


async def test_a_hangup_does_not_end_a_node_under_load_and_loses_nothing(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", *SETTINGS, port=quiet_port()).start()
    async with Inbox() as inbox:
        with contextlib.closing(node):
            await inbox.subscribe(node.url)
            async with load(node.url) as publishers:
                await inbox.wait(lambda i: len(i.requests) >= 30)
                assert node.process is not None
                node.process.send_signal(signal.SIGHUP)
                before = len(inbox.requests)
                await inbox.wait(lambda i: len(i.requests) >= before + 30)
                assert "SIGHUP: reloading" in node.log()
            accepted = [key for publisher in publishers for key in publisher.accepted]
            await inbox.wait_for(accepted)
    assert judge("inbox", accepted, inbox.keys()).good


async def test_a_node_under_nohup_does_not_mind_a_hangup(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *SETTINGS, prefix=("nohup",)) as node:
        assert node.process is not None
        node.process.send_signal(signal.SIGHUP)
        for _ in range(5):
            assert (await send(f"{node.base}/healthz", b"", method="GET")).status == 200
        assert await asyncio.to_thread(node.terminate) == 0
