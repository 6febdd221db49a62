"""The sender of webhooks: each body is encoded once for all that get it, and a failure is an outcome."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest

from hpwsn.broker.delivery.webhook_sender import WebhookSender
from hpwsn.broker.push.pool import Pusher
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.readers.log_pages import LOOP_BYTES, Stretch
from hpwsn.broker.subscriptions.cursor import Cursor
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.broker.subscriptions.webhook import Webhook
from hpwsn.door.rest.events.event_pages import EventPages
from hpwsn.notification import Notification, Run
from hpwsn_client.wsn.operations.messages import DeliveryPolicy, Subscribe, SubscriptionPolicy
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import PATIENCE


class Posts:
    """Keeps what is posted, in place of connections."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def post(self, url: str, headers: bytes, body: bytes, done: Any) -> None:
        self.bodies.append(body)
        done(Outcome(OutcomeKind.DELIVERED))


class Encoder:
    """The encoder of the JSON door, with a count."""

    def __init__(self) -> None:
        self.stretches: list[int] = []
        self._pages = EventPages()

    def __call__(self, stretches: Sequence[Stretch]) -> list[bytes]:
        self.stretches.append(len(stretches))
        return self._pages.json_events(stretches)


def webhook(batch: int | None = None) -> Subscription:
    policy = SubscriptionPolicy(delivery=DeliveryPolicy(batch=batch))
    consumer = EndpointReference("http://127.0.0.1:9/")
    request = Subscribe(consumer, policy=policy, extensions=(Webhook(b"key").extension(),))
    cursor = Cursor(0, window=9, head=0)
    return Subscription("id", request, SoapVersion.SOAP12, 0.0, None, cursor, "http://127.0.0.1:8080")


def notifications(topic: str, *payloads: bytes) -> list[Notification]:
    ends = b"".join(payload + b"\x1e" for payload in payloads)
    return list(Run(Topic.parse(topic), b"<m>", ends, len(payloads), 1.5))


def sender(posts: Posts, encode: Encoder) -> WebhookSender:
    return WebhookSender(cast(Pusher, posts), 64, encode)


def test_webhooks_with_the_same_notifications_share_one_encoding() -> None:
    posts, encode = Posts(), Encoder()
    one, some = sender(posts, encode), notifications("a", b"<e><n>1</n></e>", b"<e><n>2</n></e>")
    for _ in range(3):
        one.send(webhook(), [7, 9], some, lambda outcome: None)
    assert encode.stretches == [1]  # notifications that differ only in their payloads are one stretch
    assert len(set(posts.bodies)) == 1
    events = json.loads(posts.bodies[0])
    assert [(each["offset"], each["topic"], each["data"]) for each in events] == [
        (7, "a", {"n": 1}),
        (9, "a", {"n": 2}),
    ]


def test_notifications_of_several_topics_keep_their_order() -> None:
    posts, encode = Posts(), Encoder()
    some = [one for topic in "aba" for one in notifications(topic, b"<n>1</n>")]
    sender(posts, encode).send(webhook(), [1, 2, 3], some, lambda outcome: None)
    assert [(each["offset"], each["topic"]) for each in json.loads(posts.bodies[0])] == [
        (1, "a"),
        (2, "b"),
        (3, "a"),
    ]


def test_a_batch_is_at_most_that_of_the_policy_and_of_the_node() -> None:
    one = sender(Posts(), Encoder())
    assert [one.batch(webhook(size)) for size in (None, 1, 64, 65)] == [64, 1, 64, 64]


async def test_a_large_body_is_posted_later() -> None:
    posts, encode = Posts(), Encoder()
    one, some = sender(posts, encode), notifications("a", b"<n>%b</n>" % (b"x" * LOOP_BYTES))
    done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    one.send(webhook(), [1], some, done.set_result)
    assert not posts.bodies
    assert (await done).kind is OutcomeKind.DELIVERED
    assert len(posts.bodies[0]) > LOOP_BYTES


def fail(stretches: Sequence[Stretch]) -> list[bytes]:
    raise ValueError("no form")


@pytest.mark.parametrize("size", [1, LOOP_BYTES])
async def test_events_that_cannot_be_encoded_are_an_outcome_after_the_call(size: int) -> None:
    posts, outcomes = Posts(), asyncio.Queue[Outcome]()
    one, some = WebhookSender(cast(Pusher, posts), 64, fail), notifications("a", b"<n>%b</n>" % (b"x" * size))
    for _ in range(2):
        one.send(webhook(), [1], some, outcomes.put_nowait)
        assert outcomes.empty()
        outcome = await outcomes.get()
        assert outcome.kind is OutcomeKind.UNAVAILABLE
        assert outcome.reason == "the events could not be encoded: no form"
    assert not posts.bodies


async def test_close_ends_what_is_encoded_and_reports_it_as_cancelled() -> None:
    posts, go_on, outcomes = Posts(), threading.Event(), list[Outcome]()

    def wait(stretches: Sequence[Stretch]) -> list[bytes]:
        go_on.wait(PATIENCE)
        return [b"{}"]

    one = WebhookSender(cast(Pusher, posts), 64, wait)
    some = notifications("a", b"<n>%b</n>" % (b"x" * LOOP_BYTES))
    try:
        for _ in range(2):
            one.send(webhook(), [1], some, outcomes.append)
        await asyncio.sleep(0)  # the tasks have begun
        await one.close()
    finally:
        go_on.set()
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.CANCELLED] * 2
    assert not posts.bodies
    await one.close()
    assert len(outcomes) == 2
