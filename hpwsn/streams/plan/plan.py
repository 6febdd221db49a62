"""The plan of a definition: its operators as a graph, each with the type of its output stream.

`build_plan` checks a definition and collects as many problems as possible. An operator after an invalid one
is checked only if its input streams are known. The constraints are checked against the output stream; events
that do not satisfy them are not published. `compute` runs a plan over lists of events in plain Python and
defines the result that Spark must produce.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hpwsn.matching.language.constraints import parse_constraints
from hpwsn.matching.language.grammar import PredicateError
from hpwsn.matching.language.normal_form import normalise
from hpwsn.matching.language.predicates import Disjunction
from hpwsn.streams.definition.definition import Constraint, Definition, Input, Op
from hpwsn.streams.definition.event_conditions import ConditionError, check_predicate, holds
from hpwsn.streams.definition.operator import OperatorError, Step, StreamType, texts_argument
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem, suggestion
from hpwsn.streams.definition.schema import (
    BIGINT,
    STRING,
    TIMESTAMP,
    Event,
    Schema,
    SchemaError,
    event_of,
    parse_schema,
)
from hpwsn.streams.operators import KINDS

Streams = Mapping[str, Sequence[Mapping[str, object]]]
"""The events of each input, with Python values or JSON values."""


_DEFAULT_SCHEMAS = {
    "rate": Schema((("timestamp", TIMESTAMP), ("value", BIGINT))),
    "socket": Schema((("value", STRING),)),
}
"""The schemas of sources that are used without a schema of their own."""


@dataclass(frozen=True)
class PlanNode:
    """An operator in the graph: its step, and the names of its input streams and its output stream."""

    op: Op
    step: Step
    input_names: tuple[str, ...]
    output_name: str


@dataclass(frozen=True)
class Plan:
    """A checked definition: the types of its inputs, its operators in order, and its output stream.

    `conditions` are the constraints that every published event satisfies.
    """

    definition: Definition
    inputs: dict[str, StreamType]
    nodes: tuple[PlanNode, ...]
    output: StreamType
    output_name: str
    conditions: tuple[Disjunction, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether the output has a meaningful order: the order of the input, or that of a sort."""
        kinds = [KINDS[node.op.op] for node in self.nodes]
        return any(kind.sorts for kind in kinds) or all(kind.preserves_order for kind in kinds)


def build_plan(definition: Definition) -> Plan:
    """Check a definition and build its plan; DefinitionError lists everything that is wrong with it."""
    planner = _Planner(definition)
    found = planner.plan()
    if planner.problems or found is None:
        raise DefinitionError(planner.problems)
    return found


def input_schema(one: Input) -> Schema:
    """The attributes of an input; SchemaError if its schema cannot be parsed."""
    if not one.schema and one.source in _DEFAULT_SCHEMAS:
        return _DEFAULT_SCHEMAS[one.source]
    return parse_schema(one.schema)


