"""Nodes as processes of their own."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MODULES = {"hpwsn": ["-m", "hpwsn", "serve"], "unjournalled": ["-m", "benchmarks.tools.unjournalled"]}

Process = subprocess.Popen[str]


def start(data: Path, settings: Sequence[str] = (), module: str = "hpwsn") -> tuple[Process, str]:
    """A node that is ready, and its base URL."""
    arguments = ["--port", "0", "--data", str(data)]
    for setting in settings:
        arguments += ["--set", setting]
    process = subprocess.Popen(
        [sys.executable, *MODULES[module], *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return process, line.removeprefix("ready ").strip().removesuffix("/wsn")
    raise RuntimeError("the node ended before it was ready")


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
