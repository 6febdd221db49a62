"""Forwarding: what the node commits goes to other nodes, and what they send is committed here.

It owns the links and the router, and does what the router wants done. Own publications come out of the
journal in its order, after their commit; arrivals go into it with the ids of reliable ones in the same
transaction, and only then are these acknowledged. After a restart the reliable ones that not everybody has
confirmed are published again, under the same numbers. What is not reliable is numbered by a count that begins
with the time, so that it grows from one life to the next.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hpwsn.background import in_thread
from hpwsn.broker.subscriptions.subscription import State, Subscription
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Arrival, FrameRange
from hpwsn.journal.store.routed import Unconfirmed, parse_route_source, route_source
from hpwsn.listeners import Listeners
from hpwsn.notification import FOREIGN, LARGE, PARTIAL, RELIABLE, Notification, Run, content_size, count_of
from hpwsn.routing.interest.routes import Route
from hpwsn.routing.large_arrivals import LargeArrivals
from hpwsn.routing.links.link_traffic import LinkTraffic
from hpwsn.routing.links.links import Links
from hpwsn.routing.links.udp_sending import LinkOptions
from hpwsn.routing.publications.duplicates import Repeats
from hpwsn.routing.publications.router import Router
from hpwsn.routing.topology.topology import Topology
from hpwsn.routing.wire.effects import Deliver, Effect, RouterSettings, Send
from hpwsn.routing.wire.patterns import expressions_of
from hpwsn.routing.wire.payloads import encode_payload, parse_large_payload, parse_payload, pieces
from hpwsn.routing.wire.publication import LargePayload, Payload
from hpwsn.routing.wire.router_messages import (
    Flag,
    MalformedMessage,
    Message,
    Publication,
    PublicationId,
    encode_large,
    encode_messages,
    parse_large,
    parse_messages,
)
from hpwsn.tracing.span_hooks import Spans
from hpwsn_client.wsn.soap.faults import Busy
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

log = logging.getLogger(__name__)

TICK = 0.05
TIDY_EVERY = 1.0
READ_AT_ONCE = 500
PIECES_AT_ONCE = 64
PIECES_WAITING = 1 << 20
"""Bytes in the queue to a node above which no further pieces of a large notification are added."""

_POLICY_FLAGS: dict[str | None, int] = {"tcp": Flag.STREAM, "udp": Flag.DATAGRAM}
"""The flags of an ordinary publication by the routing policy of its topic; without a policy it has none."""


class Forwarding:
    """One node's traffic with all others."""

    def __init__(
        self,
        name: str,
        secret: bytes,
        *,
        host: str,
        port: int,
        options: LinkOptions,
        settings: RouterSettings,
        journal: Journal,
        clock: Callable[[], float],
        policy: Callable[[Topic], str | None] | None,
        is_internal: Callable[[Topic], bool],
        store: Callable[[Sequence[Run], Arrival | None], asyncio.Future[int]],
        has_peers: bool = False,
    ) -> None:
        self._name = name
        self._options = options
        self._settings = settings
        self._journal = journal
        self._clock = clock
        self._policy = policy
        self._is_internal = is_internal
        self._store = store
        self._has_peers = has_peers
        self._loop = asyncio.get_running_loop()
        self._links = Links(
            name,
            secret,
            options,
            on_message=self._heard,
            on_state=self._link_changed,
            on_large=self._heard_large,
            host=host,
            port=port,
        )
        self._large = LargeArrivals(self._store_large, self._deliver)
        self._splitting: set[asyncio.Task[None]] = set()
        self.link_broken: Listeners[str] = Listeners("a broken link")
        """Told of a node whose link broke or cannot be had."""
        self.interest_changed: Listeners[()] = Listeners("the interest of other nodes")
        """Told when what other nodes want may have changed."""
        self.spans: Spans | None = None
        self._router: Router
        self._repeats = Repeats()
        self._number = round(clock() * 1e6)
        self._heard_before = 0
        self._head = 0
        self._counted: dict[Subscription, tuple[TopicExpression, ...]] = {}
        self._arriving: list[tuple[Sequence[Run], PublicationId | None]] = []
        self._tidied: tuple[int, dict[tuple[str, int], int], float] = (-1, {}, 0.0)
        self._timer: asyncio.TimerHandle | None = None
        self._forwarded = self._arrived = self._unsent = self._lost = self._abandoned = 0
        self._malformed = self._repeated = 0
        self._given_up: Counter[str] = Counter()

    # Its life.

    async def start(self) -> tuple[str, int]:
        """Take up what was left, and open the port; where that is."""
        unconfirmed = await self._journal.routed.start(secrets.randbits(62))
        incarnation = round(self._clock() * 1e6)
        self._router = Router(
            self._name,
            incarnation=incarnation,
            epoch=unconfirmed.epoch,
            settings=self._settings,
            is_internal=self._is_internal,
        )
        self._router.restore(_ids(unconfirmed.stored))
        await self._publish_again(unconfirmed)
        self._head = self._journal.last_offset
        place = await self._links.start()
        self._timer = self._loop.call_later(TICK, self._tick)
        return place

    async def _publish_again(self, unconfirmed: Unconfirmed) -> None:
        flags = dict(unconfirmed.own)
        offsets = list(flags)
        while offsets:
            found = await self._journal.read(offsets[:READ_AT_ONCE])
            for entry in found:
                notification = entry.notification._replace(routing=flags[entry.offset])
                self._note_id(notification)
                self._publish_reliable(entry.offset, notification, self._loop.time())
            last = found[-1].offset if found else offsets[:READ_AT_ONCE][-1]
            offsets = [offset for offset in offsets if offset > last]

    async def close(self, within: float = 1.0) -> None:
        """Send what can still go, and give the port free."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        await self._large.close()
        for task in self._splitting:
            task.cancel()
        await self._links.close(within)

    def follow(self, topology: Topology) -> None:
        """Take up a topology."""
        alive = [member for member in topology if member.alive and member.name != self._name]
        self._links.set_members({member.name: (member.host, member.port) for member in alive})
        self._do(self._router.topology_changed(topology, self._loop.time(), self._clock()))

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK, self._tick)
        now = self._loop.time()
        self._do(self._router.tick(now))
        for target, count in self._given_up.items():
            log.error(
                "%d reliable notifications will not reach %s, which has been away for too long"
                " (routing.dead_grace)",
                count,
                target,
            )
        self._given_up.clear()
        if self._router.heard != self._heard_before:
            self._heard_before = self._router.heard
            self.interest_changed()
        if now - self._tidied[2] >= TIDY_EVERY:
            self._tidy(now)

    def _tidy(self, now: float) -> None:
        """Let the journal forget what everybody has confirmed."""
        upto_before, floors_before, _ = self._tidied
        floor = self._router.floor
        upto = self._head if floor is None else floor - 1
        floors = {(each.origin, each.epoch): each.number for each in self._router.floors()}
        raised = [
            FrameRange(route_source(*source), number, number)
            for source, number in floors.items()
            if number > floors_before.get(source, 0)
        ]
        self._tidied = (upto, floors, now)
        if upto > upto_before or raised:
            self._journal.routed.confirmed(upto, raised).add_done_callback(_ignore)

    @property
    def needed_from(self) -> int | None:
        """The offset of the oldest notification that somebody has not confirmed."""
        return self._router.floor

    # What is wanted here.

    def subscription_changed(self, subscription: Subscription) -> None:
        """A subscription may have begun or ceased; one that is paused wants what comes meanwhile."""
        known, wants = subscription in self._counted, subscription.state is State.LIVE
        if known is wants:
            return
        now = self._loop.time()
        if wants:
            self._counted[subscription] = subscription.topics
            self._do(self._router.want(subscription.topics, now))
        else:
            self._do(self._router.release(self._counted.pop(subscription), now))

    def reader_changed(self, topic: Topic, waiting: bool) -> None:
        """Somebody begins to wait for events on a topic, or nobody does any more."""
        expressions = (TopicExpression.of(topic, DIALECT_SIMPLE),)
        change = self._router.want if waiting else self._router.release
        self._do(change(expressions, self._loop.time()))

    def wanted_elsewhere(self) -> set[tuple[TopicExpression, ...]]:
        """What other nodes want, as expressions; nothing is known before the start."""
        if self._timer is None:
            return set()
        return set(map(expressions_of, self._router.wanted_elsewhere()))

    # What is published here.

    def check_room(self, runs: Sequence[Run]) -> None:
        """Raise Busy for reliable notifications while too many are not confirmed yet."""
        if self._router.full:
            raise Busy(
                "nothing was stored: other nodes have not confirmed"
                f" {self._router.figures()['unacknowledged']} reliable notifications yet"
                " (routing.unacknowledged); try again later"
            )

    def check_large_room(self, runs: Sequence[Run]) -> None:
        """Raise Busy for large notifications while a node has not received earlier ones."""
        waiting, size = self._links.bulk_bytes, content_size(runs)
        if waiting and waiting + size > self._options.queue_bytes:
            raise Busy(
                f"nothing was stored: another node has not received {waiting} bytes of large notifications"
                " yet (routing.queue_bytes); try again later"
            )

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Send on what was committed here and did not come from another node."""
        now = self._loop.time()
        for run in runs:
            if run.target is None and not run.routing & FOREIGN:
                self._publish_run(first, run, now)
            first += run.size
        self._head = first - 1

    def _publish_run(self, first: int, run: Run, now: float) -> None:
        if run.routing & RELIABLE:
            for offset, notification in enumerate(run, first):
                self._note_id(notification)
                self._publish_reliable(offset, notification, now)
            return
        route = self._router.route(run.topic)
        # A run with an id counts also where nobody wants it: its publisher may send it to another node too.
        if route.wanted or run.message_id is not None:
            for offset, notification in enumerate(run, first):
                self._note_id(notification)
                if route.wanted:
                    self._publish_once(offset, notification, route, now)

    def _note_id(self, notification: Notification) -> None:
        if notification.message_id is not None:
            self._repeats.is_repeated(notification, self._name)

    def _publish_reliable(self, offset: int, notification: Notification, now: float) -> None:
        flags = Flag(notification.routing & (RELIABLE | PARTIAL))
        self._forwarded += 1
        payload = self._encode(notification)
        self._do(self._router.publish(notification.topic, offset, payload, now, flags))

    def _publish_once(self, offset: int, notification: Notification, route: Route, now: float) -> None:
        topic = notification.topic
        self._forwarded += 1
        policy = None if self._policy is None or topic is None else self._policy(topic)
        flags = _POLICY_FLAGS.get(policy, Flag.NONE)
        parts: Iterable[Notification] = (notification,)
        if notification.routing & PARTIAL:
            identification = f"{self._name}:{self._router.epoch:x}:{offset}"
            if len(notification.content) >= LARGE:
                task = self._loop.create_task(self._publish_pieces(notification, identification, flags))
                self._splitting.add(task)
                task.add_done_callback(self._splitting.discard)
                return
            parts = pieces(notification, identification, self._options.fragment_size)
        for part in parts:
            self._publish_part(part, route, now, flags)

    def _publish_part(self, part: Notification, route: Route, now: float, flags: int) -> None:
        self._number += 1
        self._do(self._router.publish(part.topic, self._number, self._encode(part), now, flags, route))

    def _encode(self, notification: Notification) -> Payload:
        return encode_payload(notification if self.spans is None else self.spans.forwarded(notification))

    async def _publish_pieces(self, notification: Notification, identification: str, flags: int) -> None:
        """Publish the pieces of a large notification, no faster than other nodes take them."""
        size = self._options.fragment_size
        parts = await in_thread(lambda: list(pieces(notification, identification, size)))
        for number, part in enumerate(parts):
            if not number % PIECES_AT_ONCE:
                await self._links.has_room(PIECES_WAITING)
            self._publish_part(part, self._router.route(part.topic), self._loop.time(), flags)

    # What comes from other nodes.

    def _heard(self, member: str, payload: bytes) -> None:
        self._received(member, lambda: parse_messages(payload))

    def _heard_large(self, member: str, parts: Sequence[bytes]) -> None:
        self._received(member, lambda: parse_large(parts))

    def _received(self, member: str, parse: Callable[[], Sequence[Message]]) -> None:
        now = self._loop.time()
        try:
            for message in parse():
                self._do(self._router.received(member, message, now))
        except MalformedMessage as error:
            self._malformed += 1
            log.warning("node %s sent what cannot be read: %s", member, error)

    def _link_changed(self, member: str, up: bool) -> None:
        log.info("the link to node %s is %s", member, "up" if up else "down")
        self._do(self._router.link_changed(member, up, self._loop.time()))
        if not up:
            self.link_broken(member)

    def _do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._send(effect)
            elif isinstance(effect, Deliver):
                self._deliver(effect.publication)
            else:
                self._abandoned += 1
                self._given_up[effect.target] += 1

    def _send(self, effect: Send) -> None:
        to, message, stream = effect
        topic = None
        if isinstance(message, Publication):
            topic = message.topic or ""
            if isinstance(message.payload, LargePayload):
                parts, key = encode_large(message), (message.id, message.leg)
                for member in to:
                    self._unsent += not self._links.send_large(member, parts, topic, key)
                return
        payload = encode_messages((message,))
        for member in to:
            self._unsent += not self._links.send(member, payload, reliable=stream, topic=topic)

    def _deliver(self, publication: Publication) -> None:
        if self._large.take(publication):
            return
        id_ = publication.id if publication.flags & Flag.RELIABLE else None
        assert isinstance(publication.payload, bytes)
        try:
            notification = parse_payload(publication.topic, publication.payload)
        except MalformedMessage as error:
            self._leave_out(publication, error)
            return
        if self._is_repeated(notification, publication):
            return
        if not self._arriving:
            self._loop.call_soon(self._flush)
        self._arriving.append(([Run.of(part) for part in self._parts(notification, publication)], id_))

    def _parts(self, notification: Notification, publication: Publication) -> Iterable[Notification]:
        if not (publication.flags & Flag.RELIABLE and publication.partial):
            return (notification,)
        identification = "{}:{:x}:{}".format(*publication.id)
        return pieces(notification, identification, self._options.fragment_size)

    def _leave_out(self, publication: Publication, error: MalformedMessage) -> None:
        self._malformed += 1
        log.error("publication %s cannot be read, and is left out: %s", publication.id, error)
        self._settle(publication)

    def _is_repeated(self, notification: Notification, publication: Publication) -> bool:
        repeated = self._repeats.is_repeated(notification, publication.id.origin)
        if repeated:
            self._repeated += 1
            self._settle(publication)
        return repeated

    async def _store_large(self, publication: Publication) -> None:
        """Commit a large publication alone; threads parse it and write it."""
        try:
            runs = await in_thread(self._parse_large, publication)
        except MalformedMessage as error:
            self._leave_out(publication, error)
            return
        if not self._is_repeated(runs[0].first, publication):
            id_ = publication.id if publication.flags & Flag.RELIABLE else None
            await asyncio.wait((self._commit([(runs, id_)]),))

    def _parse_large(self, publication: Publication) -> Sequence[Run]:
        assert isinstance(publication.payload, LargePayload)
        run = parse_large_payload(publication.topic, publication.payload)
        parts = self._parts(run.first, publication)
        return [run] if isinstance(parts, tuple) else [Run.of(part) for part in parts]

    def _settle(self, publication: Publication) -> None:
        if publication.flags & Flag.RELIABLE:
            id_ = publication.id
            self._loop.call_soon(lambda: self._do(self._router.stored((id_,), self._loop.time())))

    def _flush(self) -> None:
        """Commit what came in this turn of the loop."""
        if not self._arriving:
            return
        arriving, self._arriving = self._arriving, []
        self._commit(arriving)

    def _commit(self, arriving: Sequence[tuple[Sequence[Run], PublicationId | None]]) -> asyncio.Future[int]:
        runs = [run for parts, _ in arriving for run in parts]
        ids = [id_ for _, id_ in arriving if id_ is not None]
        ranges = [FrameRange(route_source(id_.origin, id_.epoch), id_.number, id_.number) for id_ in ids]
        arrival = None
        if ranges or self._has_peers:
            arrival = Arrival(ranges=ranges, time=self._clock(), from_peers=self._has_peers)
        stored = self._store(runs, arrival)
        stored.add_done_callback(lambda ended: self._stored(ended, runs, ids))
        return stored

    def _stored(self, ended: asyncio.Future[int], runs: Sequence[Run], ids: Sequence[PublicationId]) -> None:
        error = None if ended.cancelled() else ended.exception()
        if error is not None or ended.cancelled():
            self._lost += count_of(runs) - len(ids)
            self._router.refused(ids)
            if not isinstance(error, JournalUnavailable):
                log.error("what came from other nodes could not be stored: %s", error)
            return
        self._arrived += sum([run.size for run in runs])
        if ids:
            self._do(self._router.stored(ids, self._loop.time()))

    def link_traffic(self) -> Iterator[tuple[str, LinkTraffic]]:
        """The other nodes and the counters of the links to them."""
        return self._links.traffic()

    def figures(self) -> dict[str, Any]:
        """What an operator may want to know."""
        return {
            "forwarded": self._forwarded,
            "arrived": self._arrived,
            "unsent": self._unsent,
            "lost": self._lost,
            "abandoned": self._abandoned,
            "malformed": self._malformed,
            "repeated": self._repeated,
            **self._router.figures(),
            **self._links.figures(),
        }


def _ids(ranges: Iterable[FrameRange]) -> Iterable[PublicationId]:
    for each in ranges:
        origin, epoch = parse_route_source(each.source)
        for number in range(each.first, each.last + 1):
            yield PublicationId(origin, epoch, number)


def _ignore(ended: asyncio.Future[None]) -> None:
    """What was not forgotten now is forgotten with the next turn."""
    if not ended.cancelled():
        ended.exception()
