"""The index of a large content group: one engine for predicates, and one for XPath that it can express.

Other XPath filters without predicates are evaluated for every payload, once for all subscribers that share
one. The builder chooses the engine.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Protocol

from hpwsn.matching.content.content_filters import CompiledFilter, Evaluation
from hpwsn.matching.content.xpath_shape import Path, XPathShape
from hpwsn.matching.language.predicates import Disjunction, Event
from hpwsn.matching.language.reference_engine import Engine
from hpwsn.matching.language.values import Scalar


class Engines(Protocol):
    """A factory of matching engines."""

    def make(self) -> Engine:
        """Return a new engine without requests."""

    def prepare(self) -> None:
        """Prepare the compiled kernel for large engines; further calls do nothing."""


def is_indexed(compiled: CompiledFilter) -> bool:
    """Whether an engine can hold the filter."""
    return compiled.request is not None or compiled.shape is not None


class ContentIndex:
    """Finds the filters that match a payload."""

    __slots__ = ("_conditions", "_engines", "_mixed", "_requests", "_shapes")

    def __init__(self, engines: Engines, compiled: Iterable[CompiledFilter]) -> None:
        self._engines = engines
        self._requests = _NumberedEngine(engines.make())
        self._shapes: _ShapeIndex | None = None
        self._conditions: dict[CompiledFilter, None] = {}
        self._mixed = 0
        for each in compiled:
            self.add(each)

    def add(self, compiled: CompiledFilter) -> None:
        """Add a filter."""
        if compiled.request is not None:
            self._requests.add(compiled, compiled.request)
            self._mixed += bool(compiled.xpaths)
        elif (shape := compiled.shape) is not None:
            if self._shapes is None:
                self._shapes = _ShapeIndex(self._engines.make())
            self._shapes.add(compiled, shape)
        else:
            self._conditions[compiled] = None

    def remove(self, compiled: CompiledFilter) -> None:
        """Remove a filter."""
        if compiled.request is not None:
            self._requests.remove(compiled)
            self._mixed -= bool(compiled.xpaths)
        elif (shape := compiled.shape) is not None:
            assert self._shapes is not None
            self._shapes.remove(compiled, shape)
        else:
            del self._conditions[compiled]

    def match(self, evaluations: Sequence[Evaluation]) -> list[list[CompiledFilter]]:
        """Return the filters that match each payload."""
        if self._requests:
            found = self._requests.match([evaluation.event for evaluation in evaluations])
        else:
            found = [[] for _ in evaluations]
        if self._mixed:
            for index, holds in enumerate(evaluation.conditions_hold for evaluation in evaluations):
                found[index] = [compiled for compiled in found[index] if holds(compiled.xpaths)]
        if self._shapes is not None:
            found = list(map(operator.add, found, self._shapes.match(evaluations)))
        if self._conditions:
            for some, evaluation in zip(found, evaluations, strict=True):
                some += [
                    compiled for compiled in self._conditions if evaluation.conditions_hold(compiled.xpaths)
                ]
        return found


class _NumberedEngine:
    """An engine, and the numbers that it knows filters by."""

    __slots__ = ("_compiled", "_engine", "_next", "_numbers")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._numbers: dict[CompiledFilter, int] = {}
        self._compiled: dict[int, CompiledFilter] = {}
        self._next = 0

    def add(self, compiled: CompiledFilter, request: Disjunction) -> None:
        self._engine.add(self._next, request)
        self._numbers[compiled] = self._next
        self._compiled[self._next] = compiled
        self._next += 1

    def remove(self, compiled: CompiledFilter) -> None:
        number = self._numbers.pop(compiled)
        del self._compiled[number]
        self._engine.remove(number)

    def match(self, events: Sequence[Event]) -> list[list[CompiledFilter]]:
        return [[self._compiled[number] for number in found] for found in self._engine.match_batch(events)]

    def __len__(self) -> int:
        return len(self._compiled)


class _ShapeIndex:
    """XPath filters that an engine can hold, and the filters that use each path."""

    __slots__ = ("_requests", "_users")

    def __init__(self, engine: Engine) -> None:
        self._requests = _NumberedEngine(engine)
        self._users: dict[str, tuple[Path, dict[CompiledFilter, None]]] = {}

    def add(self, compiled: CompiledFilter, shape: XPathShape) -> None:
        self._requests.add(compiled, shape.request)
        for path in shape.paths:
            self._users.setdefault(path.key, (path, {}))[1][compiled] = None

    def remove(self, compiled: CompiledFilter, shape: XPathShape) -> None:
        self._requests.remove(compiled)
        for path in shape.paths:
            users = self._users[path.key][1]
            del users[compiled]
            if not users:
                del self._users[path.key]

    def match(self, evaluations: Sequence[Evaluation]) -> list[list[CompiledFilter]]:
        read = [self._path_values(evaluation) for evaluation in evaluations]
        found = self._requests.match([event for event, _ in read])
        for index, (_, ambiguous) in enumerate(read):
            if ambiguous:
                holds = evaluations[index].conditions_hold
                sure = [compiled for compiled in found[index] if compiled not in ambiguous]
                found[index] = sure + [compiled for compiled in ambiguous if holds(compiled.xpaths)]
        return found

    def _path_values(self, evaluation: Evaluation) -> tuple[Event, dict[CompiledFilter, None]]:
        """Return the values of all paths, and the filters that use a path with several nodes."""
        event: dict[str, Scalar] = {}
        ambiguous: dict[CompiledFilter, None] = {}
        for path, users in self._users.values():
            values = evaluation.values(path)
            if values is None:
                # Each node can satisfy another comparison, so these filters are evaluated as XPath.
                ambiguous |= users
            else:
                event |= values
        return event, ambiguous
