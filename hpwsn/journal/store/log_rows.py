"""Rows of the log: a notification, or a run of notifications that differ in their payloads only.

A run has the offset of its last notification, so that "after an offset", the greatest offset and a topic's
current message are what they are for single ones. Where a single one has the end of its payload, a run has
minus its number (`tail`), and its content is what stands before each payload, all payloads with END behind
each, and what stands behind each payload. Pure; owns how rows are read, not where they come from.
"""

from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from hpwsn.notification import END, ROW_BYTES, ROW_MEMBERS, Notification, Run, split_payloads
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic

FIRST = "(offset + min(tail, -1) + 1)"
"""The first offset in a row, for SQL."""
SIZE = "max(-tail, 1)"
"""How many notifications are in a row, for SQL."""

_new = tuple.__new__


class Row(NamedTuple):
    """A row without its content, of which it has the length."""

    offset: int
    stream: int
    time: int
    head: int
    tail: int
    message_id: str | None
    length: int

    @property
    def first(self) -> int:
        """The offset of its first notification."""
        return self.offset + min(self.tail, -1) + 1

    def count_after(self, offset: int) -> int:
        """How many of its notifications, which are not all before it, come after an offset."""
        return self.offset - max(self.first - 1, offset)


def rows_of(run: Run) -> Iterator[tuple[bytes, int, int]]:
    """The rows of a run: content, `tail`, and how many notifications each holds."""
    start = len(run.before)
    if run.size == 1:
        content = run.before + run.payloads[:-1] + MESSAGE_CLOSE
        yield content, len(content) - len(MESSAGE_CLOSE), 1
        return
    if run.target is not None:
        for payload in split_payloads(run.payloads):
            yield run.before + payload + MESSAGE_CLOSE, start + len(payload), 1
        return
    for payloads, size in _cut(run):
        yield run.before + payloads + MESSAGE_CLOSE, -size, size


def _cut(run: Run) -> Iterator[tuple[bytes, int]]:
    """The payloads of a run for each of its rows, and how many they are."""
    if run.size <= ROW_MEMBERS and len(run.payloads) <= ROW_BYTES:
        yield run.payloads, run.size
        return
    piece: list[bytes] = []
    length = 0
    for payload in split_payloads(run.payloads):
        if piece and (len(piece) == ROW_MEMBERS or length + len(payload) > ROW_BYTES):
            yield END.join((*piece, b"")), len(piece)
            piece, length = [], 0
        piece.append(payload)
        length += len(payload) + len(END)
    yield END.join((*piece, b"")), len(piece)


def read_row(
    row: Row, content: bytes, topic: Topic | None, target: str | None, wanted: Container[int]
) -> Sequence[tuple[int, Notification]]:
    """The notifications of a row with their offsets; of a run those that are wanted."""
    offset, _, time, head, tail, message_id, _ = row
    if tail >= 0:
        return ((offset, Notification(topic, content, head, tail, time / 1e6, message_id, target)),)
    before, (*payloads, after) = content[:head], content[head:].split(END)
    rest = time / 1e6, message_id, None, 0
    return [
        (at, _new(Notification, (topic, before + each + after, head, head + len(each), *rest)))
        for at, each in enumerate(payloads, row.first)
        if at in wanted
    ]


def parse_rows(rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows as they come out of JSON."""
    return [Row(*row) for row in rows]
