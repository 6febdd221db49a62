"""Positions in the log for readers and operators: the size of a backlog, the end of a part of it, times.

The queries read the index, or rows without their contents. They run on a snapshot of the reader (reader.py).
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from hpwsn.journal.store.append import micros
from hpwsn.journal.store.log_rows import FIRST
from hpwsn.journal.store.records import Backlog
from hpwsn.notification import ROW_MEMBERS

SEARCHED = 10_000
"""Rows that one search for a time looks at; other reads of the journal run in between."""

# A row ends at its offset. So a row that begins at or before `head` may end up to ROW_MEMBERS after it.
_OF_STREAMS = (
    " FROM json_each(:streams) AS s CROSS JOIN log WHERE log.stream = s.value"
    f" AND log.offset > :after AND log.offset < :head + {ROW_MEMBERS} AND {FIRST} <= :head"
)
_TAKEN = f"min(log.offset, :head) - max({FIRST} - 1, :after)"
_COUNT = f"SELECT coalesce(sum({_TAKEN}), 0){_OF_STREAMS}"
_ENDS = (
    f"SELECT ends, total FROM (SELECT ends, sum(taken) OVER (ORDER BY ends) AS total FROM"
    f" (SELECT min(log.offset, :head) AS ends, {_TAKEN} AS taken{_OF_STREAMS} ORDER BY ends LIMIT :limit))"
    " WHERE total >= :limit ORDER BY ends LIMIT 1"
)
_SINCE = (
    f"SELECT max(offset), min({FIRST}) FILTER (WHERE time >= :time), count(*)"
    " FROM (SELECT offset, tail, time FROM log WHERE offset > :after ORDER BY offset LIMIT :step)"
)
# The row of an offset is the first row that ends at or after it, unless that row begins after it.
_TIMES = (
    f"SELECT json_group_array(json_array(j.value, (SELECT CASE WHEN {FIRST} <= j.value THEN time END FROM log"
    " WHERE offset >= j.value ORDER BY offset LIMIT 1))) FROM json_each(?) AS j"
)


def measure(db: sqlite3.Connection, streams: Sequence[int], after: int, limit: int, head: int) -> Backlog:
    """The entries of some streams after an offset, up to `head`; `upto` is the offset of entry `limit`.

    If there are fewer entries, `upto` is `head`.
    """
    given = {"streams": json.dumps(streams), "after": after, "head": head, "limit": limit}
    entries = int(db.execute(_COUNT, given).fetchone()[0]) if after < head else 0
    if entries < limit:
        return Backlog(entries, max(after, head))
    # Entries of a row have consecutive offsets, so that the surplus of the last row is a distance.
    ends, total = db.execute(_ENDS, given).fetchone()
    return Backlog(entries, ends - (total - limit))


def find_since(db: sqlite3.Connection, time: float, after: int) -> tuple[int, bool]:
    """The offset before the first entry at or after a time, and True; or how far it looked, and False.

    Clocks may be set back, so times in the log need not be in order, and every row is looked at.
    """
    given = {"time": micros(time), "after": after, "step": SEARCHED}
    last, found, rows = db.execute(_SINCE, given).fetchone()
    if found is not None:
        return found - 1, True
    if rows == SEARCHED:
        return last, False
    return max(after, last or 0, db.execute("SELECT upto FROM removed").fetchone()[0]), True


def times_of(db: sqlite3.Connection, offsets: Iterable[int]) -> dict[int, float]:
    """When the entries at these offsets were accepted, in seconds since 1970; without removed entries."""
    found = json.loads(db.execute(_TIMES, (json.dumps(list(offsets)),)).fetchone()[0])
    return {offset: time / 1e6 for offset, time in found if time is not None}
