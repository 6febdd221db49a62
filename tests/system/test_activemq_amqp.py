"""Applications that speak AMQP 1.0 on the same ActiveMQ, by Qpid Proton: both ways, durable, by password."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException, Message, symbol

from hpwsn_client import SyncClient, SyncReceiver
from tests.activemq import ActiveMQ, BackedNode, sharing
from tests.amqp_application import PATIENCE, AmqpApplication, receive
from tests.harness import ROOT
from tests.needs import need
from tests.patience import until


@pytest.fixture
def root() -> str:
    """A root topic of the test's own, since all share one ActiveMQ."""
    return f"Q{uuid.uuid4().hex[:8]}"


@pytest.fixture
def node(activemq: ActiveMQ, tmp_path: Path, root: str) -> Iterator[BackedNode]:
    need("ActiveMQ with AMQP")
    with sharing(activemq, tmp_path / "data", root) as running:
        yield running


@pytest.fixture
def application(activemq: ActiveMQ, node: BackedNode) -> Iterator[AmqpApplication]:
    with AmqpApplication(activemq.amqp_port) as connected:
        yield connected


XML = '<m:x xmlns:m="urn:m">京</m:x>'
BODIES = {
    "a string": (Message(body=XML), XML, False),
    "binary": (Message(body=XML.encode()), XML, False),
    "data": (Message(body=XML.encode(), inferred=True), XML, False),
    "data of type XML": (
        Message(body=XML.encode(), inferred=True, content_type="application/xml"),
        XML,
        False,
    ),
    "a string of plain text": (Message(body="plain & 京"), "plain & 京", True),
    "data of plain text": (
        Message(body="plain & 京".encode(), inferred=True, content_type="text/plain; charset=utf-8"),
        "plain & 京",
        True,
    ),
    "JSON": (
        Message(body=b'{"n": 1}', inferred=True, content_type="application/json"),
        '{"n": 1}',
        True,
    ),
}


@pytest.mark.parametrize(("message", "text", "is_text"), BODIES.values(), ids=BODIES.keys())
def test_what_an_amqp_application_publishes_reaches_a_soap_subscriber(
    node: BackedNode, application: AmqpApplication, root: str, message: Message, text: str, is_text: bool
) -> None:
    with SyncReceiver() as receiver, SyncClient(node.url) as client:
        client.subscribe(root, receiver)
        application.send(f"hpwsn.{root}.B.C", message)
        received = receiver.get(PATIENCE)
    assert (received.topic, received.text, received.is_text) == (f"{root}:B:C", text, is_text)


def test_the_properties_of_an_amqp_message_are_the_headers_of_a_notification(
    node: BackedNode, application: AmqpApplication, root: str
) -> None:
    properties = {"topic": f"{root}:B:C", "id": "a:1", "producer": "http://example.org/radar"}
    with SyncReceiver() as receiver, SyncClient(node.url) as client:
        client.subscribe(root, receiver)
        application.send(f"hpwsn.{root}.B", Message(body="<x>1</x>", properties=properties))
        received = receiver.get(PATIENCE)
    assert received.topic == f"{root}:B:C"
    assert received.producer is not None
    assert received.producer.address == "http://example.org/radar"
    assert node.get(f"/topics/{root}/events")[0]["id"] == "a:1"


def test_what_a_soap_publisher_publishes_reaches_an_amqp_application(
    node: BackedNode, application: AmqpApplication, root: str
) -> None:
    receiver = application.subscribe(f"hpwsn.{root}.>")
    with SyncClient(node.url) as client:
        client.notify(f"{root}:B", "<x>京</x>", message_id="the id", producer="http://example.org/p")
        client.notify("elsewhere", "<x>not shared</x>")
        client.notify(root, "text < & >")
    first, second = receive(receiver), receive(receiver)
    assert (first.address, first.body) == (f"topic://hpwsn.{root}.B", "<x>京</x>")
    assert first.properties["topic"] == f"{root}:B"
    assert first.properties["id"] == "the id"
    assert first.properties["producer"] == "http://example.org/p"
    assert first.properties["origin"] == node.name
    assert first.properties["content-type"] == "application/xml"
    assert (second.properties["topic"], second.body) == (root, "text < & >")
    assert second.properties["content-type"] == "text/plain"
    assert first.durable


def test_a_repeated_message_id_of_an_amqp_application_is_stored_once(
    node: BackedNode, application: AmqpApplication, root: str
) -> None:
    for id_ in (f"{root}-a", f"{root}-a", f"{root}-b", f"{root}-a"):
        application.send(f"hpwsn.{root}", Message(body=f"<x>{id_[-1]}</x>", id=id_))
    application.send(f"hpwsn.{root}", Message(body="<x>end</x>"))
    until(lambda: {"x": "end"} in node.events(root), explain=node.log)
    assert node.events(root) == [{"x": "a"}, {"x": "b"}, {"x": "end"}]


