"""What leaves the journal: entries beyond their age or the size, old message ids, what nothing refers to.

Each function is the work of one bounded step, so that appends come in between. An entry stays, however old,
while it is its topic's current message, waits in a pull point's queue, is a dead letter, or lies after
`keep_after` (some subscription has still to see it). The size is that of the database's pages in use.
"""

import json
import sqlite3
from dataclasses import dataclass

from hpwsn.journal.append import micros
from hpwsn.journal.records import Retention
from hpwsn.journal.schema import used_bytes
from hpwsn.journal.writer import Work

STEP = 500
START = -(2**63)

_DELETE = """
DELETE FROM log WHERE offset > :after AND offset <= :upto AND (:all OR time < :cut)
  AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.offset = log.offset)
  AND NOT EXISTS (SELECT 1 FROM dead_letters WHERE dead_letters.offset = log.offset)
  AND NOT (offset = (SELECT max(c.offset) FROM log AS c WHERE c.stream = log.stream)
           AND offset > (SELECT forgotten FROM streams WHERE streams.id = log.stream))
"""
_STRETCH = "SELECT offset, time, content FROM log WHERE offset > ? AND offset <= ? ORDER BY offset LIMIT ?"
_BY_NUMBER = f"SELECT max(offset), min(time) FROM ({_STRETCH})"
_BY_SIZE = f"""
SELECT max(offset), min(time) FROM (
  SELECT offset, time,
         sum(length(content)) OVER (ORDER BY offset ROWS UNBOUNDED PRECEDING) - length(content) AS before
  FROM ({_STRETCH})) WHERE before < ?
"""
# The pull points in the queue by skipping from one to the next: the queue itself may be long.
_ORPHANS = """
DELETE FROM queue WHERE seq IN (
  WITH RECURSIVE queued (number) AS (
    SELECT min(pull_point) FROM queue
    UNION ALL
    SELECT (SELECT min(pull_point) FROM queue WHERE pull_point > number) FROM queued WHERE number IS NOT NULL)
  SELECT seq FROM queued JOIN queue ON queue.pull_point = queued.number
  WHERE queued.number NOT IN (SELECT number FROM pull_points) LIMIT ?)
"""
_EMPTY_STREAMS = """
SELECT max(id), json_group_array(id) FILTER (WHERE empty) FROM (
  SELECT id, NOT EXISTS (SELECT 1 FROM log WHERE log.stream = streams.id) AS empty
  FROM streams WHERE id > ? ORDER BY id LIMIT ?)
"""


@dataclass(frozen=True, slots=True)
class Step:
    """How far a step came and what it removed; None when there is no more to look at."""

    upto: int | None
    removed: int


def prune_log(retention: Retention, now: float, after: int) -> Work:
    """Look at a stretch of the log after an offset, and remove what may go."""
    cut = START if retention.age is None else micros(now - retention.age)

    def work(db: sqlite3.Connection) -> Step:
        excess = 0 if retention.size is None else max(0, used_bytes(db) - retention.size)
        upto, oldest = _stretch(db, after, retention.keep_after, excess)
        if upto is None or (not excess and oldest >= cut):
            return Step(None, 0)
        values = {"after": after, "upto": upto, "all": excess > 0, "cut": cut}
        removed = db.execute(_DELETE, values).rowcount
        if removed:
            db.execute("UPDATE removed SET upto = max(upto, ?)", (upto,))
        return Step(upto, removed)

    return work


def prune_ids(now: float, window: float) -> Work:
    """Remove ids from before the window, and those that a clock set back has left far in the future."""
    values = {"old": micros(now - window), "future": micros(now + window), "step": STEP}

    def work(db: sqlite3.Connection) -> Step:
        removed = db.execute(
            "DELETE FROM message_ids WHERE first IN"
            " (SELECT first FROM message_ids ORDER BY first LIMIT :step) AND (time < :old OR time > :future)",
            values,
        ).rowcount
        return Step(None if removed < STEP else 0, removed)

    return work


def prune_queues(db: sqlite3.Connection) -> Step:
    """Remove queue rows of pull points that are gone."""
    removed = db.execute(_ORPHANS, (STEP,)).rowcount
    return Step(None if removed < STEP else 0, removed)


def remove_empty_streams(db: sqlite3.Connection, after: int) -> tuple[int | None, list[int]]:
    """Remove streams without entries, among a bounded number; give the last one looked at and the removed."""
    upto, found = db.execute(_EMPTY_STREAMS, (after, STEP)).fetchone()
    if upto is None:
        return None, []
    db.execute("DELETE FROM streams WHERE id IN (SELECT value FROM json_each(?))", (found,))
    return upto, json.loads(found)


def _stretch(db: sqlite3.Connection, after: int, keep_after: int, excess: int) -> tuple[int | None, int]:
    if excess:
        found = db.execute(_BY_SIZE, (after, keep_after, STEP, excess)).fetchone()
    else:
        found = db.execute(_BY_NUMBER, (after, keep_after, STEP)).fetchone()
    return found[0], found[1] or 0
