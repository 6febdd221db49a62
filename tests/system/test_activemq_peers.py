"""Applications on the same ActiveMQ: STOMP by stomp.py, MQTT by paho, in both directions, and no loops."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpwsn_client import SyncClient, SyncReceiver
from tests.activemq import ActiveMQ, BackedNode, sharing
from tests.cutting_relay import CuttingRelay
from tests.mqtt_application import mqtt_application
from tests.patience import PATIENCE, until
from tests.stomp_application import StompApplication


@pytest.fixture
def root() -> str:
    """A root topic of the test's own, since all share one ActiveMQ."""
    return f"R{uuid.uuid4().hex[:8]}"


@pytest.fixture
def node(activemq: ActiveMQ, tmp_path: Path, root: str) -> Iterator[BackedNode]:
    with sharing(activemq, tmp_path / "data", root) as running:
        yield running


def test_what_a_stomp_application_publishes_reaches_a_soap_subscriber(
    activemq: ActiveMQ, node: BackedNode, root: str
) -> None:
    destination = f"/topic/hpwsn.{root}.B.C"
    with (
        StompApplication(activemq) as application,
        SyncReceiver() as receiver,
        SyncClient(node.url) as client,
    ):
        client.subscribe(root, receiver)
        headers = {"topic": f"{root}:B:C", "id": "s:1", "producer": "http://example.org/meter"}
        application.connection.send(destination, '<m:x xmlns:m="urn:m">1</m:x>', headers=headers)
        application.connection.send(destination, "plain text & more")
        first, second = receiver.get(PATIENCE), receiver.get(PATIENCE)
    assert (first.topic, first.text) == (f"{root}:B:C", '<m:x xmlns:m="urn:m">1</m:x>')
    assert first.producer is not None
    assert first.producer.address == "http://example.org/meter"
    assert (second.topic, second.text, second.is_text) == (f"{root}:B:C", "plain text & more", True)
    assert node.get(f"/topics/{root}/events")[0]["id"] == "s:1"


def test_what_a_soap_publisher_publishes_reaches_a_stomp_application(
    activemq: ActiveMQ, node: BackedNode, root: str
) -> None:
    with StompApplication(activemq) as application, SyncClient(node.url) as client:
        application.subscribe(f"/topic/hpwsn.{root}.>")
        client.notify(f"{root}:B", "<x>京</x>", message_id="the id", producer="http://example.org/p")
        client.notify("elsewhere", "<x>not shared</x>")
        client.notify(root, "text < & >")
        headers, body = application.get()
        assert (headers["destination"], body) == (f"/topic/hpwsn.{root}.B", "<x>京</x>".encode())
        assert (headers["topic"], headers["id"]) == (f"{root}:B", "the id")
        assert (headers["producer"], headers["origin"]) == ("http://example.org/p", node.name)
        headers, body = application.get()
        assert (headers["topic"], body) == (root, b"text < & >")
        assert headers["id"]


def test_comments_in_a_payload_reach_applications_and_come_from_them(
    activemq: ActiveMQ, node: BackedNode, root: str
) -> None:
    payload = "<x>1<!-- c --><?pi y?></x>"
    with (
        StompApplication(activemq) as application,
        SyncReceiver() as receiver,
        SyncClient(node.url) as client,
    ):
        application.subscribe(f"/topic/hpwsn.{root}.>")
        client.subscribe(root, receiver)
        client.notify(root, payload)
        assert (application.get()[1], receiver.get(20).payload) == (payload.encode(), payload.encode())
        application.connection.send(f"/topic/hpwsn.{root}", f"<?xml version='1.0'?><!-- d -->{payload}")
        assert receiver.get(20).payload == payload.encode()


