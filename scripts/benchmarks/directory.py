"""Directory: time to load 10,000 topics from OpenLDAP, and from an LDAP change until a node applies it."""

import http.client
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ldap

from benchmarks.frame import Options, Row, Table, progress
from benchmarks.tools.nodes import running
from hpwsn.topics.directory.directory import Access, Declaration, Directory
from hpwsn.topics.opening import open_directory
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.topics.topic_expressions import Topic

ROOT = Path(__file__).resolve().parents[2]
ADMIN = "cn=admin,dc=hpwsn"
BASE = "ou=topics,dc=hpwsn"
TOPICS = 10_000
MOST_CHANGES = 500


def run(options: Options) -> Table:
    """Fills a private server, loads from it, then changes it while a node runs."""
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder, _slapd(Path(folder)) as url:
        access = Access(bind_dn=ADMIN, password_file=f"{folder}/password")
        directory = open_directory(url, access)
        _fill(directory)
        loads = _loads(directory, options.seconds)
        progress("starting a node on it")
        with running([f"topics.url={url}"]) as base:
            changes = _changes(url, f"{folder}/password", base, options.seconds)
    return Table(f"directory, {TOPICS:,} topics", "ms", (loads, *changes))


@contextmanager
def _slapd(folder: Path) -> Iterator[str]:
    command = [str(ROOT / "scripts" / "slapd"), "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = next((line for line in process.stdout if line.startswith("ready ")), "")
        if not ready:
            raise RuntimeError("scripts/slapd ended before it was ready")
        try:
            yield ready.removeprefix("ready ").strip()
        finally:
            process.terminate()


def _fill(directory: Directory) -> None:
    progress(f"writing {TOPICS:,} topics")
    leaves = (f"A{number % 10}:B{number // 10 % 10}:C{number}" for number in range(TOPICS - 110))
    directory.replace(Declaration(Topic.parse(leaf)) for leaf in leaves)


def _loads(directory: Directory, seconds: float) -> tuple[Row, ...]:
    progress("loading them")
    times: list[float] = []
    end = time.perf_counter() + max(seconds, 0.1)
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        tree: TopicTree[str] = TopicTree(directory.load(), fixed=True)
        times.append(time.perf_counter() - began)
    assert len(tree) == TOPICS
    return Row("load, best", min(times) * 1e3, f"{len(times)} loads"), Row("load, worst", max(times) * 1e3)


def _changes(url: str, password_file: str, base: str, seconds: float) -> list[tuple[Row, ...]]:
    """Milliseconds from before an LDAP request until the node accepts or rejects a notification by it."""
    parts = urlsplit(url)
    connection = ldap.initialize(f"{parts.scheme}://{parts.netloc}")
    connection.simple_bind_s(ADMIN, Path(password_file).read_text())
    node = http.client.HTTPConnection(urlsplit(base).netloc)
    times: dict[str, list[float]] = {"added": [], "renamed": [], "deleted": []}
    progress("changing them while the node runs")
    end = time.perf_counter() + max(seconds, 0.1) * 3
    for number in range(MOST_CHANGES):
        if time.perf_counter() > end:
            break
        _one_round(connection, node, number, times)
    return [_percentiles(name, sorted(found)) for name, found in times.items()]


def _one_round(
    connection: Any, node: http.client.HTTPConnection, number: int, times: dict[str, list[float]]
) -> None:
    old, new = f"cn=N{number},{BASE}", f"cn=M{number},{BASE}"
    entry = [("objectClass", [b"hpwsnTopic"]), ("cn", [f"N{number}".encode()])]
    steps: tuple[tuple[str, Callable[[], object], str, bool], ...] = (
        ("added", lambda: connection.add_s(old, entry), f"N{number}", True),
        ("renamed", lambda: connection.modrdn_s(old, f"cn=M{number}"), f"M{number}", True),
        ("deleted", lambda: connection.delete_s(new), f"M{number}", False),
    )
    for name, change, topic, there in steps:
        began = time.perf_counter()
        change()
        while _is_taken(node, topic) is not there:
            pass
        times[name].append((time.perf_counter() - began) * 1e3)


def _is_taken(node: http.client.HTTPConnection, topic: str) -> bool:
    node.request("POST", f"/topics/{topic}/events", b"{}", {"Content-Type": "application/json"})
    answer = node.getresponse()
    answer.read()
    return answer.status == 202


def _percentiles(name: str, times: list[float]) -> tuple[Row, ...]:
    def at(share: float) -> float:
        return times[min(len(times) - 1, int(share * len(times)))]

    return (
        Row(f"{name}, in force, p50", at(0.5), f"{len(times)} changes"),
        Row(f"{name}, in force, p95", at(0.95)),
        Row(f"{name}, in force, p99", at(0.99)),
        Row(f"{name}, in force, max", times[-1]),
    )
