"""merge(S'): the union of streams of the same attributes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import Before, Kind, Refused, Shape
from hpwsn.streams.definition.problems import nearest
from hpwsn.streams.definition.schema import Event


@dataclass(frozen=True)
class Merge(Before):
    """All events of all in-streams."""

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """One stream after the other."""
        names = self.output.schema.names
        return [{name: event[name] for name in names} for stream in streams for event in stream]


def build(op: Op, inputs: Sequence[Shape]) -> Merge:
    """The streams must agree on attributes and types, in any order."""
    first, *others = inputs
    for other in others:
        _check_same(first, other)
    grain = max(one.grain for one in inputs)
    if any(one.grain != grain for one in inputs):
        why = "windows of time cannot follow a merge of windows of different lengths"
    else:
        why = next((one.no_time_windows for one in inputs if one.no_time_windows), "")
    time = first.time if all(one.time == first.time for one in others) else ""
    shape = replace(
        first,
        name=op.output or op.op,
        time=time,
        grain=grain,
        no_time_windows=why,
        lateness=max(one.lateness for one in inputs),
        merged=True,
    )
    return Merge(tuple(inputs), shape)


def _check_same(one: Shape, other: Shape) -> None:
    for name, kind in one.schema:
        if name not in other.schema:
            raise Refused(
                "with", f"{other.name} has no such attribute; {nearest(name, other.schema.names)}", name
            )
        if other.schema[name] != kind:
            raise Refused("with", f"is {kind} in {one.name} and {other.schema[name]} in {other.name}", name)
    for name in other.schema.names:
        if name not in one.schema:
            raise Refused("with", f"{one.name} has no such attribute, {other.name} has", name)


KIND = Kind("merge", build, "the union of streams of the same attributes", needed=("with",))
