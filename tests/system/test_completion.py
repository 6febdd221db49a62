"""Completion in real shells: what each of them offers once it has read the script that we print."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpwsn_client.commands.main import main
from tests.harness import hpwsn
from tests.patience import PATIENCE

SHELLS = ("bash", "zsh", "fish")


def need(shell: str) -> str:
    """The path of a shell, without which the test cannot be."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"needs {shell}: apt-get install {shell}")
    return found


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each shell's script, and a few files to complete."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        printed = hpwsn("completion", shell)
        assert (printed.returncode, printed.stderr) == (0, "")
        (folder / f"script.{shell}").write_text(printed.stdout)
    (folder / "node one.toml").touch()
    (folder / "folder").mkdir()
    return folder


def run(folder: Path, shell: str, *arguments: str) -> str:
    """What a shell prints, which must say nothing on standard error."""
    done = subprocess.run(
        [need(shell), *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def by_bash(folder: Path, line: str) -> list[str]:
    # As COMP_WORDBREAKS has it.
    words = [word for part in line.split(" ") for word in re.findall("[=:]+|[^=:]+", part) or [""]]
    given = " ".join(f"'{word}'" for word in words)
    program = (
        f"source script.bash; COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _hpwsn;"
        " ((!${#COMPREPLY[@]})) || printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    return run(folder, "bash", "--norc", "-c", program).split("\n")[:-1]


def by_fish(folder: Path, line: str) -> list[str]:
    program = f"source script.fish; complete -C '{line}'"
    return [
        each.partition("\t")[0] for each in run(folder, "fish", "--no-config", "-c", program).splitlines()
    ]


class Zsh:
    """An interactive zsh in a terminal, as somebody types into it."""

    def __init__(self, folder: Path) -> None:
        self.terminal, other = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", need("zsh"), "-f", "-i"],
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"},
            stdin=other,
            stdout=other,
            stderr=other,
        )
        os.close(other)
        self.text = ""

    def __enter__(self) -> Zsh:
        # The mark is written so that its echo is not the mark.
        self.type(
            "stty cols 400; PS1=; autoload -U compinit; compinit -u -D; source script.zsh; echo READ''Y\n"
        )
        self.wait(lambda text: "READY" in text)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.terminal)  # which hangs up
        self.process.wait(PATIENCE)

    def type(self, keys: str) -> None:
        self.text = ""
        os.write(self.terminal, keys.encode())

    def wait(self, condition: Callable[[str], bool]) -> str:
        until = time.monotonic() + PATIENCE
        while not condition(self.text):
            assert time.monotonic() < until, self.text
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.text += os.read(self.terminal, 65536).decode("utf-8", "replace")
        return self.text

    def complete(self, line: str, whole: str) -> None:
        """Type a line and a tab, and wait until the line is as it must become; then leave the line."""
        self.type(f"{line}\t")
        self.wait(lambda text: whole in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x07", "", text))
        self.type("\x15")


CASES = [
    ("hpwsn pub", "publish"),
    ("hpwsn serve --ba", "--backbone"),
    ("hpwsn --vers", "--version"),
    ("hpwsn topics du", "dump"),
    ("hpwsn topics dump --form", "--format"),
    ("hpwsn topics dump --format l", "ldif"),
    ("hpwsn serve --name topics --ba", "--backbone"),
    ("hpwsn listen topics --fil", "--filter"),
    ("hpwsn completion f", "fish"),
    ("hpwsn serve --data fol", "folder"),
    ("hpwsn sensors simu", "simulate"),
    ("hpwsn sensors simulate ea", "earthquake"),
    ("hpwsn sensors virtual def", "define"),
    ("hpwsn sensors virtual define --combine med", "median"),
]


@pytest.mark.parametrize(("line", "word"), CASES)
@pytest.mark.parametrize("ask", [by_bash, by_fish])
def test_bash_and_fish_complete_a_word(
    scripts: Path, ask: Callable[[Path, str], list[str]], line: str, word: str
) -> None:
    assert [found.rstrip("/") for found in ask(scripts, line)] == [word]


def test_zsh_completes_what_is_typed(scripts: Path) -> None:
    with Zsh(scripts) as zsh:
        for line, word in CASES:
            zsh.complete(line, f"{line.rpartition(' ')[0]} {word}")


JOINED = [("hpwsn serve --data=fol", "folder"), ("hpwsn topics dump --format=l", "ldif")]


@pytest.mark.parametrize(("line", "word"), JOINED)
@pytest.mark.parametrize("ask", [by_bash, by_fish])
def test_bash_and_fish_complete_a_value_behind_an_equals_sign(
    scripts: Path, ask: Callable[[Path, str], list[str]], line: str, word: str
) -> None:
    assert [found.rstrip("/").rpartition("=")[2] for found in ask(scripts, line)] == [word]


@pytest.mark.parametrize("ask", [by_bash, by_fish])
def test_options_are_completed_after_a_value_behind_an_equals_sign(
    scripts: Path, ask: Callable[[Path, str], list[str]]
) -> None:
    assert ask(scripts, "hpwsn publish --url=http://h:1/wsn --te") == ["--text"]


def test_zsh_completes_a_value_behind_an_equals_sign(scripts: Path) -> None:
    with Zsh(scripts) as zsh:
        for line, word in JOINED:
            zsh.complete(line, f"{line.rpartition('=')[0]}={word}")


@pytest.mark.parametrize("ask", [by_bash, by_fish])
def test_files_directories_and_nothing_are_told_apart(
    scripts: Path, ask: Callable[[Path, str], list[str]]
) -> None:
    assert any("node" in found for found in ask(scripts, "hpwsn serve --config no"))
    assert any("node" in found for found in ask(scripts, "hpwsn streams check no"))
    assert ask(scripts, "hpwsn serve --data no") == []
    assert ask(scripts, "hpwsn publish no") == []
    assert ask(scripts, "hpwsn serve --name no") == []


@pytest.mark.parametrize("ask", [by_bash, by_fish])
def test_all_commands_are_offered_and_none_where_there_is_none(
    scripts: Path, ask: Callable[[Path, str], list[str]]
) -> None:
    offered = ask(scripts, "hpwsn ")
    assert {"serve", "publish", "listen", "topics", "completion"} <= set(offered)
    assert "dump" not in offered
    assert "serve" not in ask(scripts, "hpwsn topics ")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_no_error_of_syntax(scripts: Path, shell: str) -> None:
    assert run(scripts, shell, "--no-execute" if shell == "fish" else "-n", f"script.{shell}") == ""


def test_the_client_alone_is_completed_under_its_own_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script.bash").write_text(capsys.readouterr().out)
    program = (
        "source script.bash; complete -p hpwsn-client; COMP_WORDS=(hpwsn-client pub); COMP_CWORD=1;"
        ' _hpwsn_client; echo "${COMPREPLY[@]}"'
    )
    printed = run(tmp_path, "bash", "--norc", "-c", program)
    assert printed == "complete -F _hpwsn_client hpwsn-client\npublish\n"


def test_another_shell_is_refused_with_those_that_are_known() -> None:
    refused = hpwsn("completion", "tcsh")
    assert refused.returncode == 2
    assert "'bash', 'zsh', 'fish'" in refused.stderr or "bash, zsh, fish" in refused.stderr
