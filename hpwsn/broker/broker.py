"""The broker: what doors ask for that takes more than one of its parts.

Single registries are used directly; here are the operations that join them, so that no door holds rules of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hpwsn.broker.admission.admission import Admission
from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.lifetimes.message_expiry import has_expired
from hpwsn.broker.registrations.demand import Demand
from hpwsn.broker.registrations.registrations import Registrations
from hpwsn.broker.subscriptions.pull_points import PullPoints
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.broker.subscriptions.subscriptions import Subscriptions
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Pulled
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression


@dataclass(frozen=True, slots=True)
class Broker:
    """The parts of a node behind its doors."""

    admission: Admission
    subscriptions: Subscriptions
    pull_points: PullPoints
    delivery: Delivery
    tree: TopicTree[Subscriber]
    journal: Journal
    base_url: Callable[[], str]
    clock: Callable[[], float]
    registrations: Registrations
    demand: Demand

    def now(self) -> datetime:
        """The time that answers carry."""
        return datetime.fromtimestamp(self.clock(), UTC)

    def pull_point_address(self, id_: str) -> str:
        """Where a pull point answers."""
        return f"{self.base_url()}/wsn/pullpoints/{id_}"

    def subscription_address(self, id_: str) -> str:
        """Where a subscription's manager answers."""
        return f"{self.base_url()}/wsn/subscriptions/{id_}"

    async def current_message(self, expression: TopicExpression) -> bytes:
        """The payload last published on the one topic that is asked for."""
        topic = self._one_topic(expression)
        node = self.tree.find(topic)
        if node is None and self.tree.fixed:
            raise self.tree.unsupported(topic)
        if node is not None and node.current is not None:
            for stored in await self.journal.read([node.current]):
                return stored.notification.payload
        raise faults.NoCurrentMessageOnTopicFault(f"nothing has been published on {topic} that is still kept")

    def _one_topic(self, expression: TopicExpression) -> Topic:
        if expression.topic is not None:
            return expression.topic
        topics = list(self.tree.concrete(expression))
        if len(topics) > 1:
            raise faults.MultipleTopicsSpecifiedFault(
                f"{expression.text!r} means {len(topics)} topics; GetCurrentMessage is for one"
            )
        if not topics:
            raise faults.TopicNotSupportedFault(f"there is no topic that {expression.text!r} means")
        return topics[0]

    async def pull(self, id_: str, maximum: int | None, confirm: str | None) -> Sequence[Pulled]:
        """The oldest messages of a pull point, all that was accepted before this call included."""
        self.pull_points.get(id_)
        await self.delivery.settle(self.subscriptions.leading_to(id_))
        return await self.pull_points.hand_out(id_, maximum, confirm, self._expired)

    def _expired(self, entry: Pulled) -> bool:
        """Whether it waited longer in a pull point than the subscription that brought it lets it."""
        subscription = self.subscriptions.find(entry.subscription_id or "")
        if subscription is None or subscription.expires is None:
            return False
        return has_expired(subscription.expires, entry.stored.notification.time, self.clock())

    async def destroy_pull_point(self, id_: str) -> None:
        """End a pull point and the subscriptions that lead to it."""
        await self.pull_points.destroy(id_)
        await self.subscriptions.end_all(self.subscriptions.leading_to(id_))