def test_an_mqtt_client_publishes_to_soap_subscribers_and_gets_what_they_publish(
    activemq: ActiveMQ, node: BackedNode, root: str
) -> None:
    with (
        mqtt_application(activemq, f"hpwsn/{root}/#") as (application, messages),
        SyncReceiver() as receiver,
        SyncClient(node.url) as client,
    ):
        client.subscribe(root, receiver)
        application.publish(f"hpwsn/{root}/B/C.D", "<x>1</x>", qos=1)
        application.publish(f"hpwsn/{root}", '{"not": "XML"}', qos=0)
        found = {receiver.get(PATIENCE).text: number for number in range(2)}
        assert set(found) == {"<x>1</x>", '{"not": "XML"}'}
        topics = {event["topic"] for event in node.get(f"/topics/{root}/events")}
        assert topics == {root, f"{root}:B:C.D"}
        client.notify(f"{root}:Z", "<x>back</x>")
        while (message := messages.get(timeout=PATIENCE))[0] != f"hpwsn/{root}/Z":
            assert message[1] != b"<x>back</x>"
        assert message[1] == b"<x>back</x>"


def test_nodes_that_share_a_topic_multiply_nothing(activemq: ActiveMQ, tmp_path: Path, root: str) -> None:
    with (
        sharing(activemq, tmp_path / "one", root) as one,
        sharing(activemq, tmp_path / "two", root) as two,
        StompApplication(activemq) as application,
    ):
        application.subscribe(f"/topic/hpwsn.{root}.>")
        for number in range(5):
            one.post(root, {"one": number})
            two.post(root, {"two": number})
        application.connection.send(f"/topic/hpwsn.{root}", "<event><app>1</app></event>")
        one.post(root, [{"end": 1}, {"end": 2}], "several with one id")
        for node in (one, two):
            until(lambda node=node: len(node.events(root)) >= 13, node.log)  # type: ignore[misc]
        # Whatever a loop would bring comes before what is sent now.
        one.post(root, {"last": "one"})
        two.post(root, {"last": "two"})
        for node in (one, two):
            until(lambda node=node: len(node.events(root)) >= 15, node.log)  # type: ignore[misc]
        wanted = [f"{{'{who}': {n}}}" for who in ("one", "two") for n in range(5)]
        wanted += ["{'app': 1}", "{'end': 1}", "{'end': 2}", "{'last': 'one'}", "{'last': 'two'}"]
        assert sorted(map(str, one.events(root))) == sorted(map(str, two.events(root))) == sorted(wanted)
        bodies = [application.get()[1] for _ in range(15)]
        assert len(set(bodies)) == 15
        assert application.messages.empty()
        assert one.peer_count("sent") == 8
        assert two.peer_count("received") == 9


def test_a_repeated_id_of_an_application_is_stored_once(
    activemq: ActiveMQ, node: BackedNode, root: str
) -> None:
    with StompApplication(activemq) as application:
        for id_ in ("a", "a", "b", "a"):
            application.connection.send(f"/topic/hpwsn.{root}", f"<x>{id_}</x>", headers={"id": id_})
        application.connection.send(f"/topic/hpwsn.{root}", "<x>end</x>")
        until(lambda: {"x": "end"} in node.events(root))
    assert node.events(root) == [{"x": "a"}, {"x": "b"}, {"x": "end"}]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"\xff\xfe\xfd", {}),
        (b"bell \x07", {}),
        (b"<x/>", {"topic": "not:*:a topic"}),
        (b"<x/>", {"topic": "elsewhere:B"}),
    ],
)
def test_a_malformed_message_is_counted_and_does_not_block_the_next(
    activemq: ActiveMQ, node: BackedNode, root: str, body: bytes, headers: dict[str, str]
) -> None:
    with StompApplication(activemq) as application:
        application.connection.send(f"/topic/hpwsn.{root}", body, headers=headers)
        application.connection.send(f"/topic/hpwsn.{root}", "<x>good</x>")
        until(lambda: node.events(root) == [{"x": "good"}], node.log)
    assert node.metric("hpwsn_backbone_peer_rejected_total", reason="malformed") == 1
    assert "is no notification" in node.log()


