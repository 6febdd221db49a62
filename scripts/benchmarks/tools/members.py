"""An admin node and nodes that are its members, as processes of their own."""

import asyncio
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.tools.load import Load
from benchmarks.tools.nodes import await_ready, launch, node_arguments, stop
from benchmarks.tools.sink import Tally
from hpwsn_client import Client

SECRET = "cluster.secret=of-the-benchmark"


@dataclass(frozen=True, slots=True)
class RunningMember:
    """A node's base URL, process and data directory."""

    url: str
    pid: int
    data: Path


@contextmanager
def cluster(
    places: Mapping[str, str],
    settings: Mapping[str, Sequence[str]] | None = None,
    module: str = "hpwsn",
) -> Iterator[dict[str, RunningMember]]:
    """Nodes by name, each in the cluster named beside it, while the block runs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hpwsn-bench-")))
        quiet = ("--set", SECRET, "--set", "log.level=error")
        admin = launch(["-m", "hpwsn", "admin", "--port", "0", "--data", str(folder / "admin"), *quiet])
        stack.callback(stop, admin)
        joined = ("log.level=error", SECRET, f"cluster.admin={await_ready(admin)}")
        members: dict[str, RunningMember] = {}
        for name, place in places.items():
            own = (f"node.name={name}", f"node.cluster={place}", *(settings or {}).get(name, ()))
            process = launch(node_arguments(folder / name, [*joined, *own], module))
            stack.callback(stop, process)
            url = await_ready(process).removesuffix("/wsn")
            members[name] = RunningMember(url, process.pid, folder / name)
        yield members


def free_port() -> int:
    """A port that nobody uses at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def reach(url: str, topic: str, load: Load, tally: Tally, source: str) -> None:
    """Subscribe at one node, and wait until what another publishes arrives."""
    async with Client(f"{url}/wsn") as client, Client(f"{source}/wsn") as publisher:
        await client.subscribe(topic, await load.listen(tally))
        while not tally.notifications:
            await publisher.notify(topic, "<probe/>")
            await asyncio.sleep(0.05)
        await quiet(tally)


async def quiet(tally: Tally) -> None:
    """Wait until nothing has come for a while."""
    before = -1
    while tally.notifications != before:
        before = tally.notifications
        await asyncio.sleep(1.0)
