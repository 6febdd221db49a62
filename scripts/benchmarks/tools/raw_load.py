"""A load of prepared bytes, and receivers for it, that know a node by its protocols alone.

It imports nothing of HPwsn: nodes of different checkouts get the same bytes from the same code. A load is a
fixed number of notifications over kept-alive, pipelined connections. It ends when the node has answered each
request with 202 and each receiver has each notification exactly once; anything else is a LoadError.
"""

import asyncio
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

CONNECTIONS = 8
PIPELINE = 8
"""Requests on one connection that wait for their answers."""
UNDER_WAY = 1024
"""Notifications between the publishers and the receivers, so that no backlog grows with the load."""
LONGEST = 60.0
"""Seconds that one load may take before it counts as stuck."""
SETTLE = 0.05
"""Seconds after the last answer in which the node's work still counts, and a duplicate is noticed."""
DIFFERENT = 61
"""Requests that are sent in turn."""
TOPIC = "bench/compare"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_PAYLOAD_END = b"</m:reading>"
_EVENT = b"\ndata: "
_CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
_SOAP = 'Content-Type: text/xml; charset=utf-8\r\nSOAPAction: "http://docs.oasis-open.org/wsn/bw-2/{}"'
_ENVELOPE = (
    '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>'
    "{}</soap:Body></soap:Envelope>"
)
_NOTIFY = '<wsnt:Notify xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">{}</wsnt:Notify>'
_MESSAGE = (
    f'<wsnt:NotificationMessage><wsnt:Topic Dialect="{_CONCRETE}">{TOPIC}</wsnt:Topic><wsnt:Message>'
    '<m:reading xmlns:m="urn:example:sensors"><m:sensor>{sensor}</m:sensor>'
    "<m:quantity>{quantity}</m:quantity><m:value>{value}</m:value><m:unit>{unit}</m:unit><m:time>{time}</m:time></m:reading>"
    "</wsnt:Message></wsnt:NotificationMessage>"
)
_SUBSCRIBE = (
    '<wsnt:Subscribe xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">'
    '<wsnt:ConsumerReference><wsa:Address xmlns:wsa="http://www.w3.org/2005/08/addressing">{}</wsa:Address>'
    "</wsnt:ConsumerReference><wsnt:Filter>"
    f'<wsnt:TopicExpression Dialect="{_CONCRETE}">{TOPIC}</wsnt:TopicExpression>'
    "</wsnt:Filter></wsnt:Subscribe>"
)


class LoadError(Exception):
    """A load did not end as it must, so that its measurement means nothing."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests with so many notifications each, and how many may wait at a time."""

    requests: tuple[bytes, ...]
    messages: int
    connections: int = CONNECTIONS
    pipeline: int = PIPELINE
    under_way: int = UNDER_WAY


@dataclass(frozen=True, slots=True)
class Sample:
    """The node's CPU time for one load and the time that the load took, both in seconds."""

    cpu: float
    seconds: float


def notify_requests(messages: int) -> tuple[bytes, ...]:
    """Notify requests in SOAP 1.1; no two readings are equal."""
    bodies = ("".join(_MESSAGE.format(**each) for each in readings) for readings in _readings(messages))
    headers = _SOAP.format("NotificationConsumer/Notify")
    return tuple(request("POST", "/wsn", headers, _ENVELOPE.format(_NOTIFY.format(body))) for body in bodies)


def traced_requests(messages: int) -> tuple[bytes, ...]:
    """The same requests, each with another W3C traceparent, as an instrumented client sends them."""
    traces = (f"00-{number:032x}-{number:016x}-01" for number in range(1, DIFFERENT + 1))
    lines = (f"\r\ntraceparent: {trace}\r\nContent-Length".encode() for trace in traces)
    requests = zip(notify_requests(messages), lines, strict=True)
    return tuple(plain.replace(b"\r\nContent-Length", line, 1) for plain, line in requests)


def event_requests(messages: int) -> tuple[bytes, ...]:
    """The same readings as JSON: an object, or an array where there are several."""
    path = f"/topics/{TOPIC.replace('/', ':')}/events"
    bodies = (json.dumps(readings[0] if messages == 1 else readings) for readings in _readings(messages))
    return tuple(request("POST", path, "Content-Type: application/json", body) for body in bodies)


def _readings(messages: int) -> Iterator[list[dict[str, str | float]]]:
    for number in range(DIFFERENT):
        yield [_reading(each) for each in range(number * messages, (number + 1) * messages)]


def _reading(number: int) -> dict[str, str | float]:
    return {
        "sensor": f"hall-{number * 13 % 2000}",
        "quantity": "temperature",
        "value": number * 7 % 130 + number % 10 / 10,
        "unit": "Cel",
        "time": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
    }


