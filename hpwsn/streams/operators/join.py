"""join(S', a, wL, sI): pairs of events of two streams that share a window and have equal `a`.

Without `on`, it is the cross product. With time windows, a pair is output once for each window that both
events are in. With row windows, window k of the first stream is joined with window k of the second, within
each group if there is `by`. An attribute of the second stream gets the stream's name as a prefix if the first
stream has an attribute of the same name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    BaseStep,
    Findings,
    OperatorError,
    OperatorKind,
    StreamType,
    attribute_of,
    by_of,
    check_time_window,
    texts_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import Event, Schema
from hpwsn.streams.definition.windows import RowWindow, TimeWindow, Window, grouped, in_order, time_windows

SIDE = "_side"
"""The attribute that tells the state machine the stream of an event: 0 for the first, 1 for the second."""


@dataclass(frozen=True)
class Join(BaseStep):
    """Pairs within windows; `renamed` is the new name of each attribute of the second stream."""

    on: tuple[str, ...]
    renamed: Mapping[str, str]
    by: tuple[str, ...]
    window: Window

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """All pairs. A pair does not wait for the end of its window, so `until` has no effect."""
        if isinstance(self.window, TimeWindow):
            return self._join_time_windows(streams, self.window)
        state_machine = self.state_machine()
        sides = [
            grouped(in_order(stream, stream_type.schema, stream_type.time), self.by)
            for stream, stream_type in zip(streams, self.inputs, strict=True)
        ]
        found = []
        for key in sides[0]:
            tagged = [one | {SIDE: side} for side in (0, 1) for one in sides[side].get(key, [])]
            found += state_machine.step(state_machine.start(), tagged)
        return found

    def state_machine(self) -> "JoinMachine":
        """The state machine for the row windows of one group."""
        assert isinstance(self.window, RowWindow)
        return JoinMachine(self, self.window)

    def _join_time_windows(self, streams: Sequence[list[Event]], span: TimeWindow) -> list[Event]:
        left, right = (
            {
                (start, key): events
                for start, key, events in time_windows(stream, span, stream_type.time, self.on, None)
                if None not in key
            }
            for stream, stream_type in zip(streams, self.inputs, strict=True)
        )
        return [
            self.pair(one, other)
            for window in left
            if window in right
            for one in left[window]
            for other in right[window]
        ]

    def pair(self, one: Event, other: Event) -> Event:
        """One event with the attributes of both."""
        return one | {new: other[old] for old, new in self.renamed.items()}

    def matches(self, one: Event, other: Event) -> bool:
        """Whether two events have equal `on`; null equals nothing."""
        return all(one[name] is not None and one[name] == other[name] for name in self.on)


@dataclass(frozen=True)
class JoinMachine:
    """One group of both streams; the state is the events of each stream whose windows are not joined yet."""

    join: Join
    window: RowWindow

    def start(self) -> list[Any]:
        """No events yet."""
        return [[], []]

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """The pairs of the windows that are now complete in both streams."""
        for event in events:
            state[int(str(event[SIDE]))].append(
                {name: value for name, value in event.items() if name != SIDE}
            )
        found = []
        while all(len(one) >= self.window.length for one in state):
            left, right = (one[: self.window.length] for one in state)
            found += [self.join.pair(a, b) for a in left for b in right if self.join.matches(a, b)]
            for one in state:
                del one[: self.window.slide]
        return found


def build(op: Op, inputs: Sequence[StreamType]) -> Join:
    """Check that there are two streams, and check `on` and the window."""
    if len(inputs) != 2:
        raise OperatorError("with", "a join has two input streams; name exactly one here")
    left, right = inputs
    findings = Findings()
    with findings:
        on = texts_argument(op, "on")
        for name in (*on, *op.by):
            with findings:
                _check_equal(left, right, name, "on" if name in on else "by")
    with findings:
        window = window_of(op, left)
        if isinstance(window, TimeWindow):
            check_time_window(window, right, "with")
            if op.by:
                raise OperatorError("by", "a join with time windows has no groups; name the attributes in on")
    findings.raise_all()
    renamed = _renamed(left, right, (*on, *op.by))
    attributes = (*left.schema, *((new, right.schema[old]) for old, new in renamed.items()))
    stream_type = StreamType(op.output or op.op, Schema(attributes), left.time)
    by = by_of(op, left)
    return Join((left, right), without_time_windows(stream_type, "a join"), on, renamed, by, window)


def _check_equal(left: StreamType, right: StreamType, name: str, key: str) -> None:
    if attribute_of(left, name, key) != attribute_of(right, name, key):
        kinds = f"{left.schema[name]} in {left.name} and {right.schema[name]} in {right.name}"
        raise OperatorError(key, f"is {kinds}; the types must be equal", name)


def _renamed(left: StreamType, right: StreamType, shared: tuple[str, ...]) -> dict[str, str]:
    renamed: dict[str, str] = {}
    for name in right.schema.names:
        if name in shared:
            continue
        new = f"{right.name}_{name}" if name in left.schema else name
        if new in left.schema or new in renamed.values():
            raise OperatorError(
                "with", f"two attributes would be called {new}; rename one of them before the join", name
            )
        renamed[name] = new
    return renamed


KIND = OperatorKind("join", build, "pairs within a window", ("with",), ("on",), "must", True)
