"""A journal of an earlier version is brought up to date when it is opened, with all that it holds."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.journal import Journal, PullPointRecord, RegistrationRecord, UpstreamRecord

VERSION_1 = """
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

INSERT INTO streams VALUES (1, 'A', '', 0);
INSERT INTO log VALUES (1, 1, 1000000, 0, 4, 'm1', '<m/>'), (2, 1, 2000000, 0, 4, NULL, '<m/>');
INSERT INTO message_ids VALUES (1, 1, 'm1', 1000000);
INSERT INTO subscriptions VALUES ('s', '<r/>', '1.2', 1.5, NULL, 0, 'p');
INSERT INTO pull_points VALUES (1, 'p', 'mine', 1.0, NULL), (2, 'q', NULL, 1.0, NULL);
INSERT INTO cursors VALUES ('s', 2), ('p', 0), ('q', 0);
INSERT INTO queue (pull_point, offset, subscription) VALUES (1, 1, 's'), (1, 2, 's'), (1, 2, '');
INSERT INTO dead_letters (subscription, offset, reason, time) VALUES ('gone', 1, 'refused', 5000000);
PRAGMA application_id = 1213233011;
PRAGMA user_version = 1;
"""


@pytest.fixture
def old(path: Path) -> Path:
    """A file as version 1 left it."""
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(VERSION_1)
    db.close()
    return path


async def test_version_1_opens_with_all_that_it_holds(old: Path, opened: Any, note: Any) -> None:
    async with opened() as (journal, recovered):
        assert (recovered.next_offset, recovered.current) == (3, {"A": 2})
        assert [(s.id, s.cursor, s.address) for s in recovered.subscriptions] == [("s", 2, "p")]
        assert recovered.pull_points[0] == PullPointRecord("p", "mine", 1.0, None, 0)
        (letter,) = await journal.dead_letters(10)
        assert (letter.subscription_id, letter.reason, letter.time, letter.consumer) == (
            "gone",
            "refused",
            5.0,
            "",
        )
        assert (await journal.queue_length("p"), await journal.queue_length("q")) == (3, 0)
        await journal.append([note(target="p")])
        assert await journal.queue_length("p") == 4
        await journal.bury("s", [2], "timed out", 6.0, consumer="http://consumer/")


async def test_version_1_gets_the_registrations_of_version_3(old: Path, opened: Any) -> None:
    registration = RegistrationRecord("r", b"<r/>", "SOAP12", 1.5, 9.5)
    upstream = UpstreamRecord("r", 1, b"<u/>", paused=True, terminates=8.5)
    async with opened() as (journal, recovered):
        assert (recovered.registrations, recovered.upstreams) == ([], [])
        await journal.put_registration(registration)
        await journal.put_upstream(upstream)
        await journal.put_upstream(UpstreamRecord("ended", 0, b"<u/>"))
    async with opened() as (journal, recovered):
        assert (recovered.registrations, recovered.upstreams) == ([registration], [upstream])
        await journal.delete_registration("r")
    async with opened() as (journal, recovered):
        assert (recovered.registrations, recovered.upstreams) == ([], [])


async def test_version_1_gets_the_documents_of_version_8(old: Path, opened: Any) -> None:
    async with opened() as (journal, recovered):
        assert recovered.documents == {}
        await journal.put_documents("sensor", {"s1": b"{}", "温度": b"\x00\xff"})
    async with opened() as (_, recovered):
        assert recovered.documents == {"sensor": {"s1": b"{}", "温度": b"\x00\xff"}}


async def test_a_subscription_at_a_publisher_is_forgotten_alone(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.put_registration(RegistrationRecord("r", b"<r/>", "SOAP11", 1.5))
        for place in range(2):
            await journal.put_upstream(UpstreamRecord("r", place, b"<u/>"))
        await journal.delete_upstream("r", 0)
    async with opened() as (_, recovered):
        assert [upstream.place for upstream in recovered.upstreams] == [1]


async def test_it_is_brought_up_to_date_once_and_equals_a_new_file(
    old: Path, opened: Any, tmp_path: Path
) -> None:
    for _ in range(2):
        async with opened():
            pass
    journal = Journal(tmp_path / "new" / "journal.db", reserve=0)
    await journal.open()
    await journal.close()
    assert shape(old) == shape(tmp_path / "new" / "journal.db")


async def test_an_old_file_that_cannot_be_brought_up_to_date_stays_as_it_was(old: Path) -> None:
    with sqlite3.connect(old) as db:
        db.execute("CREATE INDEX dead_letters_by_time ON dead_letters (reason)")
    db.close()
    before = shape(old)
    with pytest.raises(JournalUnavailable, match="dead_letters_by_time already exists"):
        await Journal(old).open()
    assert shape(old) == before


async def test_a_full_journal_of_an_old_version_opens_and_is_full(old: Path, opened: Any, note: Any) -> None:
    size = old.stat().st_size
    async with opened(max_bytes=size) as (journal, recovered):
        assert recovered.next_offset == 3
        assert len(await journal.read([1, 2])) == 2
        with pytest.raises(JournalUnavailable, match="is full"):
            await journal.append([note(text="x" * size)])


def shape(path: Path) -> tuple[int, list[tuple[str, str]]]:
    db = sqlite3.connect(path)
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        return version, db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    finally:
        db.close()
