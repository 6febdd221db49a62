"""The folder of a service: what is kept, what is cut, and what an interrupted request leaves."""

from pathlib import Path

import pytest

from hpwsn.streams.agent import job_folder
from hpwsn.streams.agent.job_folder import KEPT_LOG, MAX_LOG, SHOWN_LINES, JobFolder, saved_folders
from hpwsn.streams.agent.job_process import ProcessIdentity
from hpwsn_client.commands.completion import print_error

SERVICE = {"uri": "urn:a", "topic": "a"}


def test_services_and_processes_are_found_again(tmp_path: Path) -> None:
    folder = JobFolder.of(tmp_path, "urn:a", None)
    folder.create("text", SERVICE)
    assert folder.process() == (None, [])
    folder.save_process(ProcessIdentity(7, 8, "boot"), ["a", "b"])
    ((found, service),) = saved_folders(tmp_path, None)
    assert (found.path, service) == (folder.path, SERVICE)
    assert found.definition.read_text() == "text"
    assert found.process() == (ProcessIdentity(7, 8, "boot"), ["a", "b"])
    assert folder.path.stat().st_mode & 0o077 == 0


def test_uris_with_any_characters_have_folders_of_their_own(tmp_path: Path) -> None:
    names = {JobFolder.of(tmp_path, uri, None).path for uri in ("a/b", "a-b", "../a", "ä", "a" * 4096)}
    assert len(names) == 5
    assert {path.parent for path in names} == {tmp_path.resolve()}


def test_what_an_interrupted_request_leaves_is_removed(tmp_path: Path) -> None:
    left = JobFolder.of(tmp_path, "urn:a", None)
    left.path.mkdir()
    left.definition.write_text("text")
    assert not list(saved_folders(tmp_path, None))
    assert not left.path.exists()


def test_a_damaged_description_is_kept_and_not_run(tmp_path: Path, caplog) -> None:
    folder = JobFolder.of(tmp_path, "urn:a", None)
    folder.create("text", SERVICE)
    (folder.path / "service.json").write_text("{")
    assert not list(saved_folders(tmp_path, None))
    assert folder.definition.exists()
    assert "its job is not run" in caplog.text


def test_everything_is_removed_also_a_checkpoint_elsewhere(tmp_path: Path) -> None:
    folder = JobFolder.of(tmp_path / "data", "urn:a", tmp_path / "shared")
    folder.create("text", SERVICE)
    folder.checkpoint.mkdir(parents=True)
    (tmp_path / "shared" / "other").mkdir()
    folder.remove()
    assert not folder.path.exists()
    assert [one.name for one in (tmp_path / "shared").iterdir()] == ["other"]


def test_a_log_is_cut_only_beyond_its_limit_and_the_job_goes_on_writing(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    folder.trim_log()
    folder.log.write_bytes(b"x" * (MAX_LOG - 1) + b"\n")
    folder.trim_log()
    assert folder.log.stat().st_size == MAX_LOG
    with folder.log.open("ab") as job:
        job.write(b"one more line\n")
        job.flush()
        folder.trim_log()
        job.write(b"and another\n")
    assert folder.log.stat().st_size < KEPT_LOG
    assert folder.last_lines()[-2:] == ["one more line", "and another"]


def test_the_end_of_a_log_is_bounded(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    assert folder.last_lines() == []
    folder.log.write_bytes(b"\xff\n" + b"line\n" * 1000)
    assert folder.last_lines() == ["line"] * SHOWN_LINES
    folder.log.write_bytes(b"y" * 100_000)
    assert len(folder.last_lines()[0]) == job_folder.SHOWN_BYTES


def test_the_reason_is_the_last_error_of_the_last_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_error("no Java")
    error = capsys.readouterr().err
    folder = JobFolder(tmp_path)

    def writes(text: str) -> None:
        with folder.log.open("a") as job:
            job.write(text)

    assert folder.reason() is None
    folder.mark_start()
    assert folder.reason() is None
    writes("WARN\n" + "hpwsn: error: first\n" + error + "\tat java.Main\n" * 100)
    assert folder.reason() == "no Java"
    # While it runs again, its reason is that of the process before.
    folder.mark_start()
    writes("WARN again\n")
    assert folder.reason(runs_again=True) == "no Java"
    # A process without an error line has its last line as the reason, and not the error of another process.
    writes("  ValueError: 7  \n\n")
    assert folder.reason() == "ValueError: 7"
    folder.mark_start()
    assert folder.reason() is None
    assert folder.reason(runs_again=True) == "ValueError: 7"
    writes(error + "x" * job_folder.SEARCHED_BYTES)
    assert folder.reason() == "x" * job_folder.SHOWN_BYTES


def test_a_service_that_cannot_be_replaced_is_as_it_was(tmp_path: Path, monkeypatch) -> None:
    folder = JobFolder.of(tmp_path, "urn:a", None)
    folder.create("old", SERVICE)
    folder.log.write_text("old log\n")
    write, failing = job_folder.write_atomically, {"definition.toml"}

    def full(path: Path, text: str) -> None:
        if path.name in failing:
            raise OSError(28, "No space left on device")
        write(path, text)

    monkeypatch.setattr(job_folder, "write_atomically", full)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            folder.create("new", {**SERVICE, "topic": "b"}, new_log=True)
        failing ^= {"definition.toml", "service.json"}
        assert (folder.definition.read_text(), folder.service()) == ("old", SERVICE)
        assert folder.last_lines() == ["old log"]
    failing.clear()
    folder.create("new", {**SERVICE, "topic": "b"})
    assert (folder.definition.read_text(), folder.service()) == ("new", {**SERVICE, "topic": "b"})
    assert folder.last_lines() == ["old log"]
    folder.create("newer", SERVICE, new_log=True)
    assert sorted(one.name for one in folder.path.iterdir()) == ["definition.toml", "service.json"]


def test_nothing_is_left_to_run_of_a_service_that_cannot_be_stored(tmp_path: Path, monkeypatch) -> None:
    folder = JobFolder.of(tmp_path, "urn:a", None)
    synced: list[Path] = []

    def fails_at_last(path: Path) -> None:
        synced.append(path)
        if path == tmp_path:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(job_folder, "sync_folder", fails_at_last)
    with pytest.raises(OSError, match="Input/output"):
        folder.create("text", SERVICE)
    assert synced[-1] == tmp_path
    assert not list(saved_folders(tmp_path, None))
