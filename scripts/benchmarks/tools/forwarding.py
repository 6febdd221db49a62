"""What the references that are not HPwsn share: extraction with lxml, and the bare way to a consumer.

A reference takes notifications out of a Notify and hands each to every consumer it was started with, several
waiting ones in one Notify, as HPwsn does; it keeps nothing, filters nothing and retries nothing.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import cast
from urllib.parse import urlsplit

from lxml import etree

from benchmarks.tools.messages import SOAP_HEADERS
from hpwsn_client.wsn.operations.notifications import NOTIFY_CLOSE, NOTIFY_OPEN
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope

BATCH = 64
_BEFORE, _AFTER = encode_envelope(SoapVersion.SOAP11, b"\x00").split(b"\x00")


def extract(body: bytes) -> list[tuple[str, bytes]]:
    """The topic and the whole of each NotificationMessage, by a tree of lxml's."""
    notify = etree.fromstring(body)[-1][0]
    return [(message[0].text or "", etree.tostring(message, with_tail=False)) for message in notify]


def envelope_of(messages: Sequence[bytes]) -> bytes:
    """A Notify of messages that are bytes already."""
    return b"".join((_BEFORE, NOTIFY_OPEN, *messages, NOTIFY_CLOSE, _AFTER))


class Forwarder(asyncio.Protocol):
    """The raw callback client: one connection to a consumer, one post on it, the next at its answer."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "", parts.port or 80
        self._head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n".encode() + SOAP_HEADERS
        self._waiting: deque[bytes] = deque()
        self._transport: asyncio.Transport | None = None
        self._busy = False

    async def open(self) -> None:
        """Connect."""
        await asyncio.get_running_loop().create_connection(lambda: self, *self._address)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def put(self, message: bytes) -> None:
        """Send it, at once or with others behind what is under way."""
        self._waiting.append(message)
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._send)

    def data_received(self, data: bytes) -> None:
        """Take any answer's end as the receipt."""
        if data.endswith(b"\r\n\r\n"):
            self._busy = bool(self._waiting)
            if self._busy:
                self._send()

    def _send(self) -> None:
        assert self._transport is not None
        waiting = self._waiting
        body = envelope_of([waiting.popleft() for _ in range(min(BATCH, len(waiting)))])
        self._transport.write(b"%sContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body))


class Forwarders:
    """Every consumer of a reference."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._all: list[Forwarder] = []

    async def open(self) -> None:
        """Connect to all."""
        self._all = [Forwarder(url) for url in self._urls]
        for forwarder in self._all:
            await forwarder.open()

    def put(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Hand messages to every consumer."""
        for forwarder in self._all:
            for _, message in messages:
                forwarder.put(message)
