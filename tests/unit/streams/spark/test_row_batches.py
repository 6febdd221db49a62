"""Pages of rows as batches: types, nulls, line breaks, the columns on notifications, and parts of a key."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from hpwsn.streams.spark.reading.broker_link import RowsPage
from hpwsn.streams.spark.reading.row_batches import DATA, RAW, RowBatches, SchemaRefused, check_schema

BREAKS = str.maketrans("\n\r", "\x1d\x1c")
MOMENT = 1_700_000_000_000_000
TEXTS = some.text(some.characters(exclude_categories=["Cc", "Cs"]) | some.sampled_from("\n\r\t"), max_size=5)


def page_of(
    rows: list[list[Any]], runs: list[tuple[int, int, str, int, str | None]] | None = None
) -> RowsPage:
    """A page as the node writes it."""
    lines = "".join("\x1f".join(map(value_text, row)) + "\n" for row in rows if row)
    found = [(1, len(rows), "t", MOMENT, None)] if runs is None else runs
    return RowsPage(len(rows), found if rows else [], memoryview(lines.encode()), len(rows))


def value_text(value: Any) -> str:
    if value is None:
        return "\x1a"
    return value.translate(BREAKS) if isinstance(value, str) else json.dumps(value)


@given(some.lists(some.tuples(TEXTS | some.none(), some.integers(-(2**31), 2**31 - 1) | some.none())))
def test_texts_and_numbers_come_as_they_were(rows: list[tuple[Any, ...]]) -> None:
    schema = pa.schema({"s": pa.string(), "n": pa.int32()})
    batches = RowBatches(schema)
    found = batches.batch(page_of([list(row) for row in rows]))
    assert list(batches.columns) == ["s", "n"]
    assert found.schema == schema
    assert [tuple(row.values()) for row in found.to_pylist()] == rows


@given(some.lists(TEXTS | some.none()))
def test_a_single_column_may_have_empty_lines(texts: list[str | None]) -> None:
    found = RowBatches(pa.schema({"s": pa.string()})).batch(page_of([[text] for text in texts]))
    assert found.column("s").to_pylist() == texts


def test_a_byte_order_mark_at_the_start_is_part_of_the_value() -> None:
    schema = pa.schema({"s": pa.string(), "n": pa.int64()})
    for texts in (["\ufeffbom", "x", "\ufeff"], ["\ufeff"], ["\ufeff\ufeff\n"]):
        found = RowBatches(schema).batch(page_of([[text, 1] for text in texts]))
        assert found.column("s").to_pylist() == texts


def test_values_that_do_not_fit_are_null_in_this_page_and_the_next() -> None:
    batches = RowBatches(pa.schema({"n": pa.int8(), "f": pa.float64(), "t": pa.timestamp("us", "UTC")}))
    good = [1, 1.5, "2024-01-01T00:00:00Z"]
    assert batches.batch(page_of([good])).num_rows == 1
    odd = batches.batch(page_of([good, [300, "nan", "2024-01-01T00:00:00"], ["0x10", 1e400, 5]]))
    assert odd.column("n").to_pylist() == [1, None, None]
    assert odd.column("f").to_pylist() == [1.5, None, None]
    first = datetime(2024, 1, 1, tzinfo=UTC)
    assert odd.column("t").to_pylist() == [first, first, datetime.fromtimestamp(5, UTC)]
    assert batches.batch(page_of([good])).column("n").to_pylist() == [1]
    assert RowBatches(pa.schema({"n": pa.int64()})).batch(page_of([["0x10"]])).column("n").to_pylist() == [
        None
    ]


def test_columns_on_notifications_come_from_the_runs() -> None:
    runs = [(5, 2, "a:b", MOMENT, "i"), (9, 1, "c", MOMENT + 1, None)]
    page = page_of([["{}"], ["{}"], ['{"x": 1}']], runs)
    raw = RowBatches(RAW)
    assert list(raw.columns) == [DATA]
    found = raw.batch(page)
    assert found.schema == RAW
    assert found.column("topic").to_pylist() == ["a:b", "a:b", "c"]
    assert found.column("offset").to_pylist() == [5, 6, 9]
    assert found.column("time").cast(pa.int64()).to_pylist() == [MOMENT, MOMENT, MOMENT + 1]
    assert found.column("id").to_pylist() == ["i", "i", None]
    assert found.column("data").to_pylist() == ["{}", "{}", '{"x": 1}']
    schema = pa.schema({"_offset": pa.string(), "_time": pa.timestamp("us", "UTC")})
    alone = RowBatches(schema)
    assert list(alone.columns) == []
    assert alone.batch(page_of([[], [], []], runs)).column("_offset").to_pylist() == ["5", "6", "9"]


@given(some.lists(TEXTS | some.none(), min_size=1), some.integers(2, 5))
def test_each_row_is_in_the_part_of_its_key(keys: list[str | None], parts: int) -> None:
    schema = pa.schema({"n": pa.int64()})
    page = page_of([[n, key] for n, key in enumerate(keys)])
    found = [
        [row["n"] for row in RowBatches(schema, "key", part, parts).batch(page).to_pylist()]
        for part in range(parts)
    ]
    assert sorted(n for part in found for n in part) == list(range(len(keys)))
    for part in found:
        assert part == sorted(part)
    places = {keys[n]: part for part, some_rows in enumerate(found) for n in some_rows}
    assert all(n in found[places[key]] for n, key in enumerate(keys))


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("a", pa.list_(pa.int64()), "declare it as STRING"),
        ("_offset", pa.int32(), "the column _offset cannot be int32; declare it as BIGINT or STRING"),
        ("_time", pa.date32(), "the column _time cannot be"),
    ],
)
def test_types_that_events_do_not_have_are_refused(name: str, kind: pa.DataType, words: str) -> None:
    with pytest.raises(SchemaRefused, match=words):
        check_schema(pa.schema({name: kind}))
