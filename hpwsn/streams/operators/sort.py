"""sort(a, asc or desc, wL, sI): the events of each window, in order.

Events with the same value are ordered by their other attributes, in the same direction; what is missing comes
first, and last where the order is descending. `rank` names an attribute for the place in the window, from 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Before,
    Kind,
    Refused,
    Shape,
    after_window,
    attribute_of,
    by_of,
    text_argument,
    window_of,
)
from hpwsn.streams.definition.schema import INT, Event, Schema
from hpwsn.streams.definition.windows import Rows, Span, Window, grouped, in_order, order_of, spans
from hpwsn.streams.operators.aggregate import TupleWindows


@dataclass(frozen=True)
class Sort(Before):
    """Windows of each group, sorted."""

    attribute: str
    descending: bool
    rank: str
    by: tuple[str, ...]
    window: Window

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The events of each window that is complete."""
        stream, shape = streams[0], self.inputs[0]
        if isinstance(self.window, Span):
            windows = spans(stream, self.window, shape.time, self.by, until)
            return [event for _, _, events in windows for event in self.of_window(events)]
        groups = grouped(in_order(stream, shape.schema, shape.time), self.by)
        machine = self.machine()
        return [event for group in groups.values() for event in machine.step(machine.start(), group)]

    def machine(self) -> TupleWindows:
        """One group of tuple windows."""
        assert isinstance(self.window, Rows)
        return TupleWindows(self.window, self.of_window)

    @property
    def order(self) -> tuple[str, ...]:
        """The attributes that decide, in turn."""
        names = self.inputs[0].schema.names
        return (self.attribute, *(name for name in names if name != self.attribute))

    def of_window(self, events: list[Event]) -> list[Event]:
        """The events of one window, in order."""
        ordered = sorted(events, key=lambda one: order_of(one, self.order), reverse=self.descending)
        if not self.rank:
            return ordered
        return [one | {self.rank: place} for place, one in enumerate(ordered, 1)]


def build(op: Op, inputs: Sequence[Shape]) -> Sort:
    """The attribute, the order, the window."""
    stream = inputs[0]
    attribute, order = text_argument(op, "attribute"), text_argument(op, "order", "asc")
    rank = text_argument(op, "rank")
    attribute_of(stream, attribute, "attribute")
    if order not in ("asc", "desc"):
        raise Refused("order", f"must be asc or desc, not {order!r}")
    if rank in stream.schema:
        raise Refused("rank", "is an attribute already", rank)
    schema = Schema((*stream.schema.attributes, (rank, INT))) if rank else stream.schema
    by, window = by_of(op, stream), window_of(op, stream)
    shape = after_window(replace(stream, name=op.output or op.op, schema=schema), window)
    return Sort((stream,), shape, attribute, order == "desc", rank, by, window)


KIND = Kind(
    "sort", build, "the events of each window in order", ("attribute",), ("order", "rank"), "must", True
)
