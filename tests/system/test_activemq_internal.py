"""The internal publisher: another process writes to a node's queue."""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpwsn.backbone.activemq.internal_publisher import MAX_UNCONFIRMED, InternalPublisher
from hpwsn.errors import BackboneUnavailable, HpwsnError
from tests.activemq import ActiveMQ, BackedNode
from tests.harness import environment
from tests.patience import PATIENCE, until
from tests.stomp_application import StompApplication

# A Java machine takes its time to start where others want the processors too.

JOB = """
import sys
from hpwsn.backbone.activemq.internal_publisher import InternalPublisher

with InternalPublisher(sys.argv[1], node=sys.argv[2]) as publisher:
    for number in range(3000):
        publisher.publish("streams:flow", f"<flow><n>{number}</n></flow>", id=f"job-{number}")
"""


@pytest.fixture
def node(activemq: ActiveMQ, tmp_path: Path) -> Iterator[BackedNode]:
    with BackedNode(tmp_path / "data", activemq.url) as running:
        running.wait()
        yield running


def test_what_another_process_publishes_is_stored_once_and_in_order_however_often_it_runs(
    activemq: ActiveMQ, node: BackedNode
) -> None:
    for _ in range(2):
        command = [sys.executable, "-c", JOB, activemq.url, node.name]
        subprocess.run(command, check=True, timeout=PATIENCE, env=environment())
    with InternalPublisher(activemq.url, node.name) as publisher:
        publisher.publish("streams:flow", "<flow><n>last</n></flow>")
    until(lambda: node.events("streams:flow")[-1:] == [{"n": "last"}], node.log)
    assert [event["n"] for event in node.events("streams:flow")] == [*range(3000), "last"]
    assert node.get("/status")["published"] == {"accepted": 3001, "repeated": 3000, "refused": 0}


def test_a_door_knows_the_ids_of_the_internal_publisher(activemq: ActiveMQ, node: BackedNode) -> None:
    with InternalPublisher(activemq.url, node.name) as publisher:
        publisher.publish("A", "one", id="x")
        publisher.publish("A", "again", id="x")
        publisher.flush()
        until(lambda: node.events("A") == [{"text": "one"}])
    assert node.post("A", {"n": 2}, "x") == {"first": 1, "last": 1}
    assert node.events("A") == [{"text": "one"}]


def test_it_may_begin_before_activemq_and_node_are_there(own_activemq: ActiveMQ, tmp_path: Path) -> None:
    with InternalPublisher(own_activemq.url, "late", timeout=PATIENCE) as publisher:
        publisher.publish("A", "<x>1</x>", producer="http://example.org/job")
        with pytest.raises(BackboneUnavailable, match=f"there is no answer from {own_activemq.place}"):
            publisher.flush(timeout=2)
        own_activemq.start()
        publisher.flush()
        own_activemq.kill()
        publisher.publish("A", "<x>2</x>")
        own_activemq.start()
        publisher.flush()
    with BackedNode(tmp_path / "data", own_activemq.url, name="late") as node:
        until(lambda: node.events("A") == [{"x": 1}, {"x": 2}], node.log)


def test_a_topic_outside_a_fixed_tree_is_refused_and_kept_for_the_operator(
    activemq: ActiveMQ, tmp_path: Path
) -> None:
    topics = tmp_path / "topics.toml"
    topics.write_text("[topics.A]\n")
    with BackedNode(tmp_path / "data", activemq.url, "--topics", str(topics)) as node:
        node.wait()
        with InternalPublisher(activemq.url, node.name) as publisher:
            publisher.publish("B", "<x>unknown</x>")
            publisher.publish("A", "<x>known</x>")
        until(lambda: node.events("A") == [{"x": "known"}], node.log)
        assert node.backbone["refused"] == 1
        assert f"/queue/hpwsn.refused.{node.name}" in node.log()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            node.post("B", {"n": 1})


def test_what_waits_for_an_activemq_that_is_away_has_a_limit_and_is_sent_later(
    own_activemq: ActiveMQ, tmp_path: Path
) -> None:
    publisher = InternalPublisher(own_activemq.url, "bounded", batch=1, timeout=0.2)
    taken = 0
    with pytest.raises(BackboneUnavailable):
        for number in range(1000):
            publisher.publish("A", f"<x>{number}</x>")
            taken += 1
    assert taken == MAX_UNCONFIRMED + 1
    own_activemq.start()
    publisher.flush(PATIENCE)
    publisher.close()
    with BackedNode(tmp_path / "data", own_activemq.url, name="bounded") as node:
        until(lambda: node.events("A") == [{"x": number} for number in range(taken)], node.log)


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({}, b"hpwsn/1 []\n", "frame id"),
        ({"frame": "x:1"}, b"\x00\xff garbage", "begins with"),
        ({"frame": "x:1"}, b'hpwsn/1 [["A",4,0,4,0,null,null]]\n<x/>', "Topic"),
        ({"frame": "x:1"}, b'hpwsn/1 [["A",4,0,4,0,null,null]]\n<x><', "not well-formed"),
    ],
)
def test_what_is_no_frame_is_set_aside_with_the_reason_and_the_queue_goes_on(
    activemq: ActiveMQ, node: BackedNode, headers: dict[str, str], body: bytes, reason: str
) -> None:
    with StompApplication(activemq) as application:
        application.subscribe(f"/queue/hpwsn.refused.{node.name}")
        application.connection.send(f"/queue/hpwsn.node.{node.name}", body, headers=headers)
        with InternalPublisher(activemq.url, node.name) as publisher:
            publisher.publish("A", "<x>good</x>")
        until(lambda: node.events("A") == [{"x": "good"}], node.log)
        found, kept = application.get()
    assert body in kept or kept.startswith(b"hpwsn/1 ")
    assert node.backbone["refused"] == 1
    assert reason in found["reason"]


@pytest.mark.parametrize(
    ("topic", "payload", "id_"),
    [
        ("A B", "x", None),
        ("A", "<x>", None),
        ("A", "bell \x07", None),
        ("A", "x", ""),
        ("A", "x", "i" * 1025),
    ],
)
def test_what_no_node_could_take_is_refused_at_once(
    activemq: ActiveMQ, topic: str, payload: str, id_: str | None
) -> None:
    with InternalPublisher(activemq.url, "nobody") as publisher, pytest.raises(ValueError):
        publisher.publish(topic, payload, id=id_)


def test_a_closed_publisher_and_a_bad_address_say_so(activemq: ActiveMQ) -> None:
    publisher = InternalPublisher(activemq.url, "nobody")
    publisher.close()
    publisher.close()
    assert publisher._link._thread.name not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(HpwsnError, match="closed"):
        publisher.publish("A", "x")
    with pytest.raises(HpwsnError, match="must begin with stomp://"):
        InternalPublisher("http://127.0.0.1:1", "nobody")
