"""What the members of a large content group want, in engines: one for requests, one for XPath of their shape.

Conditions in XPath of another shape that have no request beside them are asked each time, once for all that
share one. Which engine it is, is the builder's choice.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Protocol

from hpwsn.matching.content.content_filters import Evaluation, Wanted
from hpwsn.matching.content.xpath_shape import Path, Shape
from hpwsn.matching.language.predicates import Disjunction, Event
from hpwsn.matching.language.reference_engine import Engine
from hpwsn.matching.language.values import Scalar


class Engines(Protocol):
    """Where engines come from."""

    def make(self) -> Engine:
        """A new engine without requests."""

    def prepare(self) -> None:
        """Make ready what speeds up large engines; called again, nothing happens."""


def is_indexed(wanted: Wanted) -> bool:
    """Whether an engine can take it."""
    return wanted.request is not None or wanted.shape is not None


class ContentIndex:
    """Finds what is wanted by one look at a payload."""

    __slots__ = ("_conditions", "_engines", "_mixed", "_requests", "_shapes")

    def __init__(self, engines: Engines, wanted: Iterable[Wanted]) -> None:
        self._engines = engines
        self._requests = _Numbered(engines.make())
        self._shapes: _ShapeIndex | None = None
        self._conditions: dict[Wanted, None] = {}
        self._mixed = 0
        for each in wanted:
            self.add(each)

    def add(self, wanted: Wanted) -> None:
        """Take in what somebody wants."""
        if wanted.request is not None:
            self._requests.add(wanted, wanted.request)
            self._mixed += bool(wanted.xpaths)
        elif (shape := wanted.shape) is not None:
            if self._shapes is None:
                self._shapes = _ShapeIndex(self._engines.make())
            self._shapes.add(wanted, shape)
        else:
            self._conditions[wanted] = None

    def remove(self, wanted: Wanted) -> None:
        """Forget what nobody wants any more."""
        if wanted.request is not None:
            self._requests.remove(wanted)
            self._mixed -= bool(wanted.xpaths)
        elif (shape := wanted.shape) is not None:
            assert self._shapes is not None
            self._shapes.remove(wanted, shape)
        else:
            del self._conditions[wanted]

    def match(self, evaluations: Sequence[Evaluation]) -> list[list[Wanted]]:
        """What each of the payloads is as it is wanted."""
        if self._requests:
            found = self._requests.match([evaluation.event for evaluation in evaluations])
        else:
            found = [[] for _ in evaluations]
        if self._mixed:
            for index, holds in enumerate(evaluation.conditions_hold for evaluation in evaluations):
                found[index] = [wanted for wanted in found[index] if holds(wanted.xpaths)]
        if self._shapes is not None:
            found = list(map(operator.add, found, self._shapes.match(evaluations)))
        if self._conditions:
            for some, evaluation in zip(found, evaluations, strict=True):
                some += [wanted for wanted in self._conditions if evaluation.conditions_hold(wanted.xpaths)]
        return found


class _Numbered:
    """An engine with the numbers that it knows things by."""

    __slots__ = ("_engine", "_next", "_numbers", "_wanted")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._numbers: dict[Wanted, int] = {}
        self._wanted: dict[int, Wanted] = {}
        self._next = 0

    def add(self, wanted: Wanted, request: Disjunction) -> None:
        self._engine.add(self._next, request)
        self._numbers[wanted] = self._next
        self._wanted[self._next] = wanted
        self._next += 1

    def remove(self, wanted: Wanted) -> None:
        number = self._numbers.pop(wanted)
        del self._wanted[number]
        self._engine.remove(number)

    def match(self, events: Sequence[Event]) -> list[list[Wanted]]:
        return [[self._wanted[number] for number in found] for found in self._engine.match_batch(events)]

    def __len__(self) -> int:
        return len(self._wanted)


class _ShapeIndex:
    """Conditions of the shape of a request, and who uses which path."""

    __slots__ = ("_requests", "_users")

    def __init__(self, engine: Engine) -> None:
        self._requests = _Numbered(engine)
        self._users: dict[str, tuple[Path, dict[Wanted, None]]] = {}

    def add(self, wanted: Wanted, shape: Shape) -> None:
        self._requests.add(wanted, shape.request)
        for path in shape.paths:
            self._users.setdefault(path.key, (path, {}))[1][wanted] = None

    def remove(self, wanted: Wanted, shape: Shape) -> None:
        self._requests.remove(wanted)
        for path in shape.paths:
            users = self._users[path.key][1]
            del users[wanted]
            if not users:
                del self._users[path.key]

    def match(self, evaluations: Sequence[Evaluation]) -> list[list[Wanted]]:
        looked = [self._look(evaluation) for evaluation in evaluations]
        found = self._requests.match([event for event, _ in looked])
        for index, (_, doubtful) in enumerate(looked):
            if doubtful:
                holds = evaluations[index].conditions_hold
                sure = [wanted for wanted in found[index] if wanted not in doubtful]
                found[index] = sure + [wanted for wanted in doubtful if holds(wanted.xpaths)]
        return found

    def _look(self, evaluation: Evaluation) -> tuple[Event, dict[Wanted, None]]:
        """The values of all paths, and who looks at a path that has several."""
        event: dict[str, Scalar] = {}
        doubtful: dict[Wanted, None] = {}
        for path, users in self._users.values():
            values = evaluation.values(path)
            if values is None:
                # Of several nodes each may satisfy another comparison: only XPath itself knows.
                doubtful |= users
            else:
                event |= values
        return event, doubtful
