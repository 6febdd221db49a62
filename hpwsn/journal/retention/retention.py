"""Retention of the log: removal of entries beyond the age or the size that no reader still needs.

Each function is the work of one bounded step, so that appends can run in between. An entry is free, that is
removable, unless it is after the head, after what the readers of its topic have acknowledged, in a pull
point's queue, or a dead letter. A topic's current message is removed by age only, never by size. The needed
entries are at the end of each stream, so the index finds the first free entry fast. A run is removed only as
a whole. The size is that of the database pages in use.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpwsn.journal.store.append import micros
from hpwsn.journal.store.log_rows import SIZE
from hpwsn.journal.store.records import Retention
from hpwsn.journal.store.tables import outside_bytes, used_bytes
from hpwsn.journal.store.writer import Work

STEP = 500
START = -(2**63)
_PROBES = 16  # a stream may begin with queued entries; one query skips at most this many

_NEEDS = """
INSERT INTO temp.needs (stream, upto)
SELECT streams.id, min(j.value, :plain) FROM json_each(:needs) AS j CROSS JOIN streams
WHERE streams.topic = j.key AND streams.target = ''
"""
_UPTO = """
coalesce((SELECT upto FROM temp.needs WHERE needs.stream = {0}), CASE WHEN {0} > 0 THEN :plain ELSE :head END)
"""
_CURRENT = """
(l.offset = (SELECT max(c.offset) FROM log AS c WHERE c.stream = l.stream)
 AND l.offset > (SELECT forgotten FROM streams WHERE streams.id = l.stream))
"""
_UNUSED = """
NOT EXISTS (SELECT 1 FROM queue WHERE queue.offset BETWEEN l.offset + min(l.tail, -1) + 1 AND l.offset)
AND NOT EXISTS (
  SELECT 1 FROM dead_letters WHERE dead_letters.offset BETWEEN l.offset + min(l.tail, -1) + 1 AND l.offset)
"""
_STRETCH = """
SELECT count(*), max(offset), min(time)
FROM (SELECT offset, time FROM log WHERE offset > :after AND offset <= :head ORDER BY offset LIMIT :step)
"""
_FREE = f"""
SELECT json_group_array(json_array(offset, stream, size, time < :cut, current, {SIZE})) FROM (
  SELECT l.offset, l.stream, l.time, l.tail, length(l.content) + l.outside AS size, {_CURRENT} AS current
  FROM log AS l
  WHERE l.offset > :after AND l.offset <= :upto AND (:all OR l.time < :cut)
    AND l.offset <= {_UPTO.format("l.stream")} AND {_UNUSED}
  ORDER BY l.offset LIMIT -1) WHERE time < :cut OR NOT current
"""
_FIRST = f"""
SELECT l.offset FROM log AS l
WHERE l.stream = s.id AND l.offset > :after AND l.offset <= {_UPTO.format("s.id")} ORDER BY l.offset
"""
# The first free entry of each stream; if the first _PROBES entries are not free, the last of them.
_NEXT = f"""
SELECT count(*), max(id), min(first) FROM (
  SELECT s.id, coalesce(
    (SELECT f.offset FROM ({_FIRST} LIMIT {_PROBES}) AS f CROSS JOIN log AS l
     WHERE l.offset = f.offset AND {_UNUSED} AND (NOT {_CURRENT} OR l.time < :cut) LIMIT 1),
    ({_FIRST} LIMIT 1 OFFSET {_PROBES - 1})) AS first
  FROM streams AS s WHERE s.id > :stream ORDER BY s.id LIMIT :step)
"""
_EMPTY_STREAMS = """
SELECT max(id), json_group_array(json_array(id, topic)) FILTER (WHERE empty) FROM (
  SELECT id, topic, NOT EXISTS (SELECT 1 FROM log WHERE log.stream = streams.id) AS empty
  FROM streams WHERE id > ? ORDER BY id LIMIT ?)
"""
_STILL_FORGOTTEN = """
SELECT json_group_array(j.value) FROM json_each(?) AS j WHERE NOT EXISTS (
  SELECT 1 FROM streams AS s WHERE s.topic = j.value AND s.target = ''
  AND (SELECT max(offset) FROM log WHERE stream = s.id) > s.forgotten)
