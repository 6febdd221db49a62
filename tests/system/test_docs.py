"""The documents tell the truth: each block runs as printed against a real node, each link leads somewhere.

Python and shell blocks run in a directory of their own, with the default address of a broker replaced by that
of the test's node; blocks of data are parsed by what they are for. What cannot run is marked as text by its
author. tests/documents.py says which marks a fence may have.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import psutil
import pytest
from lxml import etree

from hpwsn.configuration.sources import load_config
from tests.activemq import ActiveMQ, BackedNode
from tests.documents import DOCUMENTS, ROOT, Block, anchors_of, blocks_of, links_of, prints, prose_of
from tests.harness import NodeProcess, environment
from tests.needs import need
from tests.patience import PATIENCE, until

DEFAULT = "http://127.0.0.1:8080"
LANGUAGES = {"python", "sh", "text", "toml", "xml", "json"}
MARKS = {"output", "fails"}
SERVERS = {"slapd"}
"""Scripts that blocks start for real, in the background, and stop again."""
PIP = f"""test "$1" = install && shift
for part; do test "$part" = -e || test -f "{ROOT}/${{part%%[*}}/setup.cfg" || exit 1; done"""
"""Installs nothing, but knows what can be installed: folders of the checkout, with extras or without."""
ENDLESS = re.compile(r"^ *(async )?for \w+ in receiver:", re.MULTILINE)
PUBLISHES = re.compile(r"\.notify\(|hpwsn(-client)? publish ")
ENVELOPE = re.compile(r"\{http://(schemas\.xmlsoap\.org|www\.w3\.org)/.*\}Envelope")

FOLLOWED = {"carriers.md", "sensors.md", "streams.md", "virtual-sensors.md", "webhooks.md"}
"""Pages whose blocks build on each other; tests of their own follow them, such as test_carriers_guide."""
BLOCKS = [block for path in DOCUMENTS if path.name not in FOLLOWED for block in blocks_of(path)]


def blocks(language: str) -> pytest.MarkDecorator:
    """A case for each block of a language that is no output of another."""
    found = [b for b in BLOCKS if b.language == language and "output" not in b.marks]
    return pytest.mark.parametrize("block", found, ids=lambda block: block.name)


def expected_of(block: Block) -> Block | None:
    """The block that shows what this one prints."""
    after = BLOCKS[BLOCKS.index(block) + 1 :][:1]
    return next((b for b in after if b.path == block.path and "output" in b.marks), None)


def publisher_for(block: Block) -> Block:
    """The block that a reader runs in the other terminal: the next that publishes, else the last before."""
    others = [b for b in BLOCKS if b.path == block.path and PUBLISHES.search(b.text) and not is_endless(b)]
    return next((b for b in others if b.line > block.line), others[-1])


def is_endless(block: Block) -> bool:
    return block.language == "python" and ENDLESS.search(block.text) is not None


class Terminal:
    """Where a reader tries a block: a directory, the commands that the documents use, and a running node."""

    def __init__(self, folder: Path, node: NodeProcess, places: Mapping[str, str] | None = None) -> None:
        self.node = node
        self._places = places or {}
        self.work = folder / "work"
        self._notes = folder / "notes"
        self._bin = self.work / ".venv" / "bin"
        for each in (self._notes, self._bin, self.work / "scripts"):
            each.mkdir(parents=True)
        self._provide_commands()
        self.environment = {
            **{name: value for name, value in environment().items() if name != "PYTHONWARNINGS"},
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "HPWSN_URL": node.url,
            "DOCUMENT_NOTES": str(self._notes),
            "DOCUMENT_PATIENCE": str(PATIENCE),
        }

    def _provide_commands(self) -> None:
        shim = Path(__file__).parents[1] / "documented_command.py"
        commands = {
            self._bin / "hpwsn": f'exec "{sys.executable}" "{shim}" hpwsn "$@"',
            self._bin / "hpwsn-client": f'exec "{sys.executable}" "{shim}" hpwsn_client.commands.main "$@"',
            self._bin / "python": f'exec "{sys.executable}" "$@"',
            self._bin / "pip": PIP,
        }
        for script in (ROOT / "scripts").iterdir():
            if script.is_file():
                started = f'echo $$ >>"{self._notes}/nodes"; exec "{script}" "$@"'
                line = started if script.name in SERVERS else f'test -x "{script}"'
                commands[self.work / "scripts" / script.name] = line
        for path, line in commands.items():
            path.write_text(f"#!/bin/sh\n{line}\n")
            path.chmod(0o755)

    def localised(self, text: str) -> str:
        """The text with the test's node for the default one."""
        # A client without an address takes that of HPWSN_URL, as a reader's would.
        named = text.replace(DEFAULT, self.node.base)
        for documented, actual in self._places.items():
            named = named.replace(documented, actual)
        return named

    def start(self, block: Block) -> subprocess.Popen[bytes]:
        """Start a Python or shell block; its output goes to a file, for `printed`."""
        script = self.work / f"block.{block.language}"
        script.write_text(self.localised(block.text))
        command = [sys.executable] if block.language == "python" else ["bash", "-euo", "pipefail"]
        with (self._notes / "output.txt").open("wb") as out:
            # Standard input is a pipe, by which a command knows that it is in the foreground.
            return subprocess.Popen(
                [*command, str(script)],
                cwd=self.work,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
            )

    def listened(self) -> list[str]:
        """What each listener of the block has printed so far."""
        return [file.read_text("utf-8") for file in sorted(self._notes.glob("listener-*.txt"))]

    def printed(self) -> str:
        """All that the block and its listeners have printed so far."""
        return "".join([(self._notes / "output.txt").read_text("utf-8"), *self.listened()])

    def processes(self, kind: str) -> list[psutil.Process]:
        """What the block has left running."""
        file = self._notes / kind
        pids = map(int, file.read_text().split()) if file.exists() else ()
        return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]

    def subscriptions(self) -> set[str]:
        """The ids of the node's subscriptions."""
        with urlopen(f"{self.node.base}/subscriptions", timeout=PATIENCE) as answer:
            return {one["id"] for one in json.load(answer)["items"]}

    def clean(self) -> None:
        """Leave no process and no subscription behind."""
        for process in self.processes("listeners") + self.processes("nodes"):
            process.kill()
        for subscription in self.subscriptions():
            urlopen(Request(f"{self.node.base}/subscriptions/{subscription}", method="DELETE")).close()


