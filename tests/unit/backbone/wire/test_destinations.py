"""Addresses of ActiveMQ, and destinations of nodes and topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.backbone.wire.destinations import (
    Address,
    destination_topic,
    node_queue,
    parse_address,
    subtree_destination,
    topic_destination,
)
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("stomp://a", Address((("a", 61613),))),
        ("stomp://a:1/", Address((("a", 1),))),
        ("stomp://a:1,b,[::1]:2", Address((("a", 1), ("b", 61613), ("::1", 2)))),
        ("stomp://anna@a", Address((("a", 61613),), "anna")),
        ("stomp://anna:p%40%3Aw%2F%2C@a", Address((("a", 61613),), "anna", "p@:w/,")),
        ("stomp://anna:@a", Address((("a", 61613),), "anna", "")),
    ],
)
def test_an_address_has_hosts_and_perhaps_a_user(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://a", "must begin with stomp://"),
        ("a:61613", "must begin with stomp://"),
        ("stomp://", "must name hosts"),
        ("stomp://a,,b", "must name hosts"),
        ("stomp://a:0", "must name hosts"),
        ("stomp://a:65536", "must name hosts"),
        ("stomp://a b", "must name hosts"),
        ("stomp://:secret@a", "must have a user"),
        ("stomp://u:secret@a:x", "must name hosts"),
    ],
)
def test_a_bad_address_says_what_is_wanted_and_never_the_password(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        parse_address(url)
    assert "secret" not in str(error.value)


def test_a_password_is_shown_nowhere() -> None:
    address = parse_address("stomp://anna:secret@a:1,b")
    assert "secret" not in f"{address} {address!r}"
    assert str(address) == "stomp://anna:***@a:1,b:61613"


@pytest.mark.parametrize(
    ("topic", "destination"),
    [
        ("A:B:C", "/topic/hpwsn.A.B.C"),
        ("A:b-c_d", "/topic/hpwsn.A.b-c_d"),
        ("A.B:C", "/topic/hpwsn.A%2EB.C"),
        ("Straße:京", "/topic/hpwsn.Straße.京"),
        ("{urn:x}A:B", "/topic/hpwsn.%7Burn%3Ax%7DA.B"),
        ("{http://x.y/z}A:{urn:q}B", "/topic/hpwsn.%7Bhttp%3A%2F%2Fx%2Ey%2Fz%7DA.%7Burn%3Aq%7DB"),
    ],
)
def test_a_topic_has_one_destination_and_the_way_back(topic: str, destination: str) -> None:
    assert topic_destination(Topic.parse(topic)) == destination
    assert destination_topic(destination) == Topic.parse(topic)


def test_a_dot_in_the_topic_of_an_mqtt_client_comes_as_a_slash() -> None:
    assert destination_topic("/topic/hpwsn.A.B/C") == Topic.parse("A:B.C")


def test_the_subtree_is_a_wildcard_of_activemq() -> None:
    assert subtree_destination(Topic.parse("A:B")) == "/topic/hpwsn.A.B.>"


@pytest.mark.parametrize(
    "destination", ["", "/queue/x", "/topic/other.A", "/topic/hpwsn.", "/topic/hpwsn.A..B"]
)
def test_other_destinations_are_of_no_topic(destination: str) -> None:
    with pytest.raises((ValueError, SoapFault)):
        destination_topic(destination)


@given(st.text(max_size=10), st.text(max_size=10))
def test_nodes_of_different_names_have_different_queues_without_wildcards(one: str, other: str) -> None:
    assert (node_queue(one) == node_queue(other)) == (one == other)
    name = node_queue(one).removeprefix("/queue/hpwsn.node.")
    assert not set(name) & set(".>*/:\n\r\\")
