"""A node in this process for tests of the discipline cet: the test sets its clock and restarts it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.node import Node
from hpwsn.settings import Config
from tests.consumer import Consumer
from tests.patience import eventually
from tests.raw_soap import call, notify, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"


def policy(attributes: str) -> str:
    """A SubscriptionPolicy with these attributes of hp:Delivery."""
    delivery = f'<hp:Delivery xmlns:hp="urn:hpwsn:1" {attributes}/>'
    return f"<w:SubscriptionPolicy>{delivery}</w:SubscriptionPolicy>"


class CetNode:
    """A node whose retries do not come by themselves within a test, and whose clock the test sets."""

    def __init__(self, data: Path, window: int = 100, key_file: str = "", **delivery: Any) -> None:
        self.now = 1_700_000_000.0
        default = Config()
        self.config = replace(
            default,
            server=replace(default.server, port=0, drain_timeout=0.2),
            data=replace(default.data, dir=str(data)),
            dtn=replace(default.dtn, key_file=key_file),
            delivery=replace(
                default.delivery, window=window, **{"retry_first": 900.0, "retry_max": 900.0, **delivery}
            ),
        )

    async def start(self) -> None:
        self.node = Node(self.config)
        parts = self.node.parts
        for part in (parts.broker.admission, parts.delivery, parts.broker.subscriptions):
            part._clock = lambda: self.now  # type: ignore[method-assign]
        parts.broker = replace(parts.broker, clock=lambda: self.now)
        await self.node.start()
        self.url = self.node.port.listening_url
        self.base = self.url.removesuffix("/wsn")

    async def close(self) -> None:
        await self.node.close()

    async def subscribed(self, consumer: str, attributes: str = 'discipline="cet"', topic: str = "A") -> str:
        """Subscribe and return the address of the subscription."""
        more = policy(attributes) if attributes else ""
        reply = await call(self.url, subscribe(consumer, topic, more=more))
        assert reply.status == 200, reply.body
        return reply.text(ADDRESS)

    async def publish(self, *numbers: int, topic: str = "A") -> None:
        """Publish one after another, a second apart, so that each is younger than the one before."""
        for number in numbers:
            self.now += 1
            assert (await call(self.url, notify(topic, f"<n>{number}</n>"))).status == 202

    def held(self, address: str) -> Subscription:
        """The subscription with this address."""
        return self.node.parts.subscriptions.get(address.rsplit("/", 1)[1])

    async def waits(self, address: str, count: int) -> None:
        """Wait until so many notifications wait for a subscription, which does nothing now."""
        held = self.held(address)

        async def settled() -> bool:
            return held.cursor.backlog == count and not held.progress.busy

        await eventually(settled)


@asynccontextmanager
async def cet_node(
    data: Path, window: int = 100, key_file: str = "", **delivery: Any
) -> AsyncIterator[CetNode]:
    """A running node."""
    made = CetNode(data, window, key_file, **delivery)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def has(count: int) -> Callable[[Consumer], bool]:
    """Whether a consumer has got so many notifications."""
    return lambda consumer: len(consumer.messages()) >= count
