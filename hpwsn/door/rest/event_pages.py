"""Pages of events as a response has them: JSON events, and rows of values for programs that read columns.

A page of rows begins with a line of JSON: `rows` is their number, and `runs` has for each group of rows that
differ only in their values the first offset, the number of rows, the topic, the time in microseconds and the
id. Then each row is a line of values, separated by SEPARATOR. NULL stands for null and for a missing field.
XML allows none of these control characters, so a value needs no escapes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from hpwsn.broker.delivery.log_pages import Page, Stretch
from hpwsn.notification import Run
from hpwsn_client.wsn.formats.json_events import JsonObject, JsonValue, decode_event

ROWS_TYPE = "application/vnd.hpwsn.rows"
ROWS, MOST_ROWS = 10_000, 50_000
ROWS_BYTES = 16 << 20
"""Size of the notifications in one page of rows, beyond which it ends."""
SEPARATOR, NULL = "\x1f", "\x1a"
WHOLE = "@data"
"""The column with the whole event as JSON."""

_BREAKS = str.maketrans("\n\r", "\x1d\x1c")


def json_events(stretches: Sequence[Stretch]) -> list[bytes]:
    """Each entry as JSON on one line."""
    found: list[bytes] = []
    for stretch in stretches:
        middle = _middle(stretch.run)
        for offset, payload in zip(stretch.offsets, stretch.payloads, strict=True):
            data = json.dumps(decode_event(payload), ensure_ascii=False).encode()
            found.append(b'{"offset": %d, %b%b}' % (offset, middle, data))
    return found


def _middle(run: Run) -> bytes:
    """What the events of a run have between their offset and their data."""
    time = datetime.fromtimestamp(run.time, UTC).isoformat(timespec="milliseconds")
    shared = {"topic": str(run.topic), "time": time, "id": run.message_id}
    return json.dumps(shared, ensure_ascii=False)[1:-1].encode() + b', "data": '


def encode_rows(page: Page, columns: Sequence[str]) -> bytes:
    """A page of rows with the values of these columns."""
    head = {"rows": page.count, "runs": _runs(page.stretches)}
    lines = [json.dumps(head, ensure_ascii=False)]
    if columns:
        lines += (_row(payload, columns) for each in page.stretches for payload in each.payloads)
    return "\n".join((*lines, "")).encode()


def _runs(stretches: Sequence[Stretch]) -> list[list[Any]]:
    """First offset, number, topic, time and id; neighbours that continue each other are one."""
    found: list[list[Any]] = []
    for stretch in stretches:
        run = stretch.run
        shared = [str(run.topic), round(run.time * 1e6), run.message_id]
        for first, count in _consecutive(stretch.offsets):
            if found and found[-1][0] + found[-1][1] == first and found[-1][2:] == shared:
                found[-1][1] += count
            else:
                found.append([first, count, *shared])
    return found


def _consecutive(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first offset and the number of each group of consecutive offsets."""
    if isinstance(offsets, range):
        yield offsets[0], len(offsets)
        return
    first = offsets[0]
    for before, offset in pairwise(offsets):
        if offset != before + 1:
            yield first, before - first + 1
            first = offset
    yield first, offsets[-1] - first + 1


def _row(payload: bytes, columns: Sequence[str]) -> str:
    event = decode_event(payload)
    return SEPARATOR.join([_value(event, column) for column in columns])


def _value(event: JsonObject, column: str) -> str:
    value: JsonValue = event if column == WHOLE else event.get(column)
    if value is None:
        return NULL
    return value.translate(_BREAKS) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
