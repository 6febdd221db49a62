"""The asynchronous client: every operation of BaseNotification and pull points as a method, for publishers
and subscribers.

One Client serves any number of topics, subscriptions and pull points over a few reused connections. It
keeps no state of the broker's: Subscription and PullPoint are handles around endpoint references, and a
reference kept from an earlier run serves as well. Faults of the broker are raised as they are
(hpwsn_client.wsn.faults), trouble on the way as hpwsn_client.errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

from .arguments import (
    Endpoint,
    Expires,
    Namespaces,
    Payload,
    TopicLike,
    check_url,
    concrete_topic,
    content_filter,
    endpoint,
    notification_message,
    termination,
    topic_expression,
)
from .errors import BadReply
from .notification import Notification, topic_text
from .publisher import LingeringPublisher, lots
from .transport import Transport
from .wsn.addressing import EndpointReference
from .wsn.faults import SoapFault
from .wsn.filters import ContentFilter, Filter
from .wsn.messages import (
    CreatePullPoint,
    CreatePullPointResponse,
    DestroyPullPoint,
    DestroyPullPointResponse,
    GetCurrentMessage,
    GetCurrentMessageResponse,
    GetMessages,
    GetMessagesResponse,
    Message,
    PauseSubscription,
    PauseSubscriptionResponse,
    Renew,
    RenewResponse,
    ResumeSubscription,
    ResumeSubscriptionResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
    encode_message,
    parse_message,
)
from .wsn.names import ACTION_NOTIFY, HPWSN, action
from .wsn.notifications import NotificationMessage, encode_notify
from .wsn.policy import DeliveryPolicy, SubscriptionPolicy
from .wsn.soap import SoapVersion
from .wsn.xml import DEFAULT_LIMITS, Limits, escape

DEFAULT_URL = "http://127.0.0.1:8080/wsn"

_Answer = TypeVar("_Answer")


class Client:
    """Publishes to and subscribes at one broker."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        soap: SoapVersion = SoapVersion.SOAP11,
        timeout: float = 30.0,
        connections: int = 16,
        linger: float | None = None,
        batch: int = 100,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if not 1 <= batch <= limits.messages:
            raise ValueError(f"batch is {batch}; a Notify holds 1 to {limits.messages} notifications")
        if connections < 1 or timeout <= 0 or (linger is not None and linger < 0):
            raise ValueError(
                f"connections={connections}, timeout={timeout}, linger={linger}: "
                "give at least one connection, a positive timeout, and a linger of 0 or more seconds"
            )
        self.url = check_url(url)
        self._broker = EndpointReference(url)
        self._batch = batch
        self._received: dict[str, str] = {}
        self._limits = limits
        self._transport = Transport(soap, timeout=timeout, connections=connections, limits=limits)
        self._publisher = None if linger is None else LingeringPublisher(self._send_notify, linger, batch)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what lingers, and close the connections; subscriptions live on at the broker."""
        try:
            if self._publisher is not None:
                await self._publisher.close()
        finally:
            await self._transport.close()

    async def notify(
        self,
        topic: TopicLike | None,
        payload: Payload,
        *,
        message_id: str | None = None,
        producer: Endpoint | None = None,
        namespaces: Namespaces | None = None,
    ) -> None:
        """Publish one notification; when this returns, the broker will not lose it.

        A broker that has seen the message_id already accepts the notification and does not publish it again.
        """
        message = notification_message(topic, payload, producer=producer, namespaces=namespaces)
        if self._publisher is None:
            await self._send_notify([message], message_id)
        else:
            await self._publisher.publish(message, message_id)

    async def notify_many(
        self, items: Iterable[tuple[TopicLike | None, Payload] | NotificationMessage]
    ) -> int:
        """Publish (topic, payload) pairs in order, many to a request, and return how many were accepted.

        Where a request fails, those before it were accepted: the exception's note says how many.
        """
        accepted = 0
        messages = (i if isinstance(i, NotificationMessage) else notification_message(*i) for i in items)
        try:
            for lot in lots(messages, self._batch):
                if self._publisher is None:
                    await self._send_notify(lot, None)
                else:
                    await self._publisher.send(lot)
                accepted += len(lot)
        except Exception as error:
            error.add_note(f"{accepted} notifications before this were accepted by {self.url}")
            raise
        return accepted

    async def subscribe(
        self,
        topic: TopicLike | None = None,
        consumer: Endpoint | None = None,
        *,
        dialect: str | None = None,
        content: str | ContentFilter | None = None,
        namespaces: Namespaces | None = None,
        expires: Expires = None,
        use_raw: bool = False,
        policy: DeliveryPolicy | None = None,
    ) -> Subscription:
        """Have notifications on a topic (None: on all) sent to a Receiver, a PullPoint, or a URL."""
        if consumer is None:
            raise ValueError(
                "subscribe needs a consumer: a Receiver, a PullPoint, an endpoint reference or a URL"
            )
        topics = () if topic is None else (topic_expression(topic, dialect, namespaces),)
        contents = () if content is None else (content_filter(content, namespaces),)
        request = Subscribe(
            consumer=endpoint(consumer),
            filter=Filter(topics=topics, content=contents),
            termination=termination(expires),
            policy=SubscriptionPolicy(use_raw=use_raw, delivery=policy),
            extensions=(),
        )
        answer = await self._call(self._broker, "NotificationProducer", request, SubscribeResponse)
        subscription = Subscription(self, answer.subscription, answer.termination_time)
        leads_here = getattr(consumer, "leads_here", None)
        if leads_here is not None:
            leads_here(subscription)
        return subscription

    async def renew(self, subscription: Endpoint, expires: Expires = None) -> datetime | None:
        """Set a subscription's lifetime anew (None: for ever) and return its end."""
        request = Renew(termination(expires))
        answer = await self._call(endpoint(subscription), "SubscriptionManager", request, RenewResponse)
        if isinstance(subscription, Subscription):
            subscription.terminates = answer.termination_time
        return answer.termination_time

    async def unsubscribe(self, subscription: Endpoint) -> None:
        """End a subscription; what waits for it is dropped."""
        await self._call(endpoint(subscription), "SubscriptionManager", Unsubscribe(), UnsubscribeResponse)

    async def pause(self, subscription: Endpoint) -> None:
        """Hold a subscription's notifications back at the broker until it is resumed."""
        await self._call(
            endpoint(subscription),
            "PausableSubscriptionManager",
            PauseSubscription(),
            PauseSubscriptionResponse,
        )

    async def resume(self, subscription: Endpoint) -> None:
        """Deliver a paused subscription's notifications again, those held back first."""
        await self._call(
            endpoint(subscription),
            "PausableSubscriptionManager",
            ResumeSubscription(),
            ResumeSubscriptionResponse,
        )

    async def create_pull_point(self, name: str | None = None) -> PullPoint:
        """Make a mailbox at the broker, for want of a Receiver; the same name gives the same one."""
        answer = await self._call(
            self._broker, "CreatePullPoint", CreatePullPoint(name), CreatePullPointResponse
        )
        return PullPoint(self, answer.pull_point)

    async def get_messages(self, pull_point: Endpoint, maximum: int | None = None) -> list[Notification]:
        """Take the waiting notifications, oldest first, at most `maximum` of them.

        Each call confirms what the one before it has brought; an answer that is lost is given again.
        """
        target = endpoint(pull_point)
        request = GetMessages(maximum, self._received.get(target.address, ""))
        answer = await self._call(target, "PullPoint", request, GetMessagesResponse)
        self._received[target.address] = answer.batch or ""
        return [Notification.of(message) for message in answer.messages]

    async def destroy_pull_point(self, pull_point: Endpoint) -> None:
        """Remove a pull point with all that waits in it."""
        self._received.pop(endpoint(pull_point).address, None)
        await self._call(endpoint(pull_point), "PullPoint", DestroyPullPoint(), DestroyPullPointResponse)

    async def get_current_message(
        self, topic: TopicLike, *, namespaces: Namespaces | None = None
    ) -> Notification:
        """The last notification on exactly this topic; NoCurrentMessageOnTopicFault where there was none."""
        expression = concrete_topic(topic, namespaces)
        request = GetCurrentMessage(expression)
        answer = await self._call(self._broker, "NotificationProducer", request, GetCurrentMessageResponse)
        return Notification(topic_text(expression), answer.payload)

    async def _send_notify(self, messages: Sequence[NotificationMessage], message_id: str | None) -> None:
        headers = () if message_id is None else (_message_id_header(message_id),)
        await self._transport.call(self._broker, ACTION_NOTIFY, encode_notify(messages), headers)

    async def _call(
        self, target: EndpointReference, port_type: str, request: Message, expected: type[_Answer]
    ) -> _Answer:
        request_action = action(port_type, type(request).__name__)
        body = await self._transport.call(target, request_action, encode_message(request))
        try:
            answer = None if body is None else parse_message(body, self._limits)
        except SoapFault as error:
            raise BadReply(
                f"{target.address} answered {request_action} badly: {error.reason}", target.address
            ) from error
        if not isinstance(answer, expected):
            found = "nothing" if body is None else body.tag
            raise BadReply(
                f"{target.address} answered {found!r} where {expected.__name__} was due", target.address
            )
        return answer


