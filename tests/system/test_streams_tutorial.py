"""The tutorial of docs/streams.md, followed from its first block to its last, in one folder, with Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from tests.documents import ROOT, Block, blocks_of, prints
from tests.harness import NodeProcess
from tests.patience import PATIENCE
from tests.spark import LOOKUP, cheap_environment
from tests.system.test_docs import Terminal

PAGE = ROOT / "docs" / "streams.md"


@pytest.fixture
def terminal(tmp_path: Path, node: NodeProcess) -> Iterator[Terminal]:
    one = Terminal(tmp_path / "reader", node)
    one.environment |= cheap_environment(tmp_path / "conf")
    one.environment["PYTHONPATH"] += f"{os.pathsep}{LOOKUP}"
    yield one
    one.clean()


def test_the_tutorial_does_what_it_says(terminal: Terminal) -> None:
    blocks = blocks_of(PAGE)
    for block, after in pairwise([*blocks, blocks[-1]]):
        if block.language in ("toml", "python"):
            save(block, terminal.work)
        elif block.language == "sh":
            follow(block, after if "output" in after.marks else None, terminal)
    heard = terminal.listened()
    assert len(heard) == 1
    assert heard[0].count("\n") > 1, heard
    listeners = terminal.processes("listeners")
    for listener in listeners:
        listener.terminate()
    assert not psutil.wait_procs(listeners, timeout=PATIENCE)[1]


def save(block: Block, folder: Path) -> None:
    """Write the block to the file that its first line names."""
    name = block.text.splitlines()[0].removeprefix("# ")
    (folder / name).write_text(block.text)


def follow(block: Block, expected: Block | None, terminal: Terminal) -> None:
    """Run a block, and compare what it prints with what its document shows."""
    with terminal.start(block) as process:
        assert process.wait(PATIENCE) == 0, f"{block.name}: {terminal.printed()}"
    printed = terminal.printed().removesuffix("".join(terminal.listened()))
    if expected is not None:
        shown = replace(expected, text=terminal.localised(expected.text))
        assert prints(shown, printed), (
            f"{block.name} printed\n{printed}\nand its document shows\n{shown.text}"
        )
