"""The second try of failed tests, on a project of its own in processes of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.patience import PATIENCE
from tests.second_try import MOST_FILES

SUITE = """
import pathlib, pytest

TRIES = pathlib.Path(__file__).with_suffix(".tries")

def try_number(name):
    with TRIES.open("a") as file:
        file.write(name + "\\n")
    return TRIES.read_text().split().count(name)

def test_that_passes():
    assert try_number("passes")

@pytest.mark.parametrize("text", ["a::b[c]/d", "ø"])
def test_that_fails_at_first(text):
    assert try_number(f"first-{text}") == 2, "too early"

def test_that_always_fails():
    assert not try_number("always"), "never right"
"""
STEADY = SUITE.partition("def test_that_always_fails")[0]
SHARED = """
import pathlib, pytest

TRIES = pathlib.Path(__file__).with_suffix(".tries")

@pytest.fixture(scope="module")
def server():
    with TRIES.open("a") as file:
        file.write("start\\n")
    assert len(TRIES.read_text().split()) > 1, "the port is taken"

def test_one(server): pass
def test_two(server): pass
"""
TEARDOWN = """
import pathlib, pytest

@pytest.fixture
def server():
    yield
    tries = pathlib.Path(__file__).with_suffix(".tries")
    left = tries.exists()
    tries.touch()
    assert left, "it does not end"

def test_that_leaves_something(server): pass
"""
PROCESSES = [(), ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")]


def run(folder: Path, *arguments: str, **suites: str) -> subprocess.CompletedProcess[str]:
    """Pytest with the plugin, in a folder with these test files."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in suites.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "tests.second_try", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "CI": ""}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=PATIENCE)


def closing_line(output: str) -> str:
    """Pytest's own last line, without its frame and the time that it took."""
    return re.sub(r" in [\d.:ms() ]+$", "", output.splitlines()[-1].strip("= "))


def tries(folder: Path, suite: str, name: str) -> int:
    return (folder / f"test_{suite}.tries").read_text().split().count(name)


@pytest.mark.parametrize("processes", PROCESSES, ids=["alone", "xdist"])
def test_a_test_that_passes_at_the_second_try_is_unsteady_and_one_that_does_not_has_failed(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    ended = run(tmp_path, *processes, some=SUITE, other=STEADY)
    assert ended.returncode == 1
    assert closing_line(ended.stdout) == "1 failed, 6 passed"
    lines = ended.stdout.splitlines()
    assert "unsteady: 4" in lines
    named = {line.partition(" ")[2] for line in lines if line.startswith("UNSTEADY ")}
    assert {"test_some.py::test_that_fails_at_first[a::b[c]/d]"} < named
    assert len(named) == 4
    assert not any("always" in name or "passes" in name for name in named)
    assert [line for line in lines if line.startswith("FAILED ")] == [
        "FAILED test_some.py::test_that_always_fails - AssertionError: never right"
    ]
    assert [tries(tmp_path, "some", name) for name in ("passes", "first-ø", "always")] == [1, 2, 2]


@pytest.mark.parametrize("processes", PROCESSES, ids=["alone", "xdist"])
def test_a_run_with_none_but_unsteady_tests_is_green_and_shows_why_they_failed(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    ended = run(tmp_path, *processes, some=STEADY)
    assert ended.returncode == 0
    assert closing_line(ended.stdout) == "3 passed"
    assert "AssertionError: too early" in ended.stdout
    assert "unsteady: 2" in ended.stdout.splitlines()


def test_tests_of_a_file_are_tried_again_together_on_one_server(tmp_path: Path) -> None:
    ended = run(tmp_path, shared=SHARED)
    assert (ended.returncode, closing_line(ended.stdout)) == (0, "2 passed")
    assert tries(tmp_path, "shared", "start") == 2
    assert "unsteady: 2" in ended.stdout.splitlines()


def test_a_teardown_that_failed_is_tried_again_with_its_test(tmp_path: Path) -> None:
    ended = run(tmp_path, left=TEARDOWN)
    assert (ended.returncode, closing_line(ended.stdout)) == (0, "1 passed")
    assert "unsteady: 1" in ended.stdout.splitlines()


def test_arguments_choose_the_tests_of_the_second_try_too(tmp_path: Path) -> None:
    ended = run(tmp_path, "-q", "test_some.py", "-k", "always", some=SUITE)
    assert (ended.returncode, closing_line(ended.stdout)) == (1, "1 failed, 3 deselected")
    assert "unsteady: 0" in ended.stdout.splitlines()
    assert tries(tmp_path, "some", "always") == 2


@pytest.mark.parametrize(("files", "times"), [(MOST_FILES, 2), (MOST_FILES + 1, 1)])
def test_failures_in_many_files_are_not_tried_again(tmp_path: Path, files: int, times: int) -> None:
    ended = run(tmp_path, "-k", "always", **{f"number{number}": SUITE for number in range(files)})
    assert ended.returncode == 1
    assert closing_line(ended.stdout) == f"{files} failed, {3 * files} deselected"
    assert tries(tmp_path, "number0", "always") == times
    assert (f"more than {MOST_FILES}: no second try" in ended.stdout) == (times == 1)


def test_a_second_try_that_dies_leaves_its_tests_failed_and_says_so(tmp_path: Path) -> None:
    suite = SUITE.replace(
        "assert not try_number", "if try_number('x') > 1: import os; os._exit(7)\n    assert not try_number"
    )
    ended = run(tmp_path, "-k", "always", some=suite)
    assert (ended.returncode, closing_line(ended.stdout)) == (1, "1 failed, 3 deselected")
    assert "the second try ended with status 7 before 1 tests" in ended.stdout


def test_a_steady_run_says_that_none_was_unsteady(tmp_path: Path) -> None:
    ended = run(tmp_path, "-k", "passes", some=SUITE)
    assert (ended.returncode, closing_line(ended.stdout)) == (0, "1 passed, 3 deselected")
    assert "unsteady: 0" in ended.stdout.splitlines()


def test_a_file_that_cannot_be_collected_is_not_tried_again(tmp_path: Path) -> None:
    ended = run(tmp_path, broken="import no_such_module", some=STEADY)
    assert ended.returncode == 2
    assert "second try" not in ended.stdout
