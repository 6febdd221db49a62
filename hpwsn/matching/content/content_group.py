"""Subscribers to the same topics who differ in what content they want, found by one look at each payload.

Those who want the same are one entry. A small group is asked entry after entry; in a larger one the requests
are in an index. Knows neither topics nor the broker; which engine is the builder's choice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from hpwsn.matching.content.content_filters import Evaluation, Wanted
from hpwsn.matching.content.content_index import ContentIndex, Engines, is_indexed

S = TypeVar("S", bound=Hashable)

SMALL = 32
"""Requests that are asked one by one: an index costs as much to look into."""
FEW = SMALL // 4
"""Requests at which an index is given up again."""
MANY = 64
"""Requests for which a compiled kernel pays."""


class ContentGroup(Generic[S]):
    """Subscribers by what they want; compared by identity, as the topic tree's subscribers are."""

    __slots__ = ("_engines", "_entries", "_index", "_requests")

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._entries: dict[Wanted, dict[S, None]] = {}
        self._requests = 0
        self._index: ContentIndex | None = None

    def add(self, subscriber: S, wanted: Wanted) -> None:
        """Take in a subscriber."""
        members = self._entries.get(wanted)
        if members is not None:
            members[subscriber] = None
            return
        self._entries[wanted] = {subscriber: None}
        self._requests += is_indexed(wanted)
        if self._index is not None:
            self._index.add(wanted)
        elif self._requests > SMALL:
            self._index = ContentIndex(self._engines, self._entries)
        if self._requests == MANY:
            self._engines.prepare()

    def discard(self, subscriber: S, wanted: Wanted) -> None:
        """Let a subscriber go; nothing happens where it is none."""
        members = self._entries.get(wanted)
        if members is None or subscriber not in members:
            return
        del members[subscriber]
        if not members:
            self._drop(wanted)

    def _drop(self, wanted: Wanted) -> None:
        del self._entries[wanted]
        self._requests -= is_indexed(wanted)
        if self._index is None:
            return
        if self._requests < FEW:
            self._index = None
        else:
            self._index.remove(wanted)

    def match(self, evaluations: Sequence[Evaluation]) -> list[list[S]]:
        """Those who want each of the payloads."""
        entries = self._entries
        found: Iterable[Iterable[Wanted]]
        if self._index is not None:
            found = self._index.match(evaluations)
        else:
            found = (filter(evaluation.accepts, entries) for evaluation in evaluations)
        return [[subscriber for wanted in each for subscriber in entries[wanted]] for each in found]

    def __iter__(self) -> Iterator[S]:
        return (subscriber for members in self._entries.values() for subscriber in members)

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __bool__(self) -> bool:
        return bool(self._entries)
