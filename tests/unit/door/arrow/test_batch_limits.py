"""Sizes of messages and batches: never below the real ones; types whose values share bytes are refused."""

from __future__ import annotations

import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from hpwsn.door.arrow.batch_limits import decompressed_size, json_size
from hpwsn.streams.arrow_json import UnsupportedColumn, json_lines

COUNTS = pa.array([0] * 3, pa.int32())
LONG = "n" * 1000


def dictionary_of(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(COUNTS, values)


def runs_of(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), values)


SHARING = [
    (dictionary_of(pa.array([[1]])), "without a dictionary"),
    (dictionary_of(pa.array([{"a": 1}])), "without a dictionary"),
    (dictionary_of(pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["x"]))), "without a dictionary"),
    (runs_of(pa.array(["x"])), "run_end_encoded"),
    (pa.array([[1]] * 3, pa.list_view(pa.int64())), "list_view"),
    (pa.array([[1]] * 3, pa.large_list_view(pa.int64())), "large_list_view"),
    (pa.UnionArray.from_sparse(pa.array([0] * 3, pa.int8()), [pa.array([1] * 3)]), "union"),
    (pa.array([b"x" * 16] * 3, pa.uuid()), "uuid"),
    (pa.nulls(3, pa.decimal128(38, 39)), "smaller scale"),
]


@pytest.mark.parametrize(("column", "words"), SHARING)
def test_types_whose_values_share_bytes_are_refused_at_every_level(column: pa.Array, words: str) -> None:
    struct = pa.StructArray.from_arrays([column], ["inner"])
    nested = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), column)
    for each in (column, struct, nested):
        with pytest.raises(UnsupportedColumn, match=f"column tags has .*{words}"):
            json_size(pa.record_batch({"tags": each}))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[None] * 1000], pa.list_(pa.null())),
        pa.array([[True] * 1000]),
        pa.array([{LONG: 1}] * 3),
        pa.array([[{LONG: 1}] * 50]),
        pa.array([[{}] * 1000], pa.list_(pa.struct([]))),
        pa.array([[[]] * 1000], pa.list_(pa.list_(pa.null(), 0))),
        pa.array([[("k" * 100, [None] * 100)]] * 3, pa.map_(pa.string(), pa.list_(pa.null()))),
        pa.array([Decimal(10**75)], pa.decimal256(76, 0)),
        dictionary_of(pa.array([Decimal(10**75)], pa.decimal256(76, 0))),
        dictionary_of(pa.array([LONG])),
        pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), dictionary_of(pa.array([LONG]))),
        pa.array([[LONG] * 3], pa.list_(pa.string_view())),
        pa.array([{"view": [{"run_end": 1}]}]),
    ],
    ids=lambda column: str(column.type)[:40],
)
def test_the_size_is_at_least_that_of_the_lines(column: pa.Array) -> None:
    batch = pa.record_batch({"x": column})
    real = len(json_lines(batch))
    assert real <= json_size(batch) <= 20 * real


def test_a_negative_length_of_a_buffer_does_not_hide_another() -> None:
    batch = pa.record_batch({"a": pa.array([0] * 1000), "b": pa.array([0] * 1000)})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    _, message = pa.ipc.MessageReader.open_stream(sink.getvalue())
    data = message.serialize().to_pybytes()
    assert decompressed_size(message) == 16_000
    # Both columns have the same bytes, so that the last buffer begins in the middle of the body.
    middle = struct.pack("<q", message.body.size // 2)
    place = data.rindex(middle, 0, len(data) - message.body.size) + 8
    damaged = data[:place] + struct.pack("<q", -(2**40)) + data[place + 8 :]
    with pytest.raises(pa.ArrowInvalid, match="damaged"):
        decompressed_size(pa.ipc.read_message(damaged))
