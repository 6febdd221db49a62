"""incrSum, incrCount, incrMin, incrMax, incrAvg: accumulated over all windows of a group so far.

A result comes at the end of each window, over every event of the group up to then, each counted once; without
a window, after every event. Windows do not overlap: it would change nothing but how often a result comes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial as bound
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Before,
    Kind,
    Refused,
    Shape,
    by_of,
    text_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import Event, Type, Value
from hpwsn.streams.definition.windows import Key, Rows, Span, Window, grouped, in_order, spans
from hpwsn.streams.operators.aggregate import result_shape
from hpwsn.streams.operators.totals import EMPTY, FUNCTIONS, Partial, combine, partial, result, result_type

PARTIALS = ("_sum", "_count", "_least", "_greatest")
"""The attributes of a window's partial where Spark has added it up before the machine sees it."""


@dataclass(frozen=True)
class Increment(Before):
    """One function over all that a group has had; `attribute` is empty where it counts events."""

    function: str
    attribute: str
    result: str
    by: tuple[str, ...]
    window: Window

    @property
    def kind(self) -> Type:
        """The type of the result."""
        return self.output.schema[self.result]

    @property
    def adds(self) -> bool:
        """Whether the attribute's values can be added up."""
        return bool(self.attribute) and self.inputs[0].schema[self.attribute].is_number

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The results of all groups."""
        stream, shape = streams[0], self.inputs[0]
        if isinstance(self.window, Span):
            windows = spans(stream, self.window, shape.time, self.by, until)
            partials = [self._partial(start, key, events) for start, key, events in windows]
            groups = grouped(partials, self.by)
        else:
            groups = grouped(in_order(stream, shape.schema, shape.time), self.by)
        machine = self.machine()
        return [event for group in groups.values() for event in machine.step(machine.start(), group)]

    def machine(self) -> "Accumulation":
        """One group."""
        return Accumulation(self)

    def _partial(self, start: datetime, key: Key, events: Sequence[Event]) -> Event:
        whole = self.partial_of(events)
        time = {self.inputs[0].time: start}
        return dict(zip(self.by, key, strict=True)) | time | dict(zip(PARTIALS, whole, strict=True))

    def partial_of(self, events: Sequence[Event]) -> Partial:
        """The partial of some events."""
        if not self.attribute:
            return (None, len(events), 0, 0)
        return partial((one[self.attribute] for one in events), self.adds)

    def event(self, whole: Partial, last: Event) -> Event:
        """The result so far, with the group and the time of the last event or window."""
        found: Event = {name: last[name] for name in self.by}
        found[self.result] = self.value(whole)
        if self.output.time:
            found[self.output.time] = last[self.inputs[0].time]
        return found

    def value(self, whole: Partial) -> Value:
        """The function over the partial."""
        return result(self.function, whole, self.kind)


@dataclass(frozen=True)
class Accumulation:
    """One group: the state is the partial of all so far, and how many events the window has."""

    increment: Increment

    def start(self) -> list[Any]:
        """Nothing yet."""
        return [EMPTY, 0]

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """A result for each window that ends; with windows of time, an event is a window's partial."""
        window, found = self.increment.window, []
        for event in events:
            if isinstance(window, Rows):
                new = self.increment.partial_of([event])
            else:
                new = tuple(event[name] for name in PARTIALS)  # type: ignore[assignment]
            state[0] = combine(state[0], new)
            state[1] += 1
            if isinstance(window, Span) or state[1] == window.length:
                found.append(self.increment.event(state[0], event))
                state[1] = 0
        return found


def build(function: str, op: Op, inputs: Sequence[Shape]) -> Increment:
    """The function's argument, its window (default: each event) and groups."""
    stream = inputs[0]
    attribute = text_argument(op, "attribute")
    kind = result_type(function, stream, attribute)
    name = text_argument(op, "as") or op.output or op.op
    window = window_of(op, stream) if op.window else Rows(1, 1)
    if op.slide and (not op.window or window.slide != window.length):
        raise Refused("slide", f"{op.op} accumulates over all windows, which do not slide: leave it out")
    shape = without_time_windows(result_shape(op, stream, name, kind), op.op)
    return Increment((stream,), shape, function, attribute, name, by_of(op, stream), window)


def _kind(function: str) -> Kind:
    needed, optional = (("attribute",), ("as",)) if function != "count" else ((), ("attribute", "as"))
    about = f"the {function} over all windows of a group so far"
    return Kind(f"incr{function.title()}", bound(build, function), about, needed, optional, "may", True)


KINDS = tuple(_kind(function) for function in FUNCTIONS)