def request(method: str, path: str, headers: str, body: str = "") -> bytes:
    """A request as it goes over the wire."""
    content = body.encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def subscribe_request(consumer: str) -> bytes:
    """A Subscribe of the consumer at an address to the topic of the load."""
    headers = _SOAP.format("NotificationProducer/SubscribeRequest")
    return request("POST", "/wsn", headers, _ENVELOPE.format(_SUBSCRIBE.format(consumer)))


class Framer:
    """Cuts a byte stream into HTTP messages whose bodies have a Content-Length, or are empty."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The heads and bodies that are complete now."""
        if self._parts:
            self._parts.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return []
            data = b"".join(self._parts)
            self._parts.clear()
        found, start = [], 0
        while start < len(data):
            head = data.find(b"\r\n\r\n", start)
            length = _LENGTH.search(data, start, head) if head >= 0 else None
            end = head + 4 + (int(length[1]) if length else 0) if head >= 0 else len(data) + 1
            if end > len(data):
                self._parts.append(data[start:])
                self._missing = end - len(data)
                break
            found.append((data[start:head], data[head + 4 : end]))
            start = end
        return found


class Receipts:
    """How many notifications each receiver of one node has got."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.total = 0
        self.on_change: Callable[[], None] = lambda: None

    def join(self) -> int:
        """The number of a new receiver."""
        self.counts.append(0)
        return len(self.counts) - 1

    def add(self, receiver: int, count: int) -> None:
        """A receiver has got so many more."""
        self.counts[receiver] += count
        self.total += count
        self.on_change()


class Consumer(asyncio.Protocol):
    """One connection of a node to a push consumer, which counts and answers 202."""

    def __init__(self, receipts: Receipts, receiver: int) -> None:
        self._receipts, self._receiver = receipts, receiver
        self._framer = Framer()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        if requests := self._framer.feed(data):
            self._transport.write(ACCEPTED * len(requests))
            self._receipts.add(self._receiver, sum(body.count(_PAYLOAD_END) for _, body in requests))


class Reader(asyncio.Protocol):
    """A reader of server-sent events; `began` is done once it misses nothing any more."""

    def __init__(self, receipts: Receipts, receiver: int) -> None:
        self._receipts, self._receiver = receipts, receiver
        self._tail = b""
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        path = f"/topics/{TOPIC.replace('/', ':')}/events"
        cast(asyncio.Transport, transport).write(request("GET", path, "Accept: text/event-stream"))

    def data_received(self, data: bytes) -> None:
        """Count events; the tail is too short to hold a mark that was counted before."""
        data = self._tail + data
        if not self.began.done():
            if b"\n: after " not in data:
                self._tail = data
                return
            self.began.set_result(None)
        self._tail = data[1 - len(_EVENT) :]
        if count := data.count(_EVENT):
            self._receipts.add(self._receiver, count)

    def connection_lost(self, error: Exception | None) -> None:
        """A reader that waits for its stream is told; one that misses events is noticed by its count."""
        if not self.began.done():
            self.began.set_exception(
                LoadError(f"the node closed a reader's connection: {self._tail[:300]!r}")
            )


class Flow:
    """One load under way: what was sent, answered and received; `done` ends it."""

    def __init__(self, load: Load, notifications: int, receipts: Receipts) -> None:
        self._load, self._receipts = load, receipts
        self._requests = itertools.cycle(load.requests)
        self._left = self._unanswered = notifications // load.messages
        self._before = list(receipts.counts)
        self._base = receipts.total
        self._notifications = notifications
        self.publishers: list[Publisher] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def pump(self) -> None:
        """Send what may be sent now, and see whether all is done."""
        room = self._room()
        for publisher in self.publishers:
            count = min(publisher.free, room, self._left)
            if count > 0:
                publisher.free -= count
                room -= count
                self._left -= count
                publisher.transport.write(b"".join(itertools.islice(self._requests, count)))
        if not self._unanswered and self._received() >= self._notifications and not self.done.done():
            self.done.set_result(None)

    def _received(self) -> int:
        """Notifications that the receivers have on average."""
        if not self._before:
            return self._notifications
        return (self._receipts.total - self._base) // len(self._before)

    def _room(self) -> int:
        if not self._before:
            return self._left
        sent = self._notifications - self._left * self._load.messages
        return max(0, self._load.under_way - (sent - self._received())) // self._load.messages

    def answered(self, count: int) -> None:
        """So many requests were accepted."""
        self._unanswered -= count
        self.pump()

    def failed(self, reason: str) -> None:
        """End the load with an error."""
        if not self.done.done():
            self.done.set_exception(LoadError(reason))

    def check(self) -> None:
        """Raise a LoadError unless each receiver has each notification once."""
        pairs = zip(self._receipts.counts, self._before, strict=True)
        got = [count - before for count, before in pairs]
        if wrong := [count for count in got if count != self._notifications]:
            raise LoadError(
                f"{len(wrong)} of {len(got)} receivers got another number of notifications than the"
                f" {self._notifications} that were published, such as {wrong[0]}"
            )

    def progress(self) -> str:
        """How far the load has come, for an error."""
        sent = f"{self._notifications // self._load.messages - self._unanswered} requests answered"
        return f"{sent}, {self._unanswered} not; receivers have {self._received()} of {self._notifications}"


class Publisher(asyncio.Protocol):
    """One kept-alive connection of a flow."""

    def __init__(self, flow: Flow, pipeline: int) -> None:
        self._flow = flow
        self._framer = Framer()
        self.free = pipeline

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Count the answers, and let as many requests follow."""
        answers = self._framer.feed(data)
        for head, body in answers:
            if not head.startswith(b"HTTP/1.1 202 "):
                self._flow.failed(f"the node refused a request: {(head + b' ' + body)[:400]!r}")
                return
        self.free += len(answers)
        self._flow.answered(len(answers))

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._flow.failed(f"the node closed a publisher's connection ({error or 'without an error'})")


