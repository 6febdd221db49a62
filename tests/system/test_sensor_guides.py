"""The two guides to sensors, followed block by block with a real Mosquitto.

The first shell block of a guide starts its servers, a line each. A block that listens or follows a stream has
a terminal of its own until the end. What it prints is in the text blocks that begin as it does.
"""

from __future__ import annotations

import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from hpwsn.configuration.sources import load_config
from tests.documents import ROOT, Block, blocks_of, prints
from tests.harness import NodeProcess, quiet_port
from tests.needs import need
from tests.patience import PATIENCE, until
from tests.system.test_docs import Terminal, finish

GUIDES = ("sensors.md", "virtual-sensors.md")
FOLLOWS = ("hpwsn listen ", "curl -sN ")
PNG = b"\x89PNG\r\n\x1a\n"


class Reader:
    """Somebody who follows a guide: one terminal for all commands, and one for each that runs on."""

    def __init__(self, folder: Path, guide: Path, stack: ExitStack) -> None:
        need("curl")
        self._folder = folder
        self._stack = stack
        self._blocks = blocks_of(guide)
        self._places: dict[str, str] = {}
        servers = next(block for block in self._blocks if block.language == "sh")
        self.node = self._start_servers(servers)
        self.commands = Terminal(folder / "commands", self.node, self._places)
        self._after = {block: after for block, after in pairwise(self._blocks) if "output" in after.marks}
        self._rest = self._blocks[self._blocks.index(servers) + 1 :]
        self._following: list[tuple[Block, Terminal]] = []

    def _start_servers(self, block: Block) -> NodeProcess:
        node: NodeProcess | None = None
        for line in block.text.splitlines():
            words = shlex.split(line.removesuffix("&"))
            if words[0].endswith("mosquitto"):
                self._start_mosquitto(words)
            else:
                assert words[:4] == ["hpwsn", "serve", "--data", "trial"]
                options = [self._localised(word) for word in words[4:]]
                node = self._stack.enter_context(NodeProcess(self._folder / "trial", *options))
        assert node is not None
        return node

    def _start_mosquitto(self, words: list[str]) -> None:
        need("Mosquitto")
        port = quiet_port()
        self._places["1883"] = str(port)
        quiet = subprocess.DEVNULL
        server = subprocess.Popen([self._localised(word) for word in words], stdout=quiet, stderr=quiet)
        self._stack.callback(server.wait, PATIENCE)
        self._stack.callback(server.terminate)
        until(lambda: answers(port), lambda: f"{words} does not answer: {server.poll()}")

    def _localised(self, text: str) -> str:
        for documented, actual in self._places.items():
            text = text.replace(documented, actual)
        return text

    def follow(self) -> None:
        """Run all blocks in their order, and compare what they print with what the guide shows."""
        for block in self._rest:
            if block.language == "toml":
                self._save(block)
            elif block.language == "sh" and block.text.startswith(FOLLOWS):
                self._begin(block)
            elif block.language in ("sh", "python") and "output" not in block.marks:
                self._run(block)
        for block, terminal in self._following:
            self._compare_what_it_heard(block, terminal)

    def _save(self, block: Block) -> None:
        """Write the block to the file that its first line names; one without a name has settings."""
        first = block.text.splitlines()[0]
        is_named = first.startswith("# ")
        file = self.commands.work / (first.removeprefix("# ") if is_named else "settings.toml")
        file.write_text(block.text)
        if not is_named:
            load_config(file)

    def _run(self, block: Block) -> None:
        finish(self.commands.start(block), self.commands, None if "fails" in block.marks else 0)
        expected = self._after.get(block)
        if expected is not None:
            shown = replace(expected, text=self.commands.localised(expected.text))
            printed = self.commands.printed()
            assert prints(shown, printed), (
                f"{block.name} printed\n{printed}\nand the guide shows\n{shown.text}"
            )

    def _begin(self, block: Block) -> None:
        terminal = Terminal(self._folder / f"terminal-{len(self._following)}", self.node, self._places)
        process = terminal.start(block)
        self._stack.callback(_end, process, terminal)
        self._following.append((block, terminal))
        until(lambda: terminal.printed(), lambda: f"{block.name} prints nothing")

    def _compare_what_it_heard(self, block: Block, terminal: Terminal) -> None:
        begins = terminal.printed().partition(" ")[0]
        shown = next(
            each
            for each in self._blocks
            if each.line > block.line and each.language == "text" and each.text.startswith(begins)
        )
        expected = replace(shown, text=terminal.localised(shown.text))
        until(
            lambda: prints(expected, terminal.printed()),
            lambda: f"{block.name} printed\n{terminal.printed()}\nand the guide shows\n{expected.text}",
        )


def answers(port: int) -> bool:
    """Whether a server accepts connections at a port of this machine."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE):
        return True
    return False


def _end(process: subprocess.Popen[bytes], terminal: Terminal) -> None:
    process.kill()
    process.wait(PATIENCE)
    if process.stdin is not None:
        process.stdin.close()
    listeners = terminal.processes("listeners")
    for listener in listeners:
        listener.terminate()
    assert not psutil.wait_procs(listeners, timeout=PATIENCE)[1]


@contextmanager
def reading(guide: str, folder: Path) -> Iterator[Reader]:
    with ExitStack() as stack:
        yield Reader(folder, ROOT / "docs" / guide, stack)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_block_of_a_guide_does_what_the_guide_says(guide: str, tmp_path: Path) -> None:
    with reading(guide, tmp_path) as reader:
        reader.follow()
        plots = list(reader.commands.work.glob("*.png"))
        assert plots
        for plot in plots:
            assert plot.read_bytes().startswith(PNG)
