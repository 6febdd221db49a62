"""The rows of cursors, and of the offsets beyond a cursor that its subscription is done with.

A cursor is one row, the last offset up to which all is done. A queue that is not first in, first out also
has offsets ahead of it. Their rows are written with the cursors, or in the transaction of the change that is
the delivery. They are removed when the cursor passes them, and with their subscription; what the cursor has
passed is not written. Cursors only move forward.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

NONE_AHEAD: Mapping[str, Sequence[int]] = MappingProxyType({})
"""For queues that are first in, first out."""

_PUT = """
INSERT OR IGNORE INTO delivered_ahead (subscription, offset)
SELECT cursors.id, j.value FROM cursors CROSS JOIN json_each(?) AS j
WHERE cursors.id = ? AND j.value > cursors.offset
"""
_DROP_PASSED = """
DELETE FROM delivered_ahead WHERE subscription IN (SELECT value FROM json_each(?))
AND offset <= (SELECT cursors.offset FROM cursors WHERE cursors.id = delivered_ahead.subscription)
"""


def put_cursor(db: sqlite3.Connection, reader: str, offset: int) -> None:
    """Store the cursor of a reader, which may be new."""
    db.execute(
        "INSERT INTO cursors VALUES (?, ?) ON CONFLICT (id)"
        " DO UPDATE SET offset = max(offset, excluded.offset)",
        (reader, offset),
    )


def move_cursors(db: sqlite3.Connection, cursors: Mapping[str, int]) -> None:
    """Move many cursors in one statement; those of removed readers are ignored."""
    db.execute(
        "UPDATE cursors SET offset = max(cursors.offset, j.value)"
        " FROM json_each(?) AS j WHERE cursors.id = j.key",
        (json.dumps(cursors),),
    )


def put_ahead(db: sqlite3.Connection, reader: str, offsets: Sequence[int]) -> None:
    """Note offsets beyond a cursor; those of a removed reader are ignored."""
    if offsets:
        db.execute(_PUT, (json.dumps(list(offsets)), reader))


def drop_passed(db: sqlite3.Connection, readers: Iterable[str]) -> None:
    """Remove what the cursors of these readers have passed; most journals have no rows at all."""
    if db.execute("SELECT EXISTS (SELECT 1 FROM delivered_ahead)").fetchone()[0]:
        db.execute(_DROP_PASSED, (json.dumps(list(readers)),))


def forget_ahead(db: sqlite3.Connection, reader: str) -> None:
    """Remove all rows of a reader that has ended."""
    db.execute("DELETE FROM delivered_ahead WHERE subscription = ?", (reader,))
