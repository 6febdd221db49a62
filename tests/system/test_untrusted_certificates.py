"""A certificate that does not verify is told as that, with what to set, wherever it is met: in the client, on
the command line and in a node's log. Connection failures are one exception."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from hpwsn_client import (
    BadReply,
    Client,
    ConnectionFailed,
    DemandPublisher,
    HpwsnClientError,
    PublishFailed,
    Receiver,
    SyncClient,
    SyncReceiver,
)
from hpwsn_client.errors import CertificateRefused
from tests.certificates import certificate
from tests.harness import NodeProcess, environment
from tests.patience import eventually

TRUST = "give the PEM file of the authority that signed it: HPWSN_CA, --ca, or Client(tls=…)"
SELF_SIGNED = f"is not accepted (self-signed certificate); {TRUST}"
NOBODY = "http://127.0.0.1:9/wsn"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("untrusted")


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[NodeProcess]:
    shown, key = certificate(folder, "node")
    arguments = "--set", f"server.tls_certificate={shown}", "--set", f"server.tls_key={key}"
    with NodeProcess(folder / "data", *arguments) as running:
        yield running


def is_one_exception(error: BaseException) -> bool:
    """Whether a program that does not catch it shows one traceback, with one line at its end."""
    shown = "".join(traceback.format_exception(error))
    return shown.count("Traceback (most recent call last)") == 1 and str(error).count("\n") == 0


async def test_a_client_says_what_is_wrong_with_the_certificate_and_what_to_set(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        with pytest.raises(CertificateRefused) as caught:
            await client.notify("A", "x")
    assert str(caught.value) == f"the certificate of {node.url} {SELF_SIGNED}"
    assert isinstance(caught.value, ConnectionFailed)
    assert is_one_exception(caught.value)


async def test_a_publisher_of_streams_says_the_same(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        publisher = client.publisher(retry_for=0)
        await publisher.put("A", "x")
        with pytest.raises(PublishFailed) as caught:
            await publisher.close()
    assert SELF_SIGNED in str(caught.value)
    assert is_one_exception(caught.value)


async def test_a_client_that_trusts_the_authority_is_served(
    node: NodeProcess, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = folder / "node.pem"
    async with Client(node.url, tls=trusted) as client, client.publisher() as publisher:
        await client.notify("A", "x")
        await publisher.put("A", "y")
    async with Client(node.url, tls=ssl.create_default_context(cafile=trusted)) as client:
        assert (await client.get_current_message("A")).text == "y"
    monkeypatch.setenv("HPWSN_CA", str(trusted))
    async with Client(node.url) as client:
        assert (await client.get_current_message("A")).text == "y"


async def test_an_address_that_the_certificate_does_not_name_is_told_as_that(
    node: NodeProcess, folder: Path
) -> None:
    url = node.url.replace("127.0.0.1", "localhost")
    async with Client(url, tls=folder / "node.pem") as client:
        with pytest.raises(CertificateRefused, match="use an address that the certificate names") as caught:
            await client.notify("A", "x")
    assert "certificate is not valid for 'localhost'" in str(caught.value)


async def test_https_to_a_node_without_a_certificate_is_told_as_that(shared_node: NodeProcess) -> None:
    async with Client(shared_node.url.replace("http:", "https:")) as client:
        with pytest.raises(ConnectionFailed, match=r"^TLS with .* failed .*write http:// instead") as caught:
            await client.notify("A", "x")
    assert is_one_exception(caught.value)


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {**environment(), "PYTHONWARNINGS": "ignore", **variables}
    return subprocess.run([sys.executable, "-m", *words], env=given, capture_output=True, text=True)


@pytest.mark.parametrize(
    "words",
    [
        ("hpwsn", "publish", "A", "x"),
        ("hpwsn", "listen", "A", "--expires", "0.1"),
        ("hpwsn_client.commands.main", "publish", "A", "x"),
        ("hpwsn", "subscriptions", "list"),
        ("hpwsn", "deadletters", "list"),
        ("hpwsn", "streams", "list"),
    ],
    ids=" ".join,
)
def test_commands_say_so_in_one_line_and_take_the_file_of_the_authority(
    words: tuple[str, ...], node: NodeProcess, folder: Path
) -> None:
    refused = run(*words, HPWSN_URL=node.url)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert refused.stderr.startswith("hpwsn: error: the certificate of https://127.0.0.1:")
    assert SELF_SIGNED in refused.stderr
    trusted = str(folder / "node.pem")
    assert run(*words, "--ca", trusted, HPWSN_URL=node.url).returncode == 0
    assert run(*words, HPWSN_URL=node.url, HPWSN_CA=trusted).returncode == 0


@asynccontextmanager
async def secure_consumer(folder: Path) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A consumer with a certificate of its own authority: its URL, and what it was sent."""
    shown, key = certificate(folder, "consumer")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown, key)
    received: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        received.append(await request.read())
        return web.Response(status=202)

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/", received
    finally:
        await runner.cleanup()


