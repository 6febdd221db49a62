"""Filters on the properties of the producer (WS-BaseNotification 1.3, section 4.2: ProducerProperties).

The producer is this broker, so the filters apply to its NotificationBrokerRP document. A subscription gets a
notification only if all its conditions hold at that time. The document changes only with the topics. So
conditions are evaluated when a subscription is created, and again after the topic tree has changed, not for
each notification. The document may be large: one evaluation covers all conditions, runs in another thread,
and uses at most a tenth of its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lxml import etree

from hpwsn.background import BackgroundTask
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn_client.wsn.operations.filters import ContentFilter, compile_producer_properties
from hpwsn_client.wsn.operations.queries import compile_query
from hpwsn_client.wsn.soap.faults import InvalidResourcePropertyQNameFault
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml, prefixed
from hpwsn_client.wsn.topics.topic import shown

Predicate = Callable[[etree._Element], bool]
Answers = dict[ContentFilter, bool]

PAUSE = 1.0
"""Minimum seconds between two evaluations."""
REST = 10
"""The pause is at least this many times the duration of the last evaluation."""


Values = Callable[[], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class PropertyDocument:
    """The properties of one resource, by their Clark names, and their parent element.

    Properties in `beside` are of another standard. They can be read and queried, but the schema of the
    element does not allow them, so the complete document omits them.
    """

    element: str
    properties: Mapping[str, Values]
    beside: frozenset[str] = frozenset()

    def values(self, name: str) -> Sequence[bytes]:
        """The values of one property, possibly none; the standard's fault for an unknown property."""
        values = self.properties.get(name)
        if values is None:
            raise InvalidResourcePropertyQNameFault(
                f"property {shown(name)} is unknown; known are {', '.join(self.properties)}"
            )
        return values()

    def of(self, names: Sequence[str]) -> Iterator[bytes]:
        """The values of several properties; an unknown name raises before any value is computed."""
        for name in set(names) - set(self.properties):
            self.values(name)
        return (value for name in names for value in self.values(name))

    def query(self, query: ContentFilter, most: int) -> tuple[bytes, ...]:
        """The result of a query on the document, at most `most` bytes."""
        find = compile_query(query)
        written = {name: b"".join(values()) for name, values in self.properties.items()}
        whole = self._around(value for name, value in written.items() if name not in self.beside)
        return find(parse_xml(self._around(written.values()), STORED_LIMITS), whole, most)

    def parsed(self) -> etree._Element:
        """The current document with all properties, including those in `beside`."""
        values = (value for values in self.properties.values() for value in values())
        return parse_xml(self._around(values), STORED_LIMITS)

    def _around(self, values: Iterable[bytes]) -> bytes:
        name, declaration = prefixed(self.element)
        return b"<%b%b>%b</%b>" % (name.encode(), declaration.encode(), b"".join(values), name.encode())


class InThread(Protocol):
    """Runs a function in another thread; the function must only read the node's state."""

    def __call__(self, work: Callable[[], Answers], /) -> Coroutine[None, None, Answers]: ...


class Conditions(BackgroundTask):
    """Evaluates the conditions of all subscriptions on the properties of this broker."""

    def __init__(
        self, document: Callable[[], PropertyDocument], revision: Callable[[], Hashable], in_thread: InThread
    ) -> None:
        super().__init__(self._look_now_and_then)
        self._document = document
        self._revision = revision
        self._in_thread = in_thread
        self._watched: dict[Subscription, None] = {}
        self._compiled: dict[ContentFilter, Predicate] = {}
        self._looking = asyncio.Lock()
        self._looked_at: Hashable = None

    def watch(self, subscription: Subscription) -> None:
        """Evaluate the subscription's conditions from the next `look` on; a fault for a bad expression."""
        if subscription.producer_properties:
            for each in subscription.producer_properties:
                if each not in self._compiled:
                    self._compiled[each] = compile_producer_properties(each)
            self._watched[subscription] = None
            subscription.producer_holds = False

    def forget(self, subscription: Subscription) -> None:
        """Stop to evaluate the conditions of a subscription that has ended."""
        self._watched.pop(subscription, None)

    async def look(self) -> None:
        """Evaluate all conditions on the current document."""
        if not self._watched:
            return
        async with self._looking:
            revision, document = self._revision(), self._document()
            wanted = {each for subscription in self._watched for each in subscription.producer_properties}
            self._compiled = {each: self._compiled[each] for each in wanted}
            compiled = dict(self._compiled)
            answers = await self._in_thread(lambda: _answers(document, compiled))
            for subscription in self._watched:
                if answers.keys() >= set(subscription.producer_properties):
                    subscription.producer_holds = all(answers[f] for f in subscription.producer_properties)
            self._looked_at = revision

    async def _look_now_and_then(self) -> None:
        loop, pause = asyncio.get_running_loop(), PAUSE
        while True:
            await asyncio.sleep(pause)
            if self._watched and self._revision() != self._looked_at:
                began = loop.time()
                await self.look()
                pause = max(PAUSE, REST * (loop.time() - began))


def _answers(document: PropertyDocument, compiled: Mapping[ContentFilter, Predicate]) -> Answers:
    root = document.parsed()
    return {each: predicate(root) for each, predicate in compiled.items()}
