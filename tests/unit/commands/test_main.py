"""The `hpwsn` command: its help, its exit statuses, and what it says when something is wrong."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hpwsn.commands.main
from hpwsn.commands.main import build_parser, main
from hpwsn.commands.operations.operator_api import base_url, fields
from hpwsn.errors import BadArguments, HpwsnError
from hpwsn.settings import SETTINGS

ROOT = Path(__file__).parents[3]
COMMANDS = ["serve", "publish", "listen", "topics", "subscriptions", "check-config"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for setting in SETTINGS.values():
        monkeypatch.delenv(setting.variable, raising=False)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser of every command and action that can be run."""
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        yield parser
    for action in nested:
        for child in action.choices.values():
            yield from parsers(child)


def leaf(parser: argparse.ArgumentParser, error: BaseException) -> argparse.ArgumentParser:
    """Adds a command that ends with this error."""

    def handler(_: argparse.Namespace) -> int:
        raise error

    parser.set_defaults(handler=handler)
    return parser


def test_every_command_is_there() -> None:
    text = build_parser().format_help()
    assert [command for command in COMMANDS if f"\n    {command}" not in text] == []


@pytest.mark.parametrize(
    "parser", list(parsers(build_parser())), ids=lambda parser: parser.prog.replace(" ", "-")
)
def test_the_help_of_every_command_shows_an_example_and_it_can_be_run(
    parser: argparse.ArgumentParser,
) -> None:
    assert "example" in parser.format_help()
    assert callable(parser.get_default("handler") or parser.get_default("run"))


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from hpwsn_client import __version__

    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"hpwsn {__version__}\n")


def test_a_command_that_is_none_is_refused_with_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dance"])
    assert ended.value.code == 2
    assert "check-config" in capsys.readouterr().err


def test_no_command_at_all_is_answered_with_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "hpwsn serve   " in capsys.readouterr().err


def test_an_admin_node_that_does_not_answer_is_told_from_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "--admin", "http://127.0.0.1:9"]) == 1
    words = "127.0.0.1:9/api/topology (Connection refused); start one with `hpwsn admin`"
    assert words in capsys.readouterr().err


def test_an_admin_node_whose_address_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "--admin", "nonsense"]) == 2
    words = "'nonsense' is not the address of a node; give --admin as http://127.0.0.1:8070"
    assert words in capsys.readouterr().err


def test_fields_stand_under_each_other_and_show_what_is_within_them() -> None:
    one = {"id": "a", "expired_unsent": 0, "upstream": [{"topic": "t", "wanted": False, "last_error": None}]}
    assert fields(one).splitlines() == [
        "id              a",
        "expired_unsent  0",
        "upstream        topic=t wanted=no last_error=-",
    ]


def test_an_interrupt_ends_with_130_and_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        hpwsn.commands.main, "build_parser", lambda: leaf(argparse.ArgumentParser(), KeyboardInterrupt())
    )
    assert main([]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_error_of_ours_is_one_line_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        hpwsn.commands.main, "build_parser", lambda: leaf(argparse.ArgumentParser(), HpwsnError("no luck"))
    )
    assert main([]) == 1
    assert capsys.readouterr() == ("", "hpwsn: error: no luck\n")


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    command = f"{sys.executable} -m hpwsn check-config --reference | head -n 1"
    path = f"{ROOT}:{ROOT / 'client'}"
    run = subprocess.run(
        command, shell=True, env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"}, capture_output=True
    )
    assert (run.stdout, run.stderr) == (b"# Configuration\n", b"")


def test_check_config_accepts_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-config"]) == 0
    assert capsys.readouterr().out == "OK: no file, 0 settings given, the rest are defaults\n"


