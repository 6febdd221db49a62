"""Large messages: 100 MB from node to node, with a second publisher at each node.

The publisher sends one message to the first node, and the consumer is at the second one. Each node has a
second publisher of 100 small notifications a second; its latency counts from the time at which a request is
due to its 202. A probe in each node notes how late the event loop is.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.frame import Check, Options, Row, Table, progress
from benchmarks.tools.load import Load
from benchmarks.tools.members import RunningMember, cluster, reach
from benchmarks.tools.probed_node import longest_stall
from benchmarks.tools.sink import Tally
from benchmarks.tools.steady_publisher import beside
from hpwsn_client.transport import routing_headers
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.topics.topic import Topic
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression

LIMITS = ("server.body_limit=256MiB", "routing.reassembly_bytes=512MiB")
TOPIC = "large"
LONGEST = 120
"""Seconds after which the message counts as lost."""
CASES = {
    "one cluster, text": ("one", "text", False),
    "one cluster, elements": ("one", "elements", False),
    "one cluster, reliable": ("one", "text", True),
    "two clusters, text": ("two", "text", False),
    "two clusters, reliable": ("two", "text", True),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one message took, and what it did to others."""

    seconds: float
    peaks: tuple[int, ...]
    latencies: list[float]
    stall: float
    changes: int

    def quantile(self, share: float) -> float:
        """A quantile of the second publishers' latencies in milliseconds."""
        ordered = sorted(self.latencies)
        return 1e3 * ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def note(self) -> str:
        """The figures beside the throughput."""
        quantiles = "/".join(f"{self.quantile(share):.0f}" for share in (0.5, 0.99, 1.0))
        peaks = "/".join(f"{peak >> 20}" for peak in self.peaks)
        return (
            f"{self.seconds:.1f} s, second publisher p50/p99/max {quantiles} ms,"
            f" longest stall {1e3 * self.stall:.0f} ms, peak memory {peaks} MiB,"
            f" {self.changes} state changes"
        )


def run(options: Options) -> Table:
    """Each case once, with new nodes."""
    size = options.sized(100, 4) * 1_000_000
    names = list(CASES)[:1] if options.quick else list(CASES)
    found = {}
    for name in names:
        progress(f"{size // 1_000_000} MB, {name}, round 1 of 1")
        found[name] = _measure(size, *CASES[name])
    return Table(
        "large messages",
        "MB/s",
        (tuple(Row(name, size / 1e6 / each.seconds, each.note()) for name, each in found.items()),),
        (
            Check("p99 of the second publishers", _each(found, 0.99), 100, "ms", at_most=True),
            Check("longest stall", tuple(1e3 * m.stall for m in found.values()), 100, "ms", at_most=True),
        ),
        ("peak memory is that of the first and the second node, about 80 MiB before the message",),
        "time, others, memory",
    )


def _each(found: dict[str, Measured], share: float) -> tuple[float, ...]:
    return tuple(measured.quantile(share) for measured in found.values())


def _measure(size: int, second: str, kind: str, reliable: bool) -> Measured:
    with ExitStack() as stack:
        settings = {"a": LIMITS, "b": LIMITS}
        members = stack.enter_context(cluster({"a": "one", "b": second}, settings, module="probed"))
        a, b = members["a"], members["b"]
        load = stack.enter_context(Load(Options()))
        tally = Tally()
        load.run(reach(b.url, TOPIC, load, tally, a.url))
        states = _states(a)
        latencies: list[float] = []
        for member in (a, b):
            stack.enter_context(beside(f"{member.url}/wsn", latencies))
        time.sleep(1.0)
        body = _body(size, kind, reliable)
        began = time.time()
        load.run(_send(f"{a.url}/wsn", body, tally))
        seconds = time.time() - began
        time.sleep(1.0)
        peaks = tuple(_peak(member.pid) for member in (a, b))
        stall = max(longest_stall(member.data, began) for member in (a, b))
        changes = sum(one != other for one, other in zip(states, _states(a), strict=True))
        stack.close()
    return Measured(seconds, peaks, latencies, stall, changes)


def _body(size: int, kind: str, reliable: bool) -> bytes:
    row = b"x" if kind == "text" else b"<r><v>12</v><w>abc</w></r>"
    payload = b"<a>" + row * (size // len(row)) + b"</a>"
    message = NotificationMessage(TopicExpression.of_message(Topic.parse(TOPIC)), payload)
    return encode_envelope(SoapVersion.SOAP11, encode_notify([message]), routing_headers(reliable, False))


async def _send(url: str, body: bytes, tally: Tally) -> None:
    """Publish one message, and wait until the consumer has it."""
    arrived, before = asyncio.Event(), tally.posts
    tally.on_change = lambda: arrived.set() if tally.posts > before else None
    async with asyncio.timeout(LONGEST):
        await asyncio.to_thread(_publish, url, body)
        await arrived.wait()


def _publish(url: str, body: bytes) -> None:
    with urlopen(Request(url, body, {"Content-Type": "text/xml; charset=utf-8"}), timeout=120) as answer:
        assert answer.status == 202


def _states(member: RunningMember) -> Sequence[tuple[str, str, float]]:
    """The state of each node at the admin node, and since when."""
    with urlopen(f"{member.url}/status", timeout=60) as answer:
        admin = json.load(answer)["cluster"]["admin"]
    with urlopen(f"{admin.rstrip('/')}/api/topology", timeout=60) as answer:
        clusters = json.load(answer)["clusters"]
    return [(node["name"], node["state"], node["since"]) for each in clusters for node in each["nodes"]]


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
