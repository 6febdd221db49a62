"""Processes of jobs: recognised by start time, adopted, stopped, killed, and cleared with what they leave."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hpwsn.streams.agent.job_process import JobProcess, identity_of
from tests.patience import holds

# The words `streams run` are arguments, as in the command line of a real job.
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)", "streams", "run", "x"]
STUBBORN = [
    *(sys.executable, "-c"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
    "time.sleep(600)",
    *("streams", "run", "x"),
]
PARENT = [
    *(sys.executable, "-c"),
    "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "import time; print('up', flush=True); time.sleep(600)",
    *("streams", "run", "x"),
]


def start(folder: Path, command: list[str]) -> JobProcess:
    return JobProcess.start(command, folder, folder / "log")


async def printed(folder: Path) -> None:
    await holds(lambda: b"up" in (folder / "log").read_bytes())


async def test_a_process_is_adopted_by_id_and_start_time(tmp_path: Path) -> None:
    process = start(tmp_path, SLEEPER)
    try:
        saved = identity_of(process.identity.document())
        assert saved == process.identity
        adopted = JobProcess.adopt(saved, tmp_path)
        assert adopted is not None
        assert (adopted.pid, adopted.alive()) == (process.pid, True)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        for other in (
            replace(process.identity, started=process.identity.started + 1),
            replace(process.identity, boot="another"),
        ):
            assert JobProcess.adopt(other, elsewhere) is None
    finally:
        await process.stop(5)
    assert not process.alive()
    assert JobProcess.adopt(process.identity, tmp_path) is None


async def test_a_process_that_was_never_noted_is_found_by_its_folder(tmp_path: Path) -> None:
    process = start(tmp_path, SLEEPER)
    # A shell that somebody opened there is not a job.
    shell = subprocess.Popen(["sleep", "600"], cwd=tmp_path, start_new_session=True)
    try:
        found = JobProcess.adopt(None, tmp_path)
        assert found is not None
        assert found.identity == process.identity
        await process.stop(5)
        assert JobProcess.adopt(None, tmp_path) is None
        assert shell.poll() is None
    finally:
        await process.stop(5)
        shell.kill()
        shell.wait()


async def test_a_process_that_ignores_sigterm_is_killed_after_the_grace_period(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = start(tmp_path, STUBBORN)
    await printed(tmp_path)
    await process.stop(0.5)
    assert not process.alive()
    assert "did not end within 0.5 s" in caplog.text


async def test_what_a_killed_process_leaves_behind_is_ended(tmp_path: Path) -> None:
    process = start(tmp_path, PARENT)
    await printed(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    await holds(lambda: not process.alive())
    left = list(process._left_behind())
    assert len(left) == 1
    await process.clear()
    assert not list(process._left_behind())


def test_a_document_without_an_identity_has_none() -> None:
    for document in (None, {}, {"pid": "x", "started": 1, "boot": ""}, []):
        assert identity_of(document) is None
