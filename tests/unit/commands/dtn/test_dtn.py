"""`hpwsn dtn` prints tables or JSON, writes pictures, and says which option is wrong."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import psutil
import pytest
from lxml import etree

from hpwsn.commands.main import build_parser, main
from hpwsn.dtn.scenario.simulation_parameters import Parameters
from tests.patience import PATIENCE, until

ROOT = Path(__file__).parents[4]
SMALL = ["--sensors", "8", "--mobiles", "2", "--duration", "100", "--quiet", "10", "--interval", "10"]
SIMULATE = ["dtn", "simulate", *SMALL]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_all_protocols_are_compared_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SIMULATE, "--protocol", "all", "--runs", "2", "--processes", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mean ± standard deviation of 2 x 100 s, seed 1"
    assert lines[1].split()[:2] == ["protocol", "delivery"]
    names = ["cet", "dg", "honest-dg", "epidemic", "spray", "prophet"]
    assert [line.split()[0] for line in lines[2:]] == names


def test_processes_give_the_results_of_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    alone, together = (
        printed(capsys, *SIMULATE, "--runs", "5", "--seed", "3", "--processes", processes)
        for processes in ("1", "2")
    )
    assert alone == together
    assert alone["parameters"]["sensors"] == 8
    assert alone["seed"] == 3
    each = [run["delivery"] for run in alone["protocols"]["cet"]["each"]]
    assert len(each) == 5
    assert alone["protocols"]["cet"]["delivery"]["mean"] == pytest.approx(sum(each) / 5, rel=1e-5)


def test_every_parameter_is_an_option_that_reaches_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    values: dict[str, Any] = {
        one.name: one.metadata["choices"][-1] if "choices" in one.metadata else one.default
        for one in fields(Parameters)
    }
    values |= {
        "sensors": 3,
        "mobiles": 1,
        "duration": 20,
        "quiet": 2.0,
        "alpha": 7,
        "ageing": 0.5,
        "beta": 9.5,
    }
    options = [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]
    found = printed(capsys, "dtn", "simulate", "--processes", "1", *options)
    assert found["parameters"] == values


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--alpha", "0"], "--alpha is 0; it must be 1 to 1e+06"),
        (["--speed-min", "9"], "--speed-min is 9, above speed_max 5"),
        (["--quiet", "100"], "--quiet is 100 s, the whole duration of 100 s"),
        (["--pictures", "0"], "--pictures 0 is not from 1 to 400"),
        (["--pictures", "401"], "--pictures 401 is not from 1 to 400"),
        (["--runs", "0"], "'0' is not a whole number from 1 to 100000"),
        (["--runs", "100001"], "'100001' is not a whole number from 1 to 100000"),
        (["--processes", "1025"], "'1025' is not a whole number from 1 to 1024"),
        (["--seed", "-1"], "'-1' is not a seed"),
        (["--seed", "1234567890123456789"], "is not a seed"),
        (["--travel", "some"], "invalid choice: 'some'"),
        (["--energy", "much"], "invalid float value: 'much'"),
        (["--protocol", "flood"], "invalid choice: 'flood'"),
    ],
)
def test_a_wrong_option_is_named(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    try:
        status = main([*SIMULATE, *arguments])
    except SystemExit as error:
        status = error.code  # type: ignore[assignment]
    assert status == 2
    assert said in capsys.readouterr().err


def test_pictures_and_an_animation_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a" / "replay"
    assert main([*SIMULATE, "--processes", "1", "--pictures", "4", "--draw", str(folder)]) == 0
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["replay.html", *(f"second-{second:06d}.svg" for second in (25, 50, 75, 100))]
    assert etree.parse(str(folder / "second-000100.svg")).getroot().tag.endswith("svg")
    assert f"wrote 4 pictures and {folder}/replay.html" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_an_error_before_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([*SIMULATE, "--draw", str(tmp_path / "file" / "below")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "cannot make the folder" in captured.err


def test_figures_are_written_as_tables_json_and_plots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "dtn",
        "figures",
        "--runs",
        "2",
        "--duration",
        "250",
        "--processes",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert main([*arguments, "--only", "figure-7", "--only", "table-2"]) == 0
    out = capsys.readouterr().out
    assert "| cet | paper | 91 | 5.5 | 193.8 |" in out
    assert sorted(file.name for file in tmp_path.iterdir()) == ["figure-7.svg", "results.json", "results.md"]
    assert (tmp_path / "results.md").read_text("utf-8").strip() == out.strip()
    document = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert list(document["experiments"]) == ["table-2", "figure-7"]
    assert main([*arguments, "--only", "table-2", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["experiments"]["table-2"] == document["experiments"]["table-2"]


def test_a_length_that_is_all_quiet_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dtn", "figures", "--duration", "200", "--only", "table-2"]) == 2
    assert "--duration 200 is not possible: quiet is 200 s, the whole duration" in capsys.readouterr().err


def test_without_numba_the_runs_are_interpreted_and_the_remedy_is_told() -> None:
    code = (
        "import sys; sys.modules['numba'] = None; from hpwsn.commands.main import main;"
        f"sys.exit(main({[*SIMULATE, '--processes', '1', '--json']!r}))"
    )
    path = ":".join(map(str, (ROOT, ROOT / "client", ROOT / "admin")))
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path}, check=True
    )
    assert "numba is not installed" in run.stderr
    assert "pip install 'hpwsn[fast]'" in run.stderr
    assert json.loads(run.stdout)["runs"] == 1


def test_help_names_the_papers_defaults() -> None:
    text = " ".join(help_of("dtn", "simulate").split())
    assert "--alpha N transmissions after which an event is dropped (default: 20)" in text
    assert "--travel {matching,all}" in text


def help_of(*command: str) -> str:
    parser: Any = build_parser()
    for name in command:
        parser = next(one for one in parser._subparsers._group_actions if name in one.choices).choices[name]
    text: str = parser.format_help()
    return text


def test_a_terminal_shows_a_progress_bar_and_a_file_does_not() -> None:
    parent, child = pty.openpty()
    path = ":".join(map(str, (ROOT, ROOT / "client", ROOT / "admin")))
    command = [sys.executable, "-m", "hpwsn", *SIMULATE, "--runs", "3", "--processes", "1"]
    with os.fdopen(parent, "rb", buffering=0) as terminal:
        subprocess.run(command, stdout=subprocess.PIPE, stderr=child, env={"PYTHONPATH": path}, check=True)
        os.close(child)
        shown = terminal.read(100_000).decode()
    assert "[" + "#" * 30 + "] 3/3 runs" in shown
    quiet = subprocess.run(command, capture_output=True, env={"PYTHONPATH": path}, check=True)
    assert quiet.stderr == b""


def ended_by(end: signal.Signals, worker: bool) -> tuple[int, str, str]:
    """Status and output of a long simulation in two processes, whose worker or parent gets a signal."""
    path = ":".join(map(str, (ROOT, ROOT / "client", ROOT / "admin")))
    command = [sys.executable, "-m", "hpwsn", "dtn", "simulate", "--runs", "5000", "--processes", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"PYTHONPATH": path}
    ) as process:
        found: list[psutil.Process] = []

        def started() -> bool:
            found[:] = [
                child
                for child in psutil.Process(process.pid).children()
                if any("spawn_main" in word for word in child.cmdline())
            ]
            return len(found) == 2

        until(started, lambda: "there are no two workers")
        (found[0] if worker else process).send_signal(end)
        out, err = process.communicate(timeout=PATIENCE)
        assert not [one for one in found if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    return process.returncode, out, err


def test_a_killed_process_of_the_runs_is_an_error_of_one_line() -> None:
    status, out, err = ended_by(signal.SIGKILL, worker=True)
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "a process of the simulation was killed" in err


def test_an_interrupt_ends_all_processes_in_silence() -> None:
    assert ended_by(signal.SIGINT, worker=False) == (130, "", "")
