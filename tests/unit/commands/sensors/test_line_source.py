"""Sources of lines: files that grow or are replaced, commands that are stopped and run again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hpwsn.commands.sensors import line_source, source_demand
from hpwsn.commands.sensors.line_source import LineSource
from hpwsn.commands.sensors.source_demand import SourceDemand
from hpwsn.errors import HpwsnError
from tests.patience import until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_source, "GATHER", 0.01)
    monkeypatch.setattr(line_source, "LOOK", 0.005)
    monkeypatch.setattr(source_demand, "EVERY", 0.005)


class Gathered:
    """What a source has given so far, gathered by a thread."""

    def __init__(self, source: LineSource) -> None:
        self.lines: list[bytes] = []
        self.ended = threading.Event()
        source.open()
        threading.Thread(target=self._gather, args=(source.batches(10),), daemon=True).start()

    def _gather(self, batches: Iterator[list[bytes]]) -> None:
        for batch in batches:
            self.lines += batch
        self.ended.set()

    def wait(self, lines: list[bytes]) -> None:
        until(lambda: self.lines == lines, lambda: f"{self.lines} and not {lines}")


def test_a_file_is_read_to_its_end_in_batches(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n\n2\r\n3")
    source = LineSource(str(tmp_path / "a"), None, follow=False)
    source.open()
    assert list(source.batches(2)) == [[b"1", b"2"], [b"3"]]


def test_a_file_that_grows_is_followed_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"1\n2")
    gathered = Gathered(LineSource(str(file), None, follow=True))
    gathered.wait([b"1"])
    with file.open("ab") as out:
        out.write(b"2\n3\n")
    gathered.wait([b"1", b"22", b"3"])


@pytest.mark.parametrize("replace", [Path.unlink, lambda file: file.rename(file.with_name("old"))])
def test_a_file_that_takes_the_place_of_another_is_read_from_its_beginning(
    replace: Callable[[Path], object], tmp_path: Path
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"1\n2\n")
    gathered = Gathered(LineSource(str(file), None, follow=True))
    gathered.wait([b"1", b"2"])
    (tmp_path / "new").write_bytes(b"3\n4\n")
    replace(file)
    (tmp_path / "new").rename(file)
    gathered.wait([b"1", b"2", b"3", b"4"])


def test_a_file_that_is_cut_short_is_read_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"first\nsecond\n")
    gathered = Gathered(LineSource(str(file), None, follow=True))
    gathered.wait([b"first", b"second"])
    file.write_bytes(b"3\n")
    gathered.wait([b"first", b"second", b"3"])


def test_a_file_is_not_read_while_the_source_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"1\n")
    source = LineSource(str(file), None, follow=True)
    source.stop()
    gathered = Gathered(source)
    source.start()
    gathered.wait([b"1"])
    source.stop()
    with file.open("ab") as out:
        out.write(b"2\n")
    source.start()
    gathered.wait([b"1", b"2"])


def test_a_command_is_ended_and_run_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    script = tmp_path / "command"
    script.write_text(f'#!/bin/sh\necho run >>"{runs}"\ncat "{runs}"\nexec sleep 1000\n')
    script.chmod(0o755)
    source = LineSource(None, str(script), follow=False)
    gathered = Gathered(source)
    gathered.wait([b"run"])
    process = source._process
    assert process is not None
    source.stop()
    assert process.wait() != 0
    assert not gathered.ended.is_set()
    source.start()
    gathered.wait([b"run"] * 3)
    source.stop()


def test_a_command_that_ends_by_itself_ends_the_source() -> None:
    gathered = Gathered(LineSource(None, "echo 1", follow=False))
    until(gathered.ended.is_set, lambda: "it goes on")
    assert gathered.lines == [b"1"]


class Arguments:
    """The options of `feed`."""

    ca = None

    def __init__(self, sensor: str | None, kind: str | None) -> None:
        self.url = "http://there:1/wsn"
        self.sensor = sensor
        self.kind = kind


class FakeSource:
    """A source that remembers whether it runs."""

    def __init__(self) -> None:
        self.states: list[bool] = []

    def start(self) -> None:
        self.states.append(True)

    def stop(self) -> None:
        self.states.append(False)


def demand(arguments: Arguments, source: FakeSource) -> SourceDemand:
    return SourceDemand(arguments, source)  # type: ignore[arg-type]


def test_a_source_runs_while_its_sensor_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [False]
    monkeypatch.setattr(source_demand, "request", lambda *_, **__: {"wanted": wanted[0]})
    source = FakeSource()
    with closing(demand(Arguments("a", None), source)) as opened:
        opened.open()
        assert source.states == [False]
        for state in (True, False, True):
            wanted[0] = state
            until(lambda: source.states[-1] == wanted[0], lambda: str(source.states))
        assert source.states == [False, True, False, True]


def test_a_source_of_several_sensors_runs_while_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, Any]] = [{"wanted": False}, {"wanted": False}]
    monkeypatch.setattr(source_demand, "items", lambda *_, **__: {"items": found})
    source = FakeSource()
    with closing(demand(Arguments(None, "weather"), source)) as opened:
        opened.open()
        assert source.states == [False]
        found[1]["wanted"] = True
        until(lambda: source.states == [False, True], lambda: str(source.states))


def test_a_source_without_a_sensor_on_demand_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_demand, "items", lambda *_, **__: {"items": [{"wanted": None}]})
    with pytest.raises(HpwsnError, match='a sensor of the kind weather is not registered with "on_demand"'):
        demand(Arguments(None, "weather"), FakeSource()).open()
