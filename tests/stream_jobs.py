"""`hpwsn streams run` as a process, and the events that it takes from a node and gives to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import aiohttp

from hpwsn.streams.definition.schema import json_of
from tests.harness import NodeProcess, environment
from tests.patience import PATIENCE

POLL_INTERVAL = 0.5
"""Seconds between two looks at whether a job still runs."""
REQUEST = 500
"""Events in a request, and in a page of a topic."""


class JobProcess:
    """`hpwsn streams run` in a session of its own, so that its Java can be killed; ends with the block."""

    def __init__(self, folder: Path, spark: dict[str, str], node: NodeProcess, *arguments: str) -> None:
        self.log = folder / "job.log"
        command = [sys.executable, "-m", "hpwsn", "streams", "run", *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--url", node.url, "--checkpoint", str(folder / "checkpoints"), "--every", "1"],
                stdout=log,
                stderr=log,
                # A killed job leaves temporary files.
                env=environment() | {"TMPDIR": str(folder)} | spark,
                cwd=folder,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def wait(self) -> int:
        """The exit status of a job that ends by itself."""
        return self.process.wait(PATIENCE)

    def __exit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            self.kill()

    async def brings(self, arrival: Coroutine[Any, Any, None]) -> None:
        """Wait for something that only this job can bring, while it runs."""
        coming = asyncio.create_task(arrival)
        try:
            while not (await asyncio.wait([coming], timeout=POLL_INTERVAL))[0]:
                assert self.process.poll() is None, self.log.read_text()
            await coming
        finally:
            coming.cancel()

    def kill(self) -> None:
        """kill -9, for the job and all that it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def terminate(self) -> int:
        """SIGTERM, and its exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)


def as_json(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with values as JSON has them."""
    return [{name: json_of(value) for name, value in event.items()} for event in events]


def written(event: dict[str, Any]) -> str:
    """An event as sorted JSON of its texts."""
    return json.dumps({name: str(json_of(value)) for name, value in event.items()}, sort_keys=True)


async def publish(node: NodeProcess, topic: str, events: list[dict[str, Any]]) -> None:
    """Publish events as arrays of JSON."""
    async with aiohttp.ClientSession() as session:
        for first in range(0, len(events), REQUEST):
            some = events[first : first + REQUEST]
            async with session.post(f"{node.base}/topics/{topic}/events", json=some) as answer:
                assert answer.status == 202, await answer.text()


async def logged(node: NodeProcess, topic: str) -> list[dict[str, Any]]:
    """The events of a topic in their order, by polling."""
    url, after = f"{node.base}/topics/{topic}/events", 0
    found: list[dict[str, Any]] = []
    async with aiohttp.ClientSession() as session:
        while True:
            query = {"max": str(REQUEST), "after": str(after)}
            async with session.get(url, params=query) as answer:
                page = await answer.json()
            found += [event["data"] for event in page]
            if len(page) < REQUEST:
                return found
            after = page[-1]["offset"]


def undo_last_commit(checkpoints: Path) -> None:
    """Have the last epoch run again, as if the job had died right before it was noted as done."""
    for commits in checkpoints.glob("*/query/commits"):
        done = [file for file in commits.iterdir() if file.name.isdecimal()]
        last = max(done, key=lambda file: int(file.name), default=None)
        if last is not None:
            last.unlink()
            (commits / f".{last.name}.crc").unlink(missing_ok=True)
