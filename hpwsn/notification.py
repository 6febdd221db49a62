"""A notification as the node carries it: from the door through the journal to every queue.

It owns nothing but the shape. The content is the wire form that deliveries are joined from (Topic,
ProducerReference and Message elements, see hpwsn_client.wsn.operations.messages), so no stage builds it
twice.

Notifications of one Notify that differ in their payloads only are carried as a Run, and what comes together
as a Batch of runs and of lists. Both are sequences like any other, and make single notifications only for
who asks for them: where nobody does, a hundred cost little more than one.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple, overload

from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic

RELIABLE = 1
"""Other nodes must get it, whatever the routing policy would have chosen."""
PARTIAL = 2
"""Other nodes may hand out its pieces one by one."""
ORIGINAL = 4
"""It came from a node of the original, and goes to none from here."""
FOREIGN = 8
"""It came from another node, and goes to no further one from here."""

END = b"\x1e"
"""Behind each payload of a run: a control character, which XML does not allow."""

_new = tuple.__new__


def split_row(elements: bytes) -> list[bytes]:
    """The elements of a run, which has END behind each."""
    return elements[:-1].split(END)


class Notification(NamedTuple):
    """One accepted message; `start` and `end` mark the payload inside `content`."""

    topic: Topic | None
    content: bytes
    start: int
    end: int
    time: float
    message_id: str | None = None
    target: str | None = None
    routing: int = 0
    """How it travels between nodes: RELIABLE, PARTIAL, ORIGINAL and FOREIGN, added."""

    @property
    def payload(self) -> bytes:
        """The payload element, self-contained."""
        return self.content[self.start : self.end]


class _Lazy(Sequence[Notification]):
    """A sequence whose elements are made, all of them, when the first is asked for."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: list[Notification] | None = None

    @abstractmethod
    def _make(self) -> list[Notification]:
        """The elements."""

    def _all(self) -> list[Notification]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __iter__(self) -> Iterator[Notification]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Notification: ...

    @overload
    def __getitem__(self, index: slice) -> list[Notification]: ...

    def __getitem__(self, index: int | slice) -> Notification | list[Notification]:
        return self._all()[index]


class Run(_Lazy):
    """Notifications without a target, alike but for their payloads, which are in one row (see split_row)."""

    __slots__ = ("before", "message_id", "payloads", "routing", "size", "time", "topic")

    def __init__(
        self,
        topic: Topic | None,
        before: bytes,
        payloads: bytes,
        size: int,
        time: float,
        message_id: str | None = None,
        routing: int = 0,
    ) -> None:
        super().__init__()
        self.topic = topic
        self.before = before
        self.payloads = payloads
        self.size = size
        self.time = time
        self.message_id = message_id
        self.routing = routing

    def __len__(self) -> int:
        return self.size

    def _make(self) -> list[Notification]:
        topic, before, start = self.topic, self.before, len(self.before)
        rest = self.time, self.message_id, None, self.routing
        return [
            _new(Notification, (topic, before + each + MESSAGE_CLOSE, start, start + len(each), *rest))
            for each in split_row(self.payloads)
        ]


class Batch(_Lazy):
    """Runs and lists, one after another."""

    __slots__ = ("_size", "parts")

    def __init__(self, parts: Sequence[Sequence[Notification]]) -> None:
        super().__init__()
        self.parts = parts
        self._size = sum(map(len, parts))

    def __len__(self) -> int:
        return self._size

    def _make(self) -> list[Notification]:
        return list(chain.from_iterable(self.parts))


def parts_of(notifications: Sequence[Notification]) -> Sequence[Sequence[Notification]]:
    """The runs and lists that these come in."""
    return notifications.parts if isinstance(notifications, Batch) else (notifications,)


def content_size(notifications: Sequence[Notification]) -> int:
    """The bytes of all contents."""
    return sum(map(_size, parts_of(notifications)))


def _size(part: Sequence[Notification]) -> int:
    if not isinstance(part, Run):
        return sum([len(each.content) for each in part])
    # In a run one byte is behind each payload in place of what a content has around it.
    return len(part.payloads) + (len(part.before) + len(MESSAGE_CLOSE) - 1) * part.size


class Encoded(NamedTuple):
    """A notification in the form that it is stored and delivered in; the payload is content[start:end]."""

    topic: Topic | None
    content: bytes
    start: int
    end: int
    message_id: str | None = None
    """The id that the whole Notify was given."""


class EncodedRun(Sequence[Encoded]):
    """Notifications on one topic, alike but for their payloads, which are in one row with END behind each."""

    __slots__ = ("before", "message_id", "payloads", "size", "topic")

    def __init__(
        self, topic: Topic | None, before: bytes, payloads: bytes, size: int, message_id: str | None
    ) -> None:
        self.topic = topic
        self.before = before
        self.payloads = payloads
        self.size = size
        self.message_id = message_id

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Encoded]:
        topic, before, start, message_id = self.topic, self.before, len(self.before), self.message_id
        for each in split_row(self.payloads):
            content = before + each + MESSAGE_CLOSE
            yield _new(Encoded, (topic, content, start, start + len(each), message_id))

    @overload
    def __getitem__(self, index: int) -> Encoded: ...

    @overload
    def __getitem__(self, index: slice) -> list[Encoded]: ...

    def __getitem__(self, index: int | slice) -> Encoded | list[Encoded]:
        return list(self)[index]
