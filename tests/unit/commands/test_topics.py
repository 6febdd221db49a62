"""`hpwsn topics` as somebody types it."""

import io
import json
from pathlib import Path

import pytest

from hpwsn.commands.main import main
from hpwsn.commands.topics import ENVIRONMENT, draw_tree
from hpwsn.topics.opening import open_directory
from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic


def run(*words: str) -> int:
    return main(["topics", *words])


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The directory's URL, which the commands take from the environment."""
    path = str(tmp_path / "topics.toml")
    monkeypatch.setenv(ENVIRONMENT, path)
    return path


@pytest.fixture
def filled(url: str) -> str:
    assert run("add", "ALL:ALARM:FIRE", "--routing", "tcp") == 0
    assert run("add", "ALL", "--description", "Everything\nthere is") == 0
    assert run("add", "ALL/OTHER") == 0
    assert run("add", "{urn:x}Storm") == 0
    return url


def topics(url: str) -> set[str]:
    return {str(each.topic) for each in open_directory(url).load()}


def test_list_draws_a_tree(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    assert capsys.readouterr().out.splitlines() == [
        "ALL  Everything there is",
        "├── ALARM",
        "│   └── FIRE  [tcp]",
        "└── OTHER",
        "{urn:x}Storm",
    ]


def test_tree_is_drawn_in_ascii_for_a_terminal_that_has_no_more() -> None:
    declarations = [Declaration(Topic.parse(text)) for text in ("A", "A:B", "A:C", "A:B:D")]
    assert list(draw_tree(declarations, ascii_only=True)) == ["A", "|-- B", "|   `-- D", "`-- C"]


def test_list_prints_json_for_a_script(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json", "--topics", filled) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[-1] == {
        "topic": "ALL:ALARM:FIRE",
        "code": "1.1.1",
        "description": "",
        "routing": "tcp",
        "path": None,
        "visibility": "public",
    }
    assert [(each["topic"], each["code"]) for each in found[:-1]] == [
        ("ALL", "1"),
        ("{urn:x}Storm", "2"),
        ("ALL:ALARM", "1.1"),
        ("ALL:OTHER", "1.2"),
    ]


def test_an_internal_topic_is_added_listed_dumped_and_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = str(tmp_path / "topics.toml"), str(tmp_path / "other.toml")
    assert run("add", "traffic:anpr:lane", "--topics", file) == 0
    assert run("add", "traffic:anpr", "--visibility", "internal", "--routing", "tcp", "--topics", file) == 0
    for kind in ("toml", "ldif"):
        dumped = str(tmp_path / f"dump.{kind}")
        assert run("dump", "--topics", file, "--output", dumped) == 0
        assert "nternal" in Path(dumped).read_text()
        assert run("load", dumped, "--topics", other) == 0
        assert open_directory(other).load() == open_directory(file).load()
    capsys.readouterr()
    assert run("list", "--topics", other) == 0
    assert capsys.readouterr().out.split("\n")[:3] == [
        "traffic",
        "└── anpr  [internal]  [tcp]",
        "    └── lane  [internal]",
    ]
    assert run("list", "--json", "--topics", other) == 0
    shown = [each["visibility"] for each in json.loads(capsys.readouterr().out)]
    assert shown == ["public", "internal", "internal"]
    assert run("add", "traffic:anpr", "--visibility", "public", "--topics", other) == 0
    assert run("list", "--topics", other) == 0
    assert "internal" not in capsys.readouterr().out


def test_remove_wants_recursive_for_a_topic_with_others_below(
    filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("remove", "ALL:ALARM") == 1
    error = capsys.readouterr().err
    assert error.startswith("hpwsn: error: topic file ")
    assert "remove recursively" in error
    assert error.count("\n") == 1
    assert run("remove", "ALL:ALARM", "--recursive") == 0
    assert topics(filled) == {"ALL", "ALL:OTHER", "{urn:x}Storm"}


def test_move_takes_the_subtree(filled: str) -> None:
    assert run("move", "ALL:ALARM", "EVENT:ALERT") == 0
    assert {"EVENT:ALERT", "EVENT:ALERT:FIRE"} < topics(filled)
    assert "ALL:ALARM" not in topics(filled)


def test_dump_can_be_loaded_again(filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "saved.toml")
    assert run("dump", "--output", saved) == 0
    assert run("dump") == 0
    assert capsys.readouterr().out == Path(saved).read_text()
    before = open_directory(filled).load()
    assert run("remove", "ALL", "--recursive") == 0
    assert run("load", saved) == 0
    assert open_directory(filled).load() == before


def test_load_replaces_or_merges_and_reads_standard_input(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("[topics.NEW]\n"))
    assert run("load", "-", "--merge") == 0
    assert {"NEW", "ALL"} < topics(filled)
    monkeypatch.setattr("sys.stdin", io.StringIO("[topics.NEW]\n"))
    assert run("load", "-") == 0
    assert topics(filled) == {"NEW"}


def test_bad_input_fails_in_one_line_and_changes_nothing(
    filled: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = topics(filled)
    monkeypatch.setattr("sys.stdin", io.StringIO("[topics"))
    assert run("load", "-") == 1
    assert run("load", "missing.toml") == 1
    assert run("dump", "--output", "/nonexistent/file") == 1
    error = capsys.readouterr().err
    assert "standard input: not valid TOML" in error
    assert error.count("\n") == 3
    assert topics(filled) == before


def test_directory_must_be_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert run("list") == 2
    assert ENVIRONMENT in capsys.readouterr().err


def test_directory_that_cannot_be_read_is_a_failure(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 1
    assert run("list", "--topics", "ldap://127.0.0.1:1/ou=topics") == 1
    assert "ldap://127.0.0.1:1/ou=topics: cannot reach it" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("add", "A::B"), ("move", "A", ""), ("remove", "A/*")])
def test_text_that_is_no_topic_is_a_mistake_in_usage(
    words: tuple[str, ...], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert "topic" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("add",), ("grow", "A"), ("add", "A", "--routing", "smtp")])
def test_incomplete_or_unknown_command_is_a_mistake_in_usage(words: tuple[str, ...], url: str) -> None:
    with pytest.raises(SystemExit) as caught:
        run(*words)
    assert caught.value.code == 2


@pytest.mark.parametrize("command", ["list", "add", "remove", "move", "load", "dump"])
def test_help_of_every_command_shows_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(command, "--help")
    assert caught.value.code == 0
    assert f"examples: hpwsn topics {command}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("form", ["toml", "ldif"])
def test_a_file_without_a_topic_is_refused_and_removes_nothing(
    form: str, filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = topics(filled)
    other = tmp_path / f"other.{form}"
    other.write_text("" if form == "toml" else "dn: cn=somebody\nobjectClass: person\ncn: somebody\n")
    for more in ((), ("--merge",)):
        assert run("load", str(other), *more) == 1
        assert "has no topics, so nothing was changed" in capsys.readouterr().err
    assert topics(filled) == before
