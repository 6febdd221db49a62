"""The senders of SOAP: PushSender posts a Notify to the consumer, PullSender fills a pull point's queue.

A push joins bytes: the constant parts of a subscription's envelope are encoded once, and the content of a
notification is stored in its final form. WS-BaseNotification 1.3, sections 3 and 5.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from hpwsn.broker.delivery.sending import Done, Sender, batch_of
from hpwsn.broker.delivery.traced_pushes import NO_SPANS, DeliveryTracing, with_soap_header
from hpwsn.broker.push.pool import Pusher
from hpwsn.broker.push.request import Outcome, OutcomeKind, parse_target
from hpwsn.broker.subscriptions.pull_points import PullPoints
from hpwsn.broker.subscriptions.resource_addresses import PLAIN_IDS, ResourceIds, own_path
from hpwsn.broker.subscriptions.subscription import Prepared, Subscription
from hpwsn.journal.journal import Journal
from hpwsn.notification import Notification
from hpwsn_client.wsn.formats.original import is_original, original_content
from hpwsn_client.wsn.operations.notifications import (
    NOTIFICATION_CLOSE,
    NOTIFICATION_OPEN,
    NOTIFY_CLOSE,
    NOTIFY_OPEN,
)
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import (
    Addressing,
    EndpointReference,
    encode_addressing,
    encode_epr,
    reference_parameter_headers,
)
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY, WSA, WSA_ANONYMOUS, WSA_NONE, WSNT, wsnt
from hpwsn_client.wsn.soap.version import SoapAction, request_headers
from hpwsn_client.wsn.soap.xml import escape
from hpwsn_client.wsn.topics.topic import shown

_SPLIT = b"\x00"
_MESSAGE_ID = f"urn:uuid:{uuid.uuid4()}"
"""A placeholder for the message id; it is random, so it cannot occur elsewhere in an envelope."""

_NOTIFY_OPEN = f'<wsnt:Notify xmlns:wsnt="{WSNT}" xmlns:wsa="{WSA}">'.encode()
"""Declares the namespaces once for all messages, which makes a request about 20 % shorter."""

_PUBLISHING = frozenset({"/wsn", "/wsn/process", "/onvif/events"})
"""The paths of this node that publish a Notify."""

PULL_BATCH = 1000
"""Maximum number of notifications that one transaction adds to a pull point's queue."""


class PushSender:
    """Posts Notify messages; the consumer's 2xx is the acknowledgement."""

    def __init__(
        self,
        pusher: Pusher,
        batch: int,
        soap_action: SoapAction = "empty",
        tracing: DeliveryTracing = NO_SPANS,
        mark: Callable[[], bytes] = bytes,
    ) -> None:
        """`mark` is the header line with the mark of this node."""
        self._mark = mark
        self._pusher = pusher
        self._tracing = tracing
        self._soap_action = soap_action
        self._batch = batch
        self._sent: Sequence[Notification] = ()
        self._content: Callable[[Notification], bytes] | None = None
        self._contents: Sequence[bytes] = ()
        self._traced = False
        """Whether one of the contents has a trace."""
        self._ids = itertools.count(1)
        # The prefix is unique to this process; the number makes each id unique.
        self._id_form = f"urn:uuid:{str(uuid.uuid4())[:24]}%012x".encode()

    def batch(self, subscription: Subscription) -> int:
        """1 for UseRaw and for clients of the original HPwsn, else the policy's batch or the node's."""
        prepared = subscription.prepared or self._prepare(subscription)
        return 1 if prepared.single else batch_of(subscription, self._batch)

    def send(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        done: Done,
    ) -> None:
        """Post one envelope with all of the notifications."""
        prepared = subscription.prepared or self._prepare(subscription)
        if notifications is not self._sent or prepared.content is not self._content:
            # Consecutive sends often have the same notifications, so cache their encoded contents.
            self._sent, self._content = notifications, prepared.content
            self._contents = tuple(map(prepared.content, notifications))
            self._traced = any(map(_trace, notifications))
        headers, before_first = prepared.headers, prepared.before_first
        if self._traced:
            before_first = with_soap_header(prepared, notifications)
            lines, done = self._tracing.begin(subscription.id, prepared.url, notifications, done)
            headers += lines
        body = (
            prepared.before_id,
            self._id_form % next(self._ids),
            before_first,
            prepared.between.join(self._contents),
            prepared.after_last,
        )
        self._pusher.post(prepared.url, headers, body, done)

    def _prepare(self, subscription: Subscription) -> Prepared:
        prepared = subscription.prepared = prepare(subscription, self._soap_action, self._mark())
        return prepared


_standard = attrgetter("content")
_raw = attrgetter("payload")
_trace = attrgetter("trace")


def _original(notification: Notification) -> bytes:
    return original_content(notification.content, notification.start, notification.end)


def prepare(subscription: Subscription, soap_action: SoapAction, mark: bytes = b"") -> Prepared:
    """Encode the constant parts of a subscription's requests; `mark` is a header line."""
    consumer, version = subscription.request.consumer, subscription.version
    addressing = Addressing(action=ACTION_NOTIFY, to=consumer.address, message_id=_MESSAGE_ID)
    headers = encode_addressing(addressing) + reference_parameter_headers(consumer)
    before, after = encode_envelope(version, _SPLIT, headers).split(_SPLIT)
    before_id, before_body = before.split(_MESSAGE_ID.encode(), 1)
    raw, original = subscription.request.policy.use_raw, is_original(subscription.request)
    notify, opening, closing = (b"", b"", b"") if raw else _around_contents(subscription, original)
    return Prepared(
        url=consumer.address,
        headers=_header_lines(version, soap_action) + mark,
        before_id=before_id,
        before_first=before_body + notify + opening,
        header_end=None if original else before_body.rfind(b"</", 0, before_body.rfind(b"Header>")),
        between=closing + opening,
        after_last=closing + (b"" if raw else NOTIFY_CLOSE) + after,
        content=_raw if raw else _original if original else _standard,
        single=raw or original,
    )