def test_what_peers_sent_while_a_node_was_down_is_there_when_it_is_back(
    activemq: ActiveMQ, tmp_path: Path, root: str
) -> None:
    with StompApplication(activemq) as application:
        application.subscribe(f"/topic/hpwsn.{root}.>")
        with sharing(activemq, tmp_path / "data", root, name=f"durable-{root}") as node:
            node.post(root, {"n": 1})
            assert application.get()[0]["id"]
            node.terminate()
        application.connection.send(f"/topic/hpwsn.{root}", "<e><n>2</n></e>", headers={"persistent": "true"})
        assert application.get()
        with sharing(activemq, tmp_path / "data", root, name=f"durable-{root}") as node:
            until(lambda: len(node.events(root)) == 2, node.log)
            node.post(root, {"n": 3})
            assert b"<n>3</n>" in application.get()[1]
            assert node.events(root) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_peers_that_were_away_are_told_what_they_missed(
    own_activemq: ActiveMQ, tmp_path: Path, root: str
) -> None:
    own_activemq.start()
    quick = ("--set", "backbone.heartbeat=2", "--set", f"backbone.peers={root}")
    with BackedNode(tmp_path / "data", own_activemq.url, *quick) as node:
        until(lambda: node.get("/readyz")["ready"])
        own_activemq.kill()
        node.wait("away")
        for number in range(10):
            node.post(root, {"n": number})
        own_activemq.start()
        with StompApplication(own_activemq) as application:
            application.subscribe(f"/topic/hpwsn.{root}.>")
            until(lambda: node.get("/readyz")["ready"])
            until(lambda: node.peer_count("sent") == 10, node.log)
        assert node.events(root) == [{"n": number} for number in range(10)]


def test_what_is_sent_again_after_a_lost_line_has_the_same_id(
    activemq: ActiveMQ, tmp_path: Path, root: str
) -> None:
    with (
        CuttingRelay(activemq.stomp_port, f"destination:/topic/hpwsn.{root}".encode()) as relay,
        StompApplication(activemq) as application,
        BackedNode(
            tmp_path / "data", f"stomp://127.0.0.1:{relay.port}", "--set", f"backbone.peers={root}"
        ) as node,
    ):
        application.subscribe(f"/topic/hpwsn.{root}.>")
        # A subscription has the mark too, so the line is cut for the first time before anything is sent.
        until(lambda: relay.has_cut.is_set() and node.get("/readyz")["ready"], node.log)
        relay.has_cut.clear()
        node.post(root, {"n": 1}, "the id")
        until(lambda: node.peer_count("sent") == 1, node.log)
        node.post(root, {"n": 2}, "the end")
        ids = [application.get()[0]["id"]]
        while ids[-1] != "the end":
            ids.append(application.get()[0]["id"])
    assert set(ids) == {"the id", "the end"}


def test_a_publication_that_was_half_sent_when_the_node_ended_goes_on_counting_its_parts(
    activemq: ActiveMQ, tmp_path: Path, root: str
) -> None:
    with StompApplication(activemq) as application:
        application.subscribe(f"/topic/hpwsn.{root}.>")
        with sharing(activemq, tmp_path / "data", root, name=f"half-{root}") as node:
            node.post(root, [{"n": number} for number in range(4)], "P")
            first = [application.get()[0]["id"] for _ in range(4)]
            until(lambda: node.peer_count("sent") == 4)
            node.terminate()
        with sqlite3.connect(tmp_path / "data" / "journal.db") as journal:
            journal.execute("UPDATE cursors SET offset = 2 WHERE id = 'peers'")
        journal.close()
        with sharing(activemq, tmp_path / "data", root, name=f"half-{root}"):
            again = [application.get()[0]["id"] for _ in range(2)]
    assert first == ["P", "P#2", "P#3", "P#4"]
    assert again == ["P#3", "P#4"]


def test_what_only_comes_from_peers_leaves_no_trail_that_grows(
    activemq: ActiveMQ, tmp_path: Path, root: str
) -> None:
    data = tmp_path / "data"
    with sharing(activemq, data, root) as node, StompApplication(activemq) as application:
        for number in range(300):  # one at a time, so that each is stored by itself
            application.connection.send(f"/topic/hpwsn.{root}", f"<e><n>{number}</n></e>")
            until(lambda number=number: node.peer_count("received") > number)  # type: ignore[misc]
        journal = sqlite3.connect(f"{(data / 'journal.db').as_uri()}?mode=ro", uri=True)
        until(lambda: journal.execute("SELECT count(*) FROM from_peers").fetchone()[0] < 200)
        journal.close()
        assert node.peer_count("sent") == 0
