"""Backbone: notifications from a SOAP publisher into the log in a second, with ActiveMQ and without."""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.frame import Options, Row, Table, progress
from benchmarks.tools.nodes import running

PUBLISHERS = (1, 8, 64)
ROUNDS = 3
SCRIPT = Path(__file__).resolve().parents[1] / "activemq"


def run(options: Options) -> Table:
    """Nodes take turns under the same load; an answer means that the notification is in the log."""
    with ExitStack() as stack:
        url = stack.enter_context(activemq())
        nodes = {
            "embedded": [],
            "ActiveMQ": [f"backbone.url={url}", "node.name=not-persistent", "backbone.persistent=false"],
            "ActiveMQ, persistent": [f"backbone.url={url}", "node.name=persistent"],
        }
        urls = {name: stack.enter_context(running(settings)) + "/wsn" for name, settings in nodes.items()}
        groups = [_measure(urls, publishers, 1, options) for publishers in PUBLISHERS]
        groups.append(_measure(urls, 8, 100, options))
    return Table("backbone", "notifications/s", tuple(groups))


@contextmanager
def activemq() -> Iterator[str]:
    """The address of a private ActiveMQ while the block runs."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        command = [str(SCRIPT), "--folder", folder, "--stomp", "0", "--mqtt", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            ready = next((line for line in lines if line.startswith("ready ")), None)
            if ready is None:
                raise RuntimeError("ActiveMQ ended before it was ready")
            yield ready.removeprefix("ready ").strip()
        finally:
            process.terminate()
            process.communicate()


def _measure(urls: dict[str, str], publishers: int, messages: int, options: Options) -> tuple[Row, ...]:
    rates: dict[str, list[float]] = {name: [] for name in urls}
    for number in range(ROUNDS):
        progress(f"{publishers} publishers, {messages} a Notify, round {number + 1} of {ROUNDS}")
        for name, url in urls.items():
            rates[name].append(_load(url, publishers, options.seconds, messages))
    return tuple(
        Row(
            f"{name}, {publishers} pub." + (f" x {messages}" if messages > 1 else ""),
            statistics.median(seen),
            f"{min(seen):.0f} to {max(seen):.0f}",
        )
        for name, seen in rates.items()
    )


def _load(url: str, publishers: int, seconds: float, messages: int) -> float:
    arguments = [url, str(publishers), str(seconds), str(messages)]
    command = [sys.executable, "-m", "benchmarks.tools.publish", *arguments]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
