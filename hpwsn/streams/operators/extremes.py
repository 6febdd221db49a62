"""min, max, incrMin, incrMax (a, wL, sI): the event that has the extreme value, with all its attributes.

This is the meaning of the paper on stream data services, and the default (`emit = "event"`). With
`emit = "row"`, these operators give a row with the value instead (hpwsn.streams.operators.aggregate and
increment).

Events without a value are skipped, and a window that has only such events has no extreme. Of events with the
same value, the earliest is taken. If several have that time too, it is the one that `sort` puts first:
ascending for a minimum, descending for a maximum. Without an event time, it is the first that came.

min and max give the event of each window. incrMin and incrMax compare it with their last output, which they
replace only if the new value is more extreme, and give the result at the end of each window, or after every
event if there is no window.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial as bound
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Findings,
    OperatorError,
    StateMachine,
    Step,
    StreamType,
    after_window,
    by_of,
    text_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.definition.windows import Key, RowWindow, order_of
from hpwsn.streams.operators import aggregate, increment
from hpwsn.streams.operators.aggregate import emit_argument
from hpwsn.streams.operators.totals import EXTREMES, result_type
from hpwsn.streams.operators.windowed import WindowedStep

WINDOW_START = "_start"
"""The attribute that has the start of a time window, if the state machine gets the extremes of windows."""


@dataclass(frozen=True)
class Extreme(WindowedStep):
    """The event with the extreme value of each window of each group."""

    function: str
    attribute: str

    def of_window(self, events: Sequence[Event]) -> list[Event]:
        """The event with the extreme value, or none if no event has a value."""
        found = self.extreme_of(events)
        return [] if found is None else [found]

    def extreme_of(self, events: Sequence[Event]) -> Event | None:
        """The event with the extreme value; None if no event has a value."""
        known = [one for one in events if one[self.attribute] is not None]
        if not known:
            return None
        least_or_greatest: Any = min if self.function == "min" else max
        value = least_or_greatest(one[self.attribute] for one in known)
        equal = [one for one in known if one[self.attribute] == value]
        time, names = self.inputs[0].time, self.inputs[0].schema.names
        if not time:
            return equal[0]
        earliest = min(order_of(one, (time,)) for one in equal)
        first = [one for one in equal if order_of(one, (time,)) == earliest]
        found: Event = least_or_greatest(first, key=lambda one: order_of(one, names))
        return found


@dataclass(frozen=True)
class RunningExtreme(Extreme):
    """The event with the extreme value of all windows of a group so far."""

    def of_time_windows(self, windows: Sequence[tuple[datetime, Key, list[Event]]]) -> list[Event]:
        """The results of all groups."""
        return self.run_groups(self._extreme_of_window(key, events) for _, key, events in windows)

    def state_machine(self) -> StateMachine:
        """The state machine of one group."""
        return RunningExtremeMachine(self)

    def _extreme_of_window(self, key: Key, events: Sequence[Event]) -> Event:
        """The event of a time window; one of nulls, apart from the group, if no event has a value."""
        nothing: Event = dict.fromkeys(self.output.schema.names)
        return self.extreme_of(events) or nothing | dict(zip(self.by, key, strict=True))

    def exceeds(self, event: Event, last: Event | None) -> bool:
        """Whether the event is to replace the last output, None if there was no output."""
        if last is None:
            return True
        value: Any = event[self.attribute]
        known: Any = last[self.attribute]
        return bool(value < known if self.function == "min" else value > known)


@dataclass(frozen=True)
class RunningExtremeMachine:
    """One group; the state is the last output, and the extreme and number of events of the current window."""

    step_of: RunningExtreme

    def start(self) -> list[Any]:
        """No events yet."""
        return [None, None, 0]

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """The result at each end of a window; with time windows, each event is the extreme of a window."""
        extreme, found = self.step_of, []
        rows = extreme.window.length if isinstance(extreme.window, RowWindow) else 1
        for event in events:
            event = {name: event[name] for name in extreme.output.schema.names}
            state[1] = extreme.extreme_of([event] if state[1] is None else [state[1], event])
            state[2] += 1
            if state[2] == rows:
                if state[1] is not None and extreme.exceeds(state[1], state[0]):
                    state[0] = state[1]
                state[1:] = [None, 0]
                found += [] if state[0] is None else [dict(state[0])]
        return found


def build(function: str, op: Op, inputs: Sequence[StreamType], *, running: bool) -> Step:
    """Check `emit`, the attribute, the window and the groups."""
    if op.arguments.get("emit", "event") == "row":
        return increment.build(function, op, inputs) if running else aggregate.build(function, op, inputs)
    stream = inputs[0]
    findings = Findings()
    with findings:
        emit_argument(op, function)
    with findings:
        attribute = _attribute(op)
        result_type(function, stream, attribute)
    with findings:
        if "as" in op.arguments:
            raise OperatorError("as", 'names the value of emit = "row"; remove it, an event keeps its names')
    with findings:
        by = by_of(op, stream)
    with findings:
        window = increment.running_window(op, stream) if running else window_of(op, stream)
    findings.raise_all()
    output = replace(stream, name=op.output or op.op)
    if running:
        return RunningExtreme((stream,), without_time_windows(output, op.op), by, window, function, attribute)
    return Extreme((stream,), after_window(output, window), by, window, function, attribute)


def _attribute(op: Op) -> str:
    given = op.arguments.get("attribute")
    if isinstance(given, list | tuple):
        raise OperatorError(
            "attribute",
            f'must be one attribute, not {given!r}: emit = "event" gives the event with the extreme of one'
            " attribute; write an operator for each",
        )
    return text_argument(op, "attribute")


KINDS = tuple(
    module.kind(one, bound(build, one, running=running), f"the event with the {one} of {scope}")
    for module, running, scope in (
        (aggregate, False, "each window of each group"),
        (increment, True, "all windows of a group so far"),
    )
    for one in EXTREMES
)
