"""`hpwsn topics` on a real OpenLDAP server, as somebody types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import environment, hpwsn
from tests.slapd import ADMIN, BASE, Slapd


class Shell:
    """Runs the command with the server, and who may write to it, in the environment."""

    def __init__(self, slapd: Slapd, **variables: str) -> None:
        bind = {"HPWSN_TOPICS_BIND_DN": ADMIN, "HPWSN_TOPICS_PASSWORD_FILE": slapd.password_file}
        self.variables = {"HPWSN_TOPICS_URL": slapd.url, **bind, **variables}

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return hpwsn("topics", *words, stdin=stdin, **self.variables)

    def __call__(self, *words: str, stdin: str = "") -> str:
        ended = self.run(*words, stdin=stdin)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def fails(self, *words: str) -> str:
        ended = self.run(*words)
        assert ended.returncode == 1
        assert ended.stderr.count("\n") == 1, ended.stderr
        return ended.stderr


@pytest.fixture
def shell(slapd: Slapd) -> Shell:
    return Shell(slapd)


def test_topics_are_listed_added_moved_and_removed(shell: Shell) -> None:
    shell("add", "ALL:STATE:DOOR", "--description", "open or not", "--routing", "udp")
    shell("move", "ALL:ALARM", "ALL:EVENT:ALARM")
    assert shell("list").splitlines() == [
        "ALL  Everything",
        "├── STATE  [udp]  How things are, every few seconds",
        "│   └── DOOR  [udp]  open or not",
        "└── EVENT",
        "    └── ALARM  [tcp]  What needs somebody at once",
        "        ├── FIRE",
        "        └── SMOKE",
        "{urn:example:weather}Storm",
    ]
    shell("remove", "ALL", "--recursive")
    found = json.loads(shell("list", "--json"))
    assert [each["path"] for each in found] == [f"cn=Storm,{BASE}"]


def test_json_has_each_topic_breadth_first_with_its_code_and_its_path_in_ldap(shell: Shell) -> None:
    shell("add", "ALL:STATE:DOOR")
    found = [(each["topic"], each["code"], each["path"]) for each in json.loads(shell("list", "--json"))]
    assert found == [
        ("ALL", "1", f"cn=ALL,{BASE}"),
        ("{urn:example:weather}Storm", "2", f"cn=Storm,{BASE}"),
        ("ALL:ALARM", "1.1", f"cn=ALARM,cn=ALL,{BASE}"),
        ("ALL:STATE", "1.2", f"cn=STATE,cn=ALL,{BASE}"),
        ("ALL:ALARM:FIRE", "1.1.1", f"cn=FIRE,cn=ALARM,cn=ALL,{BASE}"),
        ("ALL:ALARM:SMOKE", "1.1.2", f"cn=SMOKE,cn=ALARM,cn=ALL,{BASE}"),
        ("ALL:STATE:DOOR", "1.2.1", f"cn=DOOR,cn=STATE,cn=ALL,{BASE}"),
    ]


@pytest.mark.parametrize("form", ["toml", "ldif"])
def test_what_is_dumped_can_be_loaded_again_here_and_into_a_file(
    shell: Shell, tmp_path: Path, form: str
) -> None:
    saved = str(tmp_path / f"saved.{form}")
    shell("dump", "--output", saved)
    before = json.loads(shell("list", "--json"))
    shell("remove", "ALL", "--recursive")
    shell("load", saved)
    assert {each["topic"]: each for each in json.loads(shell("list", "--json"))}.keys() == {
        each["topic"] for each in before
    }
    file = str(tmp_path / "topics.toml")
    shell("load", saved, "--topics", file)
    listed = json.loads(shell("list", "--json", "--topics", file))
    assert {(each["topic"], each["description"], each["routing"]) for each in listed} == {
        (each["topic"], each["description"], each["routing"]) for each in before
    }


def test_a_dump_in_ldif_is_what_ldapadd_takes(shell: Shell, slapd: Slapd) -> None:
    text = shell("dump", "--format", "ldif")
    slapd.directory.replace([])
    slapd.add(text)
    assert len(slapd.directory.load()) == 6


def test_a_large_load_shows_its_progress(shell: Shell, slapd: Slapd) -> None:
    text = "".join(f'[topics.ALL."T{number}"]\n' for number in range(1500))
    ended = shell.run("load", "-", "--merge", stdin=text)
    assert ended.returncode == 0
    assert ended.stderr.splitlines() == [
        "hpwsn topics: 1000 of 1500 changes",
        "hpwsn topics: 1500 of 1500 changes",
    ]
    assert len(slapd.directory.load()) == 1506


def test_errors_are_one_line_that_says_what_to_do(shell: Shell, slapd: Slapd, tmp_path: Path) -> None:
    assert "topic NONE is not in the directory" in shell.fails("remove", "NONE")
    assert "topic ALL:ALARM has 2 below it" in shell.fails("remove", "ALL:ALARM")
    assert "topic ALL:STATE exists already" in shell.fails("move", "ALL:ALARM", "ALL:STATE")
    assert "no permission" in shell.fails("add", "X", "--bind-dn", "")
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    assert "password is wrong" in shell.fails("list", "--password-file", str(wrong))
    assert "cannot be read" in shell.fails("list", "--password-file", str(tmp_path / "none"))
    wrong.write_text("\n")
    assert "is empty" in shell.fails("list", "--password-file", str(wrong))
    assert "set topics.password_file" in shell.fails("list", "--password-file", "")
    assert "no such entry" in shell.fails("list", "--topics", slapd.url.replace("ou=topics", "ou=none"))
    assert "cannot reach it" in shell.fails("list", "--topics", f"ldap://127.0.0.1:1/{BASE}")
    assert "TLS" in shell.fails("list", "--start-tls")


def test_without_python_ldap_one_line_says_what_to_install(slapd: Slapd, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['ldap'] = None\n")
    without = {"PYTHONPATH": f"{hidden}:{environment()['PYTHONPATH']}", "HPWSN_TOPICS_URL": slapd.url}
    command = [sys.executable, "-m", "hpwsn", "topics", "list"]
    ended = subprocess.run(command, env={**environment(), **without}, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "pip install ./client '.[ldap]'" in ended.stderr


def test_check_config_looks_at_the_directory_too(slapd: Slapd) -> None:
    def check(url: str) -> subprocess.CompletedProcess[str]:
        return hpwsn("check-config", "--topics", url)

    assert check(slapd.url).returncode == 0
    away = check(f"ldap://127.0.0.1:1/{BASE}")
    assert away.returncode == 1
    assert "cannot reach it" in away.stderr
