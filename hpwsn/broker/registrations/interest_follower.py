"""Who uses the topics of targets: subscriptions, waiting readers and other nodes.

A target has a topic expression, and is wanted while the interest of at least one user overlaps it. Users are
deliverable subscriptions, readers without a subscription that wait or have a stream open, and what other
nodes want. Without a target nothing is counted. Publishers on demand, virtual sensors and sensors on demand
each have a follower of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from hpwsn.broker.registrations.demand_interest import Expressions, Interests
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

FOLLOWED = 200
"""Subscriptions that are counted in one step when the first target is added to a node that has begun."""

T = TypeVar("T", bound=Hashable)


class InterestFollower(Generic[T]):
    """Counts the users of targets; `changed` is called when `wanted` of a target changes."""

    def __init__(
        self, changed: Callable[[T], None], simple_subtree: bool, *, without_topics: bool = True
    ) -> None:
        """`without_topics` tells whether a subscription without a topic filter is a user of every target."""
        self._changed = changed
        self._simple_subtree = simple_subtree
        self._without_topics = without_topics
        self._interests: Interests[T] = Interests(changed, simple_subtree)
        self._targets: set[T] = set()
        self._counted: set[Subscription] = set()
        self._elsewhere: set[Expressions] = set()
        self._begun = False
        self._counting: asyncio.Task[None] | None = None
        self.subscriptions: Callable[[], Iterable[Subscription]] = tuple
        """All subscriptions, of which only deliverable ones count."""
        self.watched: Callable[[], Iterable[Topic]] = tuple
        """The topics for which readers wait."""
        self.elsewhere: Callable[[], set[Expressions]] = set
        """The interests of other nodes, which count like local ones."""

    def add(self, target: T, expression: TopicExpression | None) -> None:
        """Follow the users of a target, without calling `changed`; None stands for all topics."""
        if not self._targets:
            self._follow()
        self._targets.add(target)
        self._interests.add(target, expression)

    def discard(self, target: T) -> None:
        """Forget a target, without calling `changed`."""
        self._interests.discard(target)
        self._targets.discard(target)
        if not self._targets:
            self._unfollow()

    def wanted(self, target: T) -> bool:
        """Whether the target has a user."""
        return self._interests.wanted(target)

    def begin(self) -> None:
        """From now on clients wait for answers: many subscriptions are counted in steps."""
        self._begun = True

    async def close(self) -> None:
        """Stop to count."""
        self._begun = False
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.wait([self._counting])

    # Users

    def subscription_changed(self, subscription: Subscription) -> None:
        """Called for a subscription that may have started or stopped to want notifications."""
        if self._targets:
            self._count(subscription)

    def reader_changed(self, topic: Topic, waiting: bool) -> None:
        """Called when readers without a subscription start or stop to wait for a topic."""
        if self._targets:
            (self._interests.want if waiting else self._interests.release)(_watching(topic))

    def elsewhere_changed(self) -> None:
        """Called when the interests of other nodes may have changed."""
        if self._targets:
            self._look_elsewhere()

    def _follow(self) -> None:
        for topic in self.watched():
            self._interests.want(_watching(topic))
        self._look_elsewhere()
        found = list(self.subscriptions())
        # During the start no client waits, and all interests must be known when it ends.
        at_once = found[:FOLLOWED] if self._begun else found
        for subscription in at_once:
            self._count(subscription)
        if len(found) > len(at_once):
            rest = self._count_on(found[len(at_once) :], self._interests)
            self._counting = asyncio.get_running_loop().create_task(rest)

    async def _count_on(self, found: list[Subscription], interests: Interests[T]) -> None:
        """Count the remaining subscriptions in steps; one that changes in between is counted once."""
        for number, subscription in enumerate(found):
            if number % FOLLOWED == 0:
                await asyncio.sleep(0)
            if self._interests is not interests:
                return
            self._count(subscription)

    def _unfollow(self) -> None:
        self._counted.clear()
        self._elsewhere = set()
        self._interests = Interests(self._changed, self._simple_subtree)

    def _count(self, subscription: Subscription) -> None:
        if subscription.deliverable is (subscription in self._counted) or not self._counts(
            subscription.topics
        ):
            return
        if subscription.deliverable:
            self._counted.add(subscription)
            self._interests.want(subscription.topics)
        else:
            self._counted.discard(subscription)
            self._interests.release(subscription.topics)

    def _look_elsewhere(self) -> None:
        wanted = {each for each in self.elsewhere() if self._counts(each)}
        for expressions in wanted - self._elsewhere:
            self._interests.want(expressions)
        for expressions in self._elsewhere - wanted:
            self._interests.release(expressions)
        self._elsewhere = wanted

    def _counts(self, expressions: Expressions) -> bool:
        return self._without_topics or bool(expressions)


def _watching(topic: Topic) -> tuple[TopicExpression, ...]:
    return (TopicExpression.of(topic, DIALECT_SIMPLE),)
