"""The tutorial of docs/streams.md, followed from its first block to its last, in one folder, with Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from urllib.request import Request, urlopen

import psutil
import pytest

from hpwsn.streams.generator import anpr
from tests.documents import ROOT, Block, blocks_of, prints
from tests.harness import NodeProcess
from tests.patience import PATIENCE
from tests.spark import LOOKUP, cheap_environment
from tests.system.test_docs import Terminal

PAGE = ROOT / "docs" / "streams.md"


SERVE = "hpwsn serve --data trial --topics topics.toml\n"
"""How the tutorial starts its node; the test starts the same, on a free port."""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    work = tmp_path / "reader" / "work"
    work.mkdir(parents=True)
    save(next(block for block in blocks_of(PAGE) if block.language == "toml"), work)
    with NodeProcess(work / "trial", "--topics", str(work / "topics.toml")) as node:
        one = Terminal(tmp_path / "reader", node)
        one.environment |= cheap_environment(tmp_path / "conf")
        one.environment["PYTHONPATH"] += f"{os.pathsep}{LOOKUP}"
        yield one
        one.clean()


def test_the_tutorial_does_what_it_says(terminal: Terminal) -> None:
    assert SERVE in [block.text for block in blocks_of(PAGE)]
    blocks = blocks_of(PAGE)
    for block, after in pairwise([*blocks, blocks[-1]]):
        if block.language in ("toml", "python"):
            save(block, terminal.work)
        elif block.language == "sh":
            follow(block, after if "output" in after.marks else None, terminal)
    check_plates_stay_in(terminal)
    heard = terminal.listened()
    assert len(heard) == 1
    assert heard[0].count("\n") > 1, heard
    listeners = terminal.processes("listeners")
    for listener in listeners:
        listener.terminate()
    assert not psutil.wait_procs(listeners, timeout=PATIENCE)[1]


def check_plates_stay_in(terminal: Terminal) -> None:
    """No plate is in what others read, though the node has them all; the token is only in its file."""
    plates = {str(event["vid"]) for event in islice(anpr(1), 3000)}
    with urlopen(f"{terminal.node.base}/topics/traffic/events?max=1000") as answer:
        public = answer.read().decode()
    assert public.count("traffic:flow") > 1
    assert not [plate for plate in plates if plate in public]
    token = terminal.node.data / "job.token"
    secret = token.read_bytes().strip()
    request = Request(
        f"{terminal.node.base}/topics/traffic:anpr/events?max=1000",
        headers={"Authorization": f"Bearer {secret.decode()}"},
    )
    with urlopen(request) as answer:
        assert len(json.load(answer)) == 1000
    written = [file for file in terminal.work.rglob("*") if file.is_file() and file != token]
    assert not [str(file) for file in written if secret in file.read_bytes()]


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
