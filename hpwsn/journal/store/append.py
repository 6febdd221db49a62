"""Appends as rows: the runs of a group are inserted into the log with as few SQL statements as possible.

Python's sqlite3 module releases the interpreter lock (GIL) for every step of a statement. To get it back from
a busy event loop takes up to 5 ms each time. So one INSERT carries up to 256 rows, and a group takes only a
few steps. A run is one row, or several rows if it is long (log_rows.py).
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from hpwsn.journal.store.log_rows import rows_of
from hpwsn.journal.store.records import NO_TOPIC
from hpwsn.journal.store.tables import NEVER_CURRENT
from hpwsn.notification import INTERNAL, RELIABLE, LargeRun, Run, mark_of
from hpwsn_client.wsn.topics.topic_expressions import Topic

_CHUNKS = (256, 64)
# A notification posted to a pull point's address is queued there in the transaction that stores it.
_INTO_QUEUES = (
    "INSERT INTO queue (pull_point, offset, subscription) SELECT p.number, json_extract(j.value, '$[1]'), ''"
    " FROM json_each(?) AS j CROSS JOIN pull_points AS p"
    " WHERE p.id = json_extract(j.value, '$[0]') ORDER BY j.key"
)
_INTO_LOG = "INSERT INTO log (offset, stream, time, head, tail, message_id, content) VALUES"
_INTO_LOG_LARGE = "INSERT INTO log (offset, stream, time, head, tail, message_id, content, outside) VALUES"
_CACHED_TOPICS = 100_000
Appended = tuple[int, Sequence[Run]]


class Streams:
    """The writer's stream numbers; new numbers become valid when their transaction is committed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._numbers: dict[tuple[str, str], int] = {
            (topic, target): number
            for number, topic, target in db.execute("SELECT id, topic, target FROM streams")
        }
        self._top = max((abs(number) for number in self._numbers.values()), default=0)
        self._by_topic: dict[Topic | None, int] = {}
        self.new: dict[tuple[str, str], int] = {}

    def number(self, topic: Topic | None, target: str | None = None) -> int:
        """The stream of a topic and an optional target; a new stream is created."""
        if target is not None:
            return self._find(_key(topic), target)
        known = self._by_topic.get(topic)
        if known is None:
            known = self._find(_key(topic), "")
            if len(self._by_topic) >= _CACHED_TOPICS:
                self._by_topic.clear()
            self._by_topic[topic] = known
        return known

    def insert_new(self, db: sqlite3.Connection) -> None:
        """Insert the streams that this transaction has created."""
        if self.new:
            rows = [(number, *key, _forgotten(number, key[0])) for key, number in self.new.items()]
            insert_rows(db, "INSERT INTO streams (id, topic, target, forgotten) VALUES", 4, _flat(rows))

    def committed(self) -> None:
        """Keep the streams that the transaction has created."""
        self._numbers.update(self.new)
        self.new.clear()

    def rolled_back(self) -> None:
        """Forget the streams that the transaction has created."""
        if self.new:
            self.new.clear()
            self._by_topic.clear()

    def discard(self, numbers: Iterable[int]) -> None:
        """Forget streams that were removed from the database."""
        gone = set(numbers)
        self._numbers = {key: number for key, number in self._numbers.items() if number not in gone}
        self._by_topic.clear()

    def _find(self, topic: str, target: str) -> int:
        key = (topic, target)
        number = self._numbers.get(key) or self.new.get(key)
        if number is None:
            self._top += 1
            number = self.new[key] = -self._top if target else self._top
        return number


class _Rows:
    """The rows of a group, as flat values."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self.log: list[Any] = []
        self.large: list[Any] = []
        self.ids: list[Any] = []
        self.routed: list[Any] = []
        self._begun = 0

    def begin_append(self) -> None:
        """Begin another append: message ids are not merged across appends."""
        self._begun = len(self.ids)

    def add(self, first: int, run: Run) -> None:
        """Add the rows of a run; the cost hardly depends on its number of notifications."""
        stream, moment, last = self._streams.number(run.topic, run.target), micros(run.time), first - 1
        if run.large:
            assert isinstance(run, LargeRun)
            last = first
            mark = len(mark_of(run.trace))
            place = stream, moment, mark + len(run.before), mark + run.end
            self.large += (first, *place, run.message_id, run.file, mark + len(run.content))
        else:
            for content, head, tail, size in rows_of(run):
                last += size
                self.log += (last, stream, moment, head, tail, run.message_id, content)
        if run.message_id is not None:
            self._add_id(first, last, run.message_id, moment)
        if run.routing & RELIABLE:
            self.routed += [value for offset in range(first, last + 1) for value in (offset, run.routing)]

    def _add_id(self, first: int, last: int, message_id: str, moment: int) -> None:
        """Extend the last id's range if the run continues the same request; else add a row."""
        if len(self.ids) > self._begun and self.ids[-2] == message_id and self.ids[-3] == first - 1:
            self.ids[-3] = last
        else:
            self.ids += (first, last, message_id, moment)


def insert_appends(db: sqlite3.Connection, streams: Streams, appends: Sequence[Appended]) -> None:
    """Insert the runs and the message ids of all appends."""
    rows = _Rows(streams)
    for first, runs in appends:
        rows.begin_append()
        for run in runs:
            rows.add(first, run)
            first += run.size
    streams.insert_new(db)
    insert_rows(db, _INTO_LOG, 7, rows.log)
    insert_rows(db, _INTO_LOG_LARGE, 8, rows.large)
    insert_rows(db, "INSERT INTO message_ids (first, last, id, time) VALUES", 4, rows.ids)
    insert_rows(db, "INSERT INTO routed (offset, flags) VALUES", 2, rows.routed)


def queue_targeted(db: sqlite3.Connection, first: int, runs: Sequence[Run]) -> None:
    """Queue the targeted notifications of one append at their pull points."""
    targeted: list[tuple[str | None, int]] = []
    for run in runs:
        if run.target not in (None, INTERNAL):
            targeted += [(run.target, offset) for offset in range(first, first + run.size)]
        first += run.size
    if targeted:
        db.execute(_INTO_QUEUES, (json.dumps(targeted),))


def insert_rows(db: sqlite3.Connection, statement: str, width: int, values: list[Any]) -> None:
    """Run an INSERT for a flat list of values, with many rows per statement."""
    at = 0
    while left := (len(values) - at) // width:
        rows = next((size for size in _CHUNKS if left >= size), left)
        end = at + rows * width
        db.execute(_statement(statement, width, rows), values[at:end])
        at = end


def micros(seconds: float) -> int:
    """A time as the database stores it, in microseconds."""
    return round(seconds * 1e6)


_statements: dict[tuple[str, int], str] = {}


def _statement(statement: str, width: int, rows: int) -> str:
    text = _statements.get((statement, rows))
    if text is None:
        row = f"({','.join('?' * width)})"
        text = _statements[statement, rows] = f"{statement} {','.join([row] * rows)}"
    return text


def _flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    return [value for row in rows for value in row]


def _key(topic: Topic | None) -> str:
    return NO_TOPIC if topic is None else str(topic)


def _forgotten(number: int, topic: str) -> int:
    return 0 if number > 0 and topic != NO_TOPIC else NEVER_CURRENT
