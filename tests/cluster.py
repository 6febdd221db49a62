"""A real admin node, and real nodes that are its members, for tests of clusters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.harness import NodeProcess
from tests.patience import PATIENCE, patience

SECRET = "the secret of the tests"
HEARTBEAT = 2.0
"""Seconds; a node that has no core for two of them is not dead yet."""


class AdminProcess(NodeProcess):
    """`hpwsn admin` as a child."""

    command = "admin"

    def __init__(self, data: Path, *arguments: str, secret: str = SECRET, port: int = 0) -> None:
        settings = (f"cluster.secret={secret}", f"cluster.heartbeat={HEARTBEAT}")
        given = [part for setting in settings for part in ("--set", setting)]
        super().__init__(data, *given, *arguments, port=port)

    @property
    def base(self) -> str:
        """Its address."""
        return self.url.rstrip("/")

    def topology(self) -> dict[str, Any]:
        """What it tells everybody."""
        with urlopen(f"{self.base}/api/topology", timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def states(self) -> dict[str, str]:
        """The state of each node, by its name."""
        clusters = self.topology()["clusters"]
        return {node["name"]: node["state"] for cluster in clusters for node in cluster["nodes"]}

    def representative(self, cluster: str) -> str | None:
        """Who represents a cluster."""
        found = [one["representative"] for one in self.topology()["clusters"] if one["name"] == cluster]
        return found[0] if found else None

    async def comes_to(self, condition: Callable[[], bool]) -> None:
        """Wait until a question about the topology is answered with yes."""
        async with patience():
            while not await asyncio.to_thread(condition):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


class Member(NodeProcess):
    """`hpwsn serve` as a member of a cluster."""

    def __init__(
        self, data: Path, name: str, cluster: str, admin: str, *arguments: str, secret: str = SECRET
    ) -> None:
        self.name = name
        joining = ("--name", name, "--cluster", cluster, "--admin", admin)
        # It is ready when the admin node has answered, however long that takes.
        settings = (f"cluster.secret={secret}", f"cluster.start_wait={PATIENCE}")
        given = [part for setting in settings for part in ("--set", setting)]
        super().__init__(data, *joining, *given, *arguments)

    def saved_topology(self) -> Any:
        """The last topology in its data directory."""
        return json.loads((self.data / "topology.json").read_text())["topology"]

    def status(self) -> dict[str, Any]:
        """What it says about itself."""
        with urlopen(f"{self.base}/status", timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        return found
