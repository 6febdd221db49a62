"""What leaves the journal beside the log: old message ids, dead letters beyond their limits, orphaned queues.

Each function is the work of one bounded step, like those of retention.py.
"""

import sqlite3

from hpwsn.journal.store.append import micros
from hpwsn.journal.store.writer import Step, Work

STEP = 500

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
_OLDEST_LETTERS = (
    "DELETE FROM dead_letters WHERE id IN (SELECT id FROM dead_letters {} ORDER BY time, id LIMIT ?)"
)


def prune_ids(now: float, window: float) -> Work:
    """Remove ids from before the window, and those that a clock set back has left far in the future."""
    values = {"old": micros(now - window), "future": micros(now + window), "step": STEP}

    def work(db: sqlite3.Connection) -> Step:
        removed = db.execute(
            "DELETE FROM message_ids WHERE first IN"
            " (SELECT first FROM message_ids ORDER BY first LIMIT :step) AND (time < :old OR time > :future)",
            values,
        ).rowcount
        return _step(removed)

    return work


def prune_queues(db: sqlite3.Connection) -> Step:
    """Remove queue rows of pull points that are gone."""
    return _step(db.execute(_ORPHANS, (STEP,)).rowcount)


def prune_dead_letters(now: float, age: float | None, limit: int | None) -> Work:
    """Remove dead letters that are too old, then the oldest of those that are too many."""

    def work(db: sqlite3.Connection) -> Step:
        removed = 0
        if age is not None:
            old = _OLDEST_LETTERS.format("WHERE time < ?")
            removed = db.execute(old, (micros(now - age), STEP)).rowcount
        if limit is not None and removed < STEP:
            more = db.execute("SELECT count(*) FROM dead_letters").fetchone()[0] - limit
            oldest = (max(0, min(more, STEP - removed)),)
            removed += db.execute(_OLDEST_LETTERS.format(""), oldest).rowcount
        return _step(removed)

    return work


def _step(removed: int) -> Step:
    return Step(None if removed < STEP else 0, removed)
