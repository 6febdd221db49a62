"""The internal publisher: what happens to a notification before anybody can count on it.

Its publisher must have registered, where that is required. Each topic must be one topic, and known where
the tree is fixed; a repeated message id is accepted and not
published again. Then the backbone has it. A Notify is taken whole or not at all. spec: the original's
internal publisher.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from hpwsn.backbone.interface import Backbone
from hpwsn.broker.admission.message_ids import RecentIds, Span
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.errors import BackboneUnavailable, JournalUnavailable
from hpwsn.journal.store.records import MessageId
from hpwsn.notification import Encoded, EncodedRun, Notification, Run, parts_of
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE, NotificationMessage, encode_content
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

RETRY_AFTER = 1
"""Seconds that a publisher is asked to wait when the journal cannot take more."""


_new = tuple.__new__


class Publisher:
    """Takes notifications in from every door."""

    def __init__(
        self,
        *,
        tree: TopicTree[Subscriber],
        backbone: Backbone,
        clock: Callable[[], float],
        id_window: float,
        admit: Callable[[Sequence[Notification]], None],
        content_limit: int,
        registered: Callable[[Sequence[NotificationMessage], str | None], None],
    ) -> None:
        self._tree = tree
        self._backbone = backbone
        self._clock = clock
        self._admit = admit
        self._content_limit = content_limit
        self._registered = registered
        self._ids = RecentIds(id_window)
        self._claims: dict[str, asyncio.Future[Span]] = {}
        """The ids of what is with send_ready."""
        self._trouble: str | None = None
        self.carried = 0
        """What of `routing` means anything here: nothing where there is no other node."""
        self.accepted = 0
        self.repeated = 0
        self.refused = 0

    async def publish(
        self,
        messages: Sequence[NotificationMessage],
        *,
        message_id: str | None = None,
        target: str | None = None,
        registration: str | None = None,
        routing: int = 0,
    ) -> Span:
        """Where the notifications are, once they can no longer be lost; raises a fault if none was taken.

        What is posted straight to a pull point is not published, and needs no registration. `routing` says
        how it travels to other nodes, and is of no account where there are none.
        """
        now = self._clock()
        try:
            if target is None:
                self._registered(messages, registration)
            notifications = [self.notification(message, now, message_id, target) for message in messages]
            if routing & self.carried and target is None:
                notifications = [each._replace(routing=routing & self.carried) for each in notifications]
        except faults.SoapFault:
            self.refused += len(messages)
            raise
        if message_id is None:
            return await self._send(notifications)
        return await self._send_once(message_id, notifications, now)

    def ready(self, messages: Sequence[Encoded], routing: int = 0) -> Sequence[Notification]:
        """The notifications of a Notify in its final form; raises the fault where publish would."""
        carried = routing & self.carried
        if isinstance(messages, EncodedRun):
            notifications = self._ready_run(messages, carried)
        else:
            notifications = self._ready_each(messages, carried)
        self._admit(notifications)
        return notifications

    def _ready_run(self, run: EncodedRun, carried: int) -> Sequence[Notification]:
        # What is added to a payload belongs to its content.
        if len(run.before) + len(MESSAGE_CLOSE) + len(run.payloads) > self._content_limit:
            return self._ready_each(run, carried)
        topic = None if run.topic is None else self._tree.own(run.topic)
        return Run(topic, run.before, run.payloads, run.size, self._clock(), run.message_id, carried)

    def _ready_each(self, messages: Iterable[Encoded], carried: int) -> list[Notification]:
        now, limit = self._clock(), self._content_limit
        notifications: list[Notification] = []
        known = own = None
        for topic, content, start, end, message_id in messages:
            # Most of a Notify are on one topic, which is one object.
            if topic is not known:
                known, own = topic, None if topic is None else self._tree.own(topic)
            if len(content) > limit:
                raise self._too_large(len(content))
            notifications.append(
                _new(Notification, (own, content, start, end, now, message_id, None, carried))
            )
        return notifications

    def take_once(
        self, message_id: str, notifications: Sequence[Notification]
    ) -> asyncio.Future[Span] | None:
        """What becomes of the first Notify of that id; None if this is it, which is then for send_ready."""
        known = self._ids.find(message_id, now := self._clock())
        if known is not None:
            self.repeated += len(notifications)
            return known
        claim = self._claims[message_id] = asyncio.get_running_loop().create_future()
        self._ids.add(message_id, now, claim)
        return None

    def knows(self, message_id: str) -> bool:
        """Whether a Notify of that id would be a repetition."""
        return self._ids.find(message_id, self._clock()) is not None

    async def send_ready(self, notifications: Sequence[Notification]) -> bool:
        """Whether these are stored; if not, none is, and each Notify of them is to be published by itself."""
        try:
            first = await self._backbone.send(notifications)
        except Exception:
            # Publishing it by itself meets the same error, and has the fault and the line in the log for it.
            self._give_up_claims(notifications)
            return False
        if self._claims:
            self._settle_claims(first, notifications)
        self._note_accepted(len(notifications))
        return True

    def _settle_claims(self, first: int | None, notifications: Sequence[Notification]) -> None:
        spans: dict[str, Span] = {}
        at = 0
        for id_, size in _ids(notifications):
            if id_ is not None:
                span = Span(None, None) if first is None else Span(first + at, first + at + size - 1)
                spans[id_] = Span(spans[id_].first, span.last) if id_ in spans else span
            at += size
        for id_, span in spans.items():
            if (claim := self._claims.pop(id_, None)) is not None:
                claim.set_result(span)

    def _give_up_claims(self, notifications: Sequence[Notification]) -> None:
        """Forget ids that were not taken; those who repeated them try by themselves, too."""
        for id_ in {each.message_id for each in notifications if each.message_id is not None}:
            self._ids.discard(id_)
            if (claim := self._claims.pop(id_, None)) is not None:
                claim.set_exception(faults.Busy("nothing was stored; try again", retry_after=RETRY_AFTER))
                claim.exception()  # perhaps nobody waits for it

    def _note_accepted(self, number: int) -> None:
        self.accepted += number
        if self._trouble is not None:
            self._note_trouble(None)

    async def _send_once(self, message_id: str, notifications: Sequence[Notification], now: float) -> Span:
        known = self._ids.find(message_id, now)
        if known is not None:
            self.repeated += len(notifications)
            return await asyncio.shield(known)
        sent = asyncio.ensure_future(self._send(notifications))
        self._ids.add(message_id, now, sent)
        sent.add_done_callback(lambda ended: self._forget_failed(message_id, ended))
        return await asyncio.shield(sent)

    def _forget_failed(self, message_id: str, ended: asyncio.Future[Span]) -> None:
        if ended.cancelled() or ended.exception() is not None:
            self._ids.discard(message_id)

    async def _send(self, notifications: Sequence[Notification]) -> Span:
        try:
            self._admit(notifications)
            first = await self._backbone.send(notifications)
        except faults.Busy:
            self.refused += len(notifications)
            raise
        except (JournalUnavailable, BackboneUnavailable) as error:
            self.refused += len(notifications)
            self._note_trouble(str(error))
            raise faults.Busy(f"nothing was stored: {error}", retry_after=RETRY_AFTER) from error
        self._note_accepted(len(notifications))
        return Span(first, None if first is None else first + len(notifications) - 1)

    def _note_trouble(self, reason: str | None) -> None:
        """Write to the log when the journal begins to refuse, and when it takes notifications again."""
        if reason is None:
            log.warning("notifications are taken again")
        elif self._trouble is None:
            log.error("notifications are refused: %s", reason)
        self._trouble = reason

    def notification(
        self, message: NotificationMessage, now: float, message_id: str | None, target: str | None
    ) -> Notification:
        """A message as the log has it; raises a fault where it cannot be taken."""
        topic = None if message.topic is None else self._topic(message)
        content, start, end = encode_content(message)
        if len(content) > self._content_limit:
            raise self._too_large(len(content))
        return Notification(topic, content, start, end, now, message_id, target)

    def _too_large(self, size: int) -> faults.TooLarge:
        return faults.TooLarge(
            f"a message has {size} bytes with its escapes and namespaces, and"
            f" {self._content_limit} are accepted (server.body_limit)"
        )

    def _topic(self, message: NotificationMessage) -> Topic:
        assert message.topic is not None
        topic = message.topic.topic
        if topic is None:
            raise faults.InvalidTopicExpressionFault(
                f"a notification is on one topic, and {message.topic.text!r} may mean several; name one"
            )
        self._tree.check_publish(topic)
        return topic

    def claim(self, message_id: str) -> asyncio.Future[Span] | None:
        """Take an id for what came another way, to be told its span; None if the id is known."""
        now = self._clock()
        if self._ids.find(message_id, now) is not None:
            return None
        outcome: asyncio.Future[Span] = asyncio.get_running_loop().create_future()
        self._ids.add(message_id, now, outcome)
        return outcome

    def published_elsewhere(self, message_id: str) -> None:
        """Know the id of what another node has published and this one has stored."""
        outcome = self.claim(message_id)
        if outcome is not None:
            outcome.set_result(Span(None, None))

    def remember(self, ids: Iterable[MessageId]) -> None:
        """Take up the message ids that the journal still knows."""
        loop = asyncio.get_running_loop()
        for known in ids:
            done: asyncio.Future[Span] = loop.create_future()
            done.set_result(Span(known.first, known.last))
            self._ids.add(known.id, known.time, done)


def _ids(notifications: Sequence[Notification]) -> Iterator[tuple[str | None, int]]:
    """The ids in order, and for how many in a row each stands."""
    for part in parts_of(notifications):
        if isinstance(part, Run):
            yield part.message_id, len(part)
        else:
            for each in part:
                yield each.message_id, 1
