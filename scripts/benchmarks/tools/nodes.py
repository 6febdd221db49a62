"""Nodes as processes of their own, with their state in a temporary folder."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MODULES = {"hpwsn": ["-m", "hpwsn", "serve"], "unjournalled": ["-m", "benchmarks.tools.unjournalled"]}


@contextmanager
def running(settings: Sequence[str] = (), module: str = "hpwsn") -> Iterator[str]:
    """A node's base URL while the block runs."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        arguments = ["--port", "0", "--data", str(Path(folder) / "data"), "--set", "log.level=error"]
        for setting in settings:
            arguments += ["--set", setting]
        process = subprocess.Popen(
            [sys.executable, *MODULES[module], *arguments], stdout=subprocess.PIPE, text=True
        )
        try:
            yield _ready(process)
        finally:
            process.terminate()
            process.communicate()


def _ready(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return line.removeprefix("ready ").strip().removesuffix("/wsn")
    raise RuntimeError("the node ended before it was ready")
