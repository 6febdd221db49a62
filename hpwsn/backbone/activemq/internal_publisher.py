"""A publisher for other processes that writes directly to the queue of a node on ActiveMQ.

It is a small synchronous API for jobs that publish many notifications. Publications are combined into frames
and sent in the background. `flush` returns when ActiveMQ has stored all of them. The node reads them from its
queue, checks them like a door, and stores each once. After a lost connection, unconfirmed frames are sent
again with the same numbers, so that the node can drop repeated ones. An object must not be used by two
threads at the same time.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from hpwsn.backbone.activemq.stomp_link import Incoming, Link, Outgoing
from hpwsn.backbone.wire.destinations import node_queue, parse_address
from hpwsn.backbone.wire.frames import FrameId, encode_frame
from hpwsn.errors import BackboneUnavailable, HpwsnError
from hpwsn.notification import Notification
from hpwsn_client.arguments import Payload, notification_message
from hpwsn_client.wsn.operations.notifications import encode_content
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

FRAME_BYTES = 1 << 20
MAX_UNCONFIRMED = 64
"""Maximum in-flight frames, beyond which `publish` waits."""

MAX_ID = 1024


class InternalPublisher:
    """Publishes to one node through ActiveMQ."""

    def __init__(
        self,
        url: str,
        node: str,
        *,
        password: str | None = None,
        persistent: bool = True,
        batch: int = 256,
        timeout: float = 30.0,
        heartbeat: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        try:
            address = parse_address(url)
        except ValueError as error:
            raise HpwsnError(f"the address of ActiveMQ is not valid: it {error}") from error
        if password is not None:
            address = replace(address, password=password)
        self._destination = node_queue(node)
        self._headers = {"persistent": "true"} if persistent else {}
        self._batch = batch
        self._timeout = timeout
        self._clock = clock
        self._source = uuid.uuid4().hex
        self._number = 0
        self._pending: list[Notification] = []
        self._size = 0
        self._changed = threading.Condition()
        self._unconfirmed: dict[str, Outgoing] = {}
        self._connected = False
        self._trouble = f"{address} has not answered yet"
        self._closed = False
        self._link = Link(address, self, name="hpwsn-internal-publisher", heartbeat=heartbeat)
        self._link.start()

    def publish(
        self,
        topic: str | Topic,
        payload: Payload,
        *,
        id: str | None = None,  # noqa: A002
        producer: str | None = None,
    ) -> None:
        """Publish one notification: an XML element (bytes, text or an lxml element), or plain text.

        A notification whose `id` the node has seen within `journal.id_window` is not published again. Raises
        BackboneUnavailable, without accepting the notification, if too many frames wait for ActiveMQ.
        """
        if self._closed:
            raise HpwsnError("the publisher is closed; create another one")
        if id is not None and not (0 < len(id) <= MAX_ID and id.isprintable()):
            raise ValueError(f"the id {id[:80]!r} must be 1 to {MAX_ID} printable characters")
        try:
            message = notification_message(topic, payload, producer=producer)
        except SoapFault as fault:
            raise ValueError(f"the notification cannot be published: {fault}") from fault
        assert message.topic is not None
        content, start, end = encode_content(message)
        if self._is_full():
            self._send()
        self._pending.append(Notification(message.topic.topic, content, start, end, self._clock(), id))
        self._size += len(content)
        if self._is_full() and len(self._unconfirmed) < MAX_UNCONFIRMED:
            self._send()

    def flush(self, timeout: float | None = None) -> None:
        """Return when ActiveMQ has stored everything; raise BackboneUnavailable after the timeout.

        Nothing is lost after a timeout: unconfirmed frames are sent when ActiveMQ is back. Call `flush` again
        to wait for them.
        """
        if self._pending:
            self._send(timeout)
        self._wait_for_receipts(0, timeout)

    def close(self) -> None:
        """Flush, and close the connection even if the flush fails."""
        if self._closed:
            return
        try:
            self.flush()
        finally:
            self._closed = True
            self._link.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _is_full(self) -> bool:
        return len(self._pending) >= self._batch or self._size >= FRAME_BYTES

    def _send(self, timeout: float | None = None) -> None:
        self._wait_for_receipts(MAX_UNCONFIRMED - 1, timeout)
        self._number += 1
        number = str(self._number)
        headers = {**self._headers, "frame": str(FrameId(self._source, self._number))}
        message = Outgoing(self._destination, encode_frame(self._pending), headers)
        self._pending, self._size = [], 0
        with self._changed:
            self._unconfirmed[number] = message
            if self._connected:
                self._link.send([message], receipt=number)

    def _wait_for_receipts(self, left: int, timeout: float | None) -> None:
        within = self._timeout if timeout is None else timeout
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._unconfirmed) <= left, within):
                raise BackboneUnavailable(
                    f"ActiveMQ did not confirm all frames within {within:g} s"
                    f" ({'connected' if self._connected else self._trouble}); flush again to wait longer"
                )

    def up(self, host: str) -> None:
        """Called by the link: a session has started; unconfirmed frames are sent again first."""
        with self._changed:
            self._connected = True
            for number, message in self._unconfirmed.items():
                self._link.send([message], receipt=number)

    def down(self, reason: str) -> None:
        """Called by the link: the session has ended."""
        with self._changed:
            self._connected = False
            self._trouble = reason

    def message(self, message: Incoming) -> None:
        """Called by the link for a received message; this link does not consume any."""

    def receipt(self, number: str) -> None:
        """Called by the link: ActiveMQ has confirmed a frame."""
        with self._changed:
            self._unconfirmed.pop(number, None)
            self._changed.notify_all()