@pytest.fixture(scope="module")
def backed_node(activemq: ActiveMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackedNode]:
    """A node for the page on ActiveMQ."""
    shared = ("--set", "backbone.peers=plant:alarms")
    with BackedNode(tmp_path_factory.mktemp("backed") / "data", activemq.url, *shared) as running:
        running.wait()
        yield running


def new_terminal(request: pytest.FixtureRequest, folder: Path) -> Terminal:
    """A terminal with the node that the block's page is about."""
    block = request.node.callspec.params["block"]
    for tool in ("curl", "openssl", "slapd"):
        if re.search(rf"\b{tool} ", block.text):
            need(tool)
    if block.path.name != "activemq.md":
        return Terminal(folder, request.getfixturevalue("shared_node"))
    node, server = request.getfixturevalue("backed_node"), request.getfixturevalue("activemq")
    places = {
        "61613": str(server.stomp_port),
        "1883": str(server.mqtt_port),
        "5672": str(server.amqp_port),
        '"node-1"': f'"{node.name}"',
    }
    if "5672" in block.text:
        need("ActiveMQ with AMQP")
    return Terminal(folder, node, places)


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    one = new_terminal(request, tmp_path / "reader")
    yield one
    one.clean()


@pytest.fixture
def second_terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    one = new_terminal(request, tmp_path / "second")
    yield one
    one.clean()


def finish(process: subprocess.Popen[bytes], terminal: Terminal, status: int | None) -> None:
    """Wait for the end of a block; None is any failure."""
    with process:
        try:
            found = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"it does not end:\n{terminal.printed()}") from None
    assert found == status or (status is None and found > 0), f"status {found}:\n{terminal.printed()}"


def check_printed(block: Block, terminal: Terminal) -> None:
    """The block printed what its document says, or will in a moment."""
    expected = expected_of(block)
    if expected is not None:
        shown = replace(expected, text=terminal.localised(expected.text))
        until(
            lambda: prints(shown, terminal.printed()),
            lambda: f"{block.name} printed\n{terminal.printed()}\nand its document shows\n{shown.text}",
        )


