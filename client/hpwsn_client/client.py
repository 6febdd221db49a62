"""The asynchronous client: one method for each operation of WS-BaseNotification and WS-BrokeredNotification.

The operations on resources are in resources.py. One Client handles any number of topics, subscriptions and
pull points over a few reused connections. Subscription, PullPoint and Registration only hold endpoint
references, so a reference saved by an earlier process works too. Faults that the broker sends are raised as
the classes of hpwsn_client.wsn.faults, other errors as those of hpwsn_client.errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self, TypeVar

from lxml import etree

from hpwsn_client.announcing import Woken, announce
from hpwsn_client.arguments import (
    Endpoint,
    Expires,
    Namespaces,
    Payload,
    TopicLike,
    concrete_topic,
    content_filters,
    duration,
    endpoint,
    notification_message,
    termination,
    topic_expression,
    trace_of_caller,
)
from hpwsn_client.environment import DEFAULT_URL, bearer_token, broker_url
from hpwsn_client.figures import Counters, Figures
from hpwsn_client.notification import Notification, topic_text
from hpwsn_client.pipelined_publisher import Publisher
from hpwsn_client.publisher import LingeringPublisher, batches
from hpwsn_client.resources import ResourceCaller
from hpwsn_client.tls import Tls, tls_context
from hpwsn_client.transport import (
    Transport,
    message_id_header,
    receipt_headers,
    reply_traces,
    routing_headers,
    trace_headers,
)
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.operations.messages import (
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
)
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.operations.policy import DeliveryPolicy, SubscriptionPolicy
from hpwsn_client.wsn.operations.registrations import (
    DestroyRegistration,
    DestroyRegistrationResponse,
    RegisterPublisher,
    RegisterPublisherResponse,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY, action, request_action
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.version import SoapAction
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits

__all__ = ["DEFAULT_URL", "Client", "PullPoint", "Registration", "Subscription"]

_Answer = TypeVar("_Answer")


class Client(ResourceCaller):
    """Publishes to and subscribes at one broker; `url` defaults to HPWSN_URL, then to DEFAULT_URL.

    `tls` is an SSLContext or a PEM file of authorities for https; it defaults to HPWSN_CA, then to the
    system's authorities. `token` is a bearer token for the broker; it defaults to HPWSN_TOKEN, then to none.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        soap: SoapVersion = SoapVersion.SOAP11,
        soap_action: SoapAction = "empty",
        timeout: float = 30.0,
        connections: int = 16,
        linger: float | None = None,
        batch: int = 100,
        limits: Limits = DEFAULT_LIMITS,
        tls: Tls | None = None,
        token: str | None = None,
    ) -> None:
        if not 1 <= batch <= limits.messages:
            raise ValueError(f"batch is {batch}; give 1 to {limits.messages} notifications for a Notify")
        if connections < 1 or timeout <= 0 or (linger is not None and linger < 0):
            raise ValueError(
                f"connections={connections}, timeout={timeout}, linger={linger}: "
                "give at least one connection, a positive timeout, and a linger of 0 or more seconds"
            )
        self.url = broker_url(url)
        self._tls = tls_context(tls)
        self._token = bearer_token(token)
        transport = Transport(
            soap,
            soap_action=soap_action,
            timeout=timeout,
            connections=connections,
            limits=limits,
            tls=self._tls,
            token=self._token,
            token_for=self.url,
        )
        super().__init__(transport, EndpointReference(self.url), limits)
        self._batch = batch
        self._soap = soap
        self._soap_action = soap_action
        self._timeout = timeout
        self._last_batch: dict[str, str] = {}
        self._counters = Counters(f"client of {self.url}")
        self._publisher = None if linger is None else LingeringPublisher(self._send_notify, linger, batch)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send the pending notifications and close the connections; subscriptions remain at the broker."""
        try:
            if self._publisher is not None:
                await self._publisher.close()
        finally:
            self._counters.close()
            await self._transport.close()

    def figures(self) -> Figures:
        """What this client has published and fetched, without its publishers and receivers."""
        return self._counters.figures()

    async def notify(
        self,
        topic: TopicLike | None,
        payload: Payload,
        *,
        message_id: str | None = None,
        producer: Endpoint | None = None,
        namespaces: Namespaces | None = None,
        reliable: bool = False,
        partial: bool = False,
        receipt_to: Endpoint | None = None,
        traceparent: str | None = None,
    ) -> None:
        """Publish one notification; when this returns, the broker has stored it.

        `message_id` is an idempotency key: the broker accepts a repeated id and does not publish again. In a
        cluster, `reliable` guarantees delivery to the other nodes, and `partial` allows their subscribers to
        receive the notification in fragments. The broker sends a receipt to `receipt_to`, a Receiver or a
        URL, for each consumer that gets it or fails to. `linger` does not apply with these options.
        `traceparent` is the W3C trace context that consumers get with it; without it, that of the current
        span where the application uses OpenTelemetry.
        """
        trace = trace_of_caller(traceparent)
        message = notification_message(
            topic, payload, producer=producer, namespaces=namespaces, limits=self._limits
        )
        if self._publisher is None or reliable or partial or receipt_to is not None:
            wanted = None if receipt_to is None else endpoint(receipt_to)
            headers = routing_headers(reliable, partial) + receipt_headers(wanted)
            await self._send_notify([message], message_id, (trace,), headers=headers)
        else:
            await self._publisher.publish(message, message_id, trace)

    async def notify_many(
        self,
        items: Iterable[tuple[TopicLike | None, Payload] | NotificationMessage],
        *,
        reliable: bool = False,
        partial: bool = False,
    ) -> int:
        """Publish (topic, payload) pairs in order, in batches, and return how many were accepted.

        If a request fails, the exception has a note that says how many notifications were accepted before.
        """
        accepted, traces = 0, (trace_of_caller(),)
        messages = (
            i if isinstance(i, NotificationMessage) else notification_message(*i, limits=self._limits)
            for i in items
        )
        try:
            for batch in batches(messages, self._batch):
                if self._publisher is None or reliable or partial:
                    await self._send_notify(batch, None, traces, headers=routing_headers(reliable, partial))
                else:
                    await self._publisher.send(batch, traces)
                accepted += len(batch)
        except Exception as error:
            error.add_note(f"{self.url} accepted {accepted} notifications before this error")
            raise
        return accepted

    def publisher(
        self,
        *,
        linger: float = 0.005,
        batch: int | None = None,
        in_flight: int = 8,
        max_waiting: int = 10_000,
        retry_for: float = 60.0,
    ) -> Publisher:
        """Create a publisher with its own connection for a stream of notifications; close it after use."""
        return Publisher(
            self.url,
            soap=self._soap,
            soap_action=self._soap_action,
            linger=linger,
            batch=self._batch if batch is None else batch,
            in_flight=in_flight,
            max_waiting=max_waiting,
            timeout=self._timeout,
            retry_for=retry_for,
            limits=self._limits,
            tls=self._tls,
            token=self._token,
        )

    async def subscribe(
        self,
        topic: TopicLike | None = None,
        consumer: Endpoint | None = None,
        *,
        dialect: str | None = None,
        content: str | ContentFilter | None = None,
        predicate: str | None = None,
        namespaces: Namespaces | None = None,
        expires: Expires = None,
        use_raw: bool = False,
        policy: DeliveryPolicy | None = None,
    ) -> Subscription:
        """Subscribe a consumer (a Receiver, a PullPoint or a URL) to a topic; None means all topics.

        `content` is a filter in XPath 1.0, `predicate` one in the predicate language of HPwsn brokers. A
        notification must match both.
        """
        if consumer is None:
            raise ValueError("consumer is None; give a Receiver, a PullPoint, an endpoint reference or a URL")
        topics = () if topic is None else (topic_expression(topic, dialect, namespaces),)
        contents = content_filters(content, predicate, namespaces)
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
        """Set a new lifetime (None means no expiry) and return the termination time."""
        request = Renew(termination(expires))
        answer = await self._call(endpoint(subscription), "SubscriptionManager", request, RenewResponse)
        if isinstance(subscription, Subscription):
            subscription.terminates = answer.termination_time
        return answer.termination_time

    async def unsubscribe(self, subscription: Endpoint) -> None:
        """End a subscription; its undelivered notifications are dropped."""
        await self._call(endpoint(subscription), "SubscriptionManager", Unsubscribe(), UnsubscribeResponse)

    async def pause(self, subscription: Endpoint) -> None:
        """Keep a subscription's notifications at the broker until it is resumed."""
        await self._call(
            endpoint(subscription),
            "PausableSubscriptionManager",
            PauseSubscription(),
            PauseSubscriptionResponse,
        )

    async def resume(self, subscription: Endpoint) -> None:
        """Resume a paused subscription; the notifications kept meanwhile are delivered first."""
        await self._call(
            endpoint(subscription),
            "PausableSubscriptionManager",
            ResumeSubscription(),
            ResumeSubscriptionResponse,
        )

    async def announce(self, consumer: Endpoint) -> Woken:
        """Tell an HPwsn broker that a consumer is reachable: what waits for it is delivered at once.

        All subscriptions with this consumer are meant, unless they are paused.
        """
        address = endpoint(consumer).address
        return await announce(self.url, address, within=self._timeout, tls=self._tls, token=self._token)

    async def create_pull_point(
        self, name: str | None = None, *, lifetime: timedelta | float | None = None
    ) -> PullPoint:
        """Create a pull point, for consumers that the broker cannot reach; a known name returns its own.

        An HPwsn broker destroys the pull point when nobody has read it for `lifetime`, in seconds if it is a
        number; None means never.
        """
        request = CreatePullPoint(name, duration(lifetime))
        answer = await self._call(self._broker, "CreatePullPoint", request, CreatePullPointResponse)
        return PullPoint(self, answer.pull_point)

    async def get_messages(self, pull_point: Endpoint, maximum: int | None = None) -> list[Notification]:
        """Fetch at most `maximum` notifications, oldest first.

        Each call acknowledges the previous batch; the broker repeats a batch whose reply was lost.
        """
        target = endpoint(pull_point)
        request = GetMessages(maximum, self._last_batch.get(target.address, ""))
        action_uri = action("PullPoint", "GetMessages")
        answer, body = await self._exchange(target, action_uri, request, GetMessagesResponse)
        self._last_batch[target.address] = answer.batch or ""
        if answer.messages:
            self._counters.received(len(answer.messages))
        pairs = zip(answer.messages, reply_traces(body, len(answer.messages)), strict=True)
        return [Notification.of(message, traceparent=trace) for message, trace in pairs]

    async def destroy_pull_point(self, pull_point: Endpoint) -> None:
        """Remove a pull point and its notifications."""
        self._last_batch.pop(endpoint(pull_point).address, None)
        await self._call(endpoint(pull_point), "PullPoint", DestroyPullPoint(), DestroyPullPointResponse)

    async def get_current_message(
        self, topic: TopicLike, *, namespaces: Namespaces | None = None
    ) -> Notification:
        """The last notification on exactly this topic; NoCurrentMessageOnTopicFault if there is none."""
        expression = concrete_topic(topic, namespaces)
        request = GetCurrentMessage(expression)
        answer = await self._call(self._broker, "NotificationProducer", request, GetCurrentMessageResponse)
        return Notification(topic_text(expression), answer.payload)

    async def register_publisher(
        self,
        *topics: TopicLike,
        publisher: Endpoint | None = None,
        demand: bool = False,
        expires: Expires = None,
        namespaces: Namespaces | None = None,
    ) -> Registration:
        """Register a publisher of these topics with the broker; without topics, it may publish on any.

        With `demand`, the broker subscribes at `publisher` while one of the topics has subscribers.
        """
        end = termination(expires)
        # The schema of RegisterPublisher does not allow durations.
        end = end.after(datetime.now(UTC)) if isinstance(end, Duration) else end
        request = RegisterPublisher(
            None if publisher is None else endpoint(publisher),
            tuple(topic_expression(topic, None, namespaces) for topic in topics),
            demand,
            end,
        )
        action_uri = request_action("RegisterPublisher")
        answer = await self._request(self._broker, action_uri, request, RegisterPublisherResponse)
        return Registration(self, answer.registration, answer.consumer or self._broker)

    async def destroy_registration(self, registration: Endpoint) -> None:
        """End a publisher's registration."""
        action_uri = request_action("DestroyRegistration")
        await self._request(
            endpoint(registration), action_uri, DestroyRegistration(), DestroyRegistrationResponse
        )

    async def _send_notify(
        self,
        messages: Sequence[NotificationMessage],
        message_id: str | None,
        traces: Sequence[str | None] = (),
        *,
        consumer: EndpointReference | None = None,
        headers: tuple[bytes, ...] = (),
    ) -> None:
        headers = (*headers, *trace_headers(traces))
        if message_id is not None:
            headers = (*headers, message_id_header(message_id))
        target, sent_at = consumer or self._broker, self._counters.now
        try:
            await self._transport.call(target, ACTION_NOTIFY, encode_notify(messages), headers)
        except Exception:
            self._counters.add("failed", len(messages))
            raise
        self._counters.published(len(messages), sent_at)

    async def _call(
        self, target: EndpointReference, port_type: str, request: Message, expected: type[_Answer]
    ) -> _Answer:
        return await self._request(target, action(port_type, type(request).__name__), request, expected)


