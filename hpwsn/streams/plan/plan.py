"""The plan of a definition: its operators as a graph, each with the type of its output stream.

`build_plan` checks a definition and collects all problems. Of an operator after an invalid one, only the keys
and the text of its window are checked, because its input stream is unknown. The constraints are checked
against the output stream; events that do not satisfy them are not published. `compute` runs a plan over lists
of events in plain Python and defines the result that Spark must produce.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hpwsn.matching.language.constraints import parse_constraints
from hpwsn.matching.language.normal_form import normalise
from hpwsn.matching.language.predicate_parser import PredicateError
from hpwsn.matching.language.predicates import Disjunction
from hpwsn.streams.definition.definition import Constraint, Definition, Input, Op
from hpwsn.streams.definition.event_conditions import ConditionError, check_predicate, holds
from hpwsn.streams.definition.operator import (
    Findings,
    OperatorError,
    OperatorErrors,
    Step,
    StreamType,
    error_list,
    texts_argument,
    window_text,
)
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
from hpwsn.streams.operators import KINDS, sql
from hpwsn.streams.operators.sql import Analyse

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


def build_plan(definition: Definition, analyse: Analyse | None = None) -> Plan:
    """Check a definition and build its plan; DefinitionError lists everything that is wrong with it.

    `analyse` finds the schemas of queries that have none; the plan's definition then has them.
    """
    plan, problems = check_plan(definition, analyse)
    if problems or plan is None:
        raise DefinitionError(problems)
    return plan


def check_plan(
    definition: Definition, analyse: Analyse | None = None, form: Sequence[Problem] = ()
) -> tuple[Plan | None, list[Problem]]:
    """The plan of a definition, None if its output is unknown, and everything that is wrong with its meaning.

    `form` are the known problems of its form; problems that only follow from them are left out.
    """
    planner = _Planner(definition, analyse, form)
    return planner.plan(), planner.problems


def input_schema(one: Input) -> Schema:
    """The attributes of an input; SchemaError if its schema cannot be parsed."""
    if not one.schema and one.source in _DEFAULT_SCHEMAS:
        return _DEFAULT_SCHEMAS[one.source]
    return parse_schema(one.schema)


def event_time(one: Input, schema: Schema) -> str:
    """The attribute of an input's event time; empty if it has none."""
    if one.time or schema.types.get("time") != TIMESTAMP:
        return one.time or ("timestamp" if one.source == "rate" else "")
    return "time"


