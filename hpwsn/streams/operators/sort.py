"""sort(a, asc or desc, wL, sI): the events of each window, sorted.

Events with the same value are sorted by their other attributes, in the same direction. Null sorts first, or
last if the order is descending. `rank` names an output attribute for the rank in the window, from 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Findings,
    OperatorError,
    OperatorKind,
    StreamType,
    after_window,
    attribute_of,
    by_of,
    text_argument,
    window_of,
)
from hpwsn.streams.definition.schema import INT, Event, Schema
from hpwsn.streams.definition.windows import order_of
from hpwsn.streams.operators.windowed import WindowedStep


@dataclass(frozen=True)
class Sort(WindowedStep):
    """Windows of each group, sorted."""

    attribute: str
    descending: bool
    rank: str

    @property
    def order(self) -> tuple[str, ...]:
        """The attributes to sort by, the most significant first."""
        names = self.inputs[0].schema.names
        return (self.attribute, *(name for name in names if name != self.attribute))

    def of_window(self, events: list[Event]) -> list[Event]:
        """The sorted events of one window."""
        ordered = sorted(events, key=lambda one: order_of(one, self.order), reverse=self.descending)
        if not self.rank:
            return ordered
        return [one | {self.rank: place} for place, one in enumerate(ordered, 1)]


def build(op: Op, inputs: Sequence[StreamType]) -> Sort:
    """Check the attribute, the order, the rank and the window."""
    stream = inputs[0]
    findings = Findings()
    with findings:
        attribute = text_argument(op, "attribute")
        attribute_of(stream, attribute, "attribute")
    with findings:
        order = text_argument(op, "order", "asc")
        if order not in ("asc", "desc"):
            raise OperatorError("order", f"must be asc or desc, not {order!r}")
    with findings:
        rank = text_argument(op, "rank")
        if rank in stream.schema:
            raise OperatorError("rank", "exists already; choose another name for the rank", rank)
    with findings:
        by = by_of(op, stream)
    with findings:
        window = window_of(op, stream)
    findings.raise_all()
    schema = Schema((*stream.schema.attributes, (rank, INT))) if rank else stream.schema
    stream_type = after_window(replace(stream, name=op.output or op.op, schema=schema), window)
    return Sort((stream,), stream_type, by, window, attribute, order == "desc", rank)


KIND = OperatorKind(
    "sort",
    build,
    "the events of each window in order",
    ("attribute",),
    ("order", "rank"),
    "must",
    True,
)
