"""Links to nodes of the original HPwsn, over UDP in its XML form.

Each datagram is a NotificationMessage with its Package, complete or a piece. Notifications that are
published here go to all of these nodes, because they do not advertise their interest. Notifications that
they send are published here, and are not sent back to any of them. Pieces are reassembled; a piece with
`partial` is delivered separately. The format has no acknowledgement and no authentication. Lost datagrams
are not repeated, and datagrams from addresses that routing.originals does not name are dropped. A forged
sender address is not detected; protect the network.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.notification import FOREIGN, ORIGINAL, PARTIAL, Notification, Run
from hpwsn.routing.wire.fragments import CompleteMessage, Piece, Reassembly
from hpwsn.routing.wire.original_fragments import complete_message, datagrams, fragment_of, piece_message
from hpwsn.settings import RoutingSettings
from hpwsn_client.wsn.formats.original import PackedNotification, parse_packed
from hpwsn_client.wsn.operations.notifications import NotificationMessage
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import Limits
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression

log = logging.getLogger(__name__)

BURST_BYTES = 64 * 1024
BURST_PAUSE = 0.002
"""Seconds between two bursts; there is no feedback, so that a burst must fit any receiver's buffer."""
MAX_PUBLISHING = 1000
"""The most received notifications that are being published at once."""
WARNING_INTERVAL = 60.0

Publish = Callable[[Sequence[NotificationMessage], int], Coroutine[Any, Any, object]]


class OriginalPeers(asyncio.DatagramProtocol):
    """The traffic with all nodes of the original."""

    def __init__(self, settings: RoutingSettings, host: str, limits: Limits, publish: Publish) -> None:
        self._settings = settings
        self._host = settings.host or host
        self._limits = limits
        self._publish = publish
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.DatagramTransport | None = None
        self._instance = secrets.randbits(40)
        self._peers: list[Any] = []
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._publishing: set[asyncio.Task[None]] = set()
        self._reassembly = Reassembly(
            timeout=settings.reassembly_timeout,
            max_bytes=settings.reassembly_bytes,
            max_messages=settings.reassembly_messages,
        )
        self._warned_at = -WARNING_INTERVAL
        self._sent = self._received = self._dropped = self._refused = 0

    async def start(self) -> None:
        """Bind the port, and resolve the addresses of the nodes."""
        own = (self._host, self._settings.original_port)
        try:
            transport, _ = await self._loop.create_datagram_endpoint(lambda: self, local_addr=own)
            family = transport.get_extra_info("socket").family
            for address in self._settings.original_addresses():
                found = await self._loop.getaddrinfo(
                    *address, family=family, type=socket.SOCK_DGRAM, flags=socket.AI_V4MAPPED
                )
                self._peers.append(found[0][4])
        except OSError as error:
            raise HpwsnError(
                f"cannot open the links to nodes of the original from {own[0]}:{own[1]}: {error};"
                " check routing.originals, routing.original_port and routing.host"
            ) from error
        self._transport = transport
        self._flush()
        address = transport.get_extra_info("sockname")
        log.info("listening for nodes of the original over UDP at %s:%d", *address[:2])

    # Sending.

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Send committed notifications; the format cannot express a notification without a topic."""
        for run in runs:
            if run.target is None and not run.routing & (FOREIGN | ORIGINAL):
                for offset, notification in enumerate(run, first):
                    self._send(offset, notification)
            first += run.size

    def _send(self, offset: int, notification: Notification) -> None:
        partial = bool(notification.routing & PARTIAL)
        try:
            if notification.topic is None:
                raise ValueError("it has no topic")
            topic = TopicExpression.of(notification.topic, DIALECT_SIMPLE)
            message = NotificationMessage(topic, notification.payload)
            identification = f"{self._instance}:{offset}"
            encoded = list(datagrams(message, identification, self._settings.fragment_size, partial=partial))
        except (ValueError, SoapFault) as error:
            self._dropped += 1
            self._warn("a notification is not sent to nodes of the original: %s", error)
            return
        size = sum(map(len, encoded))
        if self._queued_bytes + size > self._settings.queue_bytes:
            self._dropped += 1
            self._warn(
                "a notification is not sent to nodes of the original: %s",
                "the queue is full (routing.queue_bytes)",
            )
            return
        self._queue += encoded
        self._queued_bytes += size
        if self._timer is None:
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        burst = 0
        while self._transport is not None and self._queue and burst < BURST_BYTES:
            data = self._queue.popleft()
            burst += len(data)
            for peer in self._peers:
                self._transport.sendto(data, peer)
                self._sent += 1
        self._queued_bytes -= burst
        if burst:
            self._timer = self._loop.call_later(BURST_PAUSE, self._flush)

    def error_received(self, exc: Exception) -> None:
        """Ignore errors of the network, for example a closed port."""

    # Receiving.

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """Handle a datagram from any sender."""
        if all(addr[0] != peer[0] for peer in self._peers):
            self._refused += 1
            self._warn("a datagram from %s is dropped: the address is not in routing.originals", addr[0])
            return
        self._received += 1
        try:
            packed = parse_packed(parse_message_xml(data, self._limits), self._limits)
            self._receive(packed, addr[0])
        except (SoapFault, ValueError) as error:
            self._refused += 1
            self._warn("a datagram from the original at %s is malformed: %s", addr[0], error)

    def _receive(self, packed: PackedNotification, host: str) -> None:
        message, partial = packed.message, packed.package is not None and packed.package.partial
        if packed.package is None or not packed.package.split:
            self._publish_soon(message, ORIGINAL | PARTIAL * partial)
            return
        topic = None if message.topic is None else message.topic.topic
        found = self._reassembly.add((host, topic), fragment_of(packed), self._loop.time())
        if isinstance(found, CompleteMessage):
            if len(found.content) > self._limits.body:
                raise ValueError(
                    f"the reassembled message has {len(found.content)} bytes; at most {self._limits.body}"
                    " are accepted (server.body_limit)"
                )
            self._publish_soon(complete_message(message, found.content, self._limits), ORIGINAL)
        elif isinstance(found, Piece):
            self._publish_soon(piece_message(message, found.fragment), ORIGINAL)

    def _publish_soon(self, message: NotificationMessage, routing: int) -> None:
        if len(self._publishing) >= MAX_PUBLISHING:
            self._dropped += 1
            return
        task = self._loop.create_task(self._publish_one(message, routing))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish_one(self, message: NotificationMessage, routing: int) -> None:
        try:
            await self._publish([message], routing)
        except SoapFault as error:
            self._refused += 1
            self._warn("a notification from the original was not published: %s", error)

    def _warn(self, message: str, *arguments: object) -> None:
        """Log a warning, at most once a minute."""
        now = self._loop.time()
        if now - self._warned_at >= WARNING_INTERVAL:
            self._warned_at = now
            log.warning(message, *arguments)

    def figures(self) -> dict[str, int]:
        """Return the counters for /status and /metrics."""
        return {
            "sent": self._sent,
            "received": self._received,
            "waiting_bytes": self._queued_bytes,
            "dropped": self._dropped,
            "refused": self._refused,
            "incomplete": len(self._reassembly),
            "timed_out": self._reassembly.timed_out,
        }

    async def close(self) -> None:
        """Close the socket; queued datagrams are lost, received notifications are still published."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        await asyncio.gather(*self._publishing)
