"""Recovery: the state that a node reads from the journal when it starts, before the first write."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from hpwsn.journal.store.append import micros
from hpwsn.journal.store.records import (
    MessageId,
    PullPointRecord,
    Recovered,
    RegistrationRecord,
    SubscriptionRecord,
    UpstreamRecord,
)
from hpwsn.journal.store.tables import open_reader, opening_error
from hpwsn.notification import INTERNAL

_NEXT = """
SELECT 1 + max((SELECT coalesce(max(offset), 0) FROM log), (SELECT upto FROM removed),
               (SELECT coalesce(max(offset), 0) FROM cursors),
               (SELECT coalesce(max(offset), 0) FROM delivered_ahead))
"""
# Sort row ids only; the requests are large and are read one after another.
_SUBSCRIPTIONS = """
SELECT id, request, version, created, terminates, paused, coalesce(cursors.offset, 0), address,
  (SELECT json_group_array(done.offset) FROM delivered_ahead AS done
   WHERE done.subscription = subscriptions.id)
FROM (SELECT rowid AS place FROM subscriptions ORDER BY created, id LIMIT -1)
CROSS JOIN subscriptions ON subscriptions.rowid = place LEFT JOIN cursors USING (id)
"""
_PULL_POINTS = """
SELECT id, name, created, terminates, coalesce(cursors.offset, 0)
FROM pull_points LEFT JOIN cursors USING (id) ORDER BY number
"""
_REGISTRATIONS = "SELECT id, request, version, created, terminates FROM registrations ORDER BY created, id"
_UPSTREAMS = "SELECT registration, place, reference, paused, terminates FROM upstreams"
_DOCUMENTS = "SELECT kind, name, body FROM documents"
_CURRENT = """
SELECT json_group_array(json_array(topic, last)) FROM (
  SELECT topic, forgotten, (SELECT max(offset) FROM log WHERE stream = streams.id) AS last FROM streams)
WHERE last > forgotten
"""
_INTERNAL = """
SELECT topic FROM streams WHERE target = ? AND EXISTS (SELECT 1 FROM log WHERE stream = streams.id)
"""
_IDS = """
SELECT json_group_array(json_array(id, time, first, last))
FROM (SELECT * FROM message_ids WHERE time >= ? ORDER BY first LIMIT -1)
"""


def recover(db: sqlite3.Connection, path: Path, ids_since: float) -> Recovered:
    """Read everything except the log; read the last entry as a test that the log is readable."""
    db.execute("SELECT * FROM log ORDER BY offset DESC LIMIT 1").fetchone()
    return Recovered(
        next_offset=db.execute(_NEXT).fetchone()[0],
        subscriptions=StoredSubscriptions(path),
        pull_points=[PullPointRecord(*row) for row in db.execute(_PULL_POINTS)],
        current=dict(json.loads(db.execute(_CURRENT).fetchone()[0])),
        message_ids=_message_ids(db, ids_since),
        registrations=[RegistrationRecord(*row) for row in db.execute(_REGISTRATIONS)],
        upstreams=[
            UpstreamRecord(registration, place, reference, bool(paused), terminates)
            for registration, place, reference, paused, terminates in db.execute(_UPSTREAMS)
        ],
        internal=[topic for (topic,) in db.execute(_INTERNAL, (INTERNAL,))],
        documents=_documents(db),
    )


class StoredSubscriptions:
    """All subscriptions in the order of their creation, read lazily to save memory.

    The iteration must end before the first write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[SubscriptionRecord]:
        try:
            with closing(open_reader(self._path)) as db:
                yield from map(_subscription, db.execute(_SUBSCRIPTIONS))
        except sqlite3.Error as error:
            raise opening_error(self._path, error) from error


def _subscription(row: tuple[Any, ...]) -> SubscriptionRecord:
    number, request, version, created, terminates, paused, cursor, address, ahead = row
    offsets = () if ahead == "[]" else tuple(json.loads(ahead))
    return SubscriptionRecord(
        number, request, version, created, terminates, bool(paused), cursor, address, offsets
    )


def _documents(db: sqlite3.Connection) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    for kind, name, body in db.execute(_DOCUMENTS):
        found.setdefault(kind, {})[name] = body
    return found


def _message_ids(db: sqlite3.Connection, since: float) -> list[MessageId]:
    rows = json.loads(db.execute(_IDS, (micros(since),)).fetchone()[0])
    return [MessageId(text, time / 1e6, first, last) for text, time, first, last in rows]
