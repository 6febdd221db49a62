"""A definition judged: its operators as a graph, each with the shape of what it gives out.

Everything wrong is collected, as far as it can be known: an operator after a broken one is judged only if
its streams are known. The constraints are read against what comes out, and every event that leaves keeps
them.

A service computed over lists of events: what Spark must give, in plain Python.

Every operator's own `run` is its meaning; here they are joined as the definition says. Of windows of time
only those come out that end by `until`; None is the end of the data, as in a query of past events. What a
running job has given out after some events is `until` their watermark.
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
from hpwsn.streams.definition.operator import Refused, Shape, Step, texts_argument
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem, nearest
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
"""The events of each input, in Python or as JSON has them."""


def compute(definition: Definition, streams: Streams, until: datetime | None = None) -> list[Event]:
    """The events that the service gives for those of its inputs."""
    plan = plan_of(definition)
    found = {
        name: [event_of(one, shape.schema) for one in streams[name]] for name, shape in plan.inputs.items()
    }
    for node in plan.nodes:
        found[node.gives] = node.step.run([found[name] for name in node.takes], until)
    return [event for event in found[plan.last] if all(holds(one, event) for one in plan.conditions)]


def watermark(definition: Definition, streams: Streams) -> datetime | None:
    """How far the event time of all inputs has come, less the lateness of each; None before all have any."""
    plan = plan_of(definition)
    reached = [_reached(plan, name, streams[name]) for name in plan.inputs if plan.inputs[name].time]
    known = [moment for moment in reached if moment is not None]
    return min(known) if known and len(known) == len(reached) else None


def _reached(plan: Plan, name: str, events: Sequence[Mapping[str, object]]) -> datetime | None:
    shape, lateness = plan.inputs[name], plan.definition.inputs[name].lateness
    moments = [event_of(one, shape.schema)[shape.time] for one in events]
    latest = max((one for one in moments if isinstance(one, datetime)), default=None)
    return None if latest is None else latest - timedelta(seconds=lateness)


_FIXED = {
    "rate": Schema((("timestamp", TIMESTAMP), ("value", BIGINT))),
    "socket": Schema((("value", STRING),)),
}
"""What a source gives that needs no schema, or has its own."""


@dataclass(frozen=True)
class Node:
    """An operator in its place: the step, and the streams that it takes."""

    op: Op
    step: Step
    takes: tuple[str, ...]
    gives: str


@dataclass(frozen=True)
class Plan:
    """A definition that can run: its inputs' shapes, its operators in order, and what comes out."""

    definition: Definition
    inputs: dict[str, Shape]
    nodes: tuple[Node, ...]
    output: Shape
    last: str
    conditions: tuple[Disjunction, ...]


def plan_of(definition: Definition) -> Plan:
    """The plan of a definition; DefinitionError lists everything that is wrong with it."""
    planner = _Planner(definition)
    found = planner.plan()
    if planner.problems or found is None:
        raise DefinitionError(planner.problems)
    return found


def input_schema(one: Input) -> Schema:
    """The attributes of an input; SchemaError where its schema cannot be read."""
    if not one.schema and one.source in _FIXED:
        return _FIXED[one.source]
    return parse_schema(one.schema)


class _Planner:
    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.problems: list[Problem] = []
        self.streams: dict[str, Shape | None] = {}
        self.inputs: dict[str, Shape] = {}
        self.nodes: list[Node] = []
        self.used: set[str] = set()
        self.places: dict[str, Place] = {}
        self.last = ""

    def plan(self) -> Plan | None:
        for one in self.definition.inputs.values():
            shape = self._input(one)
            self.streams[one.name] = shape
            self.places[one.name] = one.place
            if shape is not None:
                self.inputs[one.name] = shape
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

    def _input(self, one: Input) -> Shape | None:
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
            found = f"is {schema[time]}" if time in schema else "is no attribute"
            message = f"{time} {found}; the event time must be a TIMESTAMP of the schema"
            self.problems.append(Problem(one.place, message, part, "time"))
            return None
        return Shape(one.name, schema, time, lateness=one.lateness)

    def _op(self, number: int, op: Op) -> None:
        part = f"operator {number} ({op.op})"
        gives = op.output or f"{op.op}-{number}"
        try:
            takes = self._takes(op)
            inputs = [shape for name in takes if (shape := self.streams[name]) is not None]
            shape = None
            if len(inputs) == len(takes):
                step = self._step(op, inputs)
                shape = step.output
                self.nodes.append(Node(op, step, takes, gives))
        except Refused as error:
            self.problems.append(Problem(op.at(error.key), error.message, part, error.attribute or error.key))
            shape = None
        except SchemaError as error:
            self.problems.append(Problem(op.place, str(error), part))
            shape = None
        if gives in self.streams:
            self.problems.append(Problem(op.at("output"), "is the name of a stream already", part, gives))
        self.streams[gives] = shape
        self.places[gives] = op.place
        self.last = gives

    def _takes(self, op: Op) -> tuple[str, ...]:
        if op.op not in KINDS:
            raise Refused("op", f"there is no such operator; {nearest(op.op, KINDS)}")
        first = op.input or self.last
        if not first:
            inputs = ", ".join(self.definition.inputs)
            raise Refused("input", f"the service has several inputs ({inputs}): name the one this takes")
        takes = (first, *(texts_argument(op, "with") if "with" in op.arguments else ()))
        for position, name in enumerate(takes):
            if name not in self.streams:
                key = "with" if position else "input"
                raise Refused(key, f"there is no stream {name}; {nearest(name, self.streams)}")
        self.used.update(takes)
        return takes

    def _step(self, op: Op, inputs: Sequence[Shape]) -> Step:
        kind = KINDS[op.op]
        kind.check_keys(op)
        return kind.build(op, inputs)

    def _check_use(self) -> None:
        """Each stream but the last goes somewhere: one that does not, where all else is right, is a slip."""
        definition = self.definition
        if not self.last:
            message = "has several inputs and no operator that brings them together"
            self.problems.append(Problem(definition.place, message, "service"))
        for name in () if self.problems else self.streams:
            if name not in self.used and name != self.last and self.last:
                message = f"nothing takes the stream {name}"
                self.problems.append(Problem(self.places[name], message, "service"))

    def _constraints(self, output: Shape) -> Iterator[Disjunction]:
        for one in self.definition.constraints:
            try:
                yield condition_of(one, output.schema)
            except (ConditionError, PredicateError) as error:
                self.problems.append(Problem(one.place, str(error), "constraint", one.attribute))


def condition_of(constraint: Constraint, schema: Schema) -> Disjunction:
    """What a constraint promises of every event of the schema."""
    if constraint.attribute not in schema:
        names = nearest(constraint.attribute, schema.names)
        raise ConditionError(f"is no attribute of what comes out; {names}", constraint.attribute)
    (parsed,) = parse_constraints({constraint.attribute: constraint.text})
    condition = normalise(parsed.expression)
    for conjunction in condition:
        for predicate in conjunction:
            check_predicate(predicate, schema)
    return condition
