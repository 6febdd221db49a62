"""JSON door: CPU time of a node to take in and to hand out an event, of one shape and of many.

    [HPWSN_BENCH_BEFORE=DIR] scripts/bench json-door

DIR is an older checkout, whose node takes turns with the node of this one; ratios are taken within a round.
Requests have 1,000 events of six fields. Pages of JSON have as many, pages of rows and of Arrow 10,000. A
sample is the user and system time of the node's process, divided by the events. In events of many shapes the
names of the fields and their order are random, so that hardly two events have the same shape.
"""

import asyncio
import http.client
import io
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.frame import Check, Options, Row, Table, take_turns
from benchmarks.tools.checkouts import Checkout, Process, running
from benchmarks.tools.cores import on_load_core, pinning_notes
from benchmarks.tools.raw_load import cpu_seconds

HERE = Path(__file__).parents[2]
BEFORE = "HPWSN_BENCH_BEFORE"
REQUEST, PAGE, LONG_PAGE = 1000, 1000, 10_000
ROWS, ARROW = "application/vnd.hpwsn.rows", "application/vnd.apache.arrow.stream"
JSON, NDJSON = "application/json", "application/x-ndjson"
FIELDS = ("camera", "time", "vehicles", "speed", "plate", "valid")
Events = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """How events travel; `pages` are the parameters of a GET, None where a form is for posting."""

    name: str
    content_type: str
    encode: Callable[[Events], bytes] | None = None
    pages: str | None = None
    since_before: bool = True
    """Whether older checkouts have it too."""


def _array(events: Events) -> bytes:
    return json.dumps(list(events), ensure_ascii=False).encode()


def _lines(events: Events) -> bytes:
    return b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events)


def _arrow(events: Events) -> bytes:
    batch = pa.RecordBatch.from_pylist(list(events))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


_COLUMNS = "&".join(f"column={name}" for name in FIELDS)
POSTS = (
    Form("post an array", JSON, _array),
    Form("post lines", NDJSON, _lines),
    Form("post Arrow", ARROW, _arrow, since_before=False),
)
READS = (
    Form("read JSON", JSON, pages=f"max={PAGE}"),
    Form("read rows", ROWS, pages=f"max={LONG_PAGE}&{_COLUMNS}", since_before=False),
    Form("read Arrow", ARROW, pages=f"max={LONG_PAGE}", since_before=False),
)


def events_of(count: int, *, alike: bool) -> list[dict[str, Any]]:
    """Events with the same fields, or each with fields of its own."""
    chosen = random.Random(17)
    found = []
    for number in range(count):
        values = [
            f"c{chosen.randrange(100)}",
            f"2016-08-01T06:{number // 60 % 60:02}:{number % 60:02}Z",
            chosen.randrange(50),
            round(chosen.uniform(0, 120), 2),
            "京B34C91",
            chosen.random() < 0.9,
        ]
        names = FIELDS if alike else [f"{name}{chosen.randrange(1000)}" for name in FIELDS]
        pairs = list(zip(names, values, strict=True))
        if not alike:
            chosen.shuffle(pairs)
        found.append(dict(pairs))
    return found


def _batched(events: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    for start in range(0, len(events), REQUEST):
        yield events[start : start + REQUEST]


class Node:
    """A running node, with events in two topics to read."""

    def __init__(self, process: Process, count: int) -> None:
        self._process = process
        self._count = count
        self._connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=60)
        self._events = {alike: events_of(count, alike=alike) for alike in (True, False)}
        for alike in (True, False):
            for _ in range(2):
                self._post(f"read-{alike}", [_lines(part) for part in _batched(self._events[alike])], NDJSON)

    def sample(self, form: Form, alike: bool) -> float:
        """CPU microseconds for an event."""
        if form.encode is None:
            return self._measured(lambda: self._read(form, alike))
        bodies = [form.encode(part) for part in _batched(self._events[alike])]
        return self._measured(lambda: self._post("written", bodies, form.content_type))

    def _measured(self, work: Callable[[], int]) -> float:
        began = cpu_seconds(self._process.pid)
        done = work()
        return 1e6 * (cpu_seconds(self._process.pid) - began) / done

    def _post(self, topic: str, bodies: Sequence[bytes], content_type: str) -> int:
        for body in bodies:
            self._ask("POST", f"/topics/{topic}/events", 202, body, {"Content-Type": content_type})
        return self._count

    def _read(self, form: Form, alike: bool) -> int:
        after, path = 0, f"/topics/read-{alike}/events?{form.pages}"
        end = int(self._ask("HEAD", f"/topics/read-{alike}/events", 200)["Hpwsn-After"])
        while after < end:
            answer = self._ask("GET", f"{path}&after={after}", 200, headers={"Accept": form.content_type})
            after = int(answer["Hpwsn-After"])
        return 2 * self._count

    def _ask(
        self, method: str, path: str, status: int, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> http.client.HTTPMessage:
        self._connection.request(method, path, body, dict(headers))
        response = self._connection.getresponse()
        text = response.read()
        if response.status != status:
            raise RuntimeError(f"{method} {path} was answered with {response.status}: {text[:500]!r}")
        return response.headers


@contextmanager
def _nodes(count: int) -> Iterator[dict[str, Node]]:
    checkouts = [Checkout("after", HERE)]
    if folder := os.environ.get(BEFORE):
        checkouts.insert(0, Checkout("before", Path(folder).resolve()))
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as data:
        stack = AsyncExitStack()
        try:
            found = {}
            for checkout in checkouts:
                checkout.check()
                place = Path(data) / checkout.name
                place.mkdir()
                process = runner.run(stack.enter_async_context(running(checkout, place, "serve")))
                found[checkout.name] = Node(process, count)
            yield found
        finally:
            runner.run(stack.aclose())


def run(options: Options) -> Table:
    """The nodes take turns with each form."""
    groups: list[tuple[Row, ...]] = []
    checks: list[Check] = []
    with on_load_core(), _nodes(options.sized(20_000, 2000)) as nodes:
        for alike in (True, False):
            for form in (*POSTS, *READS):
                if not alike and form.content_type in (ARROW, ROWS) and form.encode:
                    continue  # the columns of a batch are the same for all events
                rows = _measure(nodes, form, alike, options)
                groups.append(tuple(rows.values()))
                if len(rows) == 2:
                    checks.append(_check(form, alike, rows))
    return Table("json-door", "CPU µs/event", tuple(groups), tuple(checks), tuple(pinning_notes()))


def _measure(nodes: Mapping[str, Node], form: Form, alike: bool, options: Options) -> dict[str, Row]:
    calls = {
        name: partial(node.sample, form, alike)
        for name, node in nodes.items()
        if name == "after" or form.since_before
    }
    for call in calls.values():
        call()
    shape = "one shape" if alike else "many shapes"
    samples = take_turns(calls, options.rounds, f"{form.name}, {shape}")
    return {name: Row.of(f"{form.name}, {shape}, {name}", taken) for name, taken in samples.items()}


def _check(form: Form, alike: bool, rows: Mapping[str, Row]) -> Check:
    """How many times cheaper an event is than before."""
    target = 1.0 if not alike else 3.0 if form.encode else 6.0
    shape = "one shape" if alike else "many shapes"
    return Check.ratio(f"{form.name}, {shape}, before against after", rows["before"], rows["after"], target)