class _Planner:
    def __init__(self, definition: Definition, analyse: Analyse | None, form: Sequence[Problem]) -> None:
        self.definition = definition
        self.analyse = analyse
        self.problems: list[Problem] = []
        self.streams: dict[str, StreamType | None] = {}
        self.inputs: dict[str, StreamType] = {}
        self.nodes: list[PlanNode] = []
        self.ops: list[Op] = []
        self.used: set[str] = set()
        self.places: dict[str, Place] = {}
        self.last = ""
        self.knows_use = True
        self._form = {(one.part, one.attribute) for one in form}
        self._form_parts = {one.part for one in form}

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
            self.ops.append(self._op(number, op))
        self._check_use()
        output = self.streams.get(self.last)
        conditions = tuple(self._constraints(output))
        if output is None:
            return None
        definition = replace(self.definition, ops=tuple(self.ops))
        return Plan(definition, self.inputs, tuple(self.nodes), output, self.last, conditions)

    def _problem(self, place: Place, message: str, part: str, attribute: str = "") -> None:
        if (part, attribute) not in self._form:
            self.problems.append(Problem(place, message, part, attribute))

    def _input(self, one: Input) -> StreamType | None:
        part = f"input {one.name}"
        try:
            schema = input_schema(one)
        except SchemaError as error:
            if one.schema or part not in self._form_parts:
                self._problem(one.place, str(error), part, "schema")
            return None
        self._check_partitions(one, schema, part)
        time = event_time(one, schema)
        if time and schema.types.get(time) != TIMESTAMP:
            found = f"is {schema[time]}" if time in schema else "is not an attribute"
            message = f"{time} {found}; the event time must be a TIMESTAMP of the schema"
            self._problem(one.place, message, part, "time")
            return None
        return StreamType(one.name, schema, time, lateness=one.lateness)

    def _check_partitions(self, one: Input, schema: Schema, part: str) -> None:
        key, partitions = one.text("key"), one.settings.get("partitions", 1)
        if key and key not in schema:
            message = f"{key} is not an attribute of the schema; {suggestion(key, schema.names)}"
            self._problem(one.place, message, part, "key")
        several = isinstance(partitions, int) and partitions > 1
        if several and not key and self.definition.order != "any":
            message = 'several partitions lose the order; name a key, or write order = "any" in the service'
            self._problem(one.place, message, part, "partitions")

    def _op(self, number: int, op: Op) -> Op:
        """Check an operator; return it with the schema of its query, if it has one."""
        part = f"operator {number} ({op.op})"
        output_name = op.output or f"{op.op}-{number}"
        stream_type = None
        try:
            input_names = self._input_names(op)
            inputs = [known for name in input_names if (known := self.streams[name]) is not None]
            if len(inputs) == len(input_names):
                op, step = self._step(op, inputs)
                stream_type = step.output
                self.nodes.append(PlanNode(op, step, input_names, output_name))
            else:
                self._check_alone(op)
        except OperatorError as error:
            for one in error_list(error):
                self._problem(op.at(one.key), one.message, part, one.attribute or one.key)
        except SchemaError as error:
            self._problem(op.place, str(error), part)
        if output_name in self.streams:
            message = "is already the name of a stream; use another name"
            self._problem(op.at("output"), message, part, output_name)
        self.streams[output_name] = stream_type
        self.places[output_name] = op.place
        self.last = output_name
        return op

    def _input_names(self, op: Op) -> tuple[str, ...]:
        self.knows_use, knew_use = False, self.knows_use
        if not op.op:
            # A problem of form.
            raise OperatorErrors(())
        if op.op not in KINDS:
            raise OperatorError("op", f"unknown operator; {suggestion(op.op, KINDS)}")
        first = op.input or self.last
        if not first and len(self.definition.inputs) > 1:
            inputs = ", ".join(self.definition.inputs)
            raise OperatorError("input", f"the service has several inputs ({inputs}); name the one to use")
        if not first:
            self.streams.setdefault("", None)
        input_names = (first, *(texts_argument(op, "with") if "with" in op.arguments else ()))
        self.used.update(input_names)
        findings = Findings()
        for position, name in enumerate(input_names):
            with findings:
                if name not in self.streams:
                    key = "with" if position else "input"
                    raise OperatorError(key, f"unknown stream {name}; {suggestion(name, self.streams)}")
        findings.raise_all()
        self.knows_use = knew_use
        return input_names

    def _step(self, op: Op, inputs: Sequence[StreamType]) -> tuple[Op, Step]:
        kind = KINDS[op.op]
        try:
            kind.check_keys(op)
            if kind is sql.KIND and self.analyse is not None:
                op = sql.with_schema(op, inputs, self.analyse)
        except OperatorError as error:
            wrong = error_list(error)
            raise OperatorErrors([*wrong, *_other_errors(op, inputs, wrong)]) from None
        return op, kind.build(op, inputs)

    def _check_alone(self, op: Op) -> None:
        """Check what does not depend on the types of the input streams, which are unknown."""
        findings = Findings()
        with findings:
            KINDS[op.op].check_keys(op)
        with findings:
            if op.window:
                window_text(op)
        findings.raise_all()

    def _check_use(self) -> None:
        """Report unused streams, but only if the inputs of all operators are known."""
        definition = self.definition
        if not self.last and definition.inputs:
            message = "has several inputs and no operator; combine them with merge or join"
            self._problem(definition.place, message, "service")
        for name in self.streams if self.knows_use and self.last else ():
            if name not in self.used and name != self.last:
                message = f"no operator uses the stream {name}; use it, or remove it"
                self._problem(self.places[name], message, "service")

    def _constraints(self, output: StreamType | None) -> Iterator[Disjunction]:
        for one in self.definition.constraints:
            try:
                if output is None:
                    parse_constraints({one.attribute: one.text})
                else:
                    yield constraint_condition(one, output.schema)
            except (ConditionError, PredicateError) as error:
                self._problem(one.place, str(error), "constraint", one.attribute)


def _other_errors(
    op: Op, inputs: Sequence[StreamType], known: Sequence[OperatorError]
) -> list[OperatorError]:
    """The errors of an operator in the values of keys that have no known error."""
    keys = {one.key for one in known}
    try:
        KINDS[op.op].build(op, inputs)
    except OperatorError as error:
        # A query without a schema is not wrong before Spark has seen it.
        return [one for one in error_list(error) if one.key not in keys and one.message != sql.NO_SCHEMA]
    except SchemaError as error:
        return [OperatorError("op", str(error))]
    return []


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
