"""Cluster: notifications per second between nodes and clusters, and the share delivered over a lossy network.

The publisher is at one node and the consumer at another. One node alone is measured in the same run. All
nodes share the cores of one machine. The delivery ratio is that of notifications of 20,000 bytes, three
datagrams each, through a relay that drops a share of the datagrams in both directions.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from benchmarks.frame import Options, Row, Table, figure, progress, take_turns
from benchmarks.report import as_tables, cell
from benchmarks.tools.load import Load
from benchmarks.tools.lossy_relay import LossyRelay
from benchmarks.tools.members import RunningMember, cluster, free_port, quiet, reach
from benchmarks.tools.messages import READING, payload, request
from benchmarks.tools.nodes import running
from benchmarks.tools.sink import Tally
from hpwsn_client import Client
from hpwsn_client.transport import routing_headers
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

PLACES = {"a": "one", "b": "one", "c": "two", "d": "three"}
LARGE = 300_000
SPLIT = 20_000
LOSSES = (0, 1, 5, 10)
ALONE, UDP, RELIABLE, CROSS, THREE = (
    "one node",
    "two nodes, UDP",
    "two nodes, reliable",
    "two clusters, TCP",
    "three clusters",
)
CONSUMERS = {ALONE: ("",), UDP: ("b",), RELIABLE: ("b",), CROSS: ("c",), THREE: ("c", "d")}


def run(options: Options) -> Table:
    """Each path in turns, for small and for large notifications; then the delivery ratios."""
    with ExitStack() as stack:
        load = stack.enter_context(Load(options))
        alone = stack.enter_context(running())
        members = stack.enter_context(cluster(PLACES))
        small = _rates(load, alone, members, READING, options)
        large = _rates(load, alone, members, payload(LARGE), options)
    groups = (small, tuple(_megabytes(row) for row in large), *_ratios(options))
    return Table("cluster", "notifications/s", groups, body=body_of(groups))


def body_of(groups: Sequence[Sequence[Row]]) -> str:
    """A table of the rates by path, and one of the delivery ratios by loss."""
    return as_tables(_cells(groups))


def _cells(groups: Sequence[Sequence[Row]]) -> Iterator[tuple[str, str, str, str]]:
    small, large, *ratios = groups
    for rate, size in zip(small, large, strict=True):
        yield "path", rate.name, "notifications/s", cell(rate)
        yield "path", rate.name, f"MB/s, {LARGE:,} bytes each", cell(size)
    for row in (row for group in ratios for row in group):
        kind, loss, _ = row.name.split(", ")
        yield "datagrams", loss, f"{kind}, % delivered", figure(row.value)


def _rates(
    load: Load, alone: str, members: dict[str, RunningMember], content: bytes, options: Options
) -> tuple[Row, ...]:
    candidates: dict[str, Callable[[], float]] = {}
    pid = members["a"].pid
    for number, (name, places) in enumerate(CONSUMERS.items()):
        topic = f"bench:c{number}s{len(content)}"
        urls = [members[place].url if place else alone for place in places]
        source = alone if name == ALONE else members["a"].url
        tallies = [Tally() for _ in urls]
        for url, tally in zip(urls, tallies, strict=True):
            load.run(reach(url, topic, load, tally, source))
        body = _envelope(topic, content, reliable=name == RELIABLE)
        posts = [request(f"{source}/wsn", body)]

        def measure(
            source: str = source, posts: list[bytes] = posts, tallies: list[Tally] = tallies
        ) -> float:
            return load.saturate(source, pid, posts, 1, tallies).rate

        candidates[name] = measure
    samples = take_turns(candidates, options.rounds, f"{len(content):,} bytes")
    return tuple(Row.of(name, samples[name]) for name in candidates)


def _envelope(topic: str, content: bytes, *, reliable: bool) -> bytes:
    expression = TopicExpression.of(Topic.parse(topic))
    body = encode_notify([NotificationMessage(expression, content)])
    return encode_envelope(SoapVersion.SOAP11, body, routing_headers(reliable, False))


def _megabytes(row: Row) -> Row:
    factor = LARGE / 1e6
    return Row(
        f"{row.name}, MB/s", row.value * factor, row.note, tuple(each * factor for each in row.samples)
    )


def _ratios(options: Options) -> tuple[tuple[Row, ...], ...]:
    """The share of notifications that arrive, by the share of datagrams that are lost."""
    count = options.sized(500, 50)
    with Load(options) as load, ExitStack() as stack:
        relays, settings = {}, {}
        for name in ("x", "y"):
            port = free_port()
            relays[name] = LossyRelay(("127.0.0.1", port))
            host, public = load.run(relays[name].start())
            settings[name] = (f"routing.port={port}", f"routing.public={host}:{public}")
        members = stack.enter_context(cluster({"x": "one", "y": "one"}, settings))
        tally = Tally()
        load.run(reach(members["y"].url, "loss", load, tally, members["x"].url))
        groups = []
        for reliable in (False, True):
            rows = []
            for loss in LOSSES:
                name = f"{'reliable' if reliable else 'UDP'}, {loss} % lost, % delivered"
                progress(name)
                for relay in relays.values():
                    relay.loss = loss / 100
                rows.append(Row(name, load.run(_delivered(members["x"].url, tally, count, reliable))))
            groups.append(tuple(rows))
        for relay in relays.values():
            load.run(relay.close())
    return tuple(groups)


async def _delivered(url: str, tally: Tally, count: int, reliable: bool) -> float:
    before, content = tally.notifications, payload(SPLIT)
    async with Client(f"{url}/wsn") as publisher:
        for _ in range(count):
            began = time.perf_counter()
            await publisher.notify("loss", content, reliable=reliable)
            await asyncio.sleep(max(0.0, 0.005 - (time.perf_counter() - began)))
        await quiet(tally)
    return 100 * (tally.notifications - before) / count
