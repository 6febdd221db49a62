"""Traces six paths through a node that runs in this process, and prints the traces as JSON.

`python -m benchmarks.tools.traced_paths TREE`, with the packages of TREE first on PYTHONPATH. Of them it uses
only `python -m hpwsn serve`, `python -m hpwsn admin` and `hpwsn.node.Node` with `start` and `close`, so other
modules may move. Each node has a thread with its own event loop; the driver has other threads. A trace ends
when nothing was called for a while. Of several traces the one with the fewest calls is kept, since the others
may hold timers of the node.
"""

import asyncio
import json
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uvloop

import hpwsn.node
from benchmarks.frame import progress
from benchmarks.tools.call_trace import CallRecorder, Trace
from benchmarks.tools.plain_http import PATIENCE, Caller, Consumer, EventReader, free_port
from benchmarks.tools.structure import PACKAGES

WARM, REPETITIONS = 20, 9
IDLE = 3.0
"""Seconds in which a node that has nothing to do shows what it does by the clock."""
QUIET = 0.4
"""Seconds without a call, after which a message has gone all its way; cursors are saved after 0.2 s."""
SOAP = "text/xml; charset=utf-8"

_NAMES = (
    'xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:w="http://docs.oasis-open.org/wsn/b-2"'
    ' xmlns:a="http://www.w3.org/2005/08/addressing"'
)
_SIMPLE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple"
_XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"
_SECRET = "cluster.secret=the secret of the benchmark"


class _Configured(Exception):
    """The command line has made a configuration and would build a node with it."""


