"""A load of publishers in one process: each posts the same Notify again as soon as the last is answered.

`python -m benchmarks.tools.publish URL PUBLISHERS SECONDS [MESSAGES]` prints how many a second were accepted.
"""

import asyncio
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import uvloop

from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

PAYLOAD = b'<m:reading xmlns:m="urn:example">' + b"<m:value>21.5</m:value>" * 40 + b"</m:reading>"
"""About 1 KB."""


class Publisher(asyncio.Protocol):
    """One kept-alive connection that is never idle."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.accepted = 0
        self.failure = b""
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Send the next after each answer."""
        self._answer += data
        while (end := self._answer.find(b"\r\n\r\n")) >= 0:
            if not self._answer.startswith(b"HTTP/1.1 202"):
                self.failure = self._answer
                self._transport.close()
                return
            self._answer = self._answer[end + 4 :]
            self.accepted += 1
            self._transport.write(self._request)


async def measure(url: str, publishers: int, seconds: float, messages: int = 1) -> float:
    """Notifications accepted in a second."""
    parts = urlsplit(url)
    request = _request(parts.path, messages)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Publisher(request), parts.hostname or "", parts.port or 80)
        for _ in range(publishers)
    ]
    await asyncio.sleep(min(0.2, seconds / 5))
    before, began = sum(publisher.accepted for _, publisher in made), time.perf_counter()
    await asyncio.sleep(seconds)
    accepted = sum(publisher.accepted for _, publisher in made) - before
    taken = time.perf_counter() - began
    for transport, publisher in made:
        if publisher.failure:
            raise RuntimeError(f"the node refused: {publisher.failure[:300]!r}")
        transport.abort()
    if not accepted:
        raise RuntimeError(f"nothing was accepted within {seconds:g} s; measure for longer")
    return accepted * messages / taken


def _request(path: str, messages: int) -> bytes:
    topic = TopicExpression.of(Topic.parse("bench:durability"))
    body = encode_envelope(
        SoapVersion.SOAP11, encode_notify([NotificationMessage(topic, PAYLOAD)] * messages)
    )
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: text/xml; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


if __name__ == "__main__":
    address, number, duration, *size = sys.argv[1:]
    print(uvloop.run(measure(address, int(number), float(duration), *map(int, size))))
