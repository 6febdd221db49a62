"""The header Accept of requests to the JSON door."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from hpwsn.door.rest.events.event_parameters import accepts
from hpwsn.door.rest.events.event_stream import wants_stream

PROTOBUF = "application/x-protobuf"


def accepted(media_type: str, *headers: str) -> bool:
    given = CIMultiDict([("Accept", each) for each in headers])
    return accepts(make_mocked_request("GET", "/topics/t/events", headers=given), media_type)


@pytest.mark.parametrize(
    "headers",
    [
        (PROTOBUF,),
        ("Application/X-Protobuf",),
        (f"text/html, {PROTOBUF};q=0.5",),
        (f"{PROTOBUF}; q=0.001",),
        (f"{PROTOBUF};q=1.000",),
        (f"{PROTOBUF};level=0",),
        ("text/html", PROTOBUF),
    ],
)
def test_a_type_that_is_named_is_accepted(headers: tuple[str, ...]) -> None:
    assert accepted(PROTOBUF, *headers)


@pytest.mark.parametrize("weight", ["q=0", "Q=0", " q=0", "q=0.", "q=0.0", "q=0.000", "level=1;q=0"])
def test_a_type_with_the_weight_0_is_not_accepted(weight: str) -> None:
    assert not accepted(PROTOBUF, f"text/html, {PROTOBUF};{weight}, application/json")
    stream = {"Accept": f"text/event-stream;{weight}, application/json"}
    assert not wants_stream(make_mocked_request("GET", "/topics/t/events", headers=stream))


def test_a_type_that_is_not_named_is_not_accepted() -> None:
    assert not accepted(PROTOBUF)
    assert not accepted(PROTOBUF, "*/*")
    assert not accepted(PROTOBUF, "application/x-protobuf2, text/html;q=1")
