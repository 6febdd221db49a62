"""The offsets beyond a cursor that its subscription is done with, as its queue is not first in, first out.

A row is written with the cursors, or in the transaction of the change that is the delivery. It is removed
when the cursor passes it, and with its subscription. A row that the cursor has passed is not written.
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
