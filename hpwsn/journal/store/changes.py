"""Changes to the records beside the log, such as subscriptions, queues, dead letters and documents.

Each function returns a Work, which the writer runs in a transaction. A list is passed as one JSON value that
SQLite expands, which saves statement steps (append.py says why).
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from hpwsn.journal.cursors.cursor_rows import forget_ahead, move_cursors, put_ahead, put_cursor
from hpwsn.journal.store.append import micros
from hpwsn.journal.store.records import (
    PullPointRecord,
    RegistrationRecord,
    SubscriptionRecord,
    UpstreamRecord,
)
from hpwsn.journal.store.writer import Step, Work

STEP = 2000


def put_subscription(record: SubscriptionRecord) -> Work:
    """Store a subscription or its changed state; a stored cursor never moves back."""
    r = record
    row = (r.id, r.request, r.version, r.created, r.terminates, r.paused, r.address)

    def work(db: sqlite3.Connection) -> None:
        db.execute("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        put_cursor(db, record.id, record.cursor)

    return work


def delete_subscription(subscription_id: str) -> Work:
    """Remove a subscription and its cursor; messages that it queued in a pull point stay."""

    def work(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM subscriptions WHERE id = ?", (subscription_id,))
        db.execute("DELETE FROM cursors WHERE id = ?", (subscription_id,))
        forget_ahead(db, subscription_id)

    return work


def put_registration(record: RegistrationRecord) -> Work:
    """Store a registration or its changed lifetime."""
    row = (record.id, record.request, record.version, record.created, record.terminates)

    def work(db: sqlite3.Connection) -> None:
        db.execute("INSERT OR REPLACE INTO registrations VALUES (?, ?, ?, ?, ?)", row)

    return work


def delete_registration(registration_id: str) -> Work:
    """Remove a registration and the records of its upstream subscriptions."""

    def work(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM registrations WHERE id = ?", (registration_id,))
        db.execute("DELETE FROM upstreams WHERE registration = ?", (registration_id,))

    return work


def put_upstream(record: UpstreamRecord) -> Work:
    """Store a subscription at a publisher, unless its registration was removed in the meantime."""
    r = record
    row = (r.registration, r.place, r.reference, r.paused, r.terminates, r.registration)

    def work(db: sqlite3.Connection) -> None:
        db.execute(
            "INSERT OR REPLACE INTO upstreams SELECT ?, ?, ?, ?, ?"
            " WHERE EXISTS (SELECT 1 FROM registrations WHERE id = ?)",
            row,
        )

    return work


def delete_upstream(registration_id: str, place: int) -> Work:
    """Remove the record of a subscription at a publisher."""

    def work(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM upstreams WHERE registration = ? AND place = ?", (registration_id, place))

    return work


def put_pull_point(record: PullPointRecord) -> Work:
    """Store a pull point or its changed state."""
    row = (record.id, record.name, record.created, record.terminates)

    def work(db: sqlite3.Connection) -> None:
        db.execute(
            "INSERT INTO pull_points (id, name, created, terminates) VALUES (?, ?, ?, ?) ON CONFLICT (id)"
            " DO UPDATE SET name = excluded.name, created = excluded.created,"
            " terminates = excluded.terminates",
            row,
        )
        put_cursor(db, record.id, record.cursor)

    return work


def delete_pull_point(pull_point_id: str) -> Work:
    """Remove a pull point, its cursor and its queue; the next pruning removes the rest of a long queue."""

    def work(db: sqlite3.Connection) -> None:
        found = db.execute("SELECT number FROM pull_points WHERE id = ?", (pull_point_id,)).fetchone()
        if found is not None:
            db.execute("DELETE FROM pull_points WHERE id = ?", (pull_point_id,))
            db.execute("DELETE FROM cursors WHERE id = ?", (pull_point_id,))
            db.execute(
                "DELETE FROM queue WHERE seq IN (SELECT seq FROM queue WHERE pull_point = ? LIMIT ?)",
                (*found, STEP),
            )

    return work


def enqueue(
    pull_point_id: str,
    entries: Sequence[tuple[int, str | None]],
    cursors: Mapping[str, int],
    ahead: Mapping[str, Sequence[int]],
) -> Work:
    """Add offsets to a pull point's queue, move cursors, and note what is ahead of them."""
    rows = json.dumps([(offset, subscription or "") for offset, subscription in entries])
    moves = dict(cursors)

    def work(db: sqlite3.Connection) -> None:
        db.execute(
            "INSERT OR IGNORE INTO queue (pull_point, offset, subscription)"
            " SELECT p.number, json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]')"
            " FROM pull_points AS p CROSS JOIN json_each(?) AS j WHERE p.id = ? ORDER BY j.key",
            (rows, pull_point_id),
        )
        move_cursors(db, moves)
        for reader, offsets in ahead.items():
            put_ahead(db, reader, offsets)

    return work