@blocks("python")
def test_each_python_block_does_what_its_document_says(
    block: Block, terminal: Terminal, second_terminal: Terminal
) -> None:
    before = terminal.subscriptions()
    process = terminal.start(block)
    if not is_endless(block):
        finish(process, terminal, 0)
        check_printed(block, terminal)
        assert expected_of(block) or not terminal.printed(), terminal.printed()
        return
    try:
        until(
            lambda: terminal.subscriptions() > before or process.poll() is not None,
            lambda: f"there is no subscription:\n{terminal.printed()}",
        )
        finish(second_terminal.start(publisher_for(block)), second_terminal, 0)
        until(
            lambda: "\n" in terminal.printed() or process.poll() is not None,
            lambda: "the subscriber printed nothing",
        )
        check_printed(block, terminal)
        assert process.poll() is None, f"it ended before its time:\n{terminal.printed()}"
    finally:
        process.terminate()
        finish(process, terminal, -signal.SIGTERM)


@blocks("sh")
def test_each_shell_block_does_what_its_document_says(block: Block, terminal: Terminal) -> None:
    finish(terminal.start(block), terminal, None if "fails" in block.marks else 0)
    heard = 1 if PUBLISHES.search(block.text) else 0
    until(
        lambda: all(text.count("\n") > heard for text in terminal.listened()),
        lambda: f"a listener heard nothing:\n{terminal.printed()}",
    )
    check_printed(block, terminal)
    listeners = terminal.processes("listeners")
    for listener in listeners:
        listener.terminate()
    _, alive = psutil.wait_procs(listeners + terminal.processes("nodes"), timeout=PATIENCE)
    assert not alive, f"{block.name} leaves processes running: {alive}"


@blocks("toml")
def test_each_toml_block_is_accepted_by_the_command_that_reads_it(block: Block, terminal: Terminal) -> None:
    file = terminal.work / "block.toml"
    file.write_text(block.text)
    data = tomllib.loads(block.text)
    of_topics = [data[key] for key in ("topics", "namespaces") if key in data]
    is_tree = any(
        isinstance(part, list) or all(isinstance(v, dict) for v in part.values()) for part in of_topics
    )
    if not is_tree and "uri" not in data:
        # Not `check-config`, which would miss the files that the settings name.
        load_config(file)
        return
    command = ["streams", "check"] if "uri" in data else ["topics", "list", "--topics"]
    ended = subprocess.run(
        [sys.executable, "-m", "hpwsn", *command, str(file)],
        env=terminal.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr


@blocks("xml")
def test_each_xml_block_is_well_formed_and_an_envelope_is_accepted(block: Block, terminal: Terminal) -> None:
    root = etree.fromstring(block.text)
    if ENVELOPE.fullmatch(root.tag):
        kind = "text/xml" if "xmlsoap" in root.tag else "application/soap+xml"
        data = terminal.localised(block.text).encode()
        request = Request(terminal.node.url, data, {"Content-Type": f"{kind}; charset=utf-8"})
        with urlopen(request, timeout=PATIENCE) as answer:
            assert answer.status in (200, 202)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
class TestEachDocument:
    def test_marks_every_block_with_a_language_that_is_tested(self, path: Path) -> None:
        for block in blocks_of(path):
            assert block.language in LANGUAGES, f"{block.name}: {block.language!r} is none of {LANGUAGES}"
            assert MARKS.issuperset(block.marks), f"{block.name}: marks are {MARKS}"

    def test_has_only_json_that_can_be_read(self, path: Path) -> None:
        for block in blocks_of(path):
            if block.language == "json":
                json.loads(block.text)

    def test_shows_an_output_only_after_a_block_that_runs(self, path: Path) -> None:
        before = None
        for block in blocks_of(path):
            assert "output" not in block.marks or before in ("python", "sh"), block.name
            before = None if "output" in block.marks else block.language

    def test_gives_several_nodes_ports_of_their_own(self, path: Path) -> None:
        """The command that runs the blocks gives every node a free port; a reader's would all take 8080."""
        for block in blocks_of(path):
            if block.language == "sh" and re.search(r"^for ", block.text, re.MULTILINE):
                starts = [line for line in block.text.splitlines() if "hpwsn serve" in line]
                assert all("--port" in line for line in starts), block.name

    def test_hides_no_code_by_indenting_it(self, path: Path) -> None:
        before = ""
        for number, line in prose_of(path):
            assert not line.startswith("    ") or before.strip(), (
                f"{path}:{number}: fence it, so that it runs"
            )
            before = line

    def test_links_only_to_what_is_there(self, path: Path) -> None:
        for number, target in links_of(path):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            found = (path.parent / file).resolve() if file else path
            assert found.exists(), f"{path}:{number}: there is no {target}"
            assert not anchor or anchor in anchors_of(found), f"{path}:{number}: no heading for {target}"
