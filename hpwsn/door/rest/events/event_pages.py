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
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hpwsn.broker.readers.log_pages import Page, Stretch
from hpwsn.door.event_shapes.learned_shapes import LearnedShapes
from hpwsn.door.event_shapes.payload_shapes import SEPARATOR, WHOLE, JsonForm, RowsForm
from hpwsn.notification import Run
from hpwsn_client.wsn.soap.trace_context import traceparent_of

ROWS_TYPE = "application/vnd.hpwsn.rows"
ROWS, MOST_ROWS = 10_000, 50_000
ROWS_BYTES = 16 << 20
"""Size of the notifications in one page of rows, beyond which it ends."""
MOST_CHOICES = 64
"""Choices of columns whose learned shapes are kept."""


class EventPages:
    """Encodes pages, and learns the shapes of their events. Threads may share it."""

    def __init__(self) -> None:
        self._json = LearnedShapes(JsonForm())
        self._rows: dict[tuple[str, ...], LearnedShapes] = {}

    def json_data(self, stretches: Sequence[Stretch]) -> list[bytes]:
        """The data of each entry as JSON on one line."""
        return self._json.convert(*_payloads(stretches))

    def json_events(self, stretches: Sequence[Stretch]) -> list[bytes]:
        """Each entry with its data as JSON on one line."""
        data = self.json_data(stretches)
        found: list[bytes] = []
        for stretch in stretches:
            head = encode_head(stretch.run)
            mine = data[len(found) : len(found) + len(stretch.offsets)]
            found += [
                b'{"offset": %d, %b, "data": %b}' % (offset, head, each)
                for offset, each in zip(stretch.offsets, mine, strict=True)
            ]
        return found

    def encode_rows(self, page: Page, columns: Sequence[str]) -> bytes:
        """A page of rows with the values of these columns."""
        head = {"rows": page.count, "runs": _runs(page.stretches)}
        lines = self._lines(page.stretches, tuple(columns)) if columns else []
        return b"\n".join((json.dumps(head, ensure_ascii=False).encode(), *lines, b""))

    def _lines(self, stretches: Sequence[Stretch], columns: tuple[str, ...]) -> list[bytes]:
        fields = tuple([column for column in columns if column != WHOLE])
        if fields == columns:
            return self._rows_of(fields).convert(*_payloads(stretches))
        data = self.json_data(stretches)
        if not fields:
            return data if len(columns) == 1 else [SEPARATOR.join([each] * len(columns)) for each in data]
        rows = self._rows_of(fields).convert(*_payloads(stretches))
        return [_insert(columns, row, whole) for row, whole in zip(rows, data, strict=True)]

    def _rows_of(self, columns: tuple[str, ...]) -> LearnedShapes:
        known = self._rows.get(columns)
        if known is None:
            if len(self._rows) >= MOST_CHOICES:
                self._rows.clear()
            known = self._rows[columns] = LearnedShapes(RowsForm(columns))
        return known


def _payloads(stretches: Sequence[Stretch]) -> tuple[bytes, int]:
    """All payloads, with END after each, and their number."""
    return b"".join([each.run.payloads for each in stretches]), sum([each.run.size for each in stretches])


def encode_head(run: Run) -> bytes:
    """What the events of a run have between their offset and their data: topic, time and id."""
    time = datetime.fromtimestamp(run.time, UTC).isoformat(timespec="milliseconds")
    id_ = "null" if run.message_id is None else json.dumps(run.message_id, ensure_ascii=False)
    topic = "null" if run.topic is None else _quoted(str(run.topic))
    trace = "" if run.trace is None else f', "traceparent": "{traceparent_of(run.trace)}"'
    return f'"topic": {topic}, "time": "{time}", "id": {id_}{trace}'.encode()


@lru_cache(maxsize=10_000)
def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _insert(columns: Sequence[str], row: bytes, whole: bytes) -> bytes:
    values = iter(row.split(SEPARATOR))
    return SEPARATOR.join([whole if column == WHOLE else next(values) for column in columns])


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