def confirm(pull_point_id: str, upto_seq: int, from_seq: int) -> Work:
    """Remove the messages that the client of a pull point has received."""

    def work(db: sqlite3.Connection) -> int:
        return db.execute(
            "DELETE FROM queue WHERE pull_point = (SELECT number FROM pull_points WHERE id = ?)"
            " AND seq BETWEEN ? AND ?",
            (pull_point_id, from_seq, upto_seq),
        ).rowcount

    return work


def discard(pull_point_id: str, seqs: Iterable[int]) -> Work:
    """Remove messages from anywhere in a pull point's queue."""
    rows = json.dumps(list(seqs))

    def work(db: sqlite3.Connection) -> int:
        return db.execute(
            "DELETE FROM queue WHERE pull_point = (SELECT number FROM pull_points WHERE id = ?)"
            " AND seq IN (SELECT value FROM json_each(?))",
            (pull_point_id, rows),
        ).rowcount

    return work


def trim(pull_point_id: str, limit: int) -> Work:
    """Remove the oldest messages of a queue beyond a length, at most STEP at once."""

    def work(db: sqlite3.Connection) -> Step:
        removed = db.execute(
            "DELETE FROM queue WHERE seq IN (SELECT queue.seq FROM pull_points AS p CROSS JOIN queue"
            " ON queue.pull_point = p.number WHERE p.id = :id ORDER BY queue.seq LIMIT"
            " coalesce((SELECT max(0, min(length - :limit, :step)) FROM pull_points WHERE id = :id), 0))",
            {"id": pull_point_id, "limit": limit, "step": STEP},
        ).rowcount
        return Step(None if removed < STEP else 0, removed)

    return work


def forget_current(topic: str) -> Work:
    """Clear the current message of a topic."""

    def work(db: sqlite3.Connection) -> None:
        db.execute(
            "UPDATE streams SET forgotten ="
            " coalesce((SELECT max(offset) FROM log WHERE stream = streams.id), 0)"
            " WHERE topic = ? AND id > 0 AND topic <> ''",
            (topic,),
        )

    return work


def bury(
    subscription_id: str,
    offsets: Sequence[int],
    reason: str,
    time: float,
    consumer: str,
    cursor: int | None,
    ahead: Sequence[int] = (),
) -> Work:
    """Turn notifications into dead letters and move the subscription's cursor past them."""
    rows = json.dumps(list(offsets))

    def work(db: sqlite3.Connection) -> None:
        db.execute(
            "INSERT INTO dead_letters (subscription, offset, reason, time, consumer)"
            " SELECT ?, value, ?, ?, ? FROM json_each(?) WHERE true ON CONFLICT (offset, subscription)"
            " DO UPDATE SET reason = excluded.reason, time = excluded.time, consumer = excluded.consumer",
            (subscription_id, reason, micros(time), consumer, rows),
        )
        if cursor is not None:
            move_cursors(db, {subscription_id: cursor})
        put_ahead(db, subscription_id, ahead)

    return work


def drop_dead_letters(ids: Iterable[int]) -> Work:
    """Remove dead letters."""
    rows = json.dumps(list(ids))

    def work(db: sqlite3.Connection) -> int:
        return db.execute(
            "DELETE FROM dead_letters WHERE id IN (SELECT value FROM json_each(?))", (rows,)
        ).rowcount

    return work


def drop_dead_letters_of(subscription_id: str) -> Work:
    """Remove dead letters of a subscription, at most STEP at once."""

    def work(db: sqlite3.Connection) -> Step:
        removed = db.execute(
            "DELETE FROM dead_letters WHERE id IN"
            " (SELECT id FROM dead_letters WHERE subscription = ? ORDER BY id LIMIT ?)",
            (subscription_id, STEP),
        ).rowcount
        return Step(None if removed < STEP else 0, removed)

    return work


def put_documents(kind: str, documents: Mapping[str, bytes]) -> Work:
    """Store documents of a kind by name; existing ones are replaced."""
    rows = [(kind, name, body) for name, body in documents.items()]

    def work(db: sqlite3.Connection) -> None:
        db.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", rows)

    return work


def delete_documents(kind: str, names: Iterable[str]) -> Work:
    """Remove documents of a kind; the result is how many there were."""
    rows = json.dumps(list(names))

    def work(db: sqlite3.Connection) -> int:
        return db.execute(
            "DELETE FROM documents WHERE kind = ? AND name IN (SELECT value FROM json_each(?))", (kind, rows)
        ).rowcount

    return work
