"""Subscribers to the same topics, grouped by content filter, so that each payload is evaluated once for all.

Subscribers with equal filters share one entry. A small group evaluates its entries one by one; a larger one
has an index. The module knows neither topics nor the broker, and the builder chooses the engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from hpwsn.matching.content.content_filters import CompiledFilter, Evaluation
from hpwsn.matching.content.content_index import ContentIndex, Engines, is_indexed

S = TypeVar("S", bound=Hashable)

INDEX_ABOVE = 32
"""More filters than this are indexed; for fewer, an index lookup costs as much as evaluating them."""
UNINDEX_BELOW = INDEX_ABOVE // 4
"""With fewer filters than this, the index is dropped."""
COMPILE_AT = 64
"""Number of filters from which a compiled kernel pays."""


class ContentGroup(Generic[S]):
    """Subscribers by compiled filter, compared by identity as in the topic tree."""

    __slots__ = ("_engines", "_entries", "_index", "_requests")

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._entries: dict[CompiledFilter, dict[S, None]] = {}
        self._requests = 0
        self._index: ContentIndex | None = None

    def add(self, subscriber: S, compiled: CompiledFilter) -> None:
        """Add a subscriber."""
        members = self._entries.get(compiled)
        if members is not None:
            members[subscriber] = None
            return
        self._entries[compiled] = {subscriber: None}
        self._requests += is_indexed(compiled)
        if self._index is not None:
            self._index.add(compiled)
        elif self._requests > INDEX_ABOVE:
            self._index = ContentIndex(self._engines, self._entries)
        if self._requests == COMPILE_AT:
            self._engines.prepare()

    def discard(self, subscriber: S, compiled: CompiledFilter) -> None:
        """Remove a subscriber, if it is in the group."""
        members = self._entries.get(compiled)
        if members is None or subscriber not in members:
            return
        del members[subscriber]
        if not members:
            self._drop(compiled)

    def _drop(self, compiled: CompiledFilter) -> None:
        del self._entries[compiled]
        self._requests -= is_indexed(compiled)
        if self._index is None:
            return
        if self._requests < UNINDEX_BELOW:
            self._index = None
        else:
            self._index.remove(compiled)

    def match(self, evaluations: Sequence[Evaluation]) -> list[list[S]]:
        """Return the matching subscribers for each payload."""
        entries = self._entries
        found: Iterable[Iterable[CompiledFilter]]
        if self._index is not None:
            found = self._index.match(evaluations)
        else:
            found = (filter(evaluation.accepts, entries) for evaluation in evaluations)
        return [[subscriber for compiled in each for subscriber in entries[compiled]] for each in found]

    def __iter__(self) -> Iterator[S]:
        return (subscriber for members in self._entries.values() for subscriber in members)

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __bool__(self) -> bool:
        return bool(self._entries)
