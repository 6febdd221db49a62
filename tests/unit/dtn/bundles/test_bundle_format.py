"""Bundle files: round trips, bounds, and every damage and forgery that a node must refuse."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.dtn.bundles.bundle import Bundle, CarriedEvent, Known, Origin
from hpwsn.dtn.bundles.bundle_format import (
    LONGEST_NAME,
    MAC,
    MAGIC,
    BadBundle,
    BundleWriter,
    encode_bundle,
    encode_event,
    parse_bundle,
    parse_event,
)

KEY = b"the key of three islands"
VALLEY, SUMMIT = Origin("valley", 7), Origin("summit", 2**60)
EVENT = CarriedEvent(VALLEY, 5, 3, 1_700_000_000_000_000, "weather:wind", b"\x01payload")
BUNDLE = Bundle(
    VALLEY,
    "coast",
    "ranger",
    1_700_000_000_000_001,
    {SUMMIT: Known(9, ((2, 4), (6, 7)))},
    {VALLEY: 3, SUMMIT: 1},
    {VALLEY: 3},
    (EVENT, EVENT._replace(number=6, previous=5, topic=None)),
)

numbers = st.integers(0, 2**63 - 1)
origins = st.builds(Origin, st.text("äbc-1", max_size=8), numbers)
gaps = st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple)


@st.composite
def bundles(draw: st.DrawFn) -> Bundle:
    """Any bundle; each origin has a size."""
    known = draw(st.lists(origins, min_size=1, max_size=4, unique=True))
    events = draw(
        st.lists(
            st.builds(
                CarriedEvent,
                st.sampled_from(known),
                st.integers(2**62, 2**63 - 1),
                st.integers(0, 2**62 - 1),
                numbers,
                st.none() | st.text(max_size=20),
                st.binary(max_size=50),
            ),
            max_size=5,
        )
    )
    return Bundle(
        known[0],
        draw(st.text(max_size=10)),
        draw(st.text(max_size=10)),
        draw(numbers),
        draw(st.dictionaries(st.sampled_from(known), st.builds(Known, numbers, gaps), max_size=4)),
        {origin: draw(st.integers(0, 100)) for origin in known},
        draw(st.dictionaries(st.sampled_from(known), st.integers(1, 2**63 - 1), max_size=4)),
        tuple(events),
    )


def signed(*items: Any, tail: bytes = b"") -> bytes:
    """An authentic file with any items."""
    whole = MAGIC + b"".join(map(cbor2.dumps, items)) + tail
    return whole + hmac.digest(KEY, whole, sha256)


HEADER: list[Any] = [0, "coast", "ranger", 1, [["valley", 7, 1, 0]], [], 0]


def header(**changes: Any) -> list[Any]:
    names = ("maker", "to", "carrier", "made", "origins", "has", "count")
    return [changes.get(name, value) for name, value in zip(names, HEADER, strict=True)]


@given(bundles())
def test_a_bundle_is_the_same_after_a_round_trip(bundle: Bundle) -> None:
    assert parse_bundle(encode_bundle(bundle, KEY), KEY) == bundle


def test_every_flipped_bit_is_found() -> None:
    data = encode_bundle(BUNDLE, KEY)
    for at in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            with pytest.raises(BadBundle):
                parse_bundle(bytes(damaged), KEY)


def test_every_beginning_and_every_addition_is_found() -> None:
    data = encode_bundle(BUNDLE, KEY)
    for at in range(len(data)):
        with pytest.raises(BadBundle):
            parse_bundle(data[:at], KEY)
        with pytest.raises(BadBundle):
            parse_bundle(data[:at] + b"\0" + data[at:], KEY)


@given(st.binary(max_size=200))
def test_bytes_of_a_stranger_are_no_bundle(data: bytes) -> None:
    for stranger in (data, MAGIC + data):
        with pytest.raises(BadBundle):
            parse_bundle(stranger, KEY)


def test_a_bundle_of_another_key_is_refused() -> None:
    with pytest.raises(BadBundle, match="another key"):
        parse_bundle(encode_bundle(BUNDLE, KEY), KEY + b"!")


def test_a_bundle_has_at_most_as_many_events_as_allowed() -> None:
    data = encode_bundle(BUNDLE, KEY)
    assert len(parse_bundle(data, KEY, 2).events) == 2
    with pytest.raises(BadBundle, match="2 events, and 1 are accepted"):
        parse_bundle(data, KEY, 1)


def test_the_header_of_the_malformed_cases_is_good_itself() -> None:
    assert parse_bundle(signed(HEADER), KEY).maker == VALLEY


@pytest.mark.parametrize(
    "items",
    [
        (),
        ("text",),
        (HEADER[:-1],),
        (header(maker=1),),
        (header(maker="valley"),),
        (header(to=b"coast"),),
        (header(to="x" * (LONGEST_NAME + 1)),),
        (header(made=-1),),
        (header(made=2**63),),
        (header(made=True),),
        (header(origins=[["valley", 7, 1]]),),
        (header(origins=[["valley", 7, 1, 0], ["valley", 7, 1, 0]]),),
        (header(has=[[0, 9, [1]]]),),
        (header(has=[[1, 9, []]]),),
        (header(count=1),),
        (header(count=1), [0, 5, 5, 1, None, b"x"]),
        (header(count=1), [0, 5, 3, 1, 7, b"x"]),
        (header(count=1), [0, 5, 3, 1, None, "x"]),
        (header(count=1), [1, 5, 3, 1, None, b"x"]),
        (header(count=0), [0, 5, 3, 1, None, b"x"]),
    ],
)
def test_an_authentic_file_of_another_form_is_refused(items: tuple[Any, ...]) -> None:
    with pytest.raises(BadBundle):
        parse_bundle(signed(*items), KEY)


@given(st.binary(max_size=60))
def test_authentic_garbage_is_refused(tail: bytes) -> None:
    with pytest.raises(BadBundle):
        parse_bundle(signed(header(count=2), tail=tail), KEY)


@given(bundles(), st.integers(0, 400))
def test_a_file_never_exceeds_its_room_and_has_the_first_events_that_fit(bundle: Bundle, more: int) -> None:
    empty = BundleWriter(bundle, 2**40).size
    writer = BundleWriter(bundle, empty + more)
    added = [event for event in bundle.events if writer.add(event)]
    data = writer.close(KEY, bundle.floors)
    assert len(data) <= writer.size <= empty + more
    assert list(parse_bundle(data, KEY).events) == added


def test_a_room_without_place_for_the_header_is_refused() -> None:
    least = BundleWriter(BUNDLE, 2**40).size
    assert BundleWriter(BUNDLE, least).add(EVENT) is False
    with pytest.raises(ValueError, match=f"has {least} bytes already"):
        BundleWriter(BUNDLE, least - 1)


def test_a_file_ends_with_the_hmac_of_all_before_it() -> None:
    data = encode_bundle(BUNDLE, KEY)
    assert data.startswith(b"HPWSN-BUNDLE-1\n")
    assert hmac.digest(KEY, data[:-MAC], "sha256") == data[-MAC:]


def test_an_event_is_the_same_after_a_round_trip() -> None:
    assert parse_event(encode_event(EVENT)) == EVENT
