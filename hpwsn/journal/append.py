"""Appends as rows: notifications of a whole group go into the log in as few statements as there can be.

SQLite's module gives the interpreter lock away with every step of a statement and has to win it back from the
event loop, which takes up to 5 ms each time when the loop is busy. So rows do not go in one by one: one
statement carries up to 256 of them, and a group costs a handful of steps, whatever its size.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from hpwsn.journal.records import NO_TOPIC
from hpwsn.journal.schema import NEVER_CURRENT
from hpwsn.notification import RELIABLE, Notification
from hpwsn_client.wsn.topics import Topic

_CHUNKS = (256, 64)
# What is posted straight to a pull point waits in its queue from the same moment on.
_INTO_QUEUES = (
    "INSERT INTO queue (pull_point, offset, subscription) SELECT p.number, json_extract(j.value, '$[1]'), ''"
    " FROM json_each(?) AS j CROSS JOIN pull_points AS p"
    " WHERE p.id = json_extract(j.value, '$[0]') ORDER BY j.key"
)
_INTO_LOG = "INSERT INTO log (offset, stream, time, head, tail, message_id, content) VALUES"
_CACHED_TOPICS = 100_000
Appended = tuple[int, Sequence[Notification]]


class Streams:
    """The numbers of topics, for the writer; new ones hold once their transaction is committed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._numbers: dict[tuple[str, str], int] = {
            (topic, target): number
            for number, topic, target in db.execute("SELECT id, topic, target FROM streams")
        }
        self._top = max((abs(number) for number in self._numbers.values()), default=0)
        self._by_topic: dict[Topic | None, int] = {}
        self._new: dict[tuple[str, str], int] = {}

    def number(self, notification: Notification) -> int:
        """The stream of a notification, made if it is the first on it."""
        if notification.target is not None:
            return self._find(_key(notification.topic), notification.target)
        topic = notification.topic
        known = self._by_topic.get(topic)
        if known is None:
            known = self._find(_key(topic), "")
            if len(self._by_topic) >= _CACHED_TOPICS:
                self._by_topic.clear()
            self._by_topic[topic] = known
        return known

    def insert_new(self, db: sqlite3.Connection) -> None:
        """Write the streams that this transaction has made."""
        if self._new:
            rows = [(number, *key, _forgotten(number, key[0])) for key, number in self._new.items()]
            insert_rows(db, "INSERT INTO streams (id, topic, target, forgotten) VALUES", 4, _flat(rows))

    def committed(self) -> None:
        """Keep what the transaction has made."""
        self._numbers.update(self._new)
        self._new.clear()

    def rolled_back(self) -> None:
        """Forget what the transaction has made."""
        if self._new:
            self._new.clear()
            self._by_topic.clear()

    def discard(self, numbers: Iterable[int]) -> None:
        """Forget streams that are not in the database any more."""
        gone = set(numbers)
        self._numbers = {key: number for key, number in self._numbers.items() if number not in gone}
        self._by_topic.clear()

    def _find(self, topic: str, target: str) -> int:
        key = (topic, target)
        number = self._numbers.get(key) or self._new.get(key)
        if number is None:
            self._top += 1
            number = self._new[key] = -self._top if target else self._top
        return number


def insert_appends(db: sqlite3.Connection, streams: Streams, appends: Sequence[Appended]) -> None:
    """Write the notifications of all appends and the ids that came with them."""
    values: list[Any] = []
    ids: list[Any] = []
    routed: list[Any] = []
    stream = moment = 0
    before: Notification | None = None
    for first, notifications in appends:
        for offset, n in enumerate(notifications, first):
            topic, content, start, end, time, message_id, target, routing = n
            # Most that come together are on one topic and of one moment.
            if before is None or topic is not before.topic or target is not None or before.target is not None:
                stream = streams.number(n)
            if before is None or time is not before.time:
                moment = micros(time)
            before = n
            values += (offset, stream, moment, start, end, message_id, content)
            if routing & RELIABLE:
                routed += (offset, routing)
        if notifications[0].message_id is not None or len(notifications) > 1:
            ids += _ids(first, notifications)
    streams.insert_new(db)
    insert_rows(db, _INTO_LOG, 7, values)
    insert_rows(db, "INSERT INTO message_ids (first, last, id, time) VALUES", 4, ids)
    insert_rows(db, "INSERT INTO routed (offset, flags) VALUES", 2, routed)


def queue_targeted(db: sqlite3.Connection, first: int, notifications: Sequence[Notification]) -> None:
    """Give the notifications of one append their places in the queues of their targets, if they have any."""
    targeted = [(n.target, offset) for offset, n in enumerate(notifications, first) if n.target is not None]
    if targeted:
        db.execute(_INTO_QUEUES, (json.dumps(targeted),))


def insert_rows(db: sqlite3.Connection, statement: str, width: int, values: list[Any]) -> None:
    """Run an INSERT for flat values, many rows to a statement."""
    at = 0
    while left := (len(values) - at) // width:
        rows = next((size for size in _CHUNKS if left >= size), left)
        end = at + rows * width
        db.execute(_statement(statement, width, rows), values[at:end])
        at = end


def micros(seconds: float) -> int:
    """A time as the database has it."""
    return round(seconds * 1e6)


_statements: dict[tuple[str, int], str] = {}


def _statement(statement: str, width: int, rows: int) -> str:
    text = _statements.get((statement, rows))
    if text is None:
        row = f"({','.join('?' * width)})"
        text = _statements[statement, rows] = f"{statement} {','.join([row] * rows)}"
    return text


def _ids(first: int, notifications: Sequence[Notification]) -> list[Any]:
    spans: dict[str, list[Any]] = {}
    for offset, n in enumerate(notifications, first):
        if n.message_id is not None:
            spans.setdefault(n.message_id, [offset, offset, n.message_id, micros(n.time)])[1] = offset
    return _flat(spans.values())


def _flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    return [value for row in rows for value in row]


def _key(topic: Topic | None) -> str:
    return NO_TOPIC if topic is None else str(topic)


def _forgotten(number: int, topic: str) -> int:
    return 0 if number > 0 and topic != NO_TOPIC else NEVER_CURRENT
