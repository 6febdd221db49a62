"""join(S', a, wL, sI): pairs of events of two streams that share a window and have equal `a`.

Without `on` it is the product. Windows of time are those of event time; a pair comes out once for each window
it shares. Windows of tuples are counted in each stream, and the k-th of one meets the k-th of the other; with
`by`, in each group. An attribute of the second stream whose name is taken gets that stream's name before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Before,
    Kind,
    Refused,
    Shape,
    attribute_of,
    by_of,
    check_time,
    texts_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import Event, Schema
from hpwsn.streams.definition.windows import Rows, Span, Window, grouped, in_order, spans

SIDE = "_side"
"""Of an event that the machine sees: 0 for the first stream, 1 for the second."""


@dataclass(frozen=True)
class Join(Before):
    """Pairs within windows; `renamed` is the new name of each attribute of the second stream."""

    on: tuple[str, ...]
    renamed: Mapping[str, str]
    by: tuple[str, ...]
    window: Window

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """All pairs. They do not wait for a window to end, so `until` changes nothing."""
        if isinstance(self.window, Span):
            return self._of_spans(streams, self.window)
        machine = self.machine()
        sides = [
            grouped(in_order(stream, shape.schema, shape.time), self.by)
            for stream, shape in zip(streams, self.inputs, strict=True)
        ]
        found = []
        for key in sides[0]:
            tagged = [one | {SIDE: side} for side in (0, 1) for one in sides[side].get(key, [])]
            found += machine.step(machine.start(), tagged)
        return found

    def machine(self) -> "PairedWindows":
        """One group of tuple windows."""
        assert isinstance(self.window, Rows)
        return PairedWindows(self, self.window)

    def _of_spans(self, streams: Sequence[list[Event]], span: Span) -> list[Event]:
        left, right = (
            {
                (start, key): events
                for start, key, events in spans(stream, span, shape.time, self.on, None)
                if None not in key
            }
            for stream, shape in zip(streams, self.inputs, strict=True)
        )
        return [
            self.pair(one, other)
            for window in left
            if window in right
            for one in left[window]
            for other in right[window]
        ]

    def pair(self, one: Event, other: Event) -> Event:
        """An event of both."""
        return one | {new: other[old] for old, new in self.renamed.items()}

    def matches(self, one: Event, other: Event) -> bool:
        """Whether two events have equal `on`; null equals nothing."""
        return all(one[name] is not None and one[name] == other[name] for name in self.on)


@dataclass(frozen=True)
class PairedWindows:
    """One group of both streams: the state is what each has that is in no window that was joined."""

    join: Join
    window: Rows

    def start(self) -> list[Any]:
        """No events yet."""
        return [[], []]

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """The pairs of each two windows that are now complete."""
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


def build(op: Op, inputs: Sequence[Shape]) -> Join:
    """Two streams, `on`, the window."""
    if len(inputs) != 2:
        raise Refused("with", "a join is of two streams: name one")
    left, right = inputs
    on, window = texts_argument(op, "on"), window_of(op, left)
    for name in (*on, *op.by):
        key = "on" if name in on else "by"
        if attribute_of(left, name, key) != attribute_of(right, name, key):
            kinds = f"{left.schema[name]} in {left.name} and {right.schema[name]} in {right.name}"
            raise Refused(key, f"is {kinds}", name)
    if isinstance(window, Span):
        check_time(window, right, "with")
        if op.by:
            raise Refused("by", "a join within windows of time has no groups: name the attributes in on")
    renamed = _renamed(left, right, (*on, *op.by))
    attributes = (*left.schema, *((new, right.schema[old]) for old, new in renamed.items()))
    shape = Shape(op.output or op.op, Schema(attributes), left.time)
    by = by_of(op, left)
    return Join((left, right), without_time_windows(shape, "a join"), on, renamed, by, window)


def _renamed(left: Shape, right: Shape, shared: tuple[str, ...]) -> dict[str, str]:
    renamed: dict[str, str] = {}
    for name in right.schema.names:
        if name in shared:
            continue
        new = f"{right.name}_{name}" if name in left.schema else name
        if new in left.schema or new in renamed.values():
            raise Refused("with", f"two attributes would be called {new}: rename one before", name)
        renamed[name] = new
    return renamed


KIND = Kind("join", build, "pairs within a window", ("with",), ("on",), "must", True)
