"""The resource property documents of the broker, of subscriptions and of publisher registrations.

They are NotificationBrokerRP and PublisherRegistrationRP (WS-BrokeredNotification 1.3, schema br-2) and
SubscriptionManagerRP (WS-BaseNotification 1.3, section 6, schema b-2), with the times of
WS-ResourceLifetime 1.2. A value is computed only when a request asks for it. The functions change no state,
and the time is an argument.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hpwsn.broker.registrations.registered_publisher import Registration
from hpwsn.broker.subscriptions.producer_conditions import PropertyDocument
from hpwsn.broker.subscriptions.subscription import Subscriber, Subscription
from hpwsn.topics.tree.topic_set import topic_expressions, topic_set
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.filters import Filter, encode_filter
from hpwsn_client.wsn.operations.lifetime import encode_rl_time
from hpwsn_client.wsn.operations.messages import SubscriptionPolicy, encode_policy
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr
from hpwsn_client.wsn.soap.names import (
    DIALECT_CONCRETE,
    DIALECT_CONCRETE_SET,
    DIALECT_FULL,
    DIALECT_SIMPLE,
    DIALECT_XPATH,
    WSN_BR,
    WSNT,
    WSRF_RP,
    WSTOP,
    br,
    rl,
    rp,
    wsnt,
)
from hpwsn_client.wsn.soap.times import format_time
from hpwsn_client.wsn.topics.topic_expressions import encode_topic


def broker_properties(tree: TopicTree[Subscriber], requires_registration: bool = False) -> PropertyDocument:
    """Return the property document of the broker."""
    return PropertyDocument(
        f"{{{WSN_BR}}}NotificationBrokerRP",
        {
            wsnt("TopicExpression"): lambda: list(topic_expressions(tree.root)),
            wsnt("FixedTopicSet"): lambda: [_text("wsnt:FixedTopicSet", WSNT, _boolean(tree.fixed))],
            wsnt("TopicExpressionDialect"): lambda: [
                _text("wsnt:TopicExpressionDialect", WSNT, dialect)
                for dialect in (DIALECT_SIMPLE, DIALECT_CONCRETE, DIALECT_FULL, DIALECT_CONCRETE_SET)
            ],
            f"{{{WSTOP}}}TopicSet": lambda: [topic_set(tree.root)],
            f"{{{WSN_BR}}}RequiresRegistration": lambda: [
                _text("wsn-br:RequiresRegistration", WSN_BR, _boolean(requires_registration))
            ],
            rp("QueryExpressionDialect"): _query_dialects,
        },
        frozenset({rp("QueryExpressionDialect")}),
    )


def subscription_properties(subscription: Subscription, now: datetime) -> PropertyDocument:
    """Return the property document of a subscription."""
    request = subscription.request
    created, terminates = _moment(subscription.created), subscription.terminates
    return PropertyDocument(
        wsnt("SubscriptionManagerRP"),
        {
            wsnt("ConsumerReference"): lambda: [encode_epr(request.consumer, wsnt("ConsumerReference"))],
            wsnt("Filter"): lambda: [encode_filter(request.filter)] if request.filter != Filter() else [],
            wsnt("SubscriptionPolicy"): lambda: (
                [encode_policy(request.policy)] if request.policy != SubscriptionPolicy() else []
            ),
            wsnt("CreationTime"): lambda: [_text("wsnt:CreationTime", WSNT, format_time(created))],
            rl("CurrentTime"): lambda: [encode_rl_time("CurrentTime", now)],
            rl("TerminationTime"): lambda: [
                encode_rl_time("TerminationTime", None if terminates is None else _moment(terminates))
            ],
            rp("QueryExpressionDialect"): _query_dialects,
        },
        frozenset({rl("CurrentTime"), rl("TerminationTime"), rp("QueryExpressionDialect")}),
    )


def registration_properties(registration: Registration, now: datetime) -> PropertyDocument:
    """Return the property document of a publisher registration."""
    request = registration.request
    created, terminates = _moment(registration.created), registration.terminates
    consumer = EndpointReference(registration.address)
    times = {
        rl("CurrentTime"): lambda: [encode_rl_time("CurrentTime", now)],
        rl("TerminationTime"): lambda: [
            encode_rl_time("TerminationTime", None if terminates is None else _moment(terminates))
        ],
        rp("QueryExpressionDialect"): _query_dialects,
        br("ConsumerReference"): lambda: [encode_epr(consumer, br("ConsumerReference"))],
    }
    return PropertyDocument(
        br("PublisherRegistrationRP"),
        {
            br("PublisherReference"): lambda: (
                [] if request.publisher is None else [encode_epr(request.publisher, br("PublisherReference"))]
            ),
            br("Topic"): lambda: [encode_topic(topic, br("Topic")) for topic in request.topics],
            br("Demand"): lambda: [_text("wsn-br:Demand", WSN_BR, _boolean(request.demand))],
            br("CreationTime"): lambda: [_text("wsn-br:CreationTime", WSN_BR, format_time(created))],
            **times,
        },
        frozenset(times),
    )


def _query_dialects() -> list[bytes]:
    return [_text("wsrf-rp:QueryExpressionDialect", WSRF_RP, DIALECT_XPATH)]


def _text(name: str, namespace: str, text: str) -> bytes:
    prefix = name.partition(":")[0]
    return f'<{name} xmlns:{prefix}="{namespace}">{text}</{name}>'.encode()


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _moment(time: float) -> datetime:
    return datetime.fromtimestamp(time, UTC)
