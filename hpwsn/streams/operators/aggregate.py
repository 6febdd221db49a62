"""sum, count, min, max, avg (a, wL, sI): over each window of each group; a window replaces the last result.

What comes out has the attributes of `by`, the result, and the event time: of a window of time its start, of
one of tuples the time of its last event.
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
    after_window,
    by_of,
    text_argument,
    window_of,
)
from hpwsn.streams.definition.schema import TIMESTAMP, Event, Schema, Type, Value
from hpwsn.streams.definition.windows import Key, Rows, Span, Window, grouped, in_order, spans
from hpwsn.streams.operators.totals import FUNCTIONS, partial, result, result_type


@dataclass(frozen=True)
class Aggregate(Before):
    """One function over the windows of each group; `attribute` is empty where count counts events."""

    function: str
    attribute: str
    result: str
    by: tuple[str, ...]
    window: Window

    @property
    def kind(self) -> Type:
        """The type of the result."""
        return self.output.schema[self.result]

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """A result for each window that is complete."""
        stream, shape = streams[0], self.inputs[0]
        if isinstance(self.window, Span):
            windows = spans(stream, self.window, shape.time, self.by, until)
            return [self.event(key, self.value(events), start) for start, key, events in windows]
        ordered = in_order(stream, shape.schema, shape.time)
        return [
            event
            for group in grouped(ordered, self.by).values()
            for event in self.machine().step(self.machine().start(), group)
        ]

    def machine(self) -> "TupleWindows":
        """One group of tuple windows."""
        assert isinstance(self.window, Rows)
        return TupleWindows(self.window, self.of_window)

    def of_window(self, events: list[Event]) -> list[Event]:
        """The result of a window of tuples."""
        last, time = events[-1], self.inputs[0].time
        key = tuple(last[name] for name in self.by)
        return [self.event(key, self.value(events), last[time] if time else None)]

    def value(self, events: Sequence[Event]) -> Value:
        """The function over the events."""
        if not self.attribute:
            return len(events)
        adds = self.inputs[0].schema[self.attribute].is_number
        return result(self.function, partial((one[self.attribute] for one in events), adds), self.kind)

    def event(self, key: Key, value: Value, time: Value) -> Event:
        """What comes out for a window."""
        found: Event = dict(zip(self.by, key, strict=True))
        found[self.result] = value
        if self.output.time:
            found[self.output.time] = time
        return found


@dataclass(frozen=True)
class TupleWindows:
    """The windows of tuples of one group: the state is the events of those that are not complete."""

    window: Rows
    of_window: Any

    def start(self) -> list[Any]:
        """No events yet."""
        return []

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """What the windows that these events complete give."""
        found: list[Event] = []
        for event in events:
            state.append(event)
            if len(state) == self.window.length:
                found += self.of_window(list(state))
                del state[: self.window.slide]
        return found


def result_shape(op: Op, stream: Shape, name: str, kind: Type) -> Shape:
    """Groups, the result, the event time; names must differ."""
    if name in op.by or name == stream.time:
        raise Refused("as", f"{name} is an attribute of the result already; name it with as", name)
    attributes = [(one, stream.schema[one]) for one in op.by] + [(name, kind)]
    if stream.time:
        attributes.append((stream.time, TIMESTAMP))
    return Shape(op.output or name, Schema(tuple(attributes)), stream.time)


def build(function: str, op: Op, inputs: Sequence[Shape]) -> Aggregate:
    """The function's argument, its window and groups."""
    stream = inputs[0]
    attribute = text_argument(op, "attribute")
    kind = result_type(function, stream, attribute)
    name = text_argument(op, "as") or op.output or function
    by, window = by_of(op, stream), window_of(op, stream)
    shape = after_window(result_shape(op, stream, name, kind), window)
    return Aggregate((stream,), shape, function, attribute, name, by, window)


def _kind(function: str) -> Kind:
    needed, optional = (("attribute",), ("as",)) if function != "count" else ((), ("attribute", "as"))
    about = f"the {function} over each window of each group"
    return Kind(function, bound(build, function), about, needed, optional, "must", True)


KINDS = tuple(_kind(function) for function in FUNCTIONS)
