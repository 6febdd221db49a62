"""The broker: the operations that need more than one registry, shared by all doors.

Operations on a single registry are called on it directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hpwsn.broker.admission.admission import Admission
from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.lifetimes.message_expiry import has_expired
from hpwsn.broker.push.request import parse_target
from hpwsn.broker.registrations.demand import Demand
from hpwsn.broker.registrations.registrations import Registrations
from hpwsn.broker.subscriptions.pull_points import PullPoints
from hpwsn.broker.subscriptions.ranked_cursor import RankedCursor
from hpwsn.broker.subscriptions.resource_addresses import own_path
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.broker.subscriptions.subscriptions import Subscriptions
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import Pulled
from hpwsn.topics.tree.internal_topics import internal_fault
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.notifications import NotificationMessage
from hpwsn_client.wsn.operations.receipts import ReceiptTo, with_receipt_to, without_receipt_to
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
    sends_receipts: bool = True

    def now(self) -> datetime:
        """The current time, for answers."""
        return datetime.fromtimestamp(self.clock(), UTC)

    def pull_point_address(self, id_: str) -> str:
        """The URL of a pull point."""
        return f"{self.base_url()}/wsn/pullpoints/{id_}"

    def subscription_address(self, id_: str) -> str:
        """The URL of a subscription's manager."""
        return f"{self.base_url()}/wsn/subscriptions/{id_}"

    def ask_for_receipts(
        self, messages: Sequence[NotificationMessage], receipt_to: ReceiptTo | None
    ) -> Sequence[NotificationMessage]:
        """The messages with their publisher's request for receipts; a fault for an unusable address.

        A request that a message brings along, since it was published at another broker before, is removed.
        """
        messages = [
            m
            if m.producer is None or not m.producer.extensions
            else replace(m, producer=without_receipt_to(m.producer))
            for m in messages
        ]
        if receipt_to is None:
            return messages
        if not self.sends_receipts:
            raise faults.InvalidMessage(
                "this broker sends no receipts (delivery.receipts); leave out hp:ReceiptTo"
            )
        self._check_receipt_address(receipt_to.address.address)
        return [replace(m, producer=with_receipt_to(m.producer, receipt_to)) for m in messages]

    def _check_receipt_address(self, address: str) -> None:
        own = own_path(address, self.base_url())
        try:
            parse_target(address)
        except ValueError as error:
            raise faults.InvalidMessage(f"receipts cannot be sent to {address!r}: {error}") from error
        if own is not None:
            raise faults.InvalidMessage(
                f"receipts cannot be sent to {address!r}, which is this broker; give an address of your own"
            )

    async def current_message(self, expression: TopicExpression) -> bytes:
        """The last payload published on the single topic that the expression names."""
        topic = self._one_topic(expression)
        node = self.tree.find(topic)
        if node is None and self.tree.fixed:
            raise self.tree.unsupported(topic)
        if self.tree.is_internal(topic):
            raise internal_fault(str(topic))
        if node is not None and node.current is not None:
            for stored in await self.journal.read([node.current]):
                return stored.notification.payload
        raise faults.NoCurrentMessageOnTopicFault(f"there is no stored notification on topic {topic}")

    def _one_topic(self, expression: TopicExpression) -> Topic:
        if expression.topic is not None:
            return expression.topic
        topics = list(self.tree.concrete(expression))
        if len(topics) > 1:
            raise faults.MultipleTopicsSpecifiedFault(
                f"{expression.text!r} matches {len(topics)} topics; GetCurrentMessage needs exactly one"
            )
        if not topics:
            raise faults.TopicNotSupportedFault(f"{expression.text!r} matches no topic of this broker")
        return topics[0]

    async def pull(self, id_: str, maximum: int | None, confirm: str | None) -> Sequence[Pulled]:
        """The oldest messages of a pull point, including notifications accepted just before this call."""
        self.pull_points.get(id_)
        await self.delivery.settle(self.subscriptions.leading_to(id_))
        return await self.pull_points.hand_out(id_, maximum, confirm, self._leaves)

    def _leaves(self, entry: Pulled) -> bool:
        """Whether a queued message is older than its subscription allows, or its topic is internal now.

        What was posted straight to the pull point has no subscription, and was never published.
        """
        if entry.subscription_id is not None and self.delivery.withheld(entry.stored.notification):
            return True
        subscription = self.subscriptions.find(entry.subscription_id or "")
        if subscription is None:
            return False
        accepted, cursor = entry.stored.notification.time, subscription.cursor
        if isinstance(cursor, RankedCursor) and cursor.rules.too_old(accepted, self.clock()):
            return True
        return subscription.expires is not None and has_expired(subscription.expires, accepted, self.clock())

    async def destroy_pull_point(self, id_: str) -> None:
        """Destroy a pull point and end the subscriptions that deliver into it."""
        await self.pull_points.destroy(id_)
        await self.subscriptions.end_all(self.subscriptions.leading_to(id_))
