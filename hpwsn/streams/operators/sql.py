"""A query in Spark SQL as an operator: `op = "sql"`, `query = "SELECT … FROM input"`.

The tables are the input streams by their names; `input` is the first one. Only Spark can say which attributes
a query gives: an `Analyse` asks Spark, and the planner writes the answer into the operator as its `schema`.
Where Spark is not installed, the definition must have the `schema`; Spark compares it with the query as soon
as it is there. The query text alone says whether Spark needs a state for it (GROUP BY, DISTINCT, JOIN), and
then its inputs have watermarks and no time window can follow.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    BaseStep,
    Findings,
    NeedsSpark,
    OperatorError,
    OperatorKind,
    StreamType,
    schema_argument,
    text_argument,
    texts_argument,
    without_time_windows,
)
from hpwsn.streams.definition.schema import TIMESTAMP, Event, Schema, SchemaError

INPUT = "input"
"""The table name of the first input stream, whatever its own name."""
NO_SCHEMA = 'is missing, and only Spark can find it out; install Spark, or write schema = "name TYPE, …"'

_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.S)
_STATEFUL = re.compile(r"\b(?:group\s+by|distinct|join)\b|\bfrom\s+[\w`.]+(?:\s+(?:as\s+)?\w+)?\s*,", re.I)
_REGROUPING = re.compile(
    r"/\*\+|\b(?:(?:distribute|cluster|sort|order)\s+by|limit|offset|union|intersect|except|in\s*\(\s*select|exists)\b",
    re.I,
)
"""What moves rows between partitions or puts them in another order, beside a state."""
_QUERY = re.compile(r"[\s(]*(?:select|with)\b", re.I)

Tables = Mapping[str, StreamType]
"""The input streams of a query by their table names."""


class QueryError(Exception):
    """Spark rejects a query; the message is one line."""


Analyse = Callable[[str, Tables], Schema]
"""Returns the attributes that a query gives; QueryError or SchemaError if it cannot be run."""


@dataclass(frozen=True)
class Sql(BaseStep):
    """A query; `tables` gives the input's number by table name, `stateful` says that Spark keeps a state."""

    query: str
    tables: Mapping[str, int]
    stateful: bool

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """Not possible in plain Python."""
        raise NeedsSpark("a query in SQL")


def is_stateful(query: str) -> bool:
    """Whether the query has GROUP BY, DISTINCT, JOIN or several tables, outside of quotes and comments."""
    return bool(_STATEFUL.search(_QUOTED.sub(" ", query)))


def keeps_order(query: str) -> bool:
    """Whether the rows of the query are in the order of its input: nothing in it regroups them."""
    # Hints of Spark look like comments, and are looked for before comments are taken out.
    hints = "/*+" in query
    return not (hints or is_stateful(query) or _REGROUPING.search(_QUOTED.sub(" ", query)))


def lacks_schema(ops: Iterable[Op]) -> bool:
    """Whether any of the operators is a query whose schema only Spark can find out."""
    return any(op.op == KIND.name and "schema" not in op.arguments for op in ops)


def with_schema(op: Op, inputs: Sequence[StreamType], analyse: Analyse) -> Op:
    """The operator with the schema that Spark finds for its query; OperatorError if Spark rejects it."""
    query = _query(op)
    try:
        found = analyse(query, {name: inputs[number] for name, number in _tables(op, inputs).items()})
    except (QueryError, SchemaError) as error:
        raise OperatorError("query", str(error)) from None
    if "schema" in op.arguments:
        _check_same(schema_argument(op), found)
    return replace(op, arguments={**op.arguments, "schema": str(found)})


def build(op: Op, inputs: Sequence[StreamType]) -> Sql:
    """Check the form of the query, and that a state is possible on these streams."""
    if "schema" not in op.arguments:
        raise OperatorError("schema", NO_SCHEMA)
    findings = Findings()
    with findings:
        query = _query(op)
        stateful = is_stateful(query)
        if stateful:
            _check_state(inputs)
    with findings:
        schema = schema_argument(op)
    findings.raise_all()
    first = inputs[0]
    time = first.time if schema.types.get(first.time) == TIMESTAMP else ""
    output = StreamType(op.output or op.op, schema, time, 0, first.no_time_windows, first.lateness)
    if stateful or len(inputs) > 1 or first.granularity or first.merged:
        output = without_time_windows(
            output, "a query with GROUP BY, DISTINCT, JOIN or several inputs, or after a window or a merge"
        )
    return Sql(tuple(inputs), output, query, _tables(op, inputs), stateful)


def _query(op: Op) -> str:
    query = text_argument(op, "query")
    if not _QUERY.match(_QUOTED.sub(" ", query)):
        raise OperatorError("query", "must be a query that begins with SELECT or WITH")
    return query


def _tables(op: Op, inputs: Sequence[StreamType]) -> dict[str, int]:
    others = texts_argument(op, "with")
    if INPUT in others:
        raise OperatorError("with", f"{INPUT} is the table name of the first stream; rename this one", INPUT)
    return {inputs[0].name: 0, **{name: number for number, name in enumerate(others, 1)}, INPUT: 0}


def _check_state(inputs: Sequence[StreamType]) -> None:
    for one in inputs:
        if one.granularity or one.no_time_windows:
            raise OperatorError(
                "query",
                f"GROUP BY, DISTINCT and JOIN cannot follow a window or a join ({one.name}); "
                "put the query into another service that has this one as its input",
            )


def _check_same(wanted: Schema, found: Schema) -> None:
    findings = Findings()
    for name, kind in wanted:
        with findings:
            if found.types.get(name) != kind:
                given = f"is {found[name]} in the query" if name in found else "is not in the query"
                raise OperatorError("schema", f"{given} and {kind} here; change one of the two", name)
    for name, kind in found:
        with findings:
            if name not in wanted:
                raise OperatorError("schema", f"is {kind} in the query and missing here; add it", name)
    findings.raise_all()


KIND = OperatorKind("sql", build, "a query in Spark SQL", ("query",), ("with", "schema"))
