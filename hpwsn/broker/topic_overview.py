"""All topics in order with their figures: subscribers, rates, and when the last message came.

Lists of topics are pages of an overview. Its parts are kept until what they are made of changes: the order
with the topics, the counts of subscribers with the subscribers, and the rates with each sample. They are made
in slices, so that a large tree does not block the event loop, and only when somebody asks.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from hpwsn.background import in_slices
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.broker.topic_rates import TopicRates
from hpwsn.journal.journal import Journal
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn.topics.tree.subscriber_counts import SubscriberCounts
from hpwsn.topics.tree.topic_node import Node
from hpwsn.topics.tree.tree import TopicTree
from hpwsn.topics.tree.tree_order import STEP, TreeOrder


class RateSums:
    """The events in the window of the rates, by position: of each topic, and with all below it."""

    def __init__(self, order: TreeOrder[Subscriber], rates: TopicRates) -> None:
        self._order = order
        self._counts = list(rates.counts.items())
        self.seconds = rates.seconds
        self.own: list[int] = []
        self.below: list[int] = []

    def steps(self) -> Iterator[None]:
        """Sum up, step by step."""
        own, positions = [0] * len(self._order), self._order.positions
        for number, (topic, count) in enumerate(self._counts):
            position = positions.get(topic)
            if position is not None:
                own[position] = count
            if not number % STEP:
                yield
        self.own = own
        yield
        self.below = self._order.sums(own)

    def rate(self, count: int) -> float:
        """A number of events as events a second."""
        return round(count / self.seconds, 3) if count else 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What an overview knows about one topic; the rates are events a second."""

    node: Node[Subscriber]
    level: int
    subscribers: int
    subscribers_below: int
    rate: float
    rate_below: float


@dataclass(frozen=True, slots=True)
class Overview:
    """All topics at one moment. Positions are those of `order`."""

    order: TreeOrder[Subscriber]
    subscribers: SubscriberCounts[Subscriber]
    rates: RateSums

    def figures(self, position: int) -> Figures:
        """The figures of the topic at a position."""
        rates = self.rates
        return Figures(
            self.order.nodes[position],
            self.order.levels[position],
            self.subscribers.own[position],
            self.subscribers.below[position],
            rates.rate(rates.own[position]),
            rates.rate(rates.below[position]),
        )

    async def select(self, among: range, deepest: int | None, text: str) -> Sequence[int]:
        """The positions in a range, down to a level, of topics with a text in their name or description.

        The case of letters is ignored. A text with a colon is searched in the whole topic, not in its name.
        """
        if deepest is None and not text:
            return among
        found = array("i")
        await in_slices(self._search(among, deepest, text.casefold(), found))
        return found

    def _search(self, among: range, deepest: int | None, text: str, found: array[int]) -> Iterator[None]:
        nodes, levels = self.order.nodes, self.order.levels
        for position in among:
            shown = deepest is None or levels[position] <= deepest
            if shown and (not text or _mentions(nodes[position], text)):
                found.append(position)
            if not position % STEP:
                yield


def _mentions(node: Node[Subscriber], text: str) -> bool:
    name = str(node.topic) if ":" in text else node.name
    return text in name.casefold() or text in node.description.casefold()


class TopicOverviews:
    """Makes overviews; concurrent requests share the work."""

    def __init__(
        self, tree: TopicTree[Subscriber], rates: TopicRates, journal: Journal, started: float
    ) -> None:
        self._tree = tree
        self._rates = rates
        self._journal = journal
        self._life = f"{round(started * 1000):x}"
        self._making = asyncio.Lock()
        self._versions = (-1, -1, -1)
        self._overview: Overview | None = None

    @property
    def revision(self) -> str:
        """Changes with every change of the tree, and with every start of the node."""
        version, usage = self._tree.revision
        return f"{self._life}-{version}-{usage}"

    async def current(self) -> Overview:
        """The overview as of now, or as of a moment after the call."""
        async with self._making:
            tree, rates = self._tree, self._rates
            versions = tree.version, tree.interest_version, rates.version
            overview = self._overview
            if overview is None or versions != self._versions:
                overview = await self._make(overview, versions)
                self._versions, self._overview = versions, overview
            return overview

    async def _make(self, before: Overview | None, versions: tuple[int, int, int]) -> Overview:
        """A new overview, with those parts of the one before that still hold."""
        topics, interest, sample = (now == then for now, then in zip(versions, self._versions, strict=True))
        if before is not None and topics:
            order, counts, sums = before.order, before.subscribers, before.rates
        else:
            interest = sample = False
            order = TreeOrder()
            await in_slices(order.steps(self._tree.root))
        if not interest:
            counts = SubscriberCounts(order, _subscriptions)
            groups = list(self._tree.groups())
            await in_slices(counts.steps(groups, self._tree.match(None)))
        if not sample:
            sums = RateSums(order, self._rates)
            await in_slices(sums.steps())
        return Overview(order, counts, sums)

    async def times(self, offsets: Collection[int]) -> dict[int, float]:
        """When the messages at these offsets were accepted; without those that retention has removed."""
        return await self._journal.times(offsets) if offsets else {}


def _subscriptions(subscriber: Subscriber) -> int:
    """How many subscriptions a subscriber of the tree stands for."""
    return len(subscriber) if isinstance(subscriber, ContentGroup) else 1
