"""What is relayed to another node, and in which form."""

import pytest

from hpwsn.routing.relay.relay_rules import (
    answered_headers,
    is_relayed_address,
    passed_headers,
    signed_target,
    split_address,
)


@pytest.mark.parametrize(
    "path",
    [
        "/status",
        "/topics",
        "/topics/a:b/events",
        "/subscriptions/x%2Fy/retry",
        "/streams/urn:a%2Fb",
        "/live",
        "/sensors",
        "/sensors/weather-1",
        "/virtual/warmth",
        "/readings/rejected",
    ],
)
def test_operator_addresses_are_relayed(path: str) -> None:
    assert is_relayed_address(path)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/wsn",
        "/wsn/process",
        "/onvif/events",
        "/nodes/a/status",
        "/api/topology",
        "/cluster/taken/x",
        "/status/",
        "//status",
        "/topics/../wsn",
        "/topics/%2e%2e/wsn",
        "/topics/./x",
        "/Status",
        "/dtn",
    ],
)
def test_others_are_not(path: str) -> None:
    assert not is_relayed_address(path)


def test_the_rest_of_an_address_keeps_its_encoding() -> None:
    assert split_address("/nodes/hall%202/topics/a%2Fb/events") == ("hall 2", "/topics/a%2Fb/events")
    assert split_address("/nodes/a/") == ("a", "/")


def test_two_names_never_sign_the_same() -> None:
    assert signed_target("a: /x", "/y") != signed_target("a", "/x: /y")


def test_only_headers_of_the_request_itself_pass() -> None:
    given = {"Accept": "a", "Cookie": "c", "Host": "h", "Origin": "o", "Content-Type": "t", "X-Y": "z"}
    assert passed_headers(given) == {"Accept": "a", "Content-Type": "t"}


@pytest.mark.parametrize(
    ("location", "mapped"),
    [
        ("http://other:1/subscriptions/a%2Fb?x=1", "/nodes/n%20%2F/subscriptions/a%2Fb?x=1"),
        ("/streams/urn:a", "/nodes/n%20%2F/streams/urn:a"),
        ("https://elsewhere.example/", None),
        ("http://[broken", None),
        ("streams/relative", None),
        ("/wsn/subscriptions/x", None),
    ],
)
def test_a_location_is_one_below_the_relay_or_dropped(location: str, mapped: str | None) -> None:
    found = dict(answered_headers([("Location", location)], "n /"))
    assert found == ({} if mapped is None else {"Location": mapped})


def test_headers_of_the_connection_end_at_the_relay() -> None:
    given = [
        ("Connection", "close, X-Hop"),
        ("x-hop", "1"),
        ("Set-Cookie", "a=b"),
        ("ETag", "e"),
        ("TE", "t"),
    ]
    assert answered_headers([*given, ("Access-Control-Allow-Origin", "*")], "n") == [("ETag", "e")]