def _message_id_header(message_id: str) -> bytes:
    return f'<hp:MessageId xmlns:hp="{HPWSN}">{escape(message_id)}</hp:MessageId>'.encode()


class Subscription:
    """A handle on a subscription at the broker; `terminates` is its end as last heard, None for ever."""

    def __init__(self, client: Client, epr: EndpointReference, terminates: datetime | None = None) -> None:
        self._client = client
        self.epr = epr
        self.terminates = terminates
        self.ended = False

    def __repr__(self) -> str:
        return f"<Subscription {self.epr.address} until {self.terminates or 'unsubscribed'}>"

    async def renew(self, expires: Expires = None) -> datetime | None:
        """Set the lifetime anew, None for ever."""
        return await self._client.renew(self, expires)

    async def pause(self) -> None:
        """Hold notifications back at the broker."""
        await self._client.pause(self.epr)

    async def resume(self) -> None:
        """Deliver again, what was held back first."""
        await self._client.resume(self.epr)

    async def unsubscribe(self) -> None:
        """End the subscription."""
        await self._client.unsubscribe(self.epr)
        self.ended = True


class PullPoint:
    """A handle on a pull point at the broker, to be the consumer of subscriptions."""

    def __init__(self, client: Client, epr: EndpointReference) -> None:
        self._client = client
        self.epr = epr

    def __repr__(self) -> str:
        return f"<PullPoint {self.epr.address}>"

    async def get_messages(self, maximum: int | None = None) -> list[Notification]:
        """Take the waiting notifications, oldest first."""
        return await self._client.get_messages(self.epr, maximum)

    async def destroy(self) -> None:
        """Remove the pull point with all that waits in it."""
        await self._client.destroy_pull_point(self.epr)
