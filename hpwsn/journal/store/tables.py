"""The tables of the journal, their schema version, and the setup of a connection.

A stream is a topic, or a topic of messages posted to the address of one pull point (the target), or of what
was accepted while the topic was internal (target INTERNAL). A row of the log has the number of its stream:
positive without a target, negative with one, so that "everything without a target" is one comparison. A
topic's current message is the last entry of its stream after `forgotten`. The index finds it, so an append
has nothing to update. Streams that never have a current message have a `forgotten` greater than any offset.
Cursors have their own table because they change often and records are wide. Triggers maintain the length of
each pull point's queue, so that no query counts a long queue. When a file of an older version is opened, all
later schema changes are applied in one transaction.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

from hpwsn.errors import JournalDamaged, JournalTooNew, JournalUnavailable
from hpwsn.journal.store.records import Durability

APPLICATION_ID = 0x48507773
NEVER_CURRENT = 2**63 - 1

_VERSION_1 = """
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, target TEXT NOT NULL, forgotten INTEGER NOT NULL,
    UNIQUE (topic, target)
);
CREATE TABLE log (
    offset INTEGER PRIMARY KEY, stream INTEGER NOT NULL, time INTEGER NOT NULL,
    head INTEGER NOT NULL, tail INTEGER NOT NULL, message_id TEXT, content BLOB NOT NULL
);
CREATE INDEX log_by_stream ON log (stream, offset);
CREATE TABLE message_ids (
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, id TEXT NOT NULL, time INTEGER NOT NULL
);
CREATE TABLE subscriptions (
    id TEXT PRIMARY KEY, request BLOB NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,
    terminates REAL, paused INTEGER NOT NULL, address TEXT
);
CREATE TABLE pull_points (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT,
    created REAL NOT NULL, terminates REAL
);
CREATE TABLE cursors (id TEXT PRIMARY KEY, offset INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE queue (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, pull_point INTEGER NOT NULL, offset INTEGER NOT NULL,
    subscription TEXT NOT NULL, UNIQUE (offset, pull_point, subscription)
);
CREATE INDEX queue_by_pull_point ON queue (pull_point, seq);
CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT, subscription TEXT NOT NULL, offset INTEGER NOT NULL,
    reason TEXT NOT NULL, time INTEGER NOT NULL, UNIQUE (offset, subscription)
);
CREATE TABLE removed (upto INTEGER NOT NULL);
INSERT INTO removed VALUES (0);
"""
_VERSION_2 = """
ALTER TABLE dead_letters ADD COLUMN consumer TEXT NOT NULL DEFAULT '';
CREATE INDEX dead_letters_by_subscription ON dead_letters (subscription, id);
CREATE INDEX dead_letters_by_time ON dead_letters (time);
ALTER TABLE pull_points ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
UPDATE pull_points SET length = (SELECT count(*) FROM queue WHERE pull_point = number);
CREATE TRIGGER queue_grows AFTER INSERT ON queue BEGIN
    UPDATE pull_points SET length = length + 1 WHERE number = NEW.pull_point;
END;
CREATE TRIGGER queue_shrinks AFTER DELETE ON queue BEGIN
    UPDATE pull_points SET length = length - 1 WHERE number = OLD.pull_point;
