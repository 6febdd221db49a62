"""Rows of the log: a row holds one notification, or a run of notifications that differ only in the payload.

The offset of a row is that of its last notification. So queries for "after an offset", the greatest offset
and a topic's current message work for both kinds of rows. The column `tail` of a single notification is the
end of its payload; `tail` of a run is its negative size. The content of a run is the bytes before each
payload, then all payloads with END after each, then the bytes after each payload. The mark of a trace is in
front of the content (hpwsn/notification.py). Pure: no database here.
"""

from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from hpwsn.notification import (
    END,
    INTERNAL,
    ROW_BYTES,
    ROW_MEMBERS,
    LargeRun,
    Notification,
    Run,
    mark_of,
    read_mark,
    split_payloads,
    unmarked,
)
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic

FIRST = "(offset + min(tail, -1) + 1)"
"""The first offset in a row, for SQL."""
SIZE = "max(-tail, 1)"
"""The number of notifications in a row, for SQL."""

_new = tuple.__new__


class Row(NamedTuple):
    """A row with the length of its content instead of the content."""

    offset: int
    stream: int
    time: int
    head: int
    tail: int
    message_id: str | None
    length: int
    outside: int = 0
    """The length of a content that is in a file; then `length` is that of the file's name."""

    @property
    def size(self) -> int:
        """The bytes of its content."""
        return self.outside or self.length

    @property
    def first(self) -> int:
        """The offset of its first notification."""
        return self.offset + min(self.tail, -1) + 1

    def count_after(self, offset: int) -> int:
        """How many of its notifications are after an offset that is less than the row's."""
        return self.offset - max(self.first - 1, offset)


def rows_of(run: Run) -> Iterator[tuple[bytes, int, int, int]]:
    """The rows of a run: content, `head`, `tail`, and number of notifications of each."""
    before = run.before if run.trace is None else mark_of(run.trace) + run.before
    start = len(before)
    if run.size == 1:
        content = before + run.payloads[:-1] + MESSAGE_CLOSE
        yield content, start, len(content) - len(MESSAGE_CLOSE), 1
        return
    if run.target not in (None, INTERNAL):
        for payload in split_payloads(run.payloads):
            yield before + payload + MESSAGE_CLOSE, start, start + len(payload), 1
        return
    for payloads, size in _cut(run):
        yield before + payloads + MESSAGE_CLOSE, start, -size, size


def _cut(run: Run) -> Iterator[tuple[bytes, int]]:
    """The payloads of each row of a run, and their number."""
    if run.size <= ROW_MEMBERS and len(run.payloads) <= ROW_BYTES:
        yield run.payloads, run.size
        return
    payloads = split_payloads(run.payloads)
    for start in range(0, len(payloads), ROW_MEMBERS):
        yield from _cut_bytes(payloads[start : start + ROW_MEMBERS])


def _cut_bytes(payloads: list[bytes]) -> Iterator[tuple[bytes, int]]:
    joined = END.join((*payloads, b""))
    if len(joined) <= ROW_BYTES:
        yield joined, len(payloads)
        return
    piece: list[bytes] = []
    length = 0
    for payload in payloads:
        if piece and length + len(payload) > ROW_BYTES:
            yield END.join((*piece, b"")), len(piece)
            piece, length = [], 0
        piece.append(payload)
        length += len(payload) + len(END)
    yield END.join((*piece, b"")), len(piece)


def read_row(
    row: Row, content: bytes, topic: Topic | None, target: str | None, wanted: Container[int]
) -> Sequence[tuple[int, Notification]]:
    """The notifications of a row with their offsets; from a run, only the wanted offsets."""
    offset, _, time, head, tail, message_id, _, _ = row
    if tail >= 0:
        one = Notification(topic, content, head, tail, time / 1e6, message_id, target)
        return ((offset, unmarked(one)),)
    trace, mark = read_mark(content)
    before, (*payloads, after) = content[mark:head], content[head:].split(END)
    head -= mark
    rest = time / 1e6, message_id, target, 0, trace
    return [
        (at, _new(Notification, (topic, before + each + after, head, head + len(each), *rest)))
        for at, each in enumerate(payloads, row.first)
        if at in wanted
    ]


def read_run(
    row: Row, content: bytes, topic: Topic | None, target: str | None, after: int, upto: int
) -> tuple[int, Run]:
    """The part of a row after one offset and up to another, as a run with its first offset.

    The row must have an entry there, and be for no pull point. Payloads are split only where the row is cut.
    """
    first, last = max(row.first, after + 1), min(row.offset, upto)
    trace, mark = read_mark(content)
    rest = row.time / 1e6, row.message_id, target, 0, trace
    if row.outside:
        return first, LargeRun(topic, content[mark:], row.head - mark, *rest)
    if row.tail >= 0:
        payloads = content[row.head : row.tail] + END
    else:
        payloads = content[row.head : content.rindex(END) + 1]
        if last - first < row.offset - row.first:
            kept = split_payloads(payloads)[first - row.first : last - row.first + 1]
            payloads = END.join((*kept, b""))
    return first, Run(topic, content[mark : row.head], payloads, last - first + 1, *rest)


def parse_rows(rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows from their decoded JSON arrays."""
    return [Row(*row) for row in rows]
