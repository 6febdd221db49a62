"""One meaning for operators, in plain Python and on Spark: over past data, and over a stream that is stopped
and goes on from its checkpoint.

All cases are one query, whose rows carry the name of their case: a query has more to set up than to do here.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from hpwsn.streams.builder import Service
from hpwsn.streams.definition import Definition
from hpwsn.streams.loading import load
from hpwsn.streams.plan import plan_of
from hpwsn.streams.reference import compute, watermark
from hpwsn.streams.schema import Event, event_of, json_of, parse_schema
from hpwsn.streams.spark.columns import spark_schema
from hpwsn.streams.spark.operators import apply
from tests.spark import events_of, spark_session

pytestmark = pytest.mark.timeout(300)

SCHEMA = "c STRING, v INT, x DOUBLE, ok BOOLEAN, d DECIMAL(6,2), day DATE, time TIMESTAMP"
START = datetime(2024, 1, 1, tzinfo=UTC)
FILES, EACH = 3, 20
EXAMPLES = Path(__file__).parents[2] / "hpwsn" / "streams" / "examples"

FUNCTIONS = """\
FACTOR = 3

def scale(event, add=0):
    if event["v"] is not None:
        yield {"c": event["c"], "w": event["v"] * FACTOR + add, "time": event["time"]}

def ends(events):
    return {"first": events[0]["time"], "last": events[-1]["time"], "n": len(events)}
"""
ENDS = {
    "op": "function",
    "function": "operators_of_a_test:ends",
    "schema": "first TIMESTAMP, last TIMESTAMP, n INT",
}
SCALE = {
    "op": "function",
    "function": "operators_of_a_test:scale",
    "schema": "c STRING, w BIGINT, time TIMESTAMP",
}

CASES: Mapping[str, Sequence[dict[str, Any]]] = {
    "filter": [{"op": "filter", "where": "v > 5 and not (c = 'c_1' or x < 9) and time > 2024-01-01"}],
    "filter by all kinds": [
        {"op": "filter", "where": "c like '%\\_1' and v in (1, 2) or not exists(v) or ok = true and d < 4"}
    ],
    "filter by a date": [{"op": "filter", "attribute": "day", "is": ">", "value": START}],
    "project": [
        {
            "op": "project",
            "attributes": ["c", "v", "time"],
            "rename": {"v": "w"},
            "defaults": {"city": "B", "n": 3, "f": 1.5, "since": START, "on": True},
        }
    ],
    "sum": [{"op": "sum", "attribute": "v", "by": "c", "window": "10 s"}],
    "sum of decimals": [{"op": "sum", "attribute": "d", "window": "10 s"}],
    "count": [{"op": "count", "attribute": "v", "by": ["c", "ok"], "window": "10 s"}],
    "min": [{"op": "min", "attribute": "v", "by": "c", "window": "4 rows", "slide": "2 rows"}],
    "max": [{"op": "max", "attribute": "day", "window": "10 s"}],
    "avg": [{"op": "avg", "attribute": "x", "window": "10 s", "slide": "5 s"}],
    "windows of windows": [
        {"op": "count", "by": "c", "window": "5 s", "output": "n"},
        {"op": "project", "rename": {"n": "m"}},
        {"op": "max", "attribute": "m", "window": "20 s"},
    ],
    "incrSum": [{"op": "incrSum", "attribute": "v", "by": "c", "window": "3 rows"}],
    "incrCount": [{"op": "incrCount", "window": "10 s"}],
    "incrMin": [{"op": "incrMin", "attribute": "c", "window": "10 s"}],
    "incrMax": [{"op": "incrMax", "attribute": "time"}],
    "incrAvg": [{"op": "incrAvg", "attribute": "v", "by": "c", "window": "10 s"}],
    "sort": [{"op": "sort", "attribute": "x", "order": "desc", "window": "10 s", "by": "c", "rank": "n"}],
    "sort rows": [{"op": "sort", "attribute": "v", "window": "6 rows", "slide": "3 rows", "rank": "n"}],
    "merge": [{"op": "merge", "input": "i", "with": "j"}, {"op": "count", "window": "10 s"}],
    "join": [{"op": "join", "input": "i", "with": "j", "on": "c", "window": "4 s", "slide": "2 s"}],
    "join rows": [{"op": "join", "input": "i", "with": "j", "on": "v", "window": "4 rows", "slide": "1 row"}],
    "function": [{**SCALE, "arguments": {"add": 1}}, {"op": "sum", "attribute": "w", "window": "10 s"}],
    "function of windows": [{**ENDS, "by": "c", "window": "10 s"}],
    "function of rows": [{**ENDS, "by": "c", "window": "4 rows"}],
}  # fmt: skip


LIVE = ("min", "windows of windows", "incrAvg", "join", "join rows")
"""Cases that Spark runs as streams: one of each way that keeps a state, since a stream costs more."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        # Jobs have two; each partition of each of so many operators is work of its own.
        session.conf.set("spark.sql.shuffle.partitions", "1")
        yield session


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Definition]]:
    """The cases, and the module of their functions, which only this process can import."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "operators_of_a_test.py").write_text(FUNCTIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield {name: _definition(ops) for name, ops in CASES.items()}
    sys.modules.pop("operators_of_a_test", None)


def _definition(ops: Sequence[dict[str, Any]]) -> Definition:
    service = Service("urn:x", topic="x")
    for name in "ij" if "with" in ops[0] else "i":
        service.input(name, source="topic", topic=name, schema=SCHEMA, lateness="1 s")
    for op in ops:
        service.op(**op)
    return service.definition()


def _events(seed: int) -> list[Event]:
    random = Random(seed)
    return [
        {
            "c": f"c_{random.randrange(3)}",
            "v": random.choice([None, *range(20)]),
            # Quarters, which add up alike in any order.
            "x": random.randrange(400) / 4,
            "ok": random.random() < 0.5,
            "d": f"{random.randrange(10_000) / 100:.2f}",
            "day": (START + timedelta(days=random.randrange(-2, 3))).date(),
            "time": START + timedelta(seconds=second, milliseconds=random.randrange(900)),
        }
        for second in range(FILES * EACH)
    ]


DATA = {
    name: [event_of({n: json_of(v) for n, v in one.items()}, parse_schema(SCHEMA)) for one in _events(seed)]
    for seed, name in enumerate("ij")
}


def _all(definitions: Mapping[str, Definition], frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of all cases, each as the name of its case and JSON."""
    options = {"ignoreNullFields": "false"}
    rows = [
        apply(one, frames).select(
            fn.lit(name).alias("case"), fn.to_json(fn.struct("*"), options).alias("row")
        )
        for name, one in definitions.items()
    ]
    return reduce(DataFrame.unionAll, rows)


