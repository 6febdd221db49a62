"""Notifications as the node carries them: as runs, from the door through the journal to every queue.

A Run holds notifications that differ in their payloads only; a single notification is a run of one. Doors
make runs, admission completes them (topic object, time, routing), the backbone carries them, the journal
stores them, and commit listeners get them. A Notification is one member of a run, made for those who need
it alone: where nobody does, a hundred notifications cost little more than one.

The content of a notification is the wire form that deliveries are joined from: Topic, ProducerReference and
Message (hpwsn_client.wsn.operations.notifications). A run keeps it in two parts: what stands before each
payload, and all payloads with END behind each. MESSAGE_CLOSE follows every payload.

A trace is the publisher's W3C trace context (hpwsn_client.wsn.soap.trace_context). Where a notification is
stored or travels, its trace is a *mark*: an XML comment in front of the content. So no format has a field
for it, and an earlier version, which does not know the mark, hands it on as a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.soap.trace_context import TRACE
from hpwsn_client.wsn.topics.topic_expressions import Topic

RELIABLE = 1
"""Other nodes must get it, whatever the routing policy would have chosen."""
PARTIAL = 2
"""Other nodes may hand out its pieces one by one."""
ORIGINAL = 4
"""It came from a node of the original HPwsn, and is not sent to any from here."""
FOREIGN = 8
"""It came from another node, and is not sent on to a further one from here."""

INTERNAL = ":internal"
"""In place of a pull point as the target of what was accepted on an internal topic, which only jobs read."""

END = b"\x1e"
"""Behind each payload of a run: a control character that XML does not allow."""

ROW_MEMBERS = 128
"""Notifications in one row of the log; the journal cuts longer runs."""
ROW_BYTES = 256 << 10
"""Bytes of payloads in one row of the log."""
LARGE = 1 << 20
"""Bytes of a payload from which on a notification is large: threads work on it, and it has a file."""

_new = tuple.__new__
_mark = re.compile(rb"<!--(%b) -->" % TRACE.encode()).match
LONGEST_MARK = 1024
"""Bytes in which a mark has its end."""


class Notification(NamedTuple):
    """One member of a run; `start` and `end` mark the payload inside `content`."""

    topic: Topic | None
    content: bytes
    start: int
    end: int
    time: float
    message_id: str | None = None
    target: str | None = None
    routing: int = 0
    """How it travels between nodes: the sum of RELIABLE, PARTIAL, ORIGINAL and FOREIGN."""
    trace: str | None = None

    @property
    def payload(self) -> bytes:
        """The payload element, self-contained."""
        return self.content[self.start : self.end]


class Run:
    """Notifications that differ in their payloads only, in order.

    `target` is None for what everybody may get, else a pull point posted to directly, or INTERNAL.

    `message_id` is the idempotency key of the whole request. Only admission changes a run, before its append.
    """

    __slots__ = (
        "_members",
        "before",
        "message_id",
        "payloads",
        "routing",
        "size",
        "target",
        "time",
        "topic",
        "trace",
    )
    large = False
    """Whether this is a LargeRun."""

    def __init__(
        self,
        topic: Topic | None,
        before: bytes,
        payloads: bytes,
        size: int,
        time: float = 0.0,
        message_id: str | None = None,
        target: str | None = None,
        routing: int = 0,
        trace: str | None = None,
    ) -> None:
        self.topic = topic
        self.before = before
        self.payloads = payloads
        self.size = size
        self.time = time
        self.message_id = message_id
        self.target = target
        self.routing = routing
        self.trace = trace
        self._members: list[Notification] | None = None

    @classmethod
    def of(cls, notification: Notification) -> Run:
        """A single notification as a run; its content must end with MESSAGE_CLOSE (ValueError)."""
        topic, content, start, end, time, message_id, target, routing, trace = notification
        if content[end:] != MESSAGE_CLOSE or END in content:
            raise ValueError("the content of a notification does not end with its payload and </Message>")
        before, payloads = content[:start], content[start:end] + END
        return cls(topic, before, payloads, 1, time, message_id, target, routing, trace)

    @property
    def members(self) -> list[Notification]:
        """The single notifications; made once, when first asked for."""
        if self._members is None:
            topic, before, start = self.topic, self.before, len(self.before)
            rest = self.time, self.message_id, self.target, self.routing, self.trace
            self._members = [
                _new(Notification, (topic, before + each + MESSAGE_CLOSE, start, start + len(each), *rest))
                for each in split_payloads(self.payloads)
            ]
        return self._members

    @property
    def first(self) -> Notification:
        """The first notification."""
        return self.members[0]

    @property
    def content_size(self) -> int:
        """The bytes of all contents."""
        # In a run END is behind each payload, in place of what a content has around it.
        return len(self.payloads) + (len(self.before) + len(MESSAGE_CLOSE) - len(END)) * self.size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Notification]:
        return iter(self.members)

    def continues(self, run: Run) -> bool:
        """Whether this run, which comes next, can be added to that one with no difference to anybody."""
        return (
            self.topic is run.topic
            and self.message_id is None is run.message_id
            and self.target is run.target
            and (run.target is None or run.target is INTERNAL)
            and self.routing == run.routing
            and self.trace == run.trace
            and self.before == run.before
        )

    def extend(self, runs: Sequence[Run]) -> None:
        """Add the payloads of runs that continue this one."""
        self.payloads = b"".join((self.payloads, *[run.payloads for run in runs]))
        self.size += count_of(runs)
        self._members = None


class LargeRun(Run):
    """One large notification: its content is in memory once, and its payload is copied when asked for."""

    __slots__ = ("content", "file")
    large = True

    def __init__(
        self,
        topic: Topic | None,
        content: bytes,
        start: int,
        time: float = 0.0,
        message_id: str | None = None,
        target: str | None = None,
        routing: int = 0,
        trace: str | None = None,
    ) -> None:
        self.topic = topic
        self.before = content[:start]
        self.content = content
        self.size = 1
        self.time = time
        self.message_id = message_id
        self.target = target
        self.routing = routing
        self.trace = trace
        self._members = None
        self.file: str | None = None
        """The name of the file that the journal has written the content to."""

    @property
    def payloads(self) -> bytes:  # type: ignore[override]
        """The payload with END behind it."""
        return b"".join((memoryview(self.content)[len(self.before) : self.end], END))

    @property
    def end(self) -> int:
        """The end of the payload in the content."""
        return len(self.content) - len(MESSAGE_CLOSE)

    @property
    def members(self) -> list[Notification]:
        """The notification; made once, when first asked for."""
        if self._members is None:
            rest = self.time, self.message_id, self.target, self.routing, self.trace
            start, end = len(self.before), self.end
            self._members = [_new(Notification, (self.topic, self.content, start, end, *rest))]
        return self._members

    @property
    def content_size(self) -> int:
        """The bytes of the content."""
        return len(self.content)


def with_large_apart(runs: Iterable[Run]) -> list[Run]:
    """The same notifications in the same order, with each large one as a LargeRun; it copies their bytes."""
    found: list[Run] = []
    for run in runs:
        if run.large or len(run.payloads) < LARGE:
            found.append(run)
        else:
            found += _parts(run)
    return found


def _parts(run: Run) -> Iterator[Run]:
    rest = run.time, run.message_id, run.target, run.routing, run.trace
    small: list[bytes] = []
    for payload in split_payloads(run.payloads):
        if len(payload) < LARGE:
            small.append(payload)
            continue
        if small:
            yield Run(run.topic, run.before, END.join((*small, b"")), len(small), *rest)
            small = []
        content = b"".join((run.before, payload, MESSAGE_CLOSE))
        yield LargeRun(run.topic, content, len(run.before), *rest)
    if small:
        yield Run(run.topic, run.before, END.join((*small, b"")), len(small), *rest)


Runs = Sequence[Run]


def count_of(runs: Iterable[Run]) -> int:
    """How many notifications there are in runs."""
    return sum([run.size for run in runs])


def content_size(runs: Iterable[Run]) -> int:
    """The bytes of all contents."""
    return sum([run.content_size for run in runs])


def members(runs: Iterable[Run]) -> Iterator[Notification]:
    """The single notifications of runs, in order."""
    return chain.from_iterable(runs)


def split_payloads(payloads: bytes) -> list[bytes]:
    """The payloads of a run, which has END behind each."""
    return payloads[:-1].split(END)


def mark_of(trace: str | None) -> bytes:
    """What stands in front of a content that is stored or travels; nothing without a trace."""
    return b"" if trace is None else f"<!--{trace} -->".encode()


def read_mark(content: bytes) -> tuple[str | None, int]:
    """The trace in front of a content, and the length of its mark."""
    if content[:4] != b"<!--":
        return None, 0
    found = _mark(content[:LONGEST_MARK])
    return (None, 0) if found is None else (found[1].decode(), found.end())


def marked(notification: Notification) -> Notification:
    """The notification with its mark in the content."""
    mark = mark_of(notification.trace)
    if not mark:
        return notification
    start, end = notification.start + len(mark), notification.end + len(mark)
    return notification._replace(content=mark + notification.content, start=start, end=end)


def unmarked(notification: Notification) -> Notification:
    """The notification with the trace of its mark, and without the mark."""
    trace, length = read_mark(notification.content)
    if not length:
        return notification
    start, end = notification.start - length, notification.end - length
    return notification._replace(content=notification.content[length:], start=start, end=end, trace=trace)