def test_check_config_takes_the_file_of_the_working_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hpwsn.toml").write_text("[server]\nport = 81\n")
    assert main(["check-config", "--data", "there"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "OK: hpwsn.toml, 2 settings given, the rest are defaults",
        "  server.port = 81       hpwsn.toml:2",
        '  data.dir    = "there"  flag --data',
    ]


def test_check_config_shows_every_setting_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HPWSN_CLUSTER_SECRET", "hush")
    for arguments in (["--show"], ["--json"]):
        assert main(["check-config", *arguments]) == 0
        printed = capsys.readouterr().out
        assert "hush" not in printed
        assert all(key in printed for key in SETTINGS)


def test_a_password_in_a_url_is_not_printed_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HPWSN_BACKBONE_URL", "stomp://user:hush@host:61613")
    assert main(["check-config"]) == 0
    assert "stomp://user:***@host:61613" in capsys.readouterr().out
    assert main(["check-config", "--set", "backbone.password=more"]) == 1
    printed = capsys.readouterr().err
    assert "stomp://user:***@host:61613" in printed
    assert "hush" not in printed


def test_check_config_lists_what_is_wrong_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-config", "--port", "web", "--set", "log.level=loud"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "hpwsn: error: the configuration has 2 problems:",
        "  flag --port: server.port = 'web' must be a whole number from 0 to 65535",
        "  flag --set: log.level = 'loud' must be debug, info, warning or error",
    ]


def test_check_config_tells_a_script_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-config", "--port", "web", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    assert [(one["key"], one["source"]) for one in answer["problems"]] == [("server.port", "flag --port")]


@pytest.mark.parametrize(
    "words",
    [["publish", "A", "x"], ["listen", "A"], ["topics", "list"], ["subscriptions", "list"], ["cluster"]],
    ids=lambda words: words[0],
)
def test_a_variable_that_nobody_knows_is_refused_by_every_command(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HPWSN_ULR", "http://127.0.0.1:9/wsn")
    assert main(words) == 1
    error = "environment HPWSN_ULR is not a variable of HPwsn; did you mean HPWSN_URL?"
    assert capsys.readouterr() == ("", f"hpwsn: error: {error}\n")


def test_a_variable_that_nobody_knows_is_not_told_in_each_new_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HPWSN_ULR", "http://127.0.0.1:9/wsn")
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["dance"], 2),
        (["publish"], 2),
        (["publish", "A", "x", "--repeat", "0"], 2),
        (["publish", "a b", "x"], 2),
        (["listen", "A", "--url", "here"], 2),
        (["listen", "A", "--url", "http://127.0.0.1:9/wsn"], 1),
        (["topics", "dance"], 2),
        (["topics", "list"], 2),
        (["topics", "list", "--topics", "none.toml"], 1),
        (["subscriptions", "show"], 2),
        (["subscriptions", "list", "--url", "here"], 2),
        (["subscriptions", "list", "--url", "http://127.0.0.1:9/wsn"], 1),
        (["subscriptions", "list", "--url", "https://127.0.0.1:9/wsn", "--ca", "none.pem"], 2),
        (["deadletters", "show", "first"], 2),
        (["cluster", "--admin", "http://127.0.0.1:9"], 1),
        (["streams", "check", "none.toml"], 1),
        (["serve", "--port", "web"], 1),
        (["admin"], 1),
        (["check-config", "--dance"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_error_begins_with_the_same_words(
    words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found: object = main(words)
    except SystemExit as ended:
        found = ended.code
    output, errors = capsys.readouterr()
    assert (found, output) == (status, "")
    last = errors.splitlines()[-1]
    assert last.startswith("hpwsn: error: ")
    assert status == 2 or errors.count("\n") == 1


def test_serve_starts_nothing_with_a_wrong_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--config", "none.toml"]) == 1
    assert "none.toml cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://h:1/wsn", "http://h:1/wsn/", "http://h:1", "http://h:1/"])
def test_the_operators_address_is_the_brokers_without_its_last_part(url: str) -> None:
    assert base_url(url) == "http://h:1"


@pytest.mark.parametrize(
    "url", ["h:1", "ftp://h", "http://", "", "http://h:80x", "http://h:0", "http://[::1/wsn", "http://h/a b"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadArguments, match="give --url as"):
        base_url(url)


def test_an_address_that_is_none_is_a_senseless_argument() -> None:
    assert main(["subscriptions", "list", "--url", "nope"]) == 2