async def measure(pid: int, port: int, load: Load, notifications: int, receipts: Receipts) -> Sample:
    """Publish so many notifications, a multiple of those in a request; connecting is not measured."""
    flow = Flow(load, notifications, receipts)
    loop = asyncio.get_running_loop()
    try:
        for _ in range(load.connections):
            made = await loop.create_connection(lambda: Publisher(flow, load.pipeline), "127.0.0.1", port)
            flow.publishers.append(made[1])
        await _settled(pid)
        receipts.on_change = flow.pump
        began, cpu = time.perf_counter(), cpu_seconds(pid)
        flow.pump()
        async with asyncio.timeout(LONGEST):
            await flow.done
        taken = time.perf_counter() - began
        await asyncio.sleep(SETTLE)
        sample = Sample(cpu_seconds(pid) - cpu, taken)
    except TimeoutError:
        raise LoadError(f"the load did not end within {LONGEST:g} s: {flow.progress()}") from None
    except OSError as error:
        raise LoadError(f"the node takes no connections: {error}") from error
    finally:
        receipts.on_change = lambda: None
        flow.done.cancel()
        for publisher in flow.publishers:
            publisher.transport.abort()
    flow.check()
    return sample


async def _settled(pid: int, longest: float = 2.0) -> None:
    """Wait until the node has done what an earlier load left to it."""
    end = time.perf_counter() + longest
    before = cpu_seconds(pid)
    while time.perf_counter() < end:
        await asyncio.sleep(SETTLE)
        now = cpu_seconds(pid)
        if now - before < SETTLE / 10:
            return
        before = now


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads; finer than the 10 ms of /proc/PID/stat.

    The clock's number is what clock_getcpuclockid(3) computes, which Python has no function for.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        raise LoadError(f"the process {pid} has ended") from None


async def exchange(port: int, data: bytes, wanted: bytes) -> bytes:
    """The body of the answer to one request, whose status must be the one that is wanted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        framer = Framer()
        async with asyncio.timeout(LONGEST):
            while received := await reader.read(1 << 16):
                for head, body in framer.feed(received):
                    if not head.startswith(b"HTTP/1.1 " + wanted):
                        raise LoadError(f"the server refused a request: {(head + b' ' + body)[:400]!r}")
                    return body
        raise LoadError("the server closed the connection without an answer")
    except TimeoutError:
        raise LoadError(f"the server did not answer within {LONGEST:g} s") from None
    finally:
        writer.close()


async def add_consumers(port: int, count: int, receipts: Receipts) -> list[asyncio.Server]:
    """Start push consumers, each at a port of its own, and subscribe them at the node."""
    loop = asyncio.get_running_loop()
    servers: list[asyncio.Server] = []
    for receiver in [receipts.join() for _ in range(count)]:
        server = await loop.create_server(
            lambda receiver=receiver: Consumer(receipts, receiver),  # type: ignore[misc]
            "127.0.0.1",
            0,
        )
        servers.append(server)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await exchange(port, subscribe_request(address), b"200 ")
    return servers


async def add_readers(port: int, count: int, receipts: Receipts) -> list[asyncio.Transport]:
    """Open streams of server-sent events; when this returns, they miss nothing."""
    loop = asyncio.get_running_loop()
    transports: list[asyncio.Transport] = []
    for receiver in [receipts.join() for _ in range(count)]:
        transport, reader = await loop.create_connection(
            lambda receiver=receiver: Reader(receipts, receiver),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
        transports.append(transport)
        async with asyncio.timeout(LONGEST):
            await reader.began
    return transports
