"""Large messages on their way to one member, which other messages overtake.

A large message is split lazily: the link asks for the next piece when little is in flight. Between two pieces
the link sends other messages. Messages with the topic of a large one wait behind it, so that the order of a
topic holds. When a link is up again, the messages that the member has not confirmed completely are sent from
their beginning: the member may have restarted, and ignores pieces that it has.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain

from hpwsn.routing.wire.fragments import Fragment, Splitting


class _Message:
    __slots__ = ("key", "last_frame", "splitting", "topic")

    def __init__(self, splitting: Splitting, topic: Hashable, key: Hashable) -> None:
        self.splitting = splitting
        self.topic = topic
        self.key = key
        self.last_frame = 0


class BulkQueue:
    """The large messages to one member, in order, until the member has confirmed their last frames."""

    def __init__(self) -> None:
        self._waiting: deque[_Message] = deque()
        self._sent: deque[_Message] = deque()
        self._topics: Counter[Hashable] = Counter()
        self.bytes = 0

    def __bool__(self) -> bool:
        """Whether there are pieces to send."""
        return bool(self._waiting)

    def has(self, topic: Hashable) -> bool:
        """Whether a message with this topic is on its way."""
        return topic in self._topics

    def add(
        self, identification: int, parts: Sequence[bytes], room: int, topic: Hashable, key: Hashable
    ) -> bool:
        """Queue a message; False if a message with this key is on its way already."""
        if key is not None and any(message.key == key for message in self._all()):
            return False
        message = _Message(Splitting(identification, parts, room), topic, key)
        self._waiting.append(message)
        self._topics[topic] += 1
        self.bytes += message.splitting.size
        return True

    def _all(self) -> Iterable[_Message]:
        return chain(self._sent, self._waiting)

    def next(self, frame: int) -> Fragment:
        """The next piece, which goes into the frame with this number."""
        message = self._waiting[0]
        piece = message.splitting.next()
        if message.splitting.done:
            message.last_frame = frame
            self._sent.append(self._waiting.popleft())
        return piece

    def confirmed(self, upto: int) -> None:
        """Forget the messages whose last frame is before this number."""
        while self._sent and self._sent[0].last_frame < upto:
            message = self._sent.popleft()
            self.bytes -= message.splitting.size
            self._topics[message.topic] -= 1
            if not self._topics[message.topic]:
                del self._topics[message.topic]

    def restart(self) -> None:
        """Send every message from its beginning."""
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
        for message in self._waiting:
            message.splitting.restart()
