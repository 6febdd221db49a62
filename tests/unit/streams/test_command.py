"""`hpwsn streams check` and `generate`, as a script sees them."""

import json
import sys
from pathlib import Path

import pytest

from hpwsn.commands.main import main

EXAMPLES = Path(__file__).parents[3] / "hpwsn" / "streams" / "examples"


def test_all_examples_are_right_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["streams", "check", *map(str, sorted(EXAMPLES.glob("*.toml")))]) == 0
    shown = capsys.readouterr().out
    assert "1  count by cid over 60 s  flow    cid STRING, flow BIGINT, time TIMESTAMP" in shown
    assert "topic traffic:gps\n└── merge with taxis, lorries\n    ├── buses: topic fleet:buses" in shown


def test_a_script_gets_schemas_and_constraints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["streams", "check", "--json", str(EXAMPLES / "genTrafficFlow.toml")]) == 0
    (service,) = json.loads(capsys.readouterr().out)["services"]
    assert service["constraints"] == {"flow": "> 0", "time": "> 2010-01-01"}
    assert service["schema"][1] == {"name": "flow", "type": "BIGINT"}


def test_a_script_gets_problems_with_their_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.toml"
    file.write_text('uri = "urn:a"\ntopic = "a"\n[inputs.r]\nsource = "rate"\n[[ops]]\nop = "sort"\n')
    assert main(["streams", "check", "--json", str(file)]) == 1
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [one["place"] for one in problems] == [{"file": str(file), "line": 5}] * 2
    assert {(one["part"], one["attribute"]) for one in problems} == {
        ("operator 1 (sort)", "attribute"),
        ("operator 1 (sort)", "window"),
    }


def test_a_function_is_found_beside_its_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The command prepends to sys.path, which is not to outlive the test.
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside_it.py").write_text("def same(event):\n    return event\n")
    (tmp_path / "a.toml").write_text(
        'uri = "urn:a"\ntopic = "a"\n[inputs.r]\nsource = "rate"\n'
        '[[ops]]\nop = "function"\nfunction = "beside_it:same"\nschema = "value BIGINT"\n'
    )
    assert main(["streams", "check", str(tmp_path / "a.toml")]) == 0
    assert "function beside_it:same" in capsys.readouterr().out


def test_events_are_printed_or_written_in_the_format_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["streams", "generate", "gps", "3", "--fleet", "bus"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (
        main(["streams", "generate", "gps", "3", "--fleet", "bus", "--output", str(tmp_path / "a.csv")]) == 0
    )
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "vid,time,longitude,latitude,speed,direction,satelliteNum"
    assert lines[1].split(",")[:2] == [printed[0]["vid"], printed[0]["time"]]
    assert len(lines) == 4


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["streams", "generate", "anpr", "1", "--output", str(tmp_path)]) == 1
    why = "cannot be written: Is a directory; choose another file with --output"
    assert capsys.readouterr().err == f"hpwsn: error: {tmp_path} {why}\n"
