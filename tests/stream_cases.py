"""Cases of every operator, and the events that they are tried on: for Spark, and for the plain reference."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.schema import Event, event_of, json_of, parse_schema

SCHEMA = "c STRING, v INT, x DOUBLE, ok BOOLEAN, d DECIMAL(6,2), day DATE, time TIMESTAMP"
START = datetime(2024, 1, 1, tzinfo=UTC)
FILES, EACH = 3, 20

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
    "min as a row": [
        {"op": "min", "attribute": "v", "by": "c", "window": "4 rows", "slide": "2 rows", "emit": "row"}
    ],
    "max": [{"op": "max", "attribute": "v", "by": "c", "window": "10 s"}],
    "max of texts": [{"op": "max", "attribute": "c", "window": "10 s", "slide": "5 s"}],
    "min of decimals": [{"op": "min", "attribute": "d", "by": ["ok", "c"], "window": "20 s"}],
    "max of what is mostly missing": [
        {"op": "filter", "where": "not exists(v) or v = 4"},
        {"op": "max", "attribute": "v", "by": "c", "window": "5 s"},
    ],
    "max as a row": [{"op": "max", "attribute": "day", "window": "10 s", "emit": "row"}],
    "avg": [{"op": "avg", "attribute": "x", "window": "10 s", "slide": "5 s"}],
    "windows of windows": [
        {"op": "count", "by": "c", "window": "5 s", "output": "n"},
        {"op": "project", "rename": {"n": "m"}},
        {"op": "max", "attribute": "m", "window": "20 s", "emit": "row"},
    ],
    "extreme of extremes": [
        {"op": "max", "attribute": "v", "by": "c", "window": "5 s"},
        {"op": "min", "attribute": "v", "window": "20 s"},
    ],
    "incrSum": [{"op": "incrSum", "attribute": "v", "by": "c", "window": "3 rows"}],
    "incrCount": [{"op": "incrCount", "window": "10 s"}],
    "incrMin": [{"op": "incrMin", "attribute": "v", "by": "ok", "window": "10 s"}],
    "incrMin of rows": [{"op": "incrMin", "attribute": "x", "by": "c", "window": "3 rows"}],
    "incrMin as a row": [{"op": "incrMin", "attribute": "c", "window": "10 s", "emit": "row"}],
    "incrMax": [{"op": "incrMax", "attribute": "day", "by": "c"}],
    "incrMax as a row": [{"op": "incrMax", "attribute": "time", "emit": "row"}],
    "incrMax of what is mostly missing": [
        {"op": "filter", "where": "not exists(v) or v > 17"},
        {"op": "incrMax", "attribute": "v", "by": "c", "window": "5 s"},
    ],
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


LIVE = ("min", "max", "windows of windows", "incrMin", "incrAvg", "join", "join rows")
"""Cases that Spark runs as streams: one of each way that keeps a state, since a stream costs more."""


def definition(ops: Sequence[dict[str, Any]]) -> Definition:
    service = Service("urn:x", topic="x")
    for name in "ij" if "with" in ops[0] else "i":
        service.input(name, source="topic", topic=name, schema=SCHEMA, lateness="1 s")
    for op in ops:
        service.op(**op)
    return service.definition()


def _events(seed: int) -> list[Event]:
    random = Random(seed)
    found: list[Event] = [
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
    # Some have the time, and some also the values, of the event before.
    for second in range(4, len(found), 5):
        found[second] |= {name: found[second - 1][name] for name in ("time", "v", "c")[: 1 + second % 3]}
    return found


DATA = {
    name: [event_of({n: json_of(v) for n, v in one.items()}, parse_schema(SCHEMA)) for one in _events(seed)]
    for seed, name in enumerate("ij")
}
