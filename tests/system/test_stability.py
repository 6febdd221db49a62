"""stability-01 of the thesis in small, and `scripts/soak`, which is the same in large.

A node is loaded without a pause while others subscribe and unsubscribe. What it holds is compared between
waves of the same load: the first wave is warm-up.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from hpwsn.node import Node
from hpwsn.settings import Config, DataSettings, ServerSettings
from hpwsn_client import Client
from tests.consumer import Consumer
from tests.harness import ROOT, NodeProcess, environment
from tests.patience import PATIENCE, until
from tests.raw_soap import send
from tests.scraped import scrape

WAVES, MESSAGES, ROUNDS, PUBLISHERS = 4, 1500, 60, 5
EVERYTHING = WAVES * MESSAGES
MEMORY = 24e6
"""Bytes that a process may hold more after the last wave than after the first: noise of the allocator."""
DESCRIPTORS = 4


@dataclass(frozen=True)
class Held:
    """What a process holds at rest."""

    threads: int
    descriptors: int
    memory: int = 0
    tasks: int = 0


class Receipt:
    """Holds once a consumer has so many messages; counts each request once."""

    def __init__(self, wanted: int) -> None:
        self._missing, self._seen = wanted, 0

    def __call__(self, consumer: Consumer) -> bool:
        new = consumer.requests[self._seen :]
        self._seen += len(new)
        self._missing -= sum(body.count(b"</wsnt:NotificationMessage>") for body in new)
        return self._missing <= 0


async def wave(client: Client, consumer: Consumer, number: int) -> None:
    """Publish at full load from several publishers, with subscribers that come and go."""

    async def publish(which: int) -> None:
        for each in range(MESSAGES // PUBLISHERS):
            await client.notify("ALL", f"<m>{number}.{which}.{each}</m>")

    async def churn() -> None:
        for each in range(ROUNDS):
            subscription = await client.subscribe("ALL:ALARM", f"{consumer.url}/{each}")
            await subscription.unsubscribe()

    await asyncio.gather(churn(), *(publish(which) for which in range(PUBLISHERS)))
    await consumer.wait(Receipt(MESSAGES * (number + 1)))


def in_order(payloads: list[str]) -> bool:
    """Whether each publisher's messages came once, in order."""
    by_publisher: dict[str, list[tuple[int, int]]] = {}
    for payload in payloads:
        number, which, each = payload.split(".")
        by_publisher.setdefault(which, []).append((int(number), int(each)))
    expected = [(number, each) for number in range(WAVES) for each in range(MESSAGES // PUBLISHERS)]
    return len(by_publisher) == PUBLISHERS and all(got == expected for got in by_publisher.values())


async def waves(url: str, at_rest: Callable[[], Held]) -> list[Held]:
    """All waves through a node; what it holds after each."""
    held = []
    async with Client(url) as client, Consumer() as consumer:
        await client.subscribe("ALL", consumer.url)
        for number in range(WAVES):
            await wave(client, consumer, number)
            held.append(at_rest())
        assert in_order(consumer.payloads())
    return held


async def test_stability_01_full_load_leaves_threads_descriptors_and_memory_level(node: NodeProcess) -> None:
    process = psutil.Process(node.pid)

    def at_rest() -> Held:
        return Held(process.num_threads(), process.num_fds(), process.memory_info().rss)

    first, *_, last = await waves(node.url, at_rest)
    status = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
    assert (status["published"]["accepted"], status["delivery"]["delivered"]) == (EVERYTHING, EVERYTHING)
    assert (status["subscriptions"], status["topics"], status["journal"]["waiting"]) == (1, 1, 0)
    assert last.threads == first.threads
    assert last.descriptors <= first.descriptors + DESCRIPTORS
    assert last.memory <= first.memory + MEMORY


async def test_status_and_metrics_tell_what_the_process_uses(node: NodeProcess) -> None:
    process = psutil.Process(node.pid)
    told = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)["process"]
    assert told["threads"] == process.num_threads()
    # The node has the connection of the question open, and the list of descriptors itself.
    assert abs(told["descriptors"] - process.num_fds()) <= DESCRIPTORS
    assert abs(told["memory_bytes"] - process.memory_info().rss) <= MEMORY
    used = process.cpu_times()
    assert 0 < told["cpu_seconds"] <= used.user + used.system + 0.1
    metrics = await asyncio.to_thread(scrape, node.base)
    assert metrics.value("process_threads") == process.num_threads()
    assert abs(metrics.value("process_open_fds") - process.num_fds()) <= DESCRIPTORS
    assert abs(metrics.value("process_resident_memory_bytes") - process.memory_info().rss) <= MEMORY
    assert metrics.value("process_cpu_seconds_total") > 0


async def test_stability_01_leaves_no_task_behind(tmp_path: Path) -> None:
    """The node runs in this process, where its tasks can be counted."""
    config = Config(data=DataSettings(dir=str(tmp_path)), server=ServerSettings(port=0))
    node = Node(config)
    await node.start()
    try:

        def at_rest() -> Held:
            files = len(list(Path("/proc/self/fd").iterdir()))
            return Held(threading.active_count(), files, tasks=len(asyncio.all_tasks()))

        first, *_, last = await waves(f"{node.port.base_url()}/wsn", at_rest)
    finally:
        await node.close()
    assert last.tasks <= first.tasks + DESCRIPTORS
    assert last.threads <= first.threads + 1
    assert last.descriptors <= first.descriptors + DESCRIPTORS


# scripts/soak


def soak(output: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.soak", "--output", str(output), *arguments],
        env={**environment(), "PYTHONPATH": f"{ROOT / 'scripts'}:{environment()['PYTHONPATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_soak_prints_mps_and_samples_and_ends_with_a_verdict(tmp_path: Path) -> None:
    process = soak(tmp_path, "--minutes", "0.05", "--mps", "50")
    output, _ = process.communicate(timeout=PATIENCE)
    assert re.search(r"^[\d,]+ messages in [\d.]+ s, MPS [\d,]+$", output, re.MULTILINE), output
    assert re.search(r"^\[ +[\d.]+ min\] MPS .*, CPU .*, memory .*, threads \d+, desc", output, re.MULTILINE)
    data = json.loads((tmp_path / "soak.json").read_text())
    assert (data["lost"], data["received"] > 0, data["rounds"] > 0) == (0, True, True)
    # Whether so short a run is level is not what this test is about: the machine may be busy.
    assert process.returncode == (0 if all(level["level"] for level in data["levels"]) else 1), output
    assert (tmp_path / "soak.svg").exists()


def test_ctrl_c_ends_a_soak_with_the_summary_so_far_and_its_node(tmp_path: Path) -> None:
    process = soak(tmp_path, "--minutes", "600", "--mps", "50")
    assert process.stdout is not None
    first = process.stdout.readline()
    node = psutil.Process(int(first.split("process ")[1].split(";")[0]))
    while "messages in" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2, output
    assert "lost: 0" in output
    assert "too few to say" in output
    assert json.loads((tmp_path / "soak.json").read_text())["received"] > 0
    until(lambda: not node.is_running())
