"""Pruning of the other tables: old message ids, dead letters beyond their limits, orphaned queues.

Each function is the work of one bounded step, as in retention.py.
"""

import sqlite3

from hpwsn.journal.store.append import micros
from hpwsn.journal.store.writer import Step, Work

STEP = 500

# A loose index scan over the pull points in the queue, since the queue may be long.
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
    """Remove ids older than the window, and ids far in the future, which a clock set back leaves behind."""
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
    """Remove queue rows of pull points that no longer exist."""
    return _step(db.execute(_ORPHANS, (STEP,)).rowcount)


def prune_dead_letters(now: float, age: float | None, limit: int | None) -> Work:
    """Remove dead letters older than `age`, then the oldest ones beyond `limit`."""

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
