"""Filters on the properties of the producer (WS-BaseNotification 1.3, section 4.2: ProducerProperties).

To its subscribers the producer is this broker, so the document is its own NotificationBrokerRP. A
notification is for a subscription only if all its conditions hold when it comes. They are not worked out for
each: the document changes with the topics alone, so it is looked at when a subscription is made, and again,
now and then, once the tree has changed. It may be large, so that happens in another thread, once for all
conditions, and takes a tenth of that thread's time at most.
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
"""Seconds between two looks at the tree, at least."""
REST = 10
"""How many times longer the pause is than the last look took."""


Values = Callable[[], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class PropertyDocument:
    """The properties of one resource, by their Clark names, and the element that holds them all.

    Those of another standard, in `beside`, can be asked for like the rest, but the element's schema has no
    place for them: it is written without them.
    """

    element: str
    properties: Mapping[str, Values]
    beside: frozenset[str] = frozenset()

    def values(self, name: str) -> Sequence[bytes]:
        """The values of one property, perhaps none; the fault of the standard where there is no such one."""
        values = self.properties.get(name)
        if values is None:
            raise InvalidResourcePropertyQNameFault(
                f"there is no property {shown(name)} here; there are {', '.join(self.properties)}"
            )
        return values()

    def of(self, names: Sequence[str]) -> Iterator[bytes]:
        """The values of several properties; a wrong name is found before anything is worked out."""
        for name in set(names) - set(self.properties):
            self.values(name)
        return (value for name in names for value in self.values(name))

    def query(self, query: ContentFilter, most: int) -> tuple[bytes, ...]:
        """What a query finds in the whole document, in at most so many bytes."""
        find = compile_query(query)
        written = {name: b"".join(values()) for name, values in self.properties.items()}
        whole = self._around(value for name, value in written.items() if name not in self.beside)
        return find(parse_xml(self._around(written.values()), STORED_LIMITS), whole, most)

    def parsed(self) -> etree._Element:
        """The whole document, with all that can be asked for, as it is at this moment."""
        values = (value for values in self.properties.values() for value in values())
        return parse_xml(self._around(values), STORED_LIMITS)

    def _around(self, values: Iterable[bytes]) -> bytes:
        name, declaration = prefixed(self.element)
        return b"<%b%b>%b</%b>" % (name.encode(), declaration.encode(), b"".join(values), name.encode())


class InThread(Protocol):
    """Runs in another thread what only looks at the state of the node."""

    def __call__(self, work: Callable[[], Answers], /) -> Coroutine[None, None, Answers]: ...


class Conditions(BackgroundTask):
    """Knows which subscriptions the properties of this broker let have notifications now."""

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
        """Keep its answer up to date from the next look on; raises the fault for a bad expression."""
        if subscription.producer_properties:
            for each in subscription.producer_properties:
                if each not in self._compiled:
                    self._compiled[each] = compile_producer_properties(each)
            self._watched[subscription] = None
            subscription.producer_holds = False

    def forget(self, subscription: Subscription) -> None:
        """The subscription has ended."""
        self._watched.pop(subscription, None)

    async def look(self) -> None:
        """Work every condition out on the document of this moment."""
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
