"""Files that a crash has torn or a disk has damaged: what is whole is delivered, nothing is delivered torn,
and what cannot be used is refused in words."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.load import Inbox, Key, notify_keys, stored
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, send

PAGE = 4096
FRAME = 24 + PAGE
"""A page in the write-ahead log with its header."""
COUNT = 100


async def killed_with_a_backlog(node: NodeProcess, inbox: Inbox) -> str:
    """Have a node accept notifications that wait in its log, and kill it; the subscription's address."""
    reference = await inbox.subscribe(node.url)
    assert (await call(reference, "<w:PauseSubscription/>")).status == 200
    for number in range(1, COUNT + 1):
        assert (await send(node.url, notify_keys([Key(0, 0, number)]))).status == 202
    await asyncio.to_thread(node.kill)
    return reference


def _cut(wal: Path) -> None:
    with wal.open("r+b") as file:
        file.truncate(wal.stat().st_size - 100)


def _cut_in_the_middle(wal: Path) -> None:
    with wal.open("r+b") as file:
        file.truncate(wal.stat().st_size // 2)


def _blank(wal: Path) -> None:
    with wal.open("r+b") as file:
        file.seek(-PAGE // 2, os.SEEK_END)
        file.write(b"\0" * (PAGE // 2))


def _scramble(wal: Path) -> None:
    with wal.open("r+b") as file:
        file.seek(-3 * FRAME, os.SEEK_END)
        file.write(random.Random(1).randbytes(3 * FRAME))


def _add_half_a_frame(wal: Path) -> None:
    with wal.open("ab") as file:
        file.write(random.Random(2).randbytes(FRAME // 2))


TEARS: dict[str, tuple[Callable[[Path], None], bool]] = {
    "the last bytes are missing": (_cut, True),
    "half of it is missing": (_cut_in_the_middle, True),
    "half a page is blank": (_blank, True),
    "three pages are noise": (_scramble, True),
    "half a page too many": (_add_half_a_frame, False),
}


@pytest.mark.parametrize(("tear", "loses"), TEARS.values(), ids=TEARS)
async def test_a_torn_end_of_the_log_costs_only_what_was_torn(
    tmp_path: Path, tear: Callable[[Path], None], loses: bool
) -> None:
    """What is whole, SQLite says itself, asked by this test on a copy."""
    node = NodeProcess(tmp_path / "data").start()
    async with Inbox() as inbox:
        with closing(node):
            reference = await killed_with_a_backlog(node, inbox)
            tear(node.data / "journal.db-wal")
            whole = whole_keys(node.data, tmp_path / "copy")
            assert whole == [Key(0, 0, number) for number in range(1, len(whole) + 1)]
            assert 0 < len(whole) < COUNT if loses else len(whole) == COUNT
            await asyncio.to_thread(node.start)
            assert (await call(reference, "<w:ResumeSubscription/>")).status == 200
            after = Key(1, 0, 1)
            assert (await send(node.url, notify_keys([after]))).status == 202
            await inbox.wait_for([*whole, after])
            assert inbox.keys() == [*whole, after]
            assert await asyncio.to_thread(node.terminate) == 0
        assert "Traceback" not in node.log()
    assert list(stored(node.data)) == [*whole, after]


def whole_keys(data: Path, copy: Path) -> list[Key]:
    """What a journal still holds, looked at without touching it."""
    shutil.copytree(data, copy)
    (copy / "journal.db-shm").unlink()
    return sorted(stored(copy))


def _header(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(b"this was a database once")


def _all_but_the_first_page(database: Path) -> None:
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(PAGE)
        file.write(random.Random(3).randbytes(size - PAGE))


def _text(database: Path) -> None:
    database.write_text("dear diary\n" * 1000)


def _last_page(database: Path) -> None:
    """The page of the last index or entry that was added."""
    with database.open("r+b") as file:
        file.truncate(PAGE * (database.stat().st_size // PAGE // 2))


DAMAGES = {
    "its header is overwritten": _header,
    "its pages are noise": _all_but_the_first_page,
    "it is a text": _text,
    "its second half is missing": _last_page,
}


async def publish_many(node: NodeProcess, count: int) -> list[Key]:
    """Publish so many, 500 to a Notify."""
    keys = [Key(0, 0, number) for number in range(1, count + 1)]
    for first in range(0, count, 500):
        assert (await send(node.url, notify_keys(keys[first : first + 500]))).status == 202
    return keys


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_database_is_refused_in_one_line_with_the_remedy(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with NodeProcess(tmp_path / "data") as node:
        await publish_many(node, 2000)
        assert await asyncio.to_thread(node.terminate) == 0
    database = node.data / "journal.db"
    damage(database)
    damaged = database.read_bytes()
    node.log_file.unlink()
    with pytest.raises(AssertionError, match="did not become ready"):
        await asyncio.to_thread(node.start)
    assert node.process is not None
    assert node.process.returncode == 1
    (line,) = [line for line in node.log().splitlines() if line.startswith("hpwsn: error: ")]
    assert str(database) in line
    assert "restore a backup" in line
    assert "Traceback" not in node.log()
    assert database.read_bytes() == damaged


async def test_a_damaged_page_that_is_met_later_is_made_known_and_nothing_torn_is_delivered(
    tmp_path: Path,
) -> None:
    """A look at every page would make a start slow, so it is found when a subscription gets there."""
    node = NodeProcess(tmp_path / "data").start()
    async with Inbox() as inbox:
        with closing(node):
            reference = await inbox.subscribe(node.url)
            assert (await call(reference, "<w:PauseSubscription/>")).status == 200
            keys = await publish_many(node, 12_000)
            assert await asyncio.to_thread(node.terminate) == 0
            database = node.data / "journal.db"
            middle = database.read_bytes().index(keys[len(keys) // 2].payload.encode())
            with database.open("r+b") as file:
                file.seek(middle // PAGE * PAGE)
                file.write(random.Random(4).randbytes(PAGE))
            await asyncio.to_thread(node.start)
            assert (await call(reference, "<w:ResumeSubscription/>")).status == 200

            async def known() -> bool:
                ready = await send(f"{node.base}/readyz", b"", method="GET")
                return ready.status == 503 and str(database).encode() in ready.body

            await eventually(known)
            assert [line for line in node.log().splitlines() if "malformed" in line]
            received = inbox.keys()
            assert received == keys[: len(received)]
            assert 0 < len(received) < len(keys)
