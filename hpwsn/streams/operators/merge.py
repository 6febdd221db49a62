"""merge(S'): the union of streams of the same attributes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    BaseStep,
    Findings,
    OperatorError,
    OperatorKind,
    StreamType,
    attribute_of,
)
from hpwsn.streams.definition.schema import Event


@dataclass(frozen=True)
class Merge(BaseStep):
    """All events of all input streams."""

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The events of the streams, one stream after another."""
        names = self.output.schema.names
        return [{name: event[name] for name in names} for stream in streams for event in stream]


def build(op: Op, inputs: Sequence[StreamType]) -> Merge:
    """Check that the streams have the same attributes and types, in any order."""
    first, *others = inputs
    findings = Findings()
    for other in others:
        with findings:
            _check_same(first, other)
    findings.raise_all()
    granularity = max(one.granularity for one in inputs)
    if any(one.granularity != granularity for one in inputs):
        why = "time windows cannot follow a merge of windows of different lengths; use equal lengths"
    else:
        why = next((one.no_time_windows for one in inputs if one.no_time_windows), "")
    time = first.time if all(one.time == first.time for one in others) else ""
    stream_type = replace(
        first,
        name=op.output or op.op,
        time=time,
        granularity=granularity,
        no_time_windows=why,
        lateness=max(one.lateness for one in inputs),
        merged=True,
    )
    return Merge(tuple(inputs), stream_type)


def _check_same(one: StreamType, other: StreamType) -> None:
    findings = Findings()
    for name, kind in one.schema:
        with findings:
            if attribute_of(other, name, "with") != kind:
                raise OperatorError(
                    "with", f"is {kind} in {one.name} and {other.schema[name]} in {other.name}", name
                )
    findings.raise_all()
    for name in other.schema.names:
        with findings:
            if name not in one.schema:
                raise OperatorError(
                    "with", f"{other.name} has this attribute, {one.name} has not; drop it with project", name
                )
    findings.raise_all()


KIND = OperatorKind("merge", build, "the union of streams of the same attributes", needed=("with",))
