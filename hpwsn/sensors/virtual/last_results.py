"""The last result of each virtual sensor, on which its next one depends.

It is kept in memory from the first result on. After a restart it is the current message of the virtual
sensor's topic, unless that was published before the virtual sensor was defined. A virtual sensor that was
defined anew for another quantity holds no value of the former one.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.sensors.readings.reading_times import parse_time
from hpwsn.sensors.templates.result import Before, Result, before_of
from hpwsn.sensors.templates.template import VirtualTemplate
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.formats.json_events import decode_event

log = logging.getLogger(__name__)


class LastResult(NamedTuple):
    """The end of a window, and what its result means for the next one."""

    time: int
    before: Before


class LastResults:
    """Remembers results by the name of the virtual sensor, and finds those before the start."""

    def __init__(self, journal: Journal, tree: TopicTree[Subscriber]) -> None:
        self._journal = journal
        self._tree = tree
        self._known: dict[str, tuple[object, LastResult]] = {}
        """With the quantity of the result."""

    def note(self, result: Result) -> None:
        """Remember a result."""
        self._known[result.sensor] = result.quantity, LastResult(result.time, result.before)

    def forget(self, name: str) -> None:
        """Forget a virtual sensor that was removed."""
        self._known.pop(name, None)

    async def of(self, template: VirtualTemplate, created: float) -> LastResult | None:
        """The last result since the virtual sensor was created, in seconds since 1970; None without one."""
        known = self._known.get(template.name) or await self._published(template, created)
        if known is None:
            return None
        quantity, found = known
        if quantity == template.quantity:
            return found
        return found._replace(before=found.before._replace(value=None))

    async def _published(self, template: VirtualTemplate, created: float) -> tuple[object, LastResult] | None:
        offset = self._tree.current(template.topic)
        if offset is None:
            return None
        try:
            entries = await self._journal.read([offset])
        except JournalUnavailable as error:
            log.warning("the last result of %s cannot be read: %s", template.topic, error)
            return None
        for entry in entries:
            if entry.notification.time < created:
                continue
            event = decode_event(entry.notification.payload)
            text = event.get("time")
            time = parse_time(text) if isinstance(text, str) else None
            if time is not None:
                return event.get("quantity"), LastResult(time, before_of(event))
        return None