async def test_a_node_logs_a_consumer_it_does_not_trust_and_delivers_once_it_does(tmp_path: Path) -> None:
    async with secure_consumer(tmp_path) as (url, received):
        with NodeProcess(tmp_path / "data") as node:
            async with Client(node.url) as client:
                await client.subscribe("A", url)
                await client.notify("A", "x")

            async def logged() -> bool:
                return "the certificate is not accepted" in node.log()

            await eventually(logged)
            why = "the certificate is not accepted: self-signed certificate"
            assert (
                f"{why}; name the PEM file of the authority that signed it in delivery.ca_file" in node.log()
            )
            assert received == []
            assert node.terminate() == 0
        trusting = ("--set", f"delivery.ca_file={tmp_path / 'consumer.pem'}")
        with NodeProcess(tmp_path / "data", *trusting):

            async def delivered() -> bool:
                return bool(received)

            await eventually(delivered)
    assert b"x" in received[0]


async def test_a_node_logs_a_publisher_on_demand_it_does_not_trust(tmp_path: Path) -> None:
    async with secure_consumer(tmp_path) as (url, _):
        with NodeProcess(tmp_path / "data") as node:
            async with Client(node.url) as client, Receiver() as receiver:
                await client.register_publisher("A", publisher=url, demand=True)
                await client.subscribe("A", receiver)

                async def logged() -> bool:
                    return "in delivery.ca_file; retrying" in node.log()

                await eventually(logged)


async def raised_by(call: str) -> HpwsnClientError:
    """What a call raises that meets nobody, a port in use, or something else than a broker."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(HpwsnClientError) as caught:
        port = taken.getsockname()[1]
        match call:
            case "notify":
                async with Client(NOBODY) as client:
                    await client.notify("A", "x")
            case "notify_many":
                async with Client(NOBODY) as client:
                    await client.notify_many([("A", "x")])
            case "lingering":
                async with Client(NOBODY, linger=0.01) as client:
                    await client.notify("A", "x")
            case "publisher":
                async with Client(NOBODY) as client, client.publisher(retry_for=0) as publisher:
                    await publisher.put("A", "x")
            case "timeout":
                async with Client(f"http://127.0.0.1:{port}/wsn", timeout=0.1) as client:
                    await client.notify("A", "x")
            case "receiver":
                await Receiver(port=port).open()
            case "demand":
                await DemandPublisher(port=port).open()
    return caught.value


@pytest.mark.parametrize(
    "call", ["notify", "notify_many", "lingering", "publisher", "timeout", "receiver", "demand"]
)
async def test_a_connection_failure_is_one_exception_that_names_the_address(call: str) -> None:
    error = await raised_by(call)
    assert is_one_exception(error)
    assert "http://127.0.0.1:" in str(error)
    assert "; " in str(error)


def test_the_sync_faces_raise_one_exception_too() -> None:
    with SyncClient(NOBODY) as client, pytest.raises(ConnectionFailed, match="Connection refused") as caught:
        client.create_pull_point()
    assert is_one_exception(caught.value)
    refused = pytest.raises(ConnectionFailed, match="choose another host or port")
    with socket.create_server(("127.0.0.1", 0)) as taken, refused as caught:
        SyncReceiver(port=taken.getsockname()[1])
    assert is_one_exception(caught.value)


async def test_an_answer_that_is_not_soap_is_one_exception(shared_node: NodeProcess) -> None:
    async with Client(f"{shared_node.base}/healthz") as client:
        with pytest.raises(BadReply) as caught:
            await client.create_pull_point()
    assert is_one_exception(caught.value)


def test_a_script_that_catches_nothing_ends_with_one_traceback(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from hpwsn_client import SyncClient\nwith SyncClient() as c:\n    c.notify('A', 'x')\n"
    )
    given = {**environment(), "HPWSN_URL": NOBODY, "PATH": os.environ["PATH"]}
    ended = subprocess.run([sys.executable, str(script)], env=given, capture_output=True, text=True)
    assert ended.stderr.count("Traceback (most recent call last)") == 1
    assert ended.stderr.splitlines()[-1] == (
        "hpwsn_client.errors.ConnectionFailed: cannot connect to http://127.0.0.1:9/wsn (Connection refused);"
        " start the broker, or give its URL"
    )
