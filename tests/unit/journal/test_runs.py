"""A run of alike notifications is one row or a few, and comes out as single notifications."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hpwsn.journal import PullPointRecord
from hpwsn.journal.store import log_rows as rows
from hpwsn.journal.store import reader
from hpwsn.notification import END, Notification, Run, members
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic

TOPIC = Topic.parse("A:B")


def run(
    size: int,
    length: int = 8,
    message_id: str | None = None,
    time: float = 1000.5,
    target: str | None = None,
) -> Run:
    payloads = b"".join(b"<m>%0*d</m>%b" % (length, number, END) for number in range(size))
    return Run(TOPIC, b"<t/>", payloads, size, time, message_id, target)


def select(path: Path, statement: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(path)
    try:
        return db.execute(statement).fetchall()
    finally:
        db.close()


def count_rows(path: Path) -> int:
    return int(select(path, "SELECT count(*) FROM log")[0][0])


def ids(path: Path) -> list[tuple[Any, ...]]:
    return select(path, "SELECT id, first, last, time FROM message_ids ORDER BY first")


@pytest.mark.parametrize(
    ("size", "length", "expected"),
    [
        (rows.ROW_MEMBERS, 8, 1),
        (rows.ROW_MEMBERS + 1, 8, 2),
        (4, rows.ROW_BYTES // 4 - 8, 1),
        (4, rows.ROW_BYTES // 4 - 7, 2),
        (3, rows.ROW_BYTES + 1, 3),
    ],
)
async def test_a_run_has_as_few_rows_as_it_may(
    opened: Any, path: Path, size: int, length: int, expected: int
) -> None:
    sent = run(size, length)
    async with opened() as (journal, _):
        await journal.append([sent])
        assert count_rows(path) == expected
        stored = await journal.read(range(1, size + 1))
        assert [(entry.offset, entry.notification) for entry in stored] == list(enumerate(sent, 1))


async def test_a_run_of_one_is_a_row_that_says_where_its_payload_ends(opened: Any, path: Path) -> None:
    content = b"<t/><m>only</m>" + MESSAGE_CLOSE
    sent = Notification(TOPIC, content, 4, 15, 1000.5, "m")
    empty = Notification(TOPIC, b"<t/>" + MESSAGE_CLOSE, 4, 4, 1000.5)
    async with opened() as (journal, _):
        await journal.append([Run.of(sent), Run.of(empty)])
        assert select(path, "SELECT offset, time, head, tail, message_id, content FROM log") == [
            (1, 1_000_500_000, 4, 15, "m", content),
            (2, 1_000_500_000, 4, 4, None, empty.content),
        ]
        assert [entry.notification for entry in await journal.read([1, 2])] == [sent, empty]


async def test_a_run_of_many_is_a_row_that_says_how_many_they_are(opened: Any, path: Path) -> None:
    async with opened() as (journal, _):
        await journal.append([run(2, length=1)])
        content = b"<t/><m>0</m>\x1e<m>1</m>\x1e" + MESSAGE_CLOSE
        assert select(path, "SELECT offset, head, tail, content FROM log") == [(2, 4, -2, content)]


async def test_a_run_that_is_posted_to_a_pull_point_is_stored_as_single_rows(opened: Any, path: Path) -> None:
    sent = [run(2), run(3, message_id="m", target="p"), run(2, target="gone"), run(1)]
    async with opened() as (journal, _):
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        assert await journal.append(sent) == 1
        assert select(path, "SELECT offset, tail FROM log ORDER BY offset") == [
            (2, -2),
            *[(offset, 19) for offset in range(3, 9)],
        ]
        stored = await journal.read(range(1, 9))
        assert [(entry.offset, entry.notification) for entry in stored] == list(enumerate(members(sent), 1))
        pulled = await journal.pull("p", 9)
        assert [(each.stored.offset, each.stored.notification) for each in pulled] == list(
            enumerate(sent[1], 3)
        )
        seen = await journal.scan(0, limit=9, topics=None, target="p")
        assert [entry.offset for entry in seen.entries] == [3, 4, 5]
        seen = await journal.scan(0, limit=9, topics=None)
        assert [entry.offset for entry in seen.entries] == [1, 2, 8]
        assert ids(path) == [("m", 3, 5, 1_000_500_000)]
    async with opened() as (_, recovered):
        assert recovered.current == {"A:B": 8}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([run(1, message_id="m"), run(3, message_id="m"), run(2, message_id="m", time=2.0)], [("m", 1, 6)]),
        ([run(2, message_id="m"), run(2, message_id="m", target="p")], [("m", 1, 4)]),
        ([run(2, message_id="m"), run(1, message_id="n"), run(2)], [("m", 1, 2), ("n", 3, 3)]),
        ([run(1), run(rows.ROW_MEMBERS + 1, message_id="m"), run(1)], [("m", 2, rows.ROW_MEMBERS + 2)]),
        ([run(2), run(2)], []),
    ],
    ids=["three runs", "with a target", "two requests", "more than a row", "no id"],
)
async def test_an_id_is_noted_once_for_all_adjacent_runs_of_its_request(
    opened: Any, path: Path, sent: Sequence[Run], expected: list[tuple[str, int, int]]
) -> None:
    async with opened() as (journal, _):
        await journal.append(sent)
        noted = ids(path)
    assert noted == [(*each, 1_000_500_000) for each in expected]
    async with opened() as (_, recovered):
        assert [(known.id, known.first, known.last) for known in recovered.message_ids] == expected


async def test_what_begins_and_ends_inside_of_a_run_is_read_and_counted_exactly(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.append([run(10)])
        assert [entry.offset for entry in await journal.read([4, 7, 11])] == [4, 7]
        scan = await journal.scan(3, limit=4, topics={"A:B"})
        assert ([entry.offset for entry in scan.entries], scan.upto) == ([4, 5, 6, 7], 7)
        scan = await journal.scan(3, limit=100, topics=None, head=6)
        assert ([entry.offset for entry in scan.entries], scan.upto) == ([4, 5, 6], 6)
        size = len(scan.entries[0].notification.content)
        scan = await journal.scan(3, limit=100, topics=None, room=2 * size)
        assert ([entry.offset for entry in scan.entries], scan.upto) == ([4, 5], 5)
        assert (await journal.count(3, None), await journal.count(10, {"A:B"})) == (7, 0)


async def test_one_that_waits_or_is_buried_holds_its_run(opened: Any) -> None:
    limits: dict[str, Any] = {"id_window": 1.0, "retention_age": 1.0, "retention_bytes": None}
    limits |= {"needs": {}, "needs_all": None}
    async with opened() as (journal, _):
        await journal.append([run(10)])
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.enqueue("p", [(3, "s")], {})
        await journal.bury("s", [10], "refused", 1000.0)
        assert (await journal.prune(2000.0, head=10, **limits)).entries == 0
        ((pulled,), (letter,)) = await journal.pull("p", 5), await journal.dead_letters(5)
        assert (pulled.stored.offset, letter.stored.offset) == (3, 10)
        await journal.confirm("p", pulled.seq)
        assert (await journal.prune(2000.0, head=10, **limits)).entries == 0
        await journal.drop_dead_letters([letter.id])
        assert (await journal.prune(2000.0, head=9, **limits)).entries == 0
        assert (await journal.prune(2000.0, head=10, **limits)).entries == 10


async def test_a_run_between_others_survives_a_restart_with_its_id(opened: Any, note: Any) -> None:
    sent = [note("A:B", "one"), run(3, message_id="m"), note("C", "two", message_id="n")]
    async with opened() as (journal, _):
        assert await journal.append(sent) == 1
    async with opened() as (journal, recovered):
        assert (recovered.next_offset, recovered.current) == (6, {"A:B": 4, "C": 5})
        assert [(known.id, known.first, known.last) for known in recovered.message_ids] == [
            ("m", 2, 4),
            ("n", 5, 5),
        ]
        assert [entry.notification for entry in await journal.read(range(9))] == list(members(sent))


async def test_no_more_of_a_run_is_made_than_somebody_asked_for(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def read_row(*arguments: Any) -> Any:
        read = rows.read_row(*arguments)
        made.extend(offset for offset, _ in read)
        return read

    monkeypatch.setattr(reader, "read_row", read_row)
    async with opened() as (journal, _):
        await journal.append([run(100) for _ in range(20)])
        scan = await journal.scan(150, limit=60, topics={"A:B"})
        assert ([scan.entries[0].offset, scan.upto], made) == ([151, 210], list(range(151, 301)))
        made.clear()
        await journal.read([7, 8, 907])
        assert made == [7, 8, 907]


async def test_what_is_pulled_of_runs_is_bounded_by_its_contents(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 5000)
    sent = Run(TOPIC, b"<t>%b</t>" % (b"x" * 1000), b"<m/>" + END + b"<n/>" + END, 2, 1.0)
    async with opened() as (journal, _):
        await journal.append([sent, sent, sent])
        await journal.put_pull_point(PullPointRecord("p", None, 1.0))
        await journal.enqueue("p", [(offset, "s") for offset in range(1, 7)], {})
        met: list[int] = []
        while pulled := await journal.pull("p", 9):
            assert len(pulled) <= 4
            met += [each.stored.offset for each in pulled]
            await journal.confirm("p", pulled[-1].seq)
        assert met == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("size", [1, 3, rows.ROW_MEMBERS + 1])
@pytest.mark.parametrize("target", [None, "point"])
async def test_a_run_keeps_its_trace(opened: Any, size: int, target: str | None) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 congo=t61rcWkgMzE"
    sent = run(size, target=target)
    sent.trace = trace
    async with opened() as (journal, _):
        first = await journal.append([run(2), sent, run(2)])
        found = await journal.read(range(first, first + size + 4))
    expected = [*run(2), *sent, *run(2)]
    assert [entry.notification for entry in found] == expected
    assert [entry.notification.trace for entry in found] == [None, None, *[trace] * size, None, None]
    async with opened() as (journal, _):
        assert [
            entry.notification for entry in await journal.read(range(first, first + size + 4))
        ] == expected
