"""sum, count, min, max, avg (a, wL, sI): one result for each window of each group.

min and max are here for `emit = "row"`; by default they give events (hpwsn.streams.operators.extremes).
An output event has the attributes of `by`, the result, and the event time. The event time is the start of a
time window, or the time of the last event of a row window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial as bound

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Builder,
    Findings,
    OperatorError,
    OperatorKind,
    StreamType,
    after_window,
    by_of,
    text_argument,
    window_of,
)
from hpwsn.streams.definition.schema import TIMESTAMP, Event, Schema, Type, Value
from hpwsn.streams.definition.windows import Key
from hpwsn.streams.operators.totals import EXTREMES, FUNCTIONS, partial, result, result_type
from hpwsn.streams.operators.windowed import WindowedStep


@dataclass(frozen=True)
class Aggregate(WindowedStep):
    """One function over the windows of each group; `attribute` is empty if count counts events."""

    function: str
    attribute: str
    result: str

    @property
    def kind(self) -> Type:
        """The type of the result."""
        return self.output.schema[self.result]

    def of_time_windows(self, windows: Sequence[tuple[datetime, Key, list[Event]]]) -> list[Event]:
        """One result for each window, with its start."""
        return [self.event(key, self.value(events), start) for start, key, events in windows]

    def of_window(self, events: list[Event]) -> list[Event]:
        """The result of one row window."""
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
        """The output event of one window."""
        found: Event = dict(zip(self.by, key, strict=True))
        found[self.result] = value
        if self.output.time:
            found[self.output.time] = time
        return found


def result_stream(op: Op, stream: StreamType, name: str, kind: Type) -> StreamType:
    """The type of the output stream: the groups, the result and the event time, under different names."""
    if name in op.by or name == stream.time:
        raise OperatorError(
            "as", f"the output already has an attribute {name}; give the result another name with as", name
        )
    attributes = [(one, stream.schema[one]) for one in op.by] + [(name, kind)]
    if stream.time:
        attributes.append((stream.time, TIMESTAMP))
    return StreamType(op.output or name, Schema(tuple(attributes)), stream.time)


def emit_argument(op: Op, function: str) -> str:
    """What the operator gives: `event`, the event with the extreme value, or `row`, a row with the value."""
    emit = text_argument(op, "emit", "event" if function in EXTREMES else "row")
    if emit not in ("event", "row"):
        raise OperatorError("emit", f"must be event or row, not {emit!r}")
    if emit == "event" and function not in EXTREMES:
        raise OperatorError(
            "emit", f"{op.op} gives a value, which no event has; leave emit out, or use min or max"
        )
    return emit


def build(function: str, op: Op, inputs: Sequence[StreamType]) -> Aggregate:
    """Check the attribute, the window and the groups."""
    stream = inputs[0]
    findings = Findings()
    with findings:
        emit_argument(op, function)
    with findings:
        attribute = text_argument(op, "attribute")
        kind = result_type(function, stream, attribute)
    with findings:
        name = text_argument(op, "as") or op.output or function
    with findings:
        by = by_of(op, stream)
    with findings:
        window = window_of(op, stream)
    findings.raise_all()
    stream_type = after_window(result_stream(op, stream, name, kind), window)
    return Aggregate((stream,), stream_type, by, window, function, attribute, name)


def keys_of(function: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The required and the optional arguments of a function; only count needs no attribute."""
    if function == "count":
        return (), ("attribute", "as", "emit")
    return ("attribute",), ("as", "emit")


def kind(function: str, builder: Builder, about: str) -> OperatorKind:
    """The kind of operator that applies the function to windows."""
    return OperatorKind(function, builder, about, *keys_of(function), "must", True)


KINDS = tuple(
    kind(function, bound(build, function), f"the {function} over each window of each group")
    for function in FUNCTIONS
    if function not in EXTREMES
)
