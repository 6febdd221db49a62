"""Events in Arrow IPC streams: a page of the log as one record batch, and a request's batches as JSON lines.

A page has the columns of SCHEMA. In a request each row is an event and each column a field; the conversion is
that of hpwsn.streams.arrow_json. Requests come from anybody: every message is measured before it is
decompressed, every batch is validated before it is used, and its JSON is estimated before it is made.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate

import pyarrow as pa

from hpwsn.broker.readers.log_pages import Stretch
from hpwsn.door.arrow.batch_limits import decompressed_size, json_size
from hpwsn.streams.arrow_json import UnsupportedColumn, json_lines
from hpwsn_client.wsn.soap.soap_faults import SoapFault, TooLarge
from hpwsn_client.wsn.soap.xml import Limits

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("offset", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("id", pa.string()),
        ("data", pa.string()),
    ]
)


def encode_batch(stretches: Sequence[Stretch], data: Sequence[bytes]) -> bytes:
    """An IPC stream with one batch; `data` has the JSON of each entry."""
    runs = [each.run for each in stretches]
    places = pa.array([place for place, run in enumerate(runs) for _ in range(run.size)], pa.int32())
    columns = [
        pa.array([str(run.topic) for run in runs], pa.string()).take(places),
        pa.array([offset for each in stretches for offset in each.offsets], pa.int64()),
        pa.array([round(run.time * 1e6) for run in runs], SCHEMA.field("time").type).take(places),
        pa.array([run.message_id for run in runs], pa.string()).take(places),
        _strings(data),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    return bytes(sink.getvalue())


def _strings(texts: Sequence[bytes]) -> pa.Array:
    """The texts, which are UTF-8, as an array, without decoding each."""
    ends = array("i", accumulate(map(len, texts), initial=0))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))


def lines_of(body: bytes, limits: Limits, growth: int) -> bytes:
    """The rows of an IPC stream as lines of JSON; a fault if that is not possible within the limits."""
    room = growth * limits.body
    try:
        _check_messages(body, room)
        return b"".join(_lines(body, limits, room))
    except (pa.ArrowException, OSError) as error:
        reason = f"the body is not a valid Arrow IPC stream: {str(error).partition(chr(10))[0]}"
        raise SoapFault(reason, status=400) from error
    except UnsupportedColumn as error:
        raise SoapFault(str(error), status=400) from error


def _check_messages(body: bytes, room: int) -> None:
    """Raise TooLarge if the messages have more bytes than this when they are decompressed."""
    reader = pa.ipc.MessageReader.open_stream(body)
    for message in iter(reader):
        room -= decompressed_size(message)
        if room < 0:
            raise TooLarge("the batches are too large when they are decompressed; send several requests")


def _lines(body: bytes, limits: Limits, room: int) -> Iterator[bytes]:
    rows = 0
    with pa.ipc.open_stream(body, options=pa.ipc.IpcReadOptions(use_threads=False)) as reader:
        for batch in reader:
            rows += batch.num_rows
            if rows > limits.messages:
                raise TooLarge(f"there are more than the {limits.messages} rows accepted at once")
            batch.validate(full=True)
            room -= json_size(batch)
            if room < 0:
                raise TooLarge("the events are too large as JSON; send several requests")
            yield json_lines(batch)
    if not rows:
        raise SoapFault("there is no event; send at least one row", status=400)
