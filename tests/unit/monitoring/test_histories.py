"""The histories of many nodes in one folder: they come back, and damage stops nothing."""

from pathlib import Path

import pytest

from hpwsn.monitoring.histories import Histories

NAMES = ["a", "b/../c", "ü" * 127, "d e"]


async def saved(folder: Path, *names: str) -> Histories:
    histories = Histories(folder)
    for time, name in enumerate(names):
        histories.of(name).add(1000.0 + time, {"cpu": float(time)})
    await histories.save()
    return histories


async def test_every_node_has_its_history_again_whatever_its_name(tmp_path: Path) -> None:
    before = await saved(tmp_path / "history", *NAMES)
    after = Histories(tmp_path / "history")
    assert after.load() == []
    assert sorted(after) == sorted(NAMES)
    for name in NAMES:
        assert after.of(name).encode(name) == before.of(name).encode(name)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "history").iterdir())


async def test_a_damaged_file_is_told_set_aside_and_begun_anew(tmp_path: Path) -> None:
    await saved(tmp_path, "a", "b")
    victim = sorted(tmp_path.iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:-1])
    histories = Histories(tmp_path)
    (problem,) = histories.load()
    assert str(victim) in problem
    assert "is damaged" in problem
    assert len(histories) == 1
    assert victim.with_suffix(".damaged").exists()
    for name in ("a", "b"):
        histories.of(name).add(5000.0, {"cpu": 1.0})
    await histories.save()
    assert Histories(tmp_path).load() == []


async def test_beyond_the_limit_the_node_that_is_silent_for_longest_is_forgotten(tmp_path: Path) -> None:
    histories = Histories(tmp_path, limit=2)
    histories.of("old").add(1.0, {"cpu": 1.0})
    histories.of("new").add(2.0, {"cpu": 1.0})
    await histories.save()
    histories.of("newest")
    assert sorted(histories) == ["new", "newest"]
    assert histories.find("old") is None
    assert len(list(tmp_path.iterdir())) == 1


async def test_a_node_that_is_forgotten_leaves_no_file(tmp_path: Path) -> None:
    histories = await saved(tmp_path, "a")
    histories.forget("a")
    histories.forget("a")
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "history").write_text("a file where the folder should be")
    histories = Histories(tmp_path / "history")
    histories.of("a").add(1.0, {"cpu": 1.0})
    await histories.save()
    await histories.save()
    assert caplog.text.count("cannot be saved") == 1
    (tmp_path / "history").unlink()
    await histories.save()
    assert len(list((tmp_path / "history").iterdir())) == 1
