"""The guide to carriers, followed block by block with two real nodes."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tests.documents import ROOT, blocks_of, prints
from tests.harness import NodeProcess
from tests.needs import need
from tests.system.test_docs import Terminal, finish

GUIDE = ROOT / "docs" / "carriers.md"
SERVE = "hpwsn serve "


def address_of(line: str) -> str:
    """The address of a documented node."""
    words = shlex.split(line)
    return f"http://127.0.0.1:{words[words.index('--port') + 1]}"


def options_of(line: str, folder: Path) -> list[str]:
    """The options of a documented node but for its port, with files of the reader's folder."""
    words = shlex.split(line)
    port = words.index("--port")
    del words[port : port + 2]
    data = words.index("--data")
    del words[data : data + 2]
    return [word.replace("carriers.key", str(folder / "carriers.key")) for word in words[2:]]


def test_the_guide_works_as_it_is_written(tmp_path: Path) -> None:
    need("curl")
    found = blocks_of(GUIDE)
    after = {block: following for block, following in pairwise(found) if "output" in following.marks}
    shell = [block for block in found if block.language == "sh"]
    serving = next(block for block in shell if block.text.startswith(SERVE))
    lines = serving.text.splitlines()
    places = {address_of(line): address_of(line) for line in lines}
    with ExitStack() as stack:
        nodes = [NodeProcess(tmp_path / f"data-{place}") for place in range(len(lines))]
        reader = Terminal(tmp_path / "reader", nodes[0], places)
        failed = 0
        for block in shell:
            if block is serving:
                for node, line in zip(nodes, lines, strict=True):
                    node.arguments = tuple(options_of(line, reader.work))
                    stack.enter_context(node)
                    places[address_of(line)] = node.base
                continue
            finish(reader.start(block), reader, None if "fails" in block.marks else 0)
            failed += "fails" in block.marks
            if block in after:
                shown = replace(after[block], text=reader.localised(after[block].text))
                assert prints(shown, reader.printed()), f"{block.name} printed\n{reader.printed()}"
        assert failed == 1
        assert len(places) == len(nodes) == 2
