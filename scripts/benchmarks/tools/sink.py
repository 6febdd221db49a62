"""A consumer that does as little as one can: it frames requests, counts notifications, and answers 202."""

import asyncio
import re
from collections.abc import Callable
from typing import cast

from hpwsn_client.wsn.operations.notifications import NOTIFICATION_CLOSE

ANSWER = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
LAST_ANSWER = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_SEQUENCE = re.compile(rb"<m:n>(\d+)</m:n>")


class Tally:
    """What one consumer has received; `on_change` is called after each read that brought something."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self.posts = 0
        self.notifications = 0
        self.on_change = on_change

    def take(self, data: bytes, start: int, end: int) -> None:
        """Count one body."""
        self.posts += 1
        self.notifications += data.count(NOTIFICATION_CLOSE, start, end)


class Arrivals(Tally):
    """Also notes when each numbered notification came first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self.times: dict[int, float] = {}

    def take(self, data: bytes, start: int, end: int) -> None:
        """Count one body, and note its numbers."""
        super().take(data, start, end)
        now = self._clock()
        for number in _SEQUENCE.findall(data, start, end):
            self.times.setdefault(int(number), now)


class Sink(asyncio.Protocol):
    """One connection of a broker to the consumer; `closes` ends it after each answer."""

    def __init__(self, tally: Tally, closes: bool = False) -> None:
        self._tally = tally
        self._closes = closes
        self._parts: list[bytes] = []
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        if self._parts:
            self._parts.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = b"".join(self._parts)
            self._parts.clear()
        answers = self._take_all(data)
        if answers:
            self._transport.write(LAST_ANSWER if self._closes else ANSWER * answers)
            self._tally.on_change()
            if self._closes:
                self._transport.close()

    def _take_all(self, data: bytes) -> int:
        answers = start = 0
        while start < len(data):
            head = data.find(b"\r\n\r\n", start)
            length = _LENGTH.search(data, start, head) if head >= 0 else None
            end = head + 4 + int(length[1]) if length else len(data) + 1
            if end > len(data):
                self._parts.append(data[start:])
                self._missing = end - len(data)
                break
            self._tally.take(data, head + 4, end)
            answers += 1
            start = end
        return answers
