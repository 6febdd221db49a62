"""Peers: applications on the same ActiveMQ that publish and subscribe to topics of this node.

For each shared subtree, notifications that the node stores are sent to `/topic/hpwsn.A.B.C`, by a cursor over
the log that survives restarts. Notifications that applications and other nodes publish there are received by
a durable subscription and stored. Two rules prevent loops: the node does not receive its own messages, which
have its name in the header `origin`, and it does not send notifications that came from peers. Notifications
of internal topics are not sent. Malformed messages are logged, counted and skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from hpwsn.backbone.activemq.application_messages import decode_peer, encode_peer
from hpwsn.backbone.activemq.stomp_link import Incoming, Link, Outgoing, Subscription
from hpwsn.backbone.activemq.thread_bridge import Bridge
from hpwsn.backbone.interface import Receive, Screen
from hpwsn.backbone.wire.destinations import Address, encode_name, subtree_destination
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Arrival, Stored
from hpwsn.notification import Notification, Run, count_of
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import Limits
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

AT_ONCE = 500
PAUSE = 0.5
SETTLE = 5.0
"""Seconds that a stopping node waits for the confirmation of its last messages."""

TELL_EVERY = 100
"""The cursor is saved after this many ranges from peers, even if nothing was sent."""


@dataclass(slots=True)
class PeerCounts:
    """Counters of both directions."""

    received: int = 0
    sent: int = 0
    malformed: int = 0
    refused: int = 0
    repeated: int = 0


class Peers:
    """A durable subscriber that stores messages of peers, and a publisher that reads the log."""

    def __init__(
        self,
        address: Address,
        node: str,
        subtrees: Collection[Topic],
        *,
        journal: Journal,
        clock: Callable[[], float],
        limits: Limits,
        persistent: bool,
        prefetch: int,
        heartbeat: float,
        is_internal: Callable[[Topic], bool],
    ) -> None:
        self._address = address
        self._node = node
        self._subtrees = tuple(subtrees)
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._persistent = persistent
        self._prefetch = prefetch
        self._heartbeat = heartbeat
        self._is_internal = is_internal
        self._covered: dict[Topic, bool] = {}
        self._keys: set[str] = set()
        self._from_peers: deque[tuple[int, int]] = deque()
        self._passed = 0
        self._cursor = 0
        self._ids = _Parts()
        self._connected = False
        self._receipt: asyncio.Future[bool] | None = None
        self._awaited = ""
        self._numbers = count(1)
        self._arrived: deque[Incoming] = deque()
        self._incoming = asyncio.Event()
        self._outgoing = asyncio.Event()
        self._storing = asyncio.Lock()
        self._sending = asyncio.Lock()
        self._closing = False
        self._link: Link | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.trouble = "ActiveMQ has not answered yet"
        self.counts = PeerCounts()

    async def start(self, receive: Receive, screen: Screen) -> None:
        """Continue from the saved cursor, and start connecting."""
        self._receive = receive
        self._screen = screen
        self._cursor, ranges = await self._journal.spool.peers(self._journal.last_offset)
        for first, last in ranges:
            self._note_from_peers(first, last)
        self._keys |= {key for key in await self._journal.spool.topics() if self._covers(Topic.parse(key))}
        await self._recall_parts()
        self._link = Link(
            self._address,
            Bridge(up=self._up, down=self._down, messages=self._messages, receipt=self._confirmed),
            name="activemq-peers",
            heartbeat=self._heartbeat,
            client_id=f"hpwsn.{encode_name(self._node)}",
            consume=Subscription(tuple(map(subtree_destination, self._subtrees)), self._subscription()),
        )
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._run(self._take_in)),
            loop.create_task(self._run(self._send_out)),
        ]
        self._link.start()

    async def _recall_parts(self) -> None:
        """Restore the part numbers of a publication that was only partly sent before the restart."""
        at = max(0, self._cursor - self._limits.messages)
        while at < self._cursor:
            scan = await self._journal.scan(at, limit=AT_ONCE, topics=self._keys, head=self._cursor)
            for stored in scan.entries:
                if stored.notification.message_id:
                    self._ids.name(stored.notification.message_id)
            at = max(scan.upto, at + 1)

    def _subscription(self) -> dict[str, str]:
        name = self._node.replace("'", "''")
        return {
            "activemq.subscriptionName": "hpwsn",
            "activemq.prefetchSize": str(self._prefetch),
            "selector": f"origin IS NULL OR origin <> '{name}'",
        }

    async def close(self) -> None:
        """Stop after in-flight messages are confirmed; both directions continue here after a restart."""
        self._closing = True
        try:
            async with asyncio.timeout(SETTLE), self._sending:
                link, self._link = self._link, None
        except TimeoutError:
            log.warning("ActiveMQ did not confirm what peers were sent last; they are sent it again")
            link, self._link = self._link, None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if link is not None:
            await asyncio.to_thread(link.stop)

    def stored(self, runs: Sequence[Run]) -> None:
        """Wake the sender if some of the stored notifications are for peers."""
        for run in runs:
            if run.topic is not None and self._covers(run.topic):
                self._keys.add(str(run.topic))
                self._outgoing.set()

    def figures(self) -> Mapping[str, Any]:
        """The state and the counters of both directions."""
        c = self.counts
        return {
            "connected": int(self._connected),
            "received": c.received,
            "sent": c.sent,
            "malformed": c.malformed,
            "refused": c.refused,
            "repeated": c.repeated,
        }

    @property
    def connected(self) -> bool:
        """Whether there is a session."""
        return self._connected

    def _covers(self, topic: Topic) -> bool:
        known = self._covered.get(topic)
        if known is None:
            if len(self._covered) >= 100_000:
                self._covered.clear()
            known = self._covered[topic] = any(subtree.covers(topic) for subtree in self._subtrees)
        return known

    def _up(self, host: str) -> None:
        self._connected = True
        log.info("peers on ActiveMQ at %s share %s", host, ", ".join(map(str, self._subtrees)))
        self._outgoing.set()

    def _down(self, reason: str) -> None:
        if self._connected or reason != self.trouble:
            log.warning("peers on ActiveMQ are away (%s)", reason)
        self.trouble = reason
        self._connected = False
        if self._receipt is not None and not self._receipt.done():
            self._receipt.set_result(False)

    def _confirmed(self, number: str) -> None:
        if self._receipt is not None and number == self._awaited and not self._receipt.done():
            self._receipt.set_result(True)

    def _messages(self, messages: Sequence[Incoming]) -> None:
        self._arrived.extend(messages)
        self._incoming.set()

    async def _run(self, work: Callable[[], Any]) -> None:
        while True:
            try:
                await work()
            except JournalUnavailable as error:
                log.warning("peers wait for the journal: %s", error)
                await asyncio.sleep(PAUSE)
            except Exception:
                log.exception("something about peers failed; it is tried again")
                await asyncio.sleep(PAUSE)

    async def _take_in(self) -> None:
        if not self._arrived:
            await self._incoming.wait()
            self._incoming.clear()
        batch = [self._arrived[number] for number in range(min(len(self._arrived), AT_ONCE))]
        found = [each for message in batch if (each := self._decode(message)) is not None]
        screened = self._screen(found, checked=False)
        for notification, reason in screened.refused:
            self.counts.refused += 1
            log.error("a peer's notification on %s is not taken: %s", notification.topic, reason)
        self.counts.repeated += screened.repeated
        if screened.kept:
            screened.stored(await self._store(screened.kept))
            self.counts.received += count_of(screened.kept)
        for _ in batch:
            self._arrived.popleft()
        for message in {message.headers.get("subscription"): message for message in batch}.values():
            if self._link is not None:
                self._link.ack(message)

    async def _store(self, runs: Sequence[Run]) -> int:
        while True:
            try:
                # The sender reads only offsets for which it is known whether they came from peers.
                async with self._storing:
                    first = await self._receive(runs, Arrival(from_peers=True))
                    self._note_from_peers(first, first + count_of(runs) - 1)
                    self._outgoing.set()
                    return first
            except JournalUnavailable as error:
                log.warning("what peers sent waits: %s", error)
                await asyncio.sleep(PAUSE)

    def _note_from_peers(self, first: int, last: int) -> None:
        if self._from_peers and self._from_peers[-1][1] == first - 1:
            first, _ = self._from_peers.pop()
        self._from_peers.append((first, last))
        self._passed += 1

    def _decode(self, message: Incoming) -> Notification | None:
        if message.headers.get("origin") == self._node:
            return None
        try:
            notification = decode_peer(message.headers, message.body, self._clock(), self._limits)
            if notification.topic is None or not self._covers(notification.topic):
                raise ValueError(f"its topic {notification.topic} is not shared (backbone.peers)")
        except (SoapFault, ValueError) as error:
            self.counts.malformed += 1
            log.error(
                "a message of a peer to %s is no notification: %s", message.headers.get("destination"), error
            )
            return None
        return notification

    async def _send_out(self) -> None:
        await self._outgoing.wait()
        self._outgoing.clear()
        while self._connected and not self._closing:
            async with self._storing:
                head = self._journal.last_offset
            if head <= self._cursor:
                return
            async with self._sending:
                if not await self._send_upto(head):
                    return

    async def _send_upto(self, head: int) -> bool:
        """Send the next messages before the head and save the cursor; False if they are not confirmed."""
        scan = await self._journal.scan(self._cursor, limit=AT_ONCE, topics=self._keys, head=head)
        ids = self._ids.copy()
        messages = [message for stored in scan.entries if (message := self._message(stored, ids)) is not None]
        if messages and not await self._send(messages):
            return False
        self._ids = ids
        self.counts.sent += len(messages)
        self._cursor = scan.upto
        if messages or self._passed >= TELL_EVERY:
            self._passed = 0
            await self._journal.spool.told_peers(self._cursor)
        while self._from_peers and self._from_peers[0][1] <= self._cursor:
            self._from_peers.popleft()
        return True

    async def _send(self, messages: Sequence[Outgoing]) -> bool:
        """Send messages; True if ActiveMQ confirmed them, else they are sent again with the same ids."""
        if self._link is None:
            return False
        self._receipt = asyncio.get_running_loop().create_future()
        self._awaited = str(next(self._numbers))
        self._link.send(messages, receipt=self._awaited)
        if not self._connected:
            return False
        return await self._receipt

    def _message(self, stored: Stored, ids: _Parts) -> Outgoing | None:
        if any(first <= stored.offset <= last for first, last in self._from_peers):
            return None
        notification = stored.notification
        # What was accepted as internal has a target, so the scan does not find it.
        if notification.topic is not None and self._is_internal(notification.topic):
            return None
        generated = f"{self._node}-{stored.offset}-{round(notification.time * 1e6):x}"
        id_ = ids.name(notification.message_id) if notification.message_id else generated
        return encode_peer(notification, id_, self._node, self._persistent)


class _Parts:
    """Makes unique ids for the notifications of one publication, which share one message id."""

    def __init__(self, last: str = "", number: int = 0) -> None:
        self._last = last
        self._number = number

    def copy(self) -> _Parts:
        """A copy of the state, to be kept only if the named messages are confirmed."""
        return _Parts(self._last, self._number)

    def name(self, id_: str) -> str:
        """The id for the first notification, and the id with a number for the following ones."""
        self._number = self._number + 1 if id_ == self._last else 1
        self._last = id_
        return id_ if self._number == 1 else f"{id_}#{self._number}"
