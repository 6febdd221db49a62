"""Backlog: memory of a node while a million notifications queue for a consumer that is down."""

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.frame import Options, Row, Table, figure, progress
from benchmarks.report import as_tables
from benchmarks.tools.nodes import start, stop
from hpwsn_client import SyncClient

TOTAL = 1_000_000
QUICK = 10_000
STEPS = 10
MESSAGES = 500


def run(options: Options) -> Table:
    """One subscription to a closed port, and a load until the backlog is complete."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        process, base = start(Path(folder) / "data", ["log.level=error"])
        node = psutil.Process(process.pid)
        with SyncClient(base + "/wsn") as client:
            client.subscribe("bench", "http://127.0.0.1:9/dead")
        rows = [Row("idle", node.memory_info().rss / 1e6)]
        total = options.sized(TOTAL, QUICK)
        for step in range(1, STEPS + 1):
            progress(f"{step * total // STEPS:,} of {total:,}")
            _publish_until(base, step * total // STEPS)
            rows.append(Row(f"{_waiting(base):,} queued", node.memory_info().rss / 1e6))
        stop(process)
    return Table("backlog", "MB", (tuple(rows),), body=body_of(rows))


def body_of(rows: Sequence[Row]) -> str:
    """The idle node, and the first, the middle and the last step; the plot has all."""
    shown = (rows[0], rows[1], rows[STEPS // 2], rows[-1])
    return as_tables(("backlog", row.name, "MB", figure(row.value)) for row in shown)


def _publish_until(base: str, count: int) -> None:
    while (left := count - _waiting(base)) > 0:
        requests = str(max(1, -(-left // MESSAGES)))
        command = [sys.executable, "-m", "benchmarks.tools.fill", f"{base}/wsn", requests, str(MESSAGES)]
        subprocess.run(command, check=True)


def _waiting(base: str) -> int:
    with urllib.request.urlopen(f"{base}/subscriptions") as answer:
        (subscription,) = json.load(answer)["items"]
    waiting: int = subscription["waiting"]
    return waiting
