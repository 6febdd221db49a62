"""sum, count, min, max, avg (a, wL, sI): one result for each window of each group.

An output event has the attributes of `by`, the result, and the event time. The event time is the start of a
time window, or the time of the last event of a row window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial as bound
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    BaseStep,
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
from hpwsn.streams.definition.windows import (
    Key,
    RowWindow,
    TimeWindow,
    Window,
    grouped,
    in_order,
    time_windows,
)
from hpwsn.streams.operators.totals import FUNCTIONS, partial, result, result_type


@dataclass(frozen=True)
class Aggregate(BaseStep):
    """One function over the windows of each group; `attribute` is empty if count counts events."""

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
        """One result for each complete window."""
        stream, stream_type = streams[0], self.inputs[0]
        if isinstance(self.window, TimeWindow):
            windows = time_windows(stream, self.window, stream_type.time, self.by, until)
            return [self.event(key, self.value(events), start) for start, key, events in windows]
        ordered = in_order(stream, stream_type.schema, stream_type.time)
        return [
            event
            for group in grouped(ordered, self.by).values()
            for event in self.state_machine().step(self.state_machine().start(), group)
        ]

    def state_machine(self) -> "RowWindowMachine":
        """The state machine for the row windows of one group."""
        assert isinstance(self.window, RowWindow)
        return RowWindowMachine(self.window, self.of_window)

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


@dataclass(frozen=True)
class RowWindowMachine:
    """The row windows of one group; the state is the events of windows that are not complete yet."""

    window: RowWindow
    of_window: Any

    def start(self) -> list[Any]:
        """No events yet."""
        return []

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """The output of the windows that these events complete."""
        found: list[Event] = []
        for event in events:
            state.append(event)
            if len(state) == self.window.length:
                found += self.of_window(list(state))
                del state[: self.window.slide]
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


def build(function: str, op: Op, inputs: Sequence[StreamType]) -> Aggregate:
    """Check the attribute, the window and the groups."""
    stream = inputs[0]
    findings = Findings()
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
    return Aggregate((stream,), stream_type, function, attribute, name, by, window)


def _kind(function: str) -> OperatorKind:
    needed, optional = (("attribute",), ("as",)) if function != "count" else ((), ("attribute", "as"))
    about = f"the {function} over each window of each group"
    return OperatorKind(function, bound(build, function), about, needed, optional, "must", True)


KINDS = tuple(_kind(function) for function in FUNCTIONS)
