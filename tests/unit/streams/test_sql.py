"""Queries in SQL and functions of batches in definitions, as far as that goes without Spark."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.definition.schema import Schema, parse_schema
from hpwsn.streams.operators.function import BatchFunction
from hpwsn.streams.operators.sql import QueryError, Sql, Tables, is_stateful
from hpwsn.streams.plan.output_order import Order, output_order
from hpwsn.streams.plan.plan import build_plan, compute
from hpwsn.streams.plan.plan_drawing import table
from hpwsn.streams.spark.user_functions import FunctionError, each_batch

SCHEMA = "cid STRING, speed INT, time TIMESTAMP"


def service(*ops: dict[str, Any], inputs: str = "i") -> Definition:
    one = Service("urn:x", topic="x")
    for name in inputs:
        one.input(name, source="topic", topic=name, schema=SCHEMA)
    for op in ops:
        one.op(**op)
    return one.definition()


def sql(query: str, **more: Any) -> dict[str, Any]:
    return {"op": "sql", "query": query, **more}


def problem_of(definition: Definition, analyse: Any = None) -> str:
    with pytest.raises(DefinitionError) as caught:
        build_plan(definition, analyse)
    return str(caught.value).partition(": operator ")[2]


@pytest.mark.parametrize(
    ("query", "stateful"),
    [
        ("SELECT cid FROM input", False),
        ("SELECT cid, count(*) FROM input GROUP\n BY cid", True),
        ("select distinct cid from input", True),
        ("SELECT a.cid FROM a LEFT JOIN b", True),
        ("SELECT 'GROUP BY' AS `join`, \"distinct\" FROM input -- JOIN\n", False),
        ("SELECT 'it''s', /* GROUP BY */ 1", False),
    ],
)
def test_the_text_says_whether_a_query_keeps_a_state(query: str, stateful: bool) -> None:
    assert is_stateful(query) == stateful


def test_a_query_gets_its_schema_from_spark_and_the_definition_keeps_it() -> None:
    asked: list[tuple[str, list[str]]] = []

    def analyse(query: str, tables: Tables) -> Schema:
        asked.append((query, list(tables)))
        return parse_schema("n BIGINT, time TIMESTAMP")

    definition = service(sql("SELECT 1", input="i", with_="j"), inputs="ij")
    plan = build_plan(definition, analyse)
    assert asked == [("SELECT 1", ["i", "j", "input"])]
    assert str(plan.output.schema) == "n BIGINT, time TIMESTAMP"
    # Later plans of the definition need no Spark.
    assert build_plan(plan.definition).output == plan.output


def test_what_spark_rejects_is_a_problem_of_the_query() -> None:
    def analyse(query: str, tables: Tables) -> Schema:
        raise QueryError("[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct' (line 1, pos 0)")

    assert problem_of(service(sql("SELECT")), analyse) == (
        "1 (sql): query: [PARSE_SYNTAX_ERROR] Syntax error at or near 'selct' (line 1, pos 0)"
    )


def test_a_schema_that_differs_from_the_query_is_a_problem_of_each_column() -> None:
    definition = service(sql("SELECT …", schema="a INT, b STRING, c DATE"))
    with pytest.raises(DefinitionError) as caught:
        build_plan(definition, lambda query, tables: parse_schema("a BIGINT, c DATE, d INT"))
    assert [(one.attribute, one.message) for one in caught.value.problems] == [
        ("a", "is BIGINT in the query and INT here; change one of the two"),
        ("b", "is not in the query and STRING here; change one of the two"),
        ("d", "is INT in the query and missing here; add it"),
    ]


def test_a_query_and_its_schema_may_both_be_wrong() -> None:
    def analyse(query: str, tables: Tables) -> Schema:
        raise QueryError("no")

    with pytest.raises(DefinitionError) as caught:
        build_plan(service(sql("SELECT", schema="n")), analyse)
    assert [one.attribute for one in caught.value.problems] == ["query", "schema"]


COUNT = {"op": "count", "by": "cid", "window": "60 s"}


@pytest.mark.parametrize(
    ("ops", "problem"),
    [
        ([sql("SELECT 1")], "1 (sql): schema: is missing, and only Spark can find it out"),
        ([sql("DROP TABLE x", schema="n INT")], "1 (sql): query: must be a query that begins with SELECT"),
        ([sql(5, schema="n INT")], "1 (sql): query: must be a text, not 5"),  # type: ignore[arg-type]
        ([sql("SELECT 1", schema="n")], "1 (sql): schema: cannot be read at 'n'"),
        ([sql("SELECT 1", schema="n INT", window="5 s")], "1 (sql): window: sql has no window"),
        ([COUNT, sql("SELECT DISTINCT 1", schema="n INT")], "2 (sql): query: GROUP BY, DISTINCT and JOIN"),
        (
            [sql("SELECT 1 GROUP BY 1", schema=SCHEMA), COUNT],
            "2 (count): window: time windows cannot follow a query with GROUP BY",
        ),
    ],
)
def test_a_query_that_cannot_run_is_named(ops: Sequence[dict[str, Any]], problem: str) -> None:
    assert problem_of(service(*ops)).startswith(problem)


def test_a_plain_query_is_followed_by_windows_and_keeps_the_order() -> None:
    plain = sql("SELECT * FROM input", schema=SCHEMA)
    assert output_order(build_plan(service(plain))).order is Order.INPUT
    assert build_plan(service(plain, COUNT)).output.time == "time"
    grouped = build_plan(service(sql("SELECT 1 GROUP BY 1", schema=SCHEMA)))
    assert isinstance(grouped.nodes[0].step, Sql)
    assert output_order(grouped).order is Order.NONE


def test_plain_python_says_that_it_has_no_sql_and_no_batches() -> None:
    for op in (sql("SELECT 1", schema="n INT"), batches(lambda batch: batch)):
        with pytest.raises(HpwsnError, match="runs only on Spark"):
            compute(service(op), {"i": []})


# Functions


def batches(call: Any, **more: Any) -> dict[str, Any]:
    return {"op": "function", "function": call, "batches": True, "schema": "cid STRING, kmh DOUBLE", **more}


BATCH = pa.RecordBatch.from_pydict({"cid": ["a", "b"], "speed": pa.array([50, None], pa.int32())})


def converted(batch: pa.RecordBatch, factor: float = 1.609) -> pa.RecordBatch:
    """A function as a user writes it."""
    kmh = pc.multiply(pc.cast(batch["speed"], pa.float32()), pa.scalar(factor, pa.float32()))
    return pa.RecordBatch.from_arrays([kmh, batch["cid"], batch["speed"]], names=["kmh", "cid", "more"])


def run(op: dict[str, Any]) -> list[pa.RecordBatch]:
    step = build_plan(service(op)).nodes[0].step
    assert isinstance(step, BatchFunction)
    return list(each_batch(step)(iter([BATCH])))


def test_a_function_of_batches_gets_and_gives_batches_in_the_types_of_its_schema() -> None:
    (found,) = run(batches(converted, arguments={"factor": 2.0}))
    assert found.schema.names == ["cid", "kmh"]
    assert found.schema.field("kmh").type == pa.float64()
    assert found.to_pydict() == {"cid": ["a", "b"], "kmh": [100.0, None]}


def test_a_function_of_batches_may_give_tables_several_or_nothing() -> None:
    table_of = pa.Table.from_batches([converted(BATCH)])
    assert run(batches(lambda batch: table_of))[0].num_rows == 2
    assert len(run(batches(lambda batch: (converted(batch) for _ in range(3))))) == 3
    assert run(batches(lambda batch: None)) == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda batch: batch, "<lambda> returned 0 columns kmh; the schema has one"),
        (lambda batch: 5, "must return RecordBatches or Tables, not int"),
        (lambda batch: [5], "must return RecordBatches or Tables, not int"),
        (
            lambda batch: pa.RecordBatch.from_pydict({"cid": ["a"], "kmh": ["fast"]}),
            "the column kmh is string and cannot become double: Failed to parse string: 'fast'",
        ),
    ],
)
def test_what_a_function_gives_wrongly_is_named_by_its_column(call: Any, error: str) -> None:
    with pytest.raises(FunctionError, match=error):
        run(batches(call))


def test_batches_and_windows_exclude_each_other() -> None:
    found = problem_of(service(batches(converted, window="5 s")))
    assert found == "1 (function): batches: a function of batches has no window; remove one of the two"


def test_a_python_function_or_a_lambda_is_an_operator() -> None:
    fast = {"op": "function", "function": lambda event: event if event["speed"] > 60 else None}
    definition = service(fast | {"schema": SCHEMA})
    given = [{"cid": "a", "speed": speed, "time": "2024-01-01T00:00:00Z"} for speed in (50, 70)]
    assert [one["speed"] for one in compute(definition, {"i": given})] == [70]
    assert "function <lambda>" in table(build_plan(definition))[2]
