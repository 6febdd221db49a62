"""Nodes as processes of their own."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.tools.cores import pin_server, unpin

MODULES = {
    "hpwsn": ["-m", "hpwsn", "serve"],
    "unjournalled": ["-m", "benchmarks.tools.unjournalled"],
    "probed": ["-m", "benchmarks.tools.probed_node"],
}

Process = subprocess.Popen[str]


def start(
    data: Path,
    settings: Sequence[str] = (),
    module: str = "hpwsn",
    pinned: bool = False,
    group: int | None = None,
) -> tuple[Process, str]:
    """A node that is ready, and its base URL; `group` 0 puts it into a process group of its own."""
    process = launch(node_arguments(data, settings, module), group)
    url = await_ready(process)
    if pinned:
        pin_server(process.pid)
    return process, url.removesuffix("/wsn")


def node_arguments(data: Path, settings: Sequence[str] = (), module: str = "hpwsn") -> list[str]:
    """Python's arguments for a node on a free port."""
    assignments = [part for setting in settings for part in ("--set", setting)]
    return [*MODULES[module], "--port", "0", "--data", str(data), *assignments]


def launch(arguments: Sequence[str], group: int | None = None) -> Process:
    """A Python process that will say `ready URL`."""
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=unpin, process_group=group)


def await_ready(process: Process) -> str:
    """The URL that the process says."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return line.removeprefix("ready ").strip()
    raise RuntimeError("a server ended before it was ready; the lines above say why")


def stop(process: Process, kill: bool = False) -> None:
    """End it cleanly, or not."""
    if kill:
        process.kill()
    else:
        process.terminate()
    process.communicate()


@contextmanager
def running(settings: Sequence[str] = (), module: str = "hpwsn") -> Iterator[str]:
    """A node's base URL while the block runs, its state in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        process, base = start(Path(folder) / "data", ["log.level=error", *settings], module)
        try:
            yield base
        finally:
            stop(process)
