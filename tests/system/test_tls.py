"""TLS at the node's port: both lanes on one connection, certificates of clients, and what is wrong said."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.certificates import certificate
from tests.harness import NodeProcess, environment
from tests.patience import PATIENCE, eventually
from tests.raw_soap import envelope, notify, subscribe

READS = 64 * 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[NodeProcess]:
    shown, key = certificate(folder, "node")
    arguments = "--set", f"server.tls_certificate={shown}", "--set", f"server.tls_key={key}"
    with NodeProcess(folder / "data", *arguments) as running:
        yield running


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "node.pem"))


def request(method: str, path: str, body: bytes = b"", more: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def converse(node: NodeProcess, context: ssl.SSLContext, data: bytes) -> bytes:
    """All that the node answers to these bytes, the last request of which ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port, ssl=context)
    writer.write(data)
    answers = await reader.read(-1)
    writer.close()
    return answers


async def test_both_lanes_serve_pipelined_requests_of_one_connection(node: NodeProcess, folder: Path) -> None:
    assert node.url.startswith("https://127.0.0.1:")
    posts = b"".join(request("POST", "/wsn", envelope(notify("A:B", f"<n>{n}</n>"))) for n in range(50))
    gets = request("GET", "/status") + request("GET", "/healthz", more="Connection: close\r\n")
    answers = await converse(node, trusting(folder), posts + gets)
    assert answers.count(b"HTTP/1.1 202") == 50
    assert answers.count(b"HTTP/1.1 200") == 2
    assert answers.index(b"HTTP/1.1 200") > answers.rindex(b"HTTP/1.1 202")


async def test_addresses_that_the_node_hands_out_are_https_and_work(node: NodeProcess, folder: Path) -> None:
    text = {"Content-Type": "text/xml"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(folder))) as session:
        asked = envelope(subscribe("https://127.0.0.1:9/", "A:B"))
        async with session.post(node.url, data=asked, headers=text) as reply:
            answer = await reply.text()
        address = answer.split("Address>")[1].split("<")[0]
        assert address.startswith(f"{node.base}/wsn/subscriptions/")
        async with session.post(address, data=envelope("<w:Unsubscribe/>"), headers=text) as reply:
            assert reply.status == 200


async def test_who_speaks_plain_http_is_hung_up_on_and_others_go_on(node: NodeProcess, folder: Path) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    writer.write(request("GET", "/healthz"))
    assert b"200" not in await reader.read(READS)
    writer.close()
    whole = request("GET", "/healthz", more="Connection: close\r\n")
    assert b"200 OK" in await converse(node, trusting(folder), whole)


async def test_a_renewed_certificate_is_shown_after_sighup_and_a_broken_one_is_not(
    node: NodeProcess, folder: Path
) -> None:
    shown = folder / "node.pem"
    before = shown.read_text()
    shown.write_text("broken")
    os.kill(node.pid, signal.SIGHUP)

    async def complained() -> bool:
        return "the old certificate stays in use" in node.log()

    await eventually(complained)
    assert ssl.get_server_certificate(("127.0.0.1", node.port)) == before
    key = folder / "node-key.pem"
    old = key.read_bytes()
    certificate(folder, "node")
    new = key.read_bytes()
    key.write_bytes(old)  # as where the signal comes between the renewal of the two files
    os.kill(node.pid, signal.SIGHUP)

    async def complained_again() -> bool:
        return "KEY_VALUES_MISMATCH" in node.log()

    await eventually(complained_again)
    assert ssl.get_server_certificate(("127.0.0.1", node.port)) == before
    key.write_bytes(new)
    os.kill(node.pid, signal.SIGHUP)

    async def renewed() -> bool:
        return ssl.get_server_certificate(("127.0.0.1", node.port)) == shown.read_text() != before

    await eventually(renewed)


async def test_only_clients_with_a_certificate_are_let_in_where_they_are_demanded(
    folder: Path, tmp_path: Path
) -> None:
    (server, key), (client, client_key) = certificate(tmp_path, "node"), certificate(tmp_path, "client")
    whole = request("GET", "/healthz", more="Connection: close\r\n")
    settings = {"tls_certificate": server, "tls_key": key, "tls_client_ca": client}
    arguments = [part for name, file in settings.items() for part in ("--set", f"server.{name}={file}")]
    with NodeProcess(tmp_path / "data", *arguments) as strict:
        unknown = trusting(tmp_path)
        # In TLS 1.3 a client hears of its refusal only after its own side of the handshake.
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            assert await converse(strict, unknown, whole) == b""
        unknown.load_cert_chain(client, client_key)
        assert b"200 OK" in await converse(strict, unknown, whole)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tls_key": "x"}, "requires server.tls_certificate"),
        ({"tls_certificate": "missing.pem"}, '"missing.pem" cannot be read: No such file'),
        ({"tls_certificate": "words.pem"}, '"words.pem" cannot be used for TLS with the key words.pem'),
    ],
)
def test_what_is_wrong_with_the_files_is_said_at_the_start(
    settings: dict[str, str], words: str, tmp_path: Path
) -> None:
    (tmp_path / "words.pem").write_text("words")
    command = [sys.executable, "-m", "hpwsn", "serve", "--port", "0"]
    command += [part for name, file in settings.items() for part in ("--set", f"server.{name}={file}")]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode != 0
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