class Subscription:
    """A subscription at the broker; `terminates` is its last known termination time, None for no expiry."""

    def __init__(self, client: Client, epr: EndpointReference, terminates: datetime | None = None) -> None:
        self._client = client
        self.epr = epr
        self.terminates = terminates
        self.ended = False

    def __repr__(self) -> str:
        return f"<Subscription {self.epr.address} until {self.terminates or 'unsubscribed'}>"

    async def renew(self, expires: Expires = None) -> datetime | None:
        """Set a new lifetime with Renew; None means no expiry."""
        return await self._client.renew(self, expires)

    async def set_termination_time(self, expires: Expires = None) -> datetime | None:
        """Set a new lifetime with WS-ResourceLifetime's SetTerminationTime; None means no expiry."""
        return await self._client.set_termination_time(self, expires)

    async def get_property(self, name: str, *, namespaces: Namespaces | None = None) -> list[etree._Element]:
        """The values of a resource property, such as wsnt:ConsumerReference."""
        return await self._client.get_resource_property(name, self.epr, namespaces=namespaces)

    async def pause(self) -> None:
        """Keep notifications at the broker until `resume`."""
        await self._client.pause(self.epr)

    async def resume(self) -> None:
        """Resume delivery; the notifications kept meanwhile come first."""
        await self._client.resume(self.epr)

    async def unsubscribe(self) -> None:
        """End the subscription."""
        await self._client.unsubscribe(self.epr)
        self.ended = True


