"""hp:ReceiptTo and hp:Receipt: round trips, and what is refused."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.operations.receipts import (
    JSON_FORM,
    OUTCOMES,
    SOAP_FORM,
    Receipt,
    ReceiptTo,
    encode_receipt,
    encode_receipt_to,
    parse_receipt,
    parse_receipt_to,
    receipt_object,
    with_receipt_to,
)
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.names import WSA_ANONYMOUS, wsnt
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.xml import parse_xml

TEXT = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x2FFF), min_size=1, max_size=20)
REQUESTS = st.builds(
    ReceiptTo,
    st.builds(EndpointReference, TEXT.filter(str.strip)),
    st.none() | TEXT,
    st.sampled_from([SOAP_FORM, JSON_FORM]),
)
RECEIPTS = st.builds(
    Receipt,
    outcome=st.sampled_from(OUTCOMES),
    consumer=TEXT,
    time=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    count=st.integers(1, 10_000),
    message_id=st.none() | TEXT,
    topic=st.none() | TEXT,
    status=st.none() | st.integers(100, 599),
    reason=st.none() | TEXT,
)


@given(REQUESTS)
def test_a_request_for_receipts_survives_in_the_producer_reference(request: ReceiptTo) -> None:
    written = encode_epr(with_receipt_to(None, request), wsnt("ProducerReference"))
    producer = parse_epr(parse_xml(written))
    assert producer.address == WSA_ANONYMOUS
    (extension,) = producer.extensions
    assert parse_receipt_to(parse_xml(extension)) == request


def test_the_producer_keeps_its_own_address_and_extensions() -> None:
    own = EndpointReference("http://p/", extensions=(b'<x xmlns="urn:x"/>',))
    found = with_receipt_to(own, ReceiptTo(EndpointReference("http://r/")))
    assert (found.address, found.extensions[0]) == ("http://p/", own.extensions[0])


@given(RECEIPTS)
def test_a_receipt_is_read_as_it_was_written(receipt: Receipt) -> None:
    assert parse_receipt(parse_xml(encode_receipt(receipt))) == receipt


@given(RECEIPTS)
def test_the_json_object_has_every_field(receipt: Receipt) -> None:
    found = receipt_object(receipt)
    assert (found["outcome"], found["count"], found["message_id"]) == (
        receipt.outcome,
        receipt.count,
        receipt.message_id,
    )
    assert receipt.is_delivered == (receipt.outcome in ("delivered", "queued"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"delivered", b"lost"),
        (b"<hp:Count>1</hp:Count>", b"<hp:Count>many</hp:Count>"),
        (b"<hp:Count>1</hp:Count>", b""),
        (b"2026-01-01T00:00:00Z", b"PT1H"),
    ],
)
def test_a_receipt_that_is_not_valid_is_refused(old: bytes, new: bytes) -> None:
    written = encode_receipt(Receipt("delivered", "c", datetime(2026, 1, 1, tzinfo=UTC)))
    assert old in written
    with pytest.raises(InvalidMessage):
        parse_receipt(parse_xml(written.replace(old, new)))


def test_an_unknown_form_is_refused() -> None:
    written = encode_receipt_to(ReceiptTo(EndpointReference("http://r/"), form="csv"))
    with pytest.raises(InvalidMessage, match="csv"):
        parse_receipt_to(parse_xml(written))