class _Planner:
    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.problems: list[Problem] = []
        self.streams: dict[str, StreamType | None] = {}
        self.inputs: dict[str, StreamType] = {}
        self.nodes: list[PlanNode] = []
        self.used: set[str] = set()
        self.places: dict[str, Place] = {}
        self.last = ""

    def plan(self) -> Plan | None:
        for one in self.definition.inputs.values():
            stream_type = self._input(one)
            self.streams[one.name] = stream_type
            self.places[one.name] = one.place
            if stream_type is not None:
                self.inputs[one.name] = stream_type
        if len(self.definition.inputs) == 1:
            self.last = next(iter(self.definition.inputs))
        for number, op in enumerate(self.definition.ops, 1):
            self._op(number, op)
        self._check_use()
        output = self.streams.get(self.last)
        if output is None:
            return None
        conditions = tuple(self._constraints(output))
        return Plan(self.definition, self.inputs, tuple(self.nodes), output, self.last, conditions)

    def _input(self, one: Input) -> StreamType | None:
        part = f"input {one.name}"
        try:
            schema = input_schema(one)
        except SchemaError as error:
            self.problems.append(Problem(one.place, str(error), part, "schema"))
            return None
        time = one.time or ("time" if schema.types.get("time") == TIMESTAMP else "")
        if not time and one.source == "rate":
            time = "timestamp"
        if time and schema.types.get(time) != TIMESTAMP:
            found = f"is {schema[time]}" if time in schema else "is not an attribute"
            message = f"{time} {found}; the event time must be a TIMESTAMP of the schema"
            self.problems.append(Problem(one.place, message, part, "time"))
            return None
        return StreamType(one.name, schema, time, lateness=one.lateness)

    def _op(self, number: int, op: Op) -> None:
        part = f"operator {number} ({op.op})"
        output_name = op.output or f"{op.op}-{number}"
        try:
            input_names = self._input_names(op)
            inputs = [stream_type for name in input_names if (stream_type := self.streams[name]) is not None]
            stream_type = None
            if len(inputs) == len(input_names):
                step = self._step(op, inputs)
                stream_type = step.output
                self.nodes.append(PlanNode(op, step, input_names, output_name))
        except OperatorError as error:
            self.problems.append(Problem(op.at(error.key), error.message, part, error.attribute or error.key))
            stream_type = None
        except SchemaError as error:
            self.problems.append(Problem(op.place, str(error), part))
            stream_type = None
        if output_name in self.streams:
            self.problems.append(
                Problem(
                    op.at("output"), "is already the name of a stream; use another name", part, output_name
                )
            )
        self.streams[output_name] = stream_type
        self.places[output_name] = op.place
        self.last = output_name

    def _input_names(self, op: Op) -> tuple[str, ...]:
        if op.op not in KINDS:
            raise OperatorError("op", f"unknown operator; {suggestion(op.op, KINDS)}")
        first = op.input or self.last
        if not first:
            inputs = ", ".join(self.definition.inputs)
            raise OperatorError("input", f"the service has several inputs ({inputs}); name the one to use")
        input_names = (first, *(texts_argument(op, "with") if "with" in op.arguments else ()))
        for position, name in enumerate(input_names):
            if name not in self.streams:
                key = "with" if position else "input"
                raise OperatorError(key, f"unknown stream {name}; {suggestion(name, self.streams)}")
        self.used.update(input_names)
        return input_names

    def _step(self, op: Op, inputs: Sequence[StreamType]) -> Step:
        kind = KINDS[op.op]
        kind.check_keys(op)
        return kind.build(op, inputs)

    def _check_use(self) -> None:
        """Report unused streams, but only without other problems, which could be the cause."""
        definition = self.definition
        if not self.last:
            message = "has several inputs and no operator; combine them with merge or join"
            self.problems.append(Problem(definition.place, message, "service"))
        for name in () if self.problems else self.streams:
            if name not in self.used and name != self.last and self.last:
                message = f"no operator uses the stream {name}; use it, or remove it"
                self.problems.append(Problem(self.places[name], message, "service"))

    def _constraints(self, output: StreamType) -> Iterator[Disjunction]:
        for one in self.definition.constraints:
            try:
                yield constraint_condition(one, output.schema)
            except (ConditionError, PredicateError) as error:
                self.problems.append(Problem(one.place, str(error), "constraint", one.attribute))


def constraint_condition(constraint: Constraint, schema: Schema) -> Disjunction:
    """The condition of a constraint, checked against the schema of the output stream."""
    if constraint.attribute not in schema:
        names = suggestion(constraint.attribute, schema.names)
        raise ConditionError(f"is not an output attribute; {names}", constraint.attribute)
    (parsed,) = parse_constraints({constraint.attribute: constraint.text})
    condition = normalise(parsed.expression)
    for conjunction in condition:
        for predicate in conjunction:
            check_predicate(predicate, schema)
    return condition


def compute(definition: Definition, streams: Streams, until: datetime | None = None) -> list[Event]:
    """The output events of the service for the events of its inputs.

    Of time windows, only those that end by `until` are computed; None means the end of the data, as in a
    query of past events. A running job has output the windows up to the watermark of its events.
    """
    plan = build_plan(definition)
    found = {
        name: [event_of(one, stream_type.schema) for one in streams[name]]
        for name, stream_type in plan.inputs.items()
    }
    for node in plan.nodes:
        found[node.output_name] = node.step.run([found[name] for name in node.input_names], until)
    return [event for event in found[plan.output_name] if all(holds(one, event) for one in plan.conditions)]


def watermark(definition: Definition, streams: Streams) -> datetime | None:
    """The watermark of all inputs: the earliest of their latest event times, each minus its lateness.

    None until every input with an event time has an event.
    """
    plan = build_plan(definition)
    reached = [_input_watermark(plan, name, streams[name]) for name in plan.inputs if plan.inputs[name].time]
    known = [moment for moment in reached if moment is not None]
    return min(known) if known and len(known) == len(reached) else None


def _input_watermark(plan: Plan, name: str, events: Sequence[Mapping[str, object]]) -> datetime | None:
    stream_type, lateness = plan.inputs[name], plan.definition.inputs[name].lateness
    moments = [event_of(one, stream_type.schema)[stream_type.time] for one in events]
    latest = max((one for one in moments if isinstance(one, datetime)), default=None)
    return None if latest is None else latest - timedelta(seconds=lateness)