class PullPoint:
    """A pull point at the broker; use it as the consumer of subscriptions."""

    def __init__(self, client: Client, epr: EndpointReference) -> None:
        self._client = client
        self.epr = epr

    def __repr__(self) -> str:
        return f"<PullPoint {self.epr.address}>"

    async def get_messages(self, maximum: int | None = None) -> list[Notification]:
        """Fetch at most `maximum` notifications, oldest first."""
        return await self._client.get_messages(self.epr, maximum)

    async def destroy(self) -> None:
        """Remove the pull point and its notifications."""
        await self._client.destroy_pull_point(self.epr)


class Registration:
    """A publisher's registration; `consumer` is the endpoint to which it publishes."""

    def __init__(self, client: Client, epr: EndpointReference, consumer: EndpointReference) -> None:
        self._client = client
        self.epr = epr
        self.consumer = consumer

    def __repr__(self) -> str:
        return f"<Registration {self.epr.address}>"

    async def notify(
        self, topic: TopicLike | None, payload: Payload, *, message_id: str | None = None
    ) -> None:
        """Publish one notification as this publisher."""
        message = notification_message(topic, payload, limits=self._client._limits)
        trace = trace_of_caller()
        await self._client._send_notify([message], message_id, (trace,), consumer=self.consumer)

    async def destroy(self) -> None:
        """End the registration."""
        await self._client.destroy_registration(self.epr)
