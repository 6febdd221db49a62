"""The file of known times: what it lacks after a crash is read from the log, and nothing is guessed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hpwsn.sensors.intake.known_times_file import KnownTimesFile
from hpwsn.sensors.readings.known_times import KnownTimes

LATEST = 10_000


class Log:
    """A log with one reading of s1 at each offset, whose time is the offset."""

    def __init__(self, head: int, oldest: int = 1) -> None:
        self.head = head
        self.oldest = oldest
        self.read: list[int] = []

    async def keys(self, after: int) -> tuple[int, Sequence[tuple[str, int]]]:
        upto = min(self.head, after + 3)
        found = range(max(after + 1, self.oldest), upto + 1)
        self.read += found
        return upto, [("s1", offset) for offset in found]


async def opened(path: Path, log: Log) -> tuple[KnownTimesFile, KnownTimes]:
    times = KnownTimes()
    file = KnownTimesFile(path, times, lambda: log.head)
    await file.open(log.oldest, log.keys, LATEST)
    return file, times


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reading-times"


async def test_a_new_node_knows_that_there_is_nothing(path: Path) -> None:
    file, times = await opened(path, Log(0))
    assert times.has("s1", 5) is False
    await file.close()
    assert not path.exists()


async def test_the_times_survive_a_restart_without_a_look_at_the_log(path: Path) -> None:
    log = Log(0)
    file, times = await opened(path, log)
    times.note("s1", 1)
    times.note("s1", 2)
    log.head = 2
    await file.close()
    assert path.stat().st_mode & 0o777 == 0o600
    file, times = await opened(path, log)
    assert (times.has("s1", 1), times.has("s1", 2), times.has("s1", 3)) == (True, True, False)
    assert log.read == []
    await file.close()


async def test_what_was_not_written_before_a_crash_is_read_from_the_log(path: Path) -> None:
    log = Log(2)
    file, times = await opened(path, log)
    await file.write()
    log.head = 20
    _, times = await opened(path, log)
    assert log.read == list(range(1, 21))
    assert all(times.has("s1", time) for time in range(1, 21))
    assert times.has("s1", 21) is False


async def test_without_a_file_the_whole_log_is_read(path: Path) -> None:
    _, times = await opened(path, Log(20))
    assert all(times.has("s1", time) for time in range(1, 21))
    assert times.has("s1", 0) is False
    assert times.has("s2", 5) is False


async def test_without_a_file_and_the_begin_of_the_log_the_history_must_be_asked(path: Path) -> None:
    log = Log(20, oldest=2)
    file, times = await opened(path, log)
    assert log.read == []
    assert times.has("s1", 20) is None
    assert times.has("s1", LATEST) is None
    assert times.has("s1", LATEST + 1) is False
    await file.close()
    # This is not forgotten by the next start.
    _, times = await opened(path, log)
    assert times.has("s1", LATEST) is None


@pytest.mark.parametrize("damage", [b"", b"x", b"known times 1\n", b"known times 1\n" + bytes(17)])
async def test_a_damaged_file_is_logged_and_made_again(
    path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(damage)
    log = Log(20, oldest=5)
    file, times = await opened(path, log)
    assert times.has("s1", 20) is None
    assert "not usable" in caplog.text
    times.note("s1", LATEST + 5)
    log.head = 21
    await file.close()
    caplog.clear()
    _, times = await opened(path, log)
    assert times.has("s1", LATEST + 5) is True
    assert caplog.text == ""


async def test_each_cut_of_a_file_is_used_whole_or_not_at_all(path: Path) -> None:
    log = Log(20)
    file, _ = await opened(path, log)
    await file.close()
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        log.oldest = 5
        _, times = await opened(path, log)
        # A cut behind the head is a file without sensors, which no reader can tell from a whole one.
        assert times.has("s1", 20) is None or end == len(b"known times 1\n") + 16


@pytest.mark.parametrize(("oldest", "head"), [(25, 40), (1, 19)])
async def test_a_file_to_which_the_log_does_not_fit_is_not_used(path: Path, oldest: int, head: int) -> None:
    file, _ = await opened(path, Log(20))
    await file.close()
    log = Log(head, oldest)
    _, times = await opened(path, log)
    assert times.has("s1", head) is (None if oldest > 1 else True)
    assert times.has("s1", 20) is (None if oldest > 1 else False)


async def test_a_disk_that_refuses_the_file_is_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.mkdir()
    file, times = await opened(path, Log(20))
    assert times.has("s1", 20) is True
    await file.close()
    assert "cannot be written" in caplog.text
