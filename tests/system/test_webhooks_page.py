"""The page on webhooks, followed block by block; and its consumer gets signed events after a kill -9."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tests.documents import ROOT, Block, blocks_of, prints
from tests.harness import NodeProcess, quiet_port
from tests.needs import need
from tests.patience import until
from tests.system.test_docs import Terminal, finish

PAGE = ROOT / "docs" / "webhooks.md"
BLOCKS = blocks_of(PAGE)
(CONSUMER,) = [block for block in BLOCKS if block.language == "python"]
COMMANDS = [
    (block, after if "output" in after.marks else None)
    for block, after in pairwise([*BLOCKS, BLOCKS[0]])
    if block.language == "sh"
]


class Reader:
    """Somebody who follows the page: one terminal for the consumer, one for all commands."""

    def __init__(self, folder: Path, node: NodeProcess) -> None:
        places = {"9000": str(quiet_port())}
        self.first = Terminal(folder / "first", node, places)
        self.second = Terminal(folder / "second", node, places)

    @contextmanager
    def consumer(self) -> Iterator[None]:
        """The consumer of the page, running."""
        process = self.first.start(CONSUMER)
        try:
            yield
            assert process.poll() is None, self.first.printed()
        finally:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()

    def run(self, block: Block, expected: Block | None) -> None:
        """Run a block to its end, and compare what it prints."""
        finish(self.second.start(block), self.second, 0)
        if expected is not None:
            shown = replace(expected, text=self.second.localised(expected.text))
            assert prints(shown, self.second.printed()), self.second.printed()

    def wait_for(self, text: str) -> None:
        """Wait until the consumer has printed a text."""
        until(lambda: text in self.first.printed(), lambda: f"no {text} in\n{self.first.printed()}")


def test_the_consumer_has_ten_lines_of_the_standard_library() -> None:
    assert len([line for line in CONSUMER.text.splitlines() if line.strip()]) <= 10
    imports = [node for node in ast.walk(ast.parse(CONSUMER.text)) if isinstance(node, ast.Import)]
    assert {name.name for each in imports for name in each.names} == {"hmac", "http.server", "json"}


def test_every_block_does_what_the_page_says(tmp_path: Path) -> None:
    need("curl")
    create, publish, manage = COMMANDS
    with NodeProcess(tmp_path / "data") as node:
        reader = Reader(tmp_path, node)
        with reader.consumer():
            reader.run(*create)
            reader.run(*publish)
            reader.wait_for(" 204 -")
            (shown,) = [b.text for b in BLOCKS if b.language == "text" and "plate" in b.text]
            printed = reader.first.printed()
            assert prints(Block(PAGE, 0, "text", ("output",), shown), printed), printed
            reader.run(*manage)
        assert not reader.first.subscriptions()


def test_the_consumer_gets_signed_events_after_kill_9(tmp_path: Path) -> None:
    need("curl")
    create, publish, _ = COMMANDS
    node = NodeProcess(tmp_path / "data").start()
    reader = Reader(tmp_path, node)
    reader.run(*create)
    reader.run(*publish)
    node.kill()
    with node, reader.consumer():
        reader.wait_for("'speed': 61.5")
        later = replace(publish[0], text=publish[0].text.replace("61.5", "99.25"))
        reader.run(later, None)
        reader.wait_for("'speed': 99.25")
        assert "rejected" not in reader.first.printed()


def test_the_consumer_rejects_what_has_another_signature(tmp_path: Path) -> None:
    need("curl")
    (create, _), publish, _ = COMMANDS
    with NodeProcess(tmp_path / "data") as node:
        reader = Reader(tmp_path, node)
        forged = replace(create, text=create.text.replace("a long random text", "another text"))
        with reader.consumer():
            reader.run(forged, None)
            reader.run(*publish)
            reader.wait_for("rejected")
            assert "61.5" not in reader.first.printed()
