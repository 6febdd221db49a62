"""incrSum, incrCount, incrMin, incrMax, incrAvg: a function over all events of a group so far.

incrMin and incrMax are here for `emit = "row"`; by default they give events
(hpwsn.streams.operators.extremes).

There is a result at the end of each window, or after every event if there is no window. It covers every event
of the group up to then, each counted once. Windows do not overlap: overlapping would only change how often a
result is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial as bound
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Builder,
    Findings,
    OperatorError,
    OperatorKind,
    StreamType,
    by_of,
    text_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import Event, Type, Value
from hpwsn.streams.definition.windows import Key, RowWindow, Window
from hpwsn.streams.operators.aggregate import emit_argument, keys_of, result_stream
from hpwsn.streams.operators.totals import (
    EMPTY,
    EXTREMES,
    FUNCTIONS,
    Partial,
    combine,
    partial,
    result,
    result_type,
)
from hpwsn.streams.operators.windowed import WindowedStep

PARTIALS = ("_sum", "_count", "_least", "_greatest")
"""The attributes of a window's partial, if Spark computes it before the state machine gets it."""


@dataclass(frozen=True)
class Increment(WindowedStep):
    """One function over all events of a group so far; `attribute` is empty if it counts events."""

    function: str
    attribute: str
    result: str

    @property
    def kind(self) -> Type:
        """The type of the result."""
        return self.output.schema[self.result]

    @property
    def adds(self) -> bool:
        """Whether the attribute's values are numbers, so that a sum exists."""
        return bool(self.attribute) and self.inputs[0].schema[self.attribute].is_number

    def of_time_windows(self, windows: Sequence[tuple[datetime, Key, list[Event]]]) -> list[Event]:
        """The results of all groups."""
        return self.run_groups(self._partial(start, key, events) for start, key, events in windows)

    def state_machine(self) -> "IncrementMachine":
        """The state machine of one group."""
        return IncrementMachine(self)

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
        """The output event: the result so far, the group, and the time of the last event or window."""
        found: Event = {name: last[name] for name in self.by}
        found[self.result] = self.value(whole)
        if self.output.time:
            found[self.output.time] = last[self.inputs[0].time]
        return found

    def value(self, whole: Partial) -> Value:
        """The function over the partial."""
        return result(self.function, whole, self.kind)


@dataclass(frozen=True)
class IncrementMachine:
    """One group; the state is the partial of all events so far and the number of events in the window."""

    increment: Increment

    def start(self) -> list[Any]:
        """No events yet."""
        return [EMPTY, 0]

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """A result for each window that ends; with time windows, each event is the partial of a window."""
        window, found = self.increment.window, []
        for event in events:
            if isinstance(window, RowWindow):
                new = self.increment.partial_of([event])
            else:
                new = tuple(event[name] for name in PARTIALS)  # type: ignore[assignment]
            state[0] = combine(state[0], new)
            state[1] += 1
            if not isinstance(window, RowWindow) or state[1] == window.length:
                found.append(self.increment.event(state[0], event))
                state[1] = 0
        return found


def running_window(op: Op, stream: StreamType) -> Window:
    """The operator's window, by default one event; OperatorError if windows overlap."""
    window = window_of(op, stream) if op.window else RowWindow(1, 1)
    if op.slide and (not op.window or window.slide != window.length):
        raise OperatorError(
            "slide", f"{op.op} accumulates over all windows, which do not slide: leave it out"
        )
    return window


def build(function: str, op: Op, inputs: Sequence[StreamType]) -> Increment:
    """Check the attribute, the window (default: each event) and the groups."""
    stream = inputs[0]
    findings = Findings()
    with findings:
        emit_argument(op, function)
    with findings:
        attribute = text_argument(op, "attribute")
        kind = result_type(function, stream, attribute)
    with findings:
        name = text_argument(op, "as") or op.output or op.op
    with findings:
        by = by_of(op, stream)
    with findings:
        window = running_window(op, stream)
    findings.raise_all()
    stream_type = without_time_windows(result_stream(op, stream, name, kind), op.op)
    return Increment((stream,), stream_type, by, window, function, attribute, name)


def kind(function: str, builder: Builder, about: str) -> OperatorKind:
    """The kind of operator that accumulates the function."""
    return OperatorKind(f"incr{function.title()}", builder, about, *keys_of(function), "may", True)


KINDS = tuple(
    kind(function, bound(build, function), f"the {function} over all windows of a group so far")
    for function in FUNCTIONS
    if function not in EXTREMES
)