@pytest.mark.parametrize(
    ("body", "inferred", "kind"),
    [
        ({"a": 1}, False, "a map"),
        (["a", 1], False, "a list"),
        (["a", 1], True, "a sequence"),
        (5, False, "neither a string nor binary"),
        (symbol("a"), False, "neither a string nor binary"),
        (b"\xff\xfe", True, "neither XML nor UTF-8 text"),
    ],
)
def test_an_amqp_body_that_is_neither_text_nor_bytes_is_counted_and_does_not_block_the_next(
    node: BackedNode, application: AmqpApplication, root: str, body: Any, inferred: bool, kind: str
) -> None:
    application.send(f"hpwsn.{root}", Message(body=body, inferred=inferred))
    application.send(f"hpwsn.{root}", Message(body="<x>good</x>"))
    until(lambda: node.events(root) == [{"x": "good"}], explain=node.log)
    assert node.metric("hpwsn_backbone_peer_rejected_total", reason="malformed") == 1
    assert re.search(rf"is no notification: .*{kind}", node.log())


def test_what_an_amqp_application_sent_while_a_node_was_down_is_there_when_it_is_back(
    activemq: ActiveMQ, tmp_path: Path, root: str
) -> None:
    need("ActiveMQ with AMQP")
    with sharing(activemq, tmp_path / "data", root, name=f"durable-{root}") as node:
        assert node.terminate() == 0
    with AmqpApplication(activemq.amqp_port) as application:
        application.send(f"hpwsn.{root}", Message(body="<x>meanwhile</x>", durable=True))
    with sharing(activemq, tmp_path / "data", root, name=f"durable-{root}") as node:
        until(lambda: node.events(root) == [{"x": "meanwhile"}], explain=node.log)


def test_a_durable_amqp_subscriber_gets_what_was_published_while_it_was_away(
    activemq: ActiveMQ, node: BackedNode, root: str
) -> None:
    name = f"radar-{root}"
    with AmqpApplication(activemq.amqp_port, name) as application:
        application.subscribe_durably(f"hpwsn.{root}.>")
    node.post(root, [{"n": 1}, {"n": 2}])
    until(lambda: node.peer_count("sent") == 2, explain=node.log)
    with AmqpApplication(activemq.amqp_port, name) as application:
        receiver = application.subscribe_durably(f"hpwsn.{root}.>")
        bodies = [receive(receiver).body for _ in range(2)]
    assert re.findall(r"<n>\d</n>", "".join(bodies)) == ["<n>1</n>", "<n>2</n>"]


def test_nodes_and_applications_of_every_protocol_hear_an_amqp_message_once(
    activemq: ActiveMQ, tmp_path: Path, root: str
) -> None:
    need("ActiveMQ with AMQP")
    with (
        sharing(activemq, tmp_path / "one", root) as one,
        sharing(activemq, tmp_path / "two", root) as two,
        AmqpApplication(activemq.amqp_port) as application,
    ):
        receiver = application.subscribe(f"hpwsn.{root}.>")
        application.send(f"hpwsn.{root}", Message(body="<x>1</x>"))
        for node in (one, two):
            until(lambda node=node: node.events(root) == [{"x": 1}], explain=node.log)  # type: ignore[misc]
        # Whatever a loop would bring comes before what is sent now.
        two.post(root, {"last": 1})
        bodies = [receive(receiver).body for _ in range(2)]
        assert bodies[0] == "<x>1</x>"
        assert "<last>1</last>" in bodies[1]
        assert one.peer_count("sent") == 0


def test_amqp_asks_for_the_password_that_stomp_asks_for(tmp_path: Path) -> None:
    need("ActiveMQ with AMQP")
    with ActiveMQ(tmp_path / "mq", "--user", "anna", "--password", "geheim@9", amqp=True) as server:
        with pytest.raises(ConnectionException), AmqpApplication(server.amqp_port):
            pass
        wrong = {"user": "anna", "password": "falsch", "allow_insecure_mechs": True}
        with pytest.raises(ConnectionException), AmqpApplication(server.amqp_port, **wrong):
            pass
        with AmqpApplication(server.amqp_port, **{**wrong, "password": "geheim@9"}) as application:
            application.send("hpwsn.A", Message(body="<x/>"))


def test_the_starter_puts_the_jars_for_mqtt_and_amqp_into_a_folder(tmp_path: Path) -> None:
    need("ActiveMQ with AMQP")
    folder = tmp_path / "a ø b"
    subprocess.run([str(ROOT / "scripts" / "activemq"), "--jars", str(folder)], check=True)
    names = {re.sub(r"-\d.*", "", jar.stem) for jar in folder.iterdir()}
    assert names == {"activemq-amqp", "proton-j", "mqtt-client", "hawtdispatch", "hawtdispatch-transport"}
    assert all(jar.stat().st_size > 10_000 for jar in folder.iterdir())


def test_a_jar_with_another_checksum_is_not_used(tmp_path: Path) -> None:
    need("ActiveMQ")
    checkout, commands = tmp_path / "a ø b", tmp_path / "bin"
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    commands.mkdir()
    maven = commands / "mvn"
    # Maven as it would be with a repository that gives another jar.
    maven.write_text(
        '#!/bin/sh\nfor word; do case "$word" in -DoutputDirectory=*)\n'
        'echo forged >"${word#*=}/activemq-amqp-5.17.6.jar"; esac; done\n'
    )
    maven.chmod(0o755)
    command = [str(checkout / "scripts" / "activemq"), "--jars", str(tmp_path / "lib")]
    environ = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert run.returncode == 1
    assert "activemq-amqp:5.17.6 has the SHA-256" in run.stderr
    assert not list((checkout / ".jars").iterdir())
    assert not list((tmp_path / "lib").glob("activemq-amqp*"))
