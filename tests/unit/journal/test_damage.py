"""Files that a crash has torn or a disk has damaged: what is whole is there, the rest is said aloud."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpwsn.errors import JournalDamaged, JournalUnavailable
from hpwsn.journal import Journal
from tests.unit.journal import appender

PAGE = 4096
FRAME = 24 + PAGE
dice = random.Random(7)


def cut(wal: Path, at: int) -> None:
    with wal.open("r+b") as file:
        file.truncate(at)


def flip(wal: Path, at: int) -> None:
    data = bytearray(wal.read_bytes())
    data[at] ^= 0x10
    wal.write_bytes(data)


def noise(wal: Path, at: int) -> None:
    data = wal.read_bytes()
    wal.write_bytes(data[:at] + dice.randbytes(len(data) - at))


@pytest.mark.parametrize("tear", [cut, flip, noise])
async def test_what_was_committed_before_a_torn_end_of_the_log_survives_kill_9(
    path: Path, tear: Callable[[Path, int], None]
) -> None:
    acknowledged = appender.kill_after(path, 90, publishers=1)
    size = path.with_name("journal.db-wal").stat().st_size
    for number, at in enumerate([size - 1, size - 100, size - FRAME, size - 3 * FRAME, size // 2, size // 3]):
        damaged = appender.copy(path, f"copy{number}")
        tear(damaged.with_name("journal.db-wal"), at)
        offsets = await whole(damaged)
        assert offsets == list(range(1, len(offsets) + 1))
        assert len(offsets) % 3 == 0
        survivors = [first for first, _, upto in acknowledged if upto <= at]
        assert len(survivors) > 10
        assert {first + 2 for first in survivors} <= set(offsets)


async def test_an_untouched_copy_has_everything(path: Path) -> None:
    acknowledged = appender.kill_after(path, 90, publishers=1)
    offsets = await whole(appender.copy(path, "copy"))
    assert {first + 2 for first, _, _ in acknowledged} <= set(offsets)


def page_noise(path: Path, at: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + dice.randbytes(PAGE) + data[at + PAGE :])


def page_ones(path: Path, at: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + b"\xff" * PAGE + data[at + PAGE :])


def page_missing(path: Path, at: int) -> None:
    cut(path, at)


def page_half_missing(path: Path, at: int) -> None:
    cut(path, at + PAGE // 2)


def emptied(path: Path, _at: int) -> None:
    path.write_bytes(b"")


def removed(path: Path, _at: int) -> None:
    path.unlink()


DAMAGES = [page_noise, page_ones, page_missing, page_half_missing, emptied, removed]


def last_page(path: Path) -> int:
    """Where the last page begins that is in the main file alone, and not in the write-ahead log too."""
    wal = path.with_name("journal.db-wal").read_bytes()
    frames = [wal[at : at + 24] for at in range(32, len(wal) - PAGE, FRAME)]
    newer = {int.from_bytes(frame[:4], "big") for frame in frames if frame[8:16] == wal[16:24]}
    pages = range(1, path.stat().st_size // PAGE + 1)
    return PAGE * (max(page for page in pages if page not in newer) - 1)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal whose node was killed when most of the log was in the main file and some was not."""
    path = tmp_path_factory.mktemp("killed") / "data" / "journal.db"
    process = appender.start(path)
    assert process.stdout is not None
    try:
        while not path.exists() or path.stat().st_size < 500_000:
            assert process.stdout.readline()
        for _ in range(500):
            assert process.stdout.readline()
    finally:
        process.kill()
        process.communicate()
    assert path.with_name("journal.db-wal").stat().st_size > 0
    return path


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_refused_after_kill_9_with_the_remedy_and_not_touched(
    killed: Path, damage: Callable[[Path, int], None]
) -> None:
    path = appender.copy(killed, f"damaged-{damage.__name__}")
    damage(path, last_page(path))
    before = {file: file.read_bytes() for file in appender.files(path)}
    with pytest.raises(JournalDamaged, match=r"restore a backup.*move both files away"):
        await Journal(path, reserve=0).open()
    assert {file: file.read_bytes() for file in appender.files(path)} == before


async def test_damage_that_is_met_later_is_said_until_the_end(opened: Any, note: Any, path: Path) -> None:
    async with opened() as (journal, _):
        await journal.append([note("A", "x" * 900) for _ in range(2000)])
    page_noise(path, path.stat().st_size // PAGE // 2 * PAGE)
    async with opened() as (journal, _):
        with pytest.raises(JournalUnavailable, match=r"journal\.db cannot be used.*restore a backup"):
            for first in range(1, 2001, 10):
                await journal.read(range(first, first + 10))
        await journal.append([note("A")])
        assert "restore a backup" in (journal.state.unavailable or "")


async def whole(path: Path) -> list[int]:
    """The offsets that a journal still has, each readable."""
    journal = Journal(path, reserve=0)
    recovered = await journal.open()
    try:
        return [entry.offset for entry in await journal.read(range(1, recovered.next_offset))]
    finally:
        await journal.close()
