"""A real Mosquitto in a process of its own, and a client as sensors have it."""

from __future__ import annotations

import getpass
import json
import shutil
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from paho.mqtt import client as mqtt

from tests.certificates import certificate
from tests.harness import quiet_port
from tests.needs import need
from tests.patience import PATIENCE, until

SEARCHED = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"


class Mosquitto:
    """The server in a folder of its own; its port and what it has stored stay the same over a restart."""

    def __init__(
        self, folder: Path, *, user: str = "", password: str = "", queued: int = 0, secure: bool = False
    ) -> None:
        """Anonymous clients are let in if there is no user; `queued` 0 is no limit of a client's queue.

        A secure server has TLS, with a certificate of its own that `ca_file` names.
        """
        self.folder = folder
        self.user = user
        self.password = password
        self.queued = queued
        self.secure = secure
        self.ca_file = folder / "server.pem"
        self.port = quiet_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address as sensors.mqtt_url."""
        return f"{'mqtts' if self.secure else 'mqtt'}://127.0.0.1:{self.port}"

    @property
    def password_file(self) -> Path:
        """The user's password, for the node."""
        return self.folder / "password"

    @property
    def log(self) -> str:
        """What it has said so far."""
        return (self.folder / "mosquitto.log").read_text()

    def start(self) -> Self:
        """Start it and wait until it accepts connections; skips where this machine has no Mosquitto."""
        need("Mosquitto")
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "mosquitto.conf"
        configuration.write_text("\n".join(self._lines()) + "\n")
        with (self.folder / "mosquitto.log").open("ab") as log:
            command = [_path("mosquitto"), "-c", str(configuration), "-v"]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._accepts, lambda: self.log)
        return self

    def _lines(self) -> Iterator[str]:
        yield f"listener {self.port} 127.0.0.1"
        if self.secure:
            certificates = self.folder / "server.pem", self.folder / "server-key.pem"
            if not certificates[0].exists():
                certificate(self.folder, "server")
            yield "certfile {}\nkeyfile {}".format(*certificates)
        yield f"user {getpass.getuser()}"
        yield f"persistence true\npersistence_location {self.folder}/"
        yield f"max_queued_messages {self.queued}"
        if not self.user:
            yield "allow_anonymous true"
            return
        users = self.folder / "users"
        command = [_path("mosquitto_passwd"), "-b", "-c", str(users), self.user, self.password]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        self.password_file.write_text(f"{self.password}\n")
        yield f"allow_anonymous false\npassword_file {users}"

    def _accepts(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), PATIENCE):
            return True
        return False

    def stop(self) -> None:
        """SIGTERM: it stores sessions and messages, which its next start finds."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)


class Field:
    """A client as sensors have it: it publishes with QoS 1, and remembers the commands that it hears."""

    def __init__(self, server: Mosquitto) -> None:
        self.commands: list[tuple[str, str]] = []
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=uuid.uuid4().hex)
        self._client.max_inflight_messages_set(0)
        if server.secure:
            self._client.tls_set(str(server.ca_file))
        if server.user:
            self._client.username_pw_set(server.user, server.password)
        self._heard = threading.Event()
        self._client.on_message = lambda _, __, m: self.commands.append((m.topic, m.payload.decode()))
        self._client.on_subscribe = lambda *_: self._heard.set()
        self._client.connect("127.0.0.1", server.port)
        self._client.loop_start()

    def publish(self, topic: str, *payloads: Any, retain: bool = False) -> None:
        """Publish each, as JSON unless it is bytes; the broker has them all when it returns."""
        encoded = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in payloads]
        self.publish_all(((topic, each) for each in encoded), retain=retain)

    def publish_all(self, messages: Iterable[tuple[str, bytes]], *, retain: bool = False) -> None:
        """Publish messages on many topics; the broker has them all when it returns."""
        sent = [self._client.publish(topic, payload, qos=1, retain=retain) for topic, payload in messages]
        for each in sent:
            each.wait_for_publish(PATIENCE)
            assert each.is_published()

    def listen(self, topics: str) -> None:
        """Hear what is published on these topics, beginning with what is retained."""
        self._client.subscribe(topics, 1)
        assert self._heard.wait(PATIENCE)

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def field(server: Mosquitto) -> Iterator[Field]:
    """A client that is connected until the end."""
    client = Field(server)
    try:
        yield client
    finally:
        client.close()


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A Mosquitto of its own for a test, which may stop and start it."""
    with Mosquitto(tmp_path / "mosquitto") as server:
        yield server


def _path(command: str) -> str:
    """Where Debian has it; an ordinary user's PATH may lack /usr/sbin."""
    found = shutil.which(command) or shutil.which(command, path=SEARCHED)
    assert found is not None, f"there is no {command}"
    return found