END;
"""
_VERSION_3 = """
CREATE TABLE registrations (
    id TEXT PRIMARY KEY, request BLOB NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,
    terminates REAL
);
CREATE TABLE upstreams (
    registration TEXT NOT NULL, place INTEGER NOT NULL, reference BLOB NOT NULL, paused INTEGER NOT NULL,
    terminates REAL, PRIMARY KEY (registration, place)
) WITHOUT ROWID;
"""
# What a backbone keeps: see spool.py.
_BACKBONE = """
CREATE TABLE spool (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, number INTEGER NOT NULL,
    notifications INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (source, number)
);
CREATE TABLE frames (
    source TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, time INTEGER NOT NULL,
    PRIMARY KEY (source, first)
) WITHOUT ROWID;
CREATE TABLE from_peers (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
"""
# The state of routing: see routed.py.
_ROUTING = """
CREATE TABLE routed (offset INTEGER PRIMARY KEY, flags INTEGER NOT NULL);
CREATE TABLE routing (epoch INTEGER NOT NULL);
"""
# Rows may hold runs: see log_rows.py. The index has `tail`, so that a count does not read the rows.
_RUNS = """
DROP INDEX log_by_stream;
CREATE INDEX log_by_stream ON log (stream, offset, tail);
"""
# The content of a large notification is in a file: see large_contents.py. `outside` is its length.
_LARGE = """
ALTER TABLE log ADD COLUMN outside INTEGER NOT NULL DEFAULT 0;
CREATE INDEX log_outside ON log (offset) WHERE outside > 0;
"""
# Descriptions that other parts of a node keep by kind and name, such as those of physical sensors.
_DOCUMENTS = """
CREATE TABLE documents (
    kind TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""
# Offsets beyond a cursor that its subscription is done with: see cursor_rows.py.
_AHEAD = """
CREATE TABLE delivered_ahead (
    subscription TEXT NOT NULL, offset INTEGER NOT NULL, PRIMARY KEY (subscription, offset)
) WITHOUT ROWID;
"""
_VERSIONS = (_VERSION_1, _VERSION_2, _VERSION_3, _BACKBONE, _ROUTING, _RUNS, _LARGE, _DOCUMENTS, _AHEAD)
VERSION = len(_VERSIONS)
# For one pruning: the readers of a stream still need its entries after `upto`.
_TEMPORARY = "CREATE TEMP TABLE needs (stream INTEGER PRIMARY KEY, upto INTEGER NOT NULL)"

# commit: a commit writes the WAL to the operating system; a checkpoint syncs it. The file is never damaged.
# none: like commit, but an append completes before its commit (Channel.append).
_SYNCHRONOUS = {"none": "NORMAL", "commit": "NORMAL", "fsync": "FULL"}
_UNUSABLE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


def check_unclosed(path: Path) -> None:
    """Refuse a damaged file that was not closed, before SQLite changes or removes anything.

    It reads all pages: about a second for a million notifications. Pages have no checksums, so a change
    within a page's content is not found.
    """
    left = path.with_name(path.name + "-wal")
    if not left.exists() or not left.stat().st_size:
        return
    if not path.exists() or not path.stat().st_size:
        raise JournalDamaged(path, f"it is empty, and {left.name} is not")
    try:
        found = _quick_check(path)
    except sqlite3.Error as error:
        raise opening_error(path, error) from error
    if found != "ok":
        raise JournalDamaged(path, found)


def check_closed(path: Path) -> None:
    """Refuse a closed file that is not an HPwsn journal, without creating or reading any other file."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        _check_version(db, path)
    except sqlite3.Error as error:
        raise opening_error(path, error) from error
    finally:
        db.close()


def open_writer(
    path: Path, durability: Durability, max_bytes: int | None, checkpoint_bytes: int
) -> sqlite3.Connection:
    """Open the only writing connection; create the tables in a new file, refuse another program's file."""
    _create_private(path)
    try:
        db = _connect(path)
        try:
            _check_version(db, path)
            _set_up(db, durability, checkpoint_bytes)
            # Upgrade before the size limit applies, so that a full journal can still be opened.
            _upgrade_schema(db)
            if max_bytes is not None:
                limit_size(db, max_bytes)
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise opening_error(path, error) from error
    return db


def _create_private(path: Path) -> None:
    """Create a new file that only the node's user can read; SQLite gives its mode to the -wal and -shm."""
    with contextlib.suppress(OSError):  # it exists, or SQLite reports why it cannot be created
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a read-only connection; it sees complete commits only."""
    db = _connect(path)
    _tune(db)
    db.execute("PRAGMA query_only = ON")
    return db


def opening_error(path: Path, error: sqlite3.Error) -> Exception:
    """The error for a file that cannot be opened; JournalDamaged if a retry cannot help."""
    name = _name(error)
    if name.startswith(_UNUSABLE):
        return JournalDamaged(path, str(error))
    if name.startswith("SQLITE_CANTOPEN"):
        remedy = "check that the directory is writable and has space"
        return JournalUnavailable(f"{path} cannot be opened ({error}): {remedy}")
    return unavailable(path, error)


def unavailable(path: Path, error: sqlite3.Error) -> JournalUnavailable:
    """SQLite's error as ours, with the file and what to do."""
    name = _name(error)
    if is_full(error):
        return no_space(path)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return JournalUnavailable(f"another process has locked {path}; stop that process")
    if name.startswith(_UNUSABLE):
        return JournalUnavailable(str(JournalDamaged(path, str(error))))
    return JournalUnavailable(f"the journal {path} cannot be used: {error} ({name})")


def no_space(path: Path) -> JournalUnavailable:
    """The error for a journal that cannot grow."""
    remedy = f"free space in {path.parent}, shorten the retention or raise the journal's size limit"
    return JournalUnavailable(f"the journal {path} is full: {remedy}; no restart is needed")


def is_full(error: BaseException) -> bool:
    """Whether SQLite failed for lack of space."""
    names = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
    return isinstance(error, sqlite3.Error) and _name(error).startswith(names)


def is_locked(error: BaseException) -> bool:
    """Whether the database is locked: every write would fail, each after the full lock timeout."""
    return isinstance(error, sqlite3.Error) and _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def is_damage(error: BaseException | None) -> bool:
    """Whether the file is damaged, so that a retry cannot help."""
    return isinstance(error, sqlite3.Error) and _name(error).startswith(_UNUSABLE)


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


def _quick_check(path: Path) -> str:
    # Read-only: otherwise closing would checkpoint the write-ahead log into the file.
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=1.0, uri=True)
    try:
        return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    finally:
        db.close()


def _connect(path: Path) -> sqlite3.Connection:
    # There is one statement for each number of rows; the cache holds them all compiled.
    return sqlite3.connect(
        path, timeout=1.0, isolation_level=None, check_same_thread=False, cached_statements=256
    )


def _tune(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute("PRAGMA cache_size = -8000")


def _set_up(db: sqlite3.Connection, durability: Durability, checkpoint_bytes: int) -> None:
    _tune(db)
    db.execute("PRAGMA page_size = 4096")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
    db.execute("PRAGMA secure_delete = OFF")
    db.execute(f"PRAGMA wal_autocheckpoint = {checkpoint_bytes // 4096}")
    db.execute(f"PRAGMA journal_size_limit = {64 << 20}")
    db.execute(_TEMPORARY)


def _upgrade_schema(db: sqlite3.Connection) -> None:
    steps = "".join(_VERSIONS[_pragma(db, "user_version") :])
    if steps:
        db.executescript(
            f"BEGIN IMMEDIATE; {steps} PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )


def limit_size(db: sqlite3.Connection, max_bytes: int) -> None:
    """Limit the file to `max_bytes`; a larger file keeps its size."""
    limit_pages(db, max(1, max_bytes // _pragma(db, "page_size")))


def limit_pages(db: sqlite3.Connection, pages: int) -> None:
    """Limit the file to a number of pages."""
    db.execute(f"PRAGMA max_page_count = {pages}")


def max_pages(db: sqlite3.Connection) -> int:
    """The maximum number of pages of the file."""
    return _pragma(db, "max_page_count")


def freeze_size(db: sqlite3.Connection) -> None:
    """Limit the file to its present size."""
    limit_pages(db, _pragma(db, "page_count"))


def checkpoint(db: sqlite3.Connection) -> None:
    """Copy the write-ahead log into the file and truncate it, if there is space."""
    with contextlib.suppress(sqlite3.Error):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def free_pages(db: sqlite3.Connection) -> int:
    """The number of pages that can be written before the size limit is reached."""
    return max_pages(db) - _pragma(db, "page_count") + _pragma(db, "freelist_count")


def used_bytes(db: sqlite3.Connection) -> int:
    """The size of all pages in use, in bytes."""
    return (_pragma(db, "page_count") - _pragma(db, "freelist_count")) * _pragma(db, "page_size")


def outside_bytes(db: sqlite3.Connection) -> int:
    """The size of all contents that are in files of their own."""
    return int(db.execute("SELECT coalesce(sum(outside), 0) FROM log WHERE outside > 0").fetchone()[0])


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    version = _pragma(db, "user_version")
    tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and _pragma(db, "application_id") != APPLICATION_ID:
        raise JournalDamaged(path, "it is the database of another program")
    if version > VERSION:
        raise JournalTooNew(path, version, VERSION)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
