"""The processes of the pictures: an admin node and nodes of two clusters, each with the same topic file."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tools.nodes import Process, await_ready, stop

ROOT = Path(__file__).resolve().parents[2]
SOURCES = os.pathsep.join(str(ROOT / part) for part in ("", "client", "admin"))
SECRET = "cluster.secret=of-the-pictures"
PLACES = {"hall-1": "plant", "hall-2": "plant", "dock-1": "harbour"}
"""The cluster of each node."""
OWN: Mapping[str, Sequence[str]] = {
    # At one node deliveries are given up soon, so that it has dead letters.
    "dock-1": ("delivery.retry_for=2", "delivery.retry_first=0.2", "delivery.retry_max=0.5"),
}


@dataclass(slots=True)
class Member:
    """A running process that serves the page; `base` is its address without a path."""

    name: str
    base: str
    process: Process

    def kill(self) -> None:
        """Let it die as in a power cut."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True, slots=True)
class Cluster:
    """The admin node, and the nodes by name."""

    admin: Member
    nodes: Mapping[str, Member]


@asynccontextmanager
async def running_cluster(folder: Path, tree: str) -> AsyncIterator[Cluster]:
    """All processes, with their data below a folder, while the block runs."""
    topics = folder / "topics.toml"
    topics.write_text(tree, "utf-8")
    common = ("log.level=warning", SECRET)
    async with AsyncExitStack() as stack:
        admin = await _started(stack, "admin", "admin", folder, common)
        nodes = {}
        for name, cluster in PLACES.items():
            own = tuple(OWN.get(name, ()))
            joined = (f"cluster.admin={admin.base}", f"node.name={name}", f"node.cluster={cluster}")
            settings = (*common, *joined, f"topics.url={topics.name}", *own)
            nodes[name] = await _started(stack, "serve", name, folder, settings)
        yield Cluster(admin, nodes)


@asynccontextmanager
async def lone_node(folder: Path, name: str = "hall-1") -> AsyncIterator[Member]:
    """A new node that nobody has used, while the block runs."""
    async with AsyncExitStack() as stack:
        yield await _started(stack, "serve", name, folder, ("log.level=warning", f"node.name={name}"))


async def _started(
    stack: AsyncExitStack, command: str, name: str, folder: Path, settings: Sequence[str]
) -> Member:
    given = [part for setting in settings for part in ("--set", setting)]
    arguments = ["-m", "hpwsn", command, "--port", "0", "--data", str(folder / name), *given]
    process = await asyncio.to_thread(_launch, arguments, folder / f"{name}.log")
    stack.push_async_callback(asyncio.to_thread, stop, process)
    ready = await asyncio.to_thread(await_ready, process)
    return Member(name, ready.rstrip("/").removesuffix("/wsn"), process)


def _launch(arguments: Sequence[str], log_file: Path) -> Process:
    """A process that says when it is ready; what it logs goes to a file."""
    log_file.parent.mkdir(exist_ok=True)
    with log_file.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=log_file.parent,
            env={**os.environ, "PYTHONPATH": SOURCES},
        )