def _by_case(
    frame: DataFrame, definitions: Mapping[str, Definition]
) -> dict[str, Counter[tuple[object, ...]]]:
    found: dict[str, Counter[tuple[object, ...]]] = {name: Counter() for name in definitions}
    schemas = {name: plan_of(one).output.schema for name, one in definitions.items()}
    for row in frame.collect():
        event = event_of(json.loads(row["row"]), schemas[row["case"]])
        found[row["case"]][tuple(event.values())] += 1
    return found


@pytest.fixture(scope="module")
def past(spark: SparkSession, definitions: dict[str, Definition]) -> dict[str, Counter[tuple[object, ...]]]:
    """What Spark gives for past data."""
    rows = {name: [tuple(one.values()) for one in events] for name, events in DATA.items()}
    kind = spark_schema(parse_schema(SCHEMA))
    frames = {name: spark.createDataFrame(rows[name], kind) for name in rows}
    return _by_case(_all(definitions, frames), definitions)


@pytest.fixture(scope="module")
def live(
    spark: SparkSession, definitions: dict[str, Definition], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Counter[tuple[object, ...]]]:
    """What it gives for a stream of files, one a batch; before the last one it is stopped."""
    folder = tmp_path_factory.mktemp("stream")
    frames = {name: _stream(spark, folder / name) for name in DATA}
    cases = {name: definitions[name] for name in LIVE}
    for batches in (range(FILES - 1), range(FILES - 1, FILES)):
        for number in batches:
            for name, events in DATA.items():
                _write(folder / name / f"{number}.json", events[number * EACH : (number + 1) * EACH], number)
        _run(_all(cases, frames), folder)
    return _by_case(spark.read.parquet(str(folder / "out")), cases)


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir()
    kind = spark_schema(parse_schema(SCHEMA))
    return spark.readStream.schema(kind).option("maxFilesPerTrigger", 1).json(str(folder))


def _write(file: Path, events: Sequence[Event], order: int) -> None:
    lines = [json.dumps({name: json_of(value) for name, value in one.items()}) for one in events]
    hidden = file.with_name(f".{file.name}")
    hidden.write_text("\n".join(lines))
    # The source goes by the time of change.
    os.utime(hidden, (1_700_000_000 + order, 1_700_000_000 + order))
    hidden.rename(file)


def _run(frame: DataFrame, folder: Path) -> None:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    assert query.awaitTermination(240)


@pytest.mark.parametrize("case", CASES)
def test_past_data_gives_what_the_reference_gives(
    case: str, definitions: dict[str, Definition], past: dict[str, Counter[tuple[object, ...]]]
) -> None:
    wanted = Counter(tuple(one.values()) for one in compute(definitions[case], DATA))
    assert wanted
    assert past[case] == wanted


@pytest.mark.parametrize("case", LIVE)
def test_a_stream_gives_what_the_reference_gives_until_its_watermark(
    case: str, definitions: dict[str, Definition], live: dict[str, Counter[tuple[object, ...]]]
) -> None:
    until = watermark(definitions["merge"], DATA)
    wanted = Counter(tuple(one.values()) for one in compute(definitions[case], DATA, until))
    assert wanted
    assert live[case] == wanted


def test_an_event_later_than_the_lateness_is_left_out_and_one_within_it_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    (one,) = load(EXAMPLES / "genTrafficFlow.toml")
    kind = spark_schema(parse_schema(one.inputs["anpr"].schema))
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema(kind).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    # The watermark, 5 s behind, closes the third minute; Spark leaves out by that of the batch before.
    for number, seconds in enumerate(([30, 185], [185], [150, 184], [400])):
        events = [{"cid": "a", "vid": "v", "time": START + timedelta(seconds=one)} for one in seconds]
        _write(tmp_path / "in" / f"{number}.json", events, number)
    _run(apply(one, {"anpr": frame}), tmp_path)
    found = events_of(spark.read.parquet(str(tmp_path / "out")))
    assert {((one["time"] - START).total_seconds(), one["flow"]) for one in found} == {(0, 1), (180, 3)}
