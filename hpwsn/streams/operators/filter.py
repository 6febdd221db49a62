"""filter(a, op, v), or `where` with an expression of the predicate language: keep the matching events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hpwsn.matching.language.predicates import Disjunction
from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.event_conditions import ConditionError, comparison, holds, parse_condition
from hpwsn.streams.definition.operator import BaseStep, OperatorError, OperatorKind, StreamType, text_argument
from hpwsn.streams.definition.schema import Event

COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")


@dataclass(frozen=True)
class Filter(BaseStep):
    """Events that satisfy a condition."""

    condition: Disjunction

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The events that satisfy the condition."""
        return [event for event in streams[0] if holds(self.condition, event)]


def build(op: Op, inputs: Sequence[StreamType]) -> Filter:
    """Check that the arguments are either `where`, or `attribute`, `is` and `value`."""
    stream = inputs[0]
    given = [key for key in ("attribute", "is", "value") if key in op.arguments]
    if ("where" in op.arguments) == bool(given) or (given and len(given) < 3):
        raise OperatorError("where", 'write where = "speed > 60", or all of attribute, is and value')
    try:
        if "where" in op.arguments:
            condition = parse_condition(text_argument(op, "where"), stream.schema)
        else:
            condition = _comparison(op, stream)
    except ConditionError as error:
        raise OperatorError(given[0] if given else "where", str(error), error.attribute) from None
    return Filter((stream,), replace(stream, name=op.output or stream.name), condition)


def _comparison(op: Op, stream: StreamType) -> Disjunction:
    operator = text_argument(op, "is")
    if operator not in COMPARISONS:
        raise OperatorError("is", f"must be one of {' '.join(COMPARISONS)}, not {operator!r}")
    return comparison(text_argument(op, "attribute"), operator, op.arguments["value"], stream.schema)


KIND = OperatorKind(
    "filter",
    build,
    "keep matching events",
    optional=("where", "attribute", "is", "value"),
)
