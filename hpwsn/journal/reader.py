"""Reading the journal, on one connection that never waits for the writer; blocking, so it has its own thread.

A read gets all its rows in one step of one statement (the columns as one JSON value, the contents joined to
one blob), for the reason given in append.py. What one call returns is bounded in bytes as well as in number.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpwsn.journal.records import NO_TOPIC, DeadLetter, Pulled, Scan, Stored
from hpwsn.journal.schema import unavailable
from hpwsn.notification import Notification
from hpwsn_client.wsn.topics import Topic

MAX_BYTES = 16 << 20
_FIRST_WINDOW = 1024
_SIZE = 6  # the place of length(content) in a row

_ROWS = (
    "SELECT json_group_array(json_array(offset, stream, time, head, tail, message_id, length(content)))"
    " FROM (SELECT * FROM log WHERE {} ORDER BY offset LIMIT ?)"
)
_ROWS_AT = _ROWS.format("offset IN (SELECT value FROM json_each(?))")
_ROWS_ALL = _ROWS.format("offset > ? AND offset <= ? AND stream > 0")
# The inner search stays within the index: sorting whole rows to keep the first few would read them all.
_ROWS_OF = _ROWS.format(
    "offset IN (SELECT found.offset FROM json_each(?) AS s CROSS JOIN log AS found"
    " WHERE found.stream = s.value AND found.offset > ? AND found.offset <= ? ORDER BY found.offset LIMIT ?)"
)
_CONTENTS = (
    "SELECT CAST(group_concat(content, '') AS BLOB) FROM (SELECT content FROM log"
    " WHERE offset IN (SELECT value FROM json_each(?)) ORDER BY offset LIMIT -1)"
)
_PULL = (
    "SELECT json_group_array(json_array(offset, seq, subscription))"
    " FROM (SELECT offset, seq, subscription FROM queue"
    " WHERE pull_point = (SELECT number FROM pull_points WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?)"
)
_LENGTH = "SELECT coalesce(max(length), 0) FROM pull_points WHERE id = ?"
_COUNT = (
    "SELECT coalesce(sum((SELECT count(*) FROM log WHERE log.stream = s.value AND log.offset > ?)), 0)"
    " FROM json_each(?) AS s"
)
_DEAD = (
    "SELECT json_group_array(json_array(offset, id, subscription, reason, time, consumer))"
    " FROM (SELECT * FROM dead_letters WHERE {} ORDER BY id LIMIT ?)"
)
_DEAD_ALL = _DEAD.format("id > ?")
_DEAD_OF = _DEAD.format("id > ? AND subscription = ?")
_DEAD_ONE = _DEAD.format("id = ?")
_STREAMS = (
    "SELECT json_group_array(json_array(id, topic, target))"
    " FROM (SELECT id, topic, target FROM streams WHERE id > ? OR id < ?)"
)
Row = list[Any]


class Reader:
    """Sees whole commits; every method is one look at one moment."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self.forget_streams()

    def close(self) -> None:
        """End the connection."""
        self._db.close()

    def query(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """What a function finds at one moment."""
        with self._snapshot():
            return work(self._db)

    def forget_streams(self) -> None:
        """Learn the streams anew with the next read, after some have been removed."""
        self._texts: dict[int, tuple[str, str]] = {}
        self._topics: dict[int, Topic | None] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._top = self._bottom = 0

    def read(self, offsets: Collection[int], room: int | None = None) -> list[Stored]:
        """The entries at these offsets that are there, in order; of large ones the first."""
        with self._snapshot():
            return self._load(_within(self._rows_at(offsets), room or MAX_BYTES))

    def scan(
        self,
        after: int,
        limit: int,
        topics: Collection[str] | None,
        target: str | None,
        head: int | None = None,
        room: int | None = None,
    ) -> Scan:
        """The next entries of some topics, or of all, up to `head`."""
        with self._snapshot():
            last = self._one("SELECT max(offset) FROM log") or 0
            if head is not None:
                last = min(last, head)
            streams = self._streams_of(topics, target)
            rows = self._search(streams, after, last, limit)
            kept = _within(rows, room or MAX_BYTES)
            upto = kept[-1][0] if len(rows) == limit or len(kept) < len(rows) else max(after, last)
            return Scan(self._load(kept), upto)

    def count(self, after: int, topics: Collection[str] | None) -> int:
        """How many entries without a target there are after an offset, on some topics or on all."""
        with self._snapshot():
            numbers = self._numbers.get("", {})
            streams = list(numbers.values()) if topics is None else self._streams_of(set(topics), None)
            return int(self._one(_COUNT, after, json.dumps(streams)))

    def pull(self, pull_point_id: str, limit: int, after: int) -> list[Pulled]:
        """What waits in a pull point's queue."""
        with self._snapshot():
            rows = json.loads(self._one(_PULL, pull_point_id, after, limit))
            return [Pulled(seq, origin or None, stored) for (_, seq, origin), stored in self._join(rows)]

    def queue_length(self, pull_point_id: str) -> int:
        """How many messages wait in a pull point's queue."""
        with self._snapshot():
            return int(self._one(_LENGTH, pull_point_id))

    def dead_letters(self, limit: int, after: int, subscription_id: str | None) -> list[DeadLetter]:
        """Dead letters in the order of their ids."""
        if subscription_id is None:
            return self._dead(_DEAD_ALL, after, limit)
        return self._dead(_DEAD_OF, after, subscription_id, limit)

    def dead_letter(self, number: int) -> DeadLetter | None:
        """One dead letter, if it is there."""
        return next(iter(self._dead(_DEAD_ONE, number, 1)), None)

    def dead_letter_count(self) -> int:
        """How many dead letters there are."""
        with self._snapshot():
            return int(self._one("SELECT count(*) FROM dead_letters"))

    def _dead(self, statement: str, *values: Any) -> list[DeadLetter]:
        with self._snapshot():
            rows = json.loads(self._one(statement, *values))
            return [
                DeadLetter(number, origin, stored, reason, time / 1e6, consumer)
                for (_, number, origin, reason, time, consumer), stored in self._join(rows)
            ]

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN")
            self._learn_streams()
            yield
        except sqlite3.Error as error:
            raise unavailable(self._path, error) from error
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _one(self, statement: str, *values: Any) -> Any:
        return self._db.execute(statement, values).fetchone()[0]

    def _learn_streams(self) -> None:
        for number, topic, target in json.loads(self._one(_STREAMS, self._top, self._bottom)):
            self._texts[number] = (topic, target)
            self._numbers.setdefault(target, {})[topic] = number
            self._top, self._bottom = max(self._top, number), min(self._bottom, number)

    def _streams_of(self, topics: Collection[str] | None, target: str | None) -> list[int] | None:
        if topics is None:
            return None if target is None else list(self._numbers.get(target, {}).values())
        numbers = self._numbers.get(target or "", {})
        return [numbers[topic] for topic in topics if topic in numbers]

    def _search(self, streams: list[int] | None, after: int, last: int, limit: int) -> list[Row]:
        # SQLite sorts all that a window matches before it takes the first ones: so windows start small, for a
        # dense topic, and grow, for a sparse one.
        rows: list[Row] = []
        window = max(_FIRST_WINDOW, 4 * limit, len(streams or ()))
        while after < last and len(rows) < limit and streams != []:
            upto = min(last, after + window)
            rows += self._stretch(streams, after, upto, limit - len(rows))
            after, window = upto, window * 8
        return rows

    def _stretch(self, streams: list[int] | None, after: int, upto: int, limit: int) -> list[Row]:
        if streams is None:
            return self._rows(_ROWS_ALL, after, upto, limit)
        return self._rows(_ROWS_OF, json.dumps(streams), after, upto, limit, -1)

    def _rows_at(self, offsets: Iterable[int]) -> list[Row]:
        return self._rows(_ROWS_AT, json.dumps(list(offsets)), -1)

    def _rows(self, statement: str, *values: Any) -> list[Row]:
        rows: list[Row] = json.loads(self._one(statement, *values))
        return rows

    def _join(self, rows: Sequence[Row]) -> list[tuple[Row, Stored]]:
        entries = {row[0]: row for row in self._rows_at({row[0] for row in rows})}
        kept = _within([entries[row[0]] for row in rows if row[0] in entries], MAX_BYTES)
        stored = {entry.offset: entry for entry in self._load(_distinct(kept))}
        there = [row for row in rows if row[0] in entries][: len(kept)]
        return [(row, stored[row[0]]) for row in there]

    def _load(self, rows: Sequence[Row]) -> list[Stored]:
        loaded: list[Stored] = []
        while len(loaded) < len(rows):
            loaded += self._load_piece(_within(rows[len(loaded) :], MAX_BYTES))
        return loaded

    def _load_piece(self, rows: Sequence[Row]) -> list[Stored]:
        contents = self._one(_CONTENTS, json.dumps([row[0] for row in rows]))
        loaded = []
        at = 0
        for offset, stream, time, head, tail, message_id, size in rows:
            content = contents[at : at + size]
            at += size
            target = self._texts[stream][1] or None
            topic = self._topic(stream)
            loaded.append(
                Stored(offset, Notification(topic, content, head, tail, time / 1e6, message_id, target))
            )
        return loaded

    def _topic(self, stream: int) -> Topic | None:
        if stream not in self._topics:
            text = self._texts[stream][0]
            self._topics[stream] = None if text == NO_TOPIC else Topic.parse(text)
        return self._topics[stream]


def _within(rows: Sequence[Row], size: int) -> list[Row]:
    """The first rows that together are no larger, and one at least."""
    taken: list[Row] = []
    for row in rows:
        size -= row[_SIZE]
        if size < 0 and taken:
            break
        taken.append(row)
    return taken


def _distinct(rows: Sequence[Row]) -> list[Row]:
    return sorted({row[0]: row for row in rows}.values())