def _around_contents(subscription: Subscription, original: bool) -> tuple[bytes, bytes, bytes]:
    """The start of the Notify, the start of each message before its content, and the message's end."""
    if original:
        # Keep the original's exact bytes: its receivers may not use an XML parser.
        reference = encode_epr(EndpointReference(subscription.address), wsnt("SubscriptionReference"))
        return NOTIFY_OPEN, NOTIFICATION_OPEN + reference, NOTIFICATION_CLOSE
    opening = (
        "<wsnt:NotificationMessage><wsnt:SubscriptionReference>"
        f"<wsa:Address>{escape(subscription.address)}</wsa:Address></wsnt:SubscriptionReference>"
    )
    return _NOTIFY_OPEN, opening.encode(), NOTIFICATION_CLOSE


def _header_lines(version: SoapVersion, soap_action: SoapAction) -> bytes:
    headers = request_headers(version, ACTION_NOTIFY, soap_action)
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


class PullSender:
    """Adds offsets to a pull point's queue; the commit is the acknowledgement."""

    def __init__(self, journal: Journal, pull_points: PullPoints) -> None:
        self._journal = journal
        self._pull_points = pull_points

    def batch(self, subscription: Subscription) -> int:
        """The maximum number in one transaction."""
        return PULL_BATCH

    def send(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        done: Done,
    ) -> None:
        """Queue the offsets, and record that the subscription is done with them, in one transaction."""
        point = subscription.pull_point
        assert point is not None
        entries = [(offset, subscription.id) for offset in offsets]
        self._pull_points.filled(point)
        upto, ahead = subscription.cursor.passing(offsets)
        future = self._journal.enqueue(point, entries, {subscription.id: upto}, {subscription.id: ahead})
        future.add_done_callback(lambda ended: done(_pull_outcome(ended)))
        future.add_done_callback(lambda ended: self._pull_points.arrived(point))


def _pull_outcome(ended: asyncio.Future[None]) -> Outcome:
    if ended.cancelled():
        return Outcome(OutcomeKind.CANCELLED, reason="the node is closing")
    error = ended.exception()
    if error is None:
        return Outcome(OutcomeKind.DELIVERED)
    return Outcome(OutcomeKind.UNAVAILABLE, reason=str(error))


class SenderRegistry:
    """Chooses the sender for a consumer's address."""

    def __init__(
        self,
        push: Sender,
        pull: Sender,
        webhook: Sender,
        pull_points: PullPoints,
        base_url: Callable[[], str],
        ids: ResourceIds = PLAIN_IDS,
        peers: Callable[[], Iterable[str]] = tuple,
        origin: Callable[[], str] | None = None,
    ) -> None:
        """`origin` is the URL at which the node listens, if it is not the base URL."""
        self._origin = origin or base_url
        self._ids = ids
        self._peers = peers
        self.push = push
        self.pull = pull
        self.webhook = webhook
        self._pull_points = pull_points
        self._base_url = base_url

    def resolve(self, consumer: EndpointReference, *, webhook: bool) -> str | None:
        """The id of the local pull point, or None for a push; a fault for an unusable reference."""
        if webhook:
            self._check_callback(consumer.address)
            return None
        prefix = f"{self._base_url()}/wsn/pullpoints/"
        id_ = consumer.address.removeprefix(prefix)
        # With an address shared by all nodes, a pull point of another node has this prefix too: push to it.
        if id_ != consumer.address and not self._ids.is_elsewhere(id_):
            if id_ not in self._pull_points:
                raise _refused(
                    f"ConsumerReference {consumer.address} is not a pull point of this node; create one first"
                )
            return id_
        if any(_publishes(consumer.address, base) for base in self._own()):
            raise _refused(
                f"ConsumerReference {consumer.address} is this broker, which would loop; give another address"
            )
        if any(_publishes(consumer.address, base) for base in self._peers()):
            raise _refused(
                f"ConsumerReference {consumer.address} is a node of the same clusters, which would loop;"
                " subscribe at that node instead"
            )
        _check_push_address(consumer.address)
        return None

    def _check_callback(self, address: str) -> None:
        """Raise a fault for the callback of a webhook that cannot be reached, or is a node of these clusters.

        Almost every address of a node takes JSON, so that none of them is a consumer.
        """
        try:
            parse_target(address)
        except ValueError as error:
            raise _refused(f"callback {shown(address)} cannot be reached: {error}") from error
        for base in (*self._own(), *self._peers()):
            if own_path(address, base) is not None:
                raise _refused(f"callback {shown(address)} is a node itself, {base}; give another address")

    def _own(self) -> tuple[str, str]:
        return self._base_url(), self._origin()


def _refused(reason: str) -> faults.SubscribeCreationFailedFault:
    return faults.SubscribeCreationFailedFault(reason, code=faults.FaultCode.SENDER)


def _publishes(address: str, base: str) -> bool:
    """Whether the node at the base URL publishes a Notify to this address."""
    path = own_path(address, base) or ""
    return path in _PUBLISHING or path.startswith("/wsn/registrations/")


def _check_push_address(address: str) -> None:
    if address in (WSA_ANONYMOUS, WSA_NONE):
        raise _refused(
            f"ConsumerReference {address} is not an address to send to;"
            " give a service's address, or a pull point"
        )
    try:
        parse_target(address)
    except ValueError as error:
        raise _refused(f"ConsumerReference {address!r} cannot be reached: {error}") from error
