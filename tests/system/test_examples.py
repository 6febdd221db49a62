"""Every file of docs/examples runs as its header says, against a real node, and prints what it promises.

The files are found here, not listed: one without a header that can be checked is a failure.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import ROOT, NodeProcess, environment
from tests.patience import PATIENCE

EXAMPLES = ROOT / "docs" / "examples"
FILES = sorted(file for file in EXAMPLES.iterdir() if file.is_file())
RUNNERS = {".py": (sys.executable, "python"), ".sh": ("bash", "bash")}
"""By the suffix: the program that runs it here, and the one that its header names."""
LONGEST = 45


def header_of(file: Path) -> list[str]:
    """The docstring of a Python file, or the comment after the first line of a shell script."""
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        return text.split('"""')[1].splitlines()
    comment = re.match(r"#![^\n]*\n((?:#[^\n]*\n)+)", text)
    assert comment, f"{file} begins with no comment"
    return [line.removeprefix("#").removeprefix(" ") for line in comment[1].splitlines()]


def promised(file: Path) -> list[str]:
    """The lines that it says it prints."""
    header = header_of(file)
    lines = header[header.index("Prints:") + 1 :]
    return [line.removeprefix("    ") for line in lines if line.strip()]


def companion(file: Path) -> Path | None:
    """The example that runs beside it, once it has printed its first line."""
    named = [line.removeprefix("With: ") for line in header_of(file) if line.startswith("With: ")]
    return EXAMPLES / named[0] if named else None


def start(file: Path, node: NodeProcess, folder: Path) -> subprocess.Popen[str]:
    command = folder / "hpwsn"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hpwsn "$@"\n')
    command.chmod(0o755)
    given = {
        **environment(),
        "HPWSN_URL": node.url,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "error",
    }
    words = [RUNNERS[file.suffix][0], str(file)]
    return subprocess.Popen(
        words, cwd=folder, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_example_prints_what_its_header_says(
    file: Path, shared_node: NodeProcess, tmp_path: Path
) -> None:
    process = start(file, shared_node, tmp_path)
    assert process.stdout is not None
    other = companion(file)
    first = ""
    if other is not None:
        first = process.stdout.readline()
        _, errors = start(other, shared_node, tmp_path).communicate(timeout=PATIENCE)
        assert not errors
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert (first + output).splitlines() == promised(file)
    assert promised(file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_example_says_how_to_run_it_and_is_short(file: Path) -> None:
    run = f"Run: {RUNNERS[file.suffix][1]} docs/examples/{file.name}"
    assert run in header_of(file)
    assert len(file.read_text("utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_example_is_linked_where_its_reader_looks(file: Path) -> None:
    assert f"(examples/{file.name})" in (ROOT / "docs" / "clients.md").read_text("utf-8")