def node_arguments(*arguments: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and named arguments of the node that `hpwsn serve` would build."""

    def init(node: object, *given: object, **named: object) -> None:
        raise _Configured(given, named)

    command = ["hpwsn", "serve", "--set", "log.level=error", *arguments]
    with patch.object(hpwsn.node.Node, "__init__", init), patch.object(sys, "argv", command):
        try:
            runpy.run_module("hpwsn", run_name="__main__", alter_sys=False)
        except _Configured as found:
            given, named = found.args
            return given, named
    raise RuntimeError("hpwsn serve ended without building a node")


class HostedNode:
    """A node in a thread of this process."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.port = free_port()
        self._given, self._named = node_arguments("--port", str(self.port), "--data", str(data), *arguments)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Build and start the node."""
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE)

    async def _start(self) -> None:
        self._node = hpwsn.node.Node(*self._given, **self._named)
        await self._node.start()

    def close(self) -> None:
        """Stop the node and end the thread."""
        asyncio.run_coroutine_threadsafe(self._node.close(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def hosted(data: Path, *arguments: str) -> Iterator[HostedNode]:
    """A node that has started."""
    node = HostedNode(data, *arguments)
    node.start()
    try:
        yield node
    finally:
        node.close()


def envelope(body: str) -> str:
    """A SOAP 1.1 envelope."""
    return f"<s:Envelope {_NAMES}><s:Body>{body}</s:Body></s:Envelope>"


def notify(number: int) -> str:
    """A Notify with one message."""
    return envelope(
        f'<w:Notify><w:NotificationMessage><w:Topic Dialect="{_SIMPLE}">house</w:Topic><w:Message>'
        f"<reading><number>{number:06}</number><value>21.5</value></reading>"
        "</w:Message></w:NotificationMessage></w:Notify>"
    )


def subscribe(consumer: str, topic: str = "house", content: str = "") -> str:
    """A Subscribe to a topic, with an XPath condition where one is given."""
    condition = f'<w:MessageContent Dialect="{_XPATH}">{content}</w:MessageContent>' if content else ""
    return envelope(
        f"<w:Subscribe><w:ConsumerReference><a:Address>{consumer}</a:Address></w:ConsumerReference><w:Filter>"
        f'<w:TopicExpression Dialect="{_SIMPLE}">{topic}</w:TopicExpression>{condition}'
        "</w:Filter></w:Subscribe>"
    )


def add_subscription(node: HostedNode, consumer: Consumer, topic: str = "house") -> None:
    """Have a consumer subscribed to a topic."""
    with closing(Caller(node.port)) as caller:
        caller.post("/wsn", SOAP, subscribe(consumer.url, topic))


class Tracer:
    """Traces what one message causes, or one request."""

    def __init__(self, recorder: CallRecorder, folder: Path) -> None:
        self._recorder = recorder
        self._folder = folder

    def least(self, act: Callable[[int], None], warm: int = WARM) -> Trace:
        """The trace with the fewest calls of several; `act` gets the number of the repetition."""
        for number in range(warm):
            act(number)
        self._settle()
        self._recorder.begin()
        time.sleep(IDLE)
        self._recorder.learn()
        return min((self._one(act, warm + each) for each in range(REPETITIONS)), key=lambda one: one.calls)

    def _one(self, act: Callable[[int], None], number: int) -> Trace:
        self._recorder.begin()
        act(number)
        self._settle()
        return self._recorder.end()

    def _settle(self) -> None:
        """Wait until nothing is called."""
        before, end = -1, time.monotonic() + PATIENCE
        while before != (before := self._recorder.calls) and time.monotonic() < end:
            time.sleep(QUIET)

    def push(self, *arguments: str) -> Trace:
        """A Notify to one push consumer."""
        with (
            Consumer() as consumer,
            hosted(self._folder / "push", *arguments) as node,
            closing(Caller(node.port)) as caller,
        ):
            add_subscription(node, consumer)
            return self.least(lambda number: self._publish(caller, consumer, number))

    def _publish(self, caller: Caller, consumer: Consumer, number: int) -> None:
        caller.post("/wsn", SOAP, notify(number))
        if not consumer.holds(f"<number>{number:06}</number>"):
            raise RuntimeError("the notification did not come")

    def subscription(self) -> Trace:
        """A Subscribe with a topic and an XPath condition; no two conditions are equal."""
        with (
            Consumer() as consumer,
            hosted(self._folder / "subscribe") as node,
            closing(Caller(node.port)) as caller,
        ):

            def act(number: int) -> None:
                condition = f"number(value) &gt; {number}"
                caller.post("/wsn", SOAP, subscribe(consumer.url, content=condition))

            return self.least(act)

    def events(self) -> Trace:
        """A POST of JSON to one reader of server-sent events."""
        path = "/topics/house/events"

        def act(number: int) -> None:
            caller.post(path, "application/json", json.dumps({"number": f"n{number:06}", "value": 21.5}))
            if not reader.holds(f"n{number:06}"):
                raise RuntimeError("the event did not come")

        with (
            hosted(self._folder / "events") as node,
            closing(Caller(node.port)) as caller,
            closing(EventReader(node.port, path)) as reader,
        ):
            reader.holds(": after")
            return self.least(act)

    def cluster(self) -> Trace:
        """A Notify at one node to a push consumer of another one, which it reaches by UDP."""
        with ExitStack() as stack:
            admin = stack.enter_context(_admin(self._folder / "admin"))
            joining = ("--cluster", "one", "--admin", admin, "--set", _SECRET)
            near, far = (
                stack.enter_context(hosted(self._folder / name, "--name", name, *joining))
                for name in ("near", "far")
            )
            consumer = stack.enter_context(Consumer())
            add_subscription(far, consumer)
            caller = stack.enter_context(closing(Caller(near.port)))
            # Until the near node knows of the subscription, it has no reason to send anything to the far one.
            for number in range(900_000, 900_000 + int(PATIENCE / 0.2)):
                caller.post("/wsn", SOAP, notify(number))
                if consumer.holds(f"<number>{number:06}</number>", 0.2):
                    break
            return self.least(lambda number: self._publish(caller, consumer, number))

    def restart(self) -> Trace:
        """The start of a node whose data directory holds one subscription, each time another one."""
        return min((self._restart(number) for number in range(REPETITIONS)), key=lambda one: one.calls)

    def _restart(self, number: int) -> Trace:
        data = self._folder / f"restart{number}"
        with Consumer() as consumer, hosted(data) as node:
            add_subscription(node, consumer, f"house{number}")
        node = HostedNode(data)
        try:
            return self._one(lambda _: node.start(), number)
        finally:
            node.close()


@contextmanager
def _admin(data: Path) -> Iterator[str]:
    """The address of an admin node, which is a process of its own and sends hardly a heartbeat."""
    settings = ("--set", _SECRET, "--set", "cluster.heartbeat=60", "--set", "log.level=error")
    command = [sys.executable, "-m", "hpwsn", "admin", "--port", "0", "--data", str(data), *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("ready ").strip().rstrip("/")
        finally:
            process.terminate()


PATHS: Mapping[str, Callable[[Tracer], Trace]] = {
    "ordinary Notify to one push": Tracer.push,
    "the same through the full parser": lambda tracer: tracer.push("--set", "server.fast_lane=false"),
    "Subscribe with topic and XPath": Tracer.subscription,
    "JSON POST to one SSE reader": Tracer.events,
    "node A by UDP to node B to one push": Tracer.cluster,
    "restart, one subscription": Tracer.restart,
}


def trace_path(tree: Path, path: Callable[[Tracer], Trace]) -> Trace:
    """The trace of one path through the nodes of a checkout."""
    recorder = CallRecorder([tree / package for package in PACKAGES])
    recorder.install()
    with tempfile.TemporaryDirectory(prefix="hpwsn-bench-") as folder:
        return path(Tracer(recorder, Path(folder)))


def as_fields(trace: Trace) -> dict[str, Any]:
    """The figures of a trace, and how often each module was entered."""
    return {
        "calls": trace.calls,
        "module changes": trace.changes,
        "modules": trace.modules,
        "entered": dict(trace.entered),
    }


def main(tree: Path) -> int:
    """Trace all paths."""
    if not Path(hpwsn.node.__file__).is_relative_to(tree):
        print(f"error: hpwsn.node is {hpwsn.node.__file__}; put {tree} on PYTHONPATH", file=sys.stderr)
        return 1
    found = {}
    for name, path in PATHS.items():
        progress(name)
        found[name] = as_fields(trace_path(tree, path))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