"""
Row = tuple[int, int, int, int, int, int]  # offset, stream, size, expired, current, notifications


@dataclass(frozen=True, slots=True)
class LogStep:
    """The result of a step: where it stopped (None at the end), entries checked and removed, topics."""

    upto: int | None
    looked: int = 0
    removed: int = 0
    forgotten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextStep:
    """The number of streams checked, the last of them (None at the end), and the first free entry, if any."""

    streams: int
    upto: int | None
    first: int | None


class LogRetention:
    """The limits of one pruning as SQL parameters."""

    def __init__(self, retention: Retention, now: float) -> None:
        self._size = retention.size
        self._bounds: dict[str, Any] = {
            "head": retention.head,
            "plain": min(
                retention.head, retention.head if retention.needs_all is None else retention.needs_all
            ),
            "cut": START if retention.age is None else micros(now - retention.age),
            "step": STEP,
        }

    def clear_needs(self, db: sqlite3.Connection) -> None:
        """Clear the needs of the last pruning."""
        db.execute("DELETE FROM temp.needs")

    def add_needs(self, needs: dict[str, int]) -> Work:
        """Store the needs of topics by stream; a topic without entries has no stream and is skipped."""
        values = {"plain": self._bounds["plain"], "needs": json.dumps(needs)}
        return lambda db: db.execute(_NEEDS, values)

    def find(self, after: int, stream: int) -> Work:
        """Search a bounded number of streams for the first free entry after an offset."""

        def work(db: sqlite3.Connection) -> NextStep:
            values = self._bounds | {"after": after, "stream": stream}
            return NextStep(*db.execute(_NEXT, values).fetchone())

        return work

    def remove(self, after: int) -> Work:
        """Check a bounded part of the log after an offset, and remove its free entries."""

        def work(db: sqlite3.Connection) -> LogStep:
            excess = 0 if self._size is None else max(0, used_bytes(db) + outside_bytes(db) - self._size)
            looked, upto, oldest = db.execute(_STRETCH, self._bounds | {"after": after}).fetchone()
            if upto is None or (not excess and oldest >= self._bounds["cut"]):
                return LogStep(None)
            values = self._bounds | {"after": after, "upto": upto, "all": excess > 0}
            free = sorted(json.loads(db.execute(_FREE, values).fetchone()[0]))
            gone, upto = _choose(free, excess, upto)
            return LogStep(upto, looked, sum(row[5] for row in gone), _remove(db, gone))

        return work


def remove_empty_streams(db: sqlite3.Connection, after: int) -> tuple[int | None, list[tuple[int, str]]]:
    """Remove empty streams among a bounded number; return the last stream checked and those removed."""
    upto, found = db.execute(_EMPTY_STREAMS, (after, STEP)).fetchone()
    if upto is None:
        return None, []
    gone = [(number, topic) for number, topic in json.loads(found)]
    if gone:
        numbers = json.dumps([number for number, _ in gone])
        db.execute("DELETE FROM streams WHERE id IN (SELECT value FROM json_each(?))", (numbers,))
    return upto, gone


def still_forgotten(topics: Iterable[str]) -> Work:
    """The topics, out of these, that have no current message now."""
    values = (json.dumps(list(topics)),)

    def work(db: sqlite3.Connection) -> tuple[str, ...]:
        return tuple(json.loads(db.execute(_STILL_FORGOTTEN, values).fetchone()[0]))

    return work


def _choose(free: list[Row], excess: int, upto: int) -> tuple[list[Row], int]:
    """The entries to remove: all expired ones, then the oldest until the size fits; and where that ends."""
    gone: list[Row] = []
    by_size = excess > 0
    for row in free:
        offset, _, size, expired, _, _ = row
        if not expired and by_size and excess <= 0:
            return gone, offset - 1
        gone.append(row)
        excess -= size
    return gone, upto


def _remove(db: sqlite3.Connection, gone: list[Row]) -> tuple[str, ...]:
    if not gone:
        return ()
    offsets = json.dumps([row[0] for row in gone])
    db.execute("DELETE FROM log WHERE offset IN (SELECT value FROM json_each(?))", (offsets,))
    db.execute("UPDATE removed SET upto = max(upto, ?)", (gone[-1][0],))
    last = {stream: offset for offset, stream, _, _, current, _ in gone if current}
    return _forget(db, last) if last else ()


def _forget(db: sqlite3.Connection, last: dict[int, int]) -> tuple[str, ...]:
    """Prevent an older entry, kept for a queue, from becoming the current message of its stream."""
    values = (json.dumps(list(last.items())),)
    db.execute(
        "UPDATE streams SET forgotten = json_extract(j.value, '$[1]') FROM json_each(?) AS j"
        " WHERE streams.id = json_extract(j.value, '$[0]')",
        values,
    )
    topics = db.execute(
        "SELECT json_group_array(topic) FROM streams"
        " WHERE id IN (SELECT json_extract(value, '$[0]') FROM json_each(?))",
        values,
    )
    return tuple(json.loads(topics.fetchone()[0]))
