"""A real ActiveMQ in a process of its own, started as a developer starts it, and a node that uses it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.harness import ROOT, NodeProcess, quiet_port
from tests.needs import has, need
from tests.patience import PATIENCE, until
from tests.scraped import scrape


class ActiveMQ:
    """`scripts/activemq` as a child; its ports and folder stay the same over a restart."""

    def __init__(self, folder: Path, *arguments: str, amqp: bool = False) -> None:
        self.folder = folder
        self.arguments = arguments
        self.stomp_port, self.mqtt_port = quiet_port(), quiet_port()
        self.amqp_port = quiet_port() if amqp else 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> str:
        """Host and port of STOMP."""
        return f"127.0.0.1:{self.stomp_port}"

    @property
    def url(self) -> str:
        """Its address as a backbone."""
        return f"stomp://{self.place}"

    def start(self) -> Self:
        """Start it and wait for its ready line; skips where this machine has no ActiveMQ."""
        need("ActiveMQ")
        command = [str(ROOT / "scripts" / "activemq"), "--folder", str(self.folder), *self.arguments]
        command += ["--stomp", str(self.stomp_port), "--mqtt", str(self.mqtt_port)]
        command += ["--amqp", str(self.amqp_port)] if self.amqp_port else []
        # A server that lives for a minute is not worth the second compiler's work.
        env = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:-UsePerfData"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self._wait_until_ready()
        return self

    def _wait_until_ready(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while selector.select(timeout=PATIENCE):
                line = self.process.stdout.readline().decode()
                if line.startswith("ready "):
                    assert line.strip() == f"ready {self.url}"
                    return
                if not line:
                    break
        log = self.folder / "console.log"
        raise AssertionError(f"ActiveMQ did not become ready: {log.read_text() if log.exists() else ''}")

    def signal(self, number: int) -> None:
        """Send a signal to the server itself."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.signal(signal.SIGCONT)
            self.kill()


@pytest.fixture(scope="session")
def activemq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ActiveMQ]:
    """One ActiveMQ for all tests that leave it running; nodes have names of their own on it."""
    with ActiveMQ(tmp_path_factory.mktemp("activemq"), amqp=has("ActiveMQ with AMQP")) as running:
        yield running


@pytest.fixture
def own_activemq(tmp_path: Path) -> Iterator[ActiveMQ]:
    """One that a test may kill, stop and start; it is not running yet."""
    server = ActiveMQ(tmp_path / "activemq")
    yield server
    if server.process is not None:
        server.signal(signal.SIGCONT)
        server.kill()


class BackedNode(NodeProcess):
    """A node with ActiveMQ as its backbone, and what a test asks it."""

    def __init__(self, data: Path, url: str, *arguments: str, name: str | None = None) -> None:
        self.name = name or f"node-{uuid.uuid4().hex[:8]}"
        super().__init__(data, "--backbone", url, "--name", self.name, *arguments)

    def get(self, path: str) -> Any:
        """The JSON at a path, whatever the status."""
        try:
            with urllib.request.urlopen(self.base + path, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return json.load(error)

    def post(self, topic: str, events: Any, message_id: str | None = None) -> Any:
        """Publish, and what was answered; raises HTTPError if it was refused."""
        headers = {"Content-Type": "application/json"}
        if message_id is not None:
            headers["Hpwsn-Message-Id"] = message_id
        url = f"{self.base}/topics/{topic}/events"
        request = urllib.request.Request(url, json.dumps(events).encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    @property
    def backbone(self) -> dict[str, Any]:
        """The backbone's part of /status."""
        found: dict[str, Any] = self.get("/status")["backbone"]
        return found

    def events(self, topic: str) -> list[Any]:
        """The data of everything in the log on a topic, in order."""
        found: list[Any] = []
        after = 0
        while page := self.get(f"/topics/{topic}/events?after={after}&max=1000"):
            found += [event["data"] for event in page]
            after = page[-1]["offset"]
        return found

    def wait(self, state: str = "ready") -> None:
        """Until the backbone is in a state."""
        until(lambda: self.backbone["state"] == state, lambda: f"{self.backbone}\n{self.log()}")

    def metric(self, name: str, **labels: str) -> float:
        """One sample of /metrics."""
        return scrape(self.base).value(name, **labels)

    def peer_count(self, direction: str) -> float:
        """How many notifications were sent to peers on ActiveMQ, or received from them."""
        return self.metric("hpwsn_backbone_peer_notifications_total", direction=direction)


@contextmanager
def sharing(server: ActiveMQ, data: Path, *topics: str, **more: Any) -> Iterator[BackedNode]:
    """A node that shares some topics with its peers."""
    with BackedNode(data, server.url, "--set", f"backbone.peers={','.join(topics)}", **more) as running:
        until(lambda: running.get("/readyz")["ready"], running.log)
        yield running
