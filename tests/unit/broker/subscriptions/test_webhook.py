"""The stored form of a webhook, and its signature."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.subscriptions.stored_subscribe import parse_stored_subscribe
from hpwsn.broker.subscriptions.webhook import LONGEST_SECRET, Webhook, webhook_of
from hpwsn_client.wsn.operations.messages import Subscribe, encode_message
from hpwsn_client.wsn.soap.addressing import EndpointReference

CONSUMER = EndpointReference("http://127.0.0.1:9/")


def stored(*extensions: bytes) -> Subscribe:
    """A Subscribe with these extensions, as a restart reads it."""
    return parse_stored_subscribe(encode_message(Subscribe(CONSUMER, extensions=extensions)))


@given(st.none() | st.text(min_size=1, max_size=LONGEST_SECRET).map(str.encode))
def test_a_webhook_is_the_same_after_a_restart(secret: bytes | None) -> None:
    webhook = Webhook(secret)
    assert webhook_of(stored(webhook.extension())) == webhook


def test_the_longest_secret_is_stored() -> None:
    webhook = Webhook("\U0001f600".encode() * LONGEST_SECRET)
    assert webhook_of(stored(webhook.extension())) == webhook


@pytest.mark.parametrize(
    "extension",
    [
        b'<x:Webhook xmlns:x="urn:other"/>',
        b'<hp:Webhook xmlns:hp="urn:hpwsn:1" secret="xyz"/>',
        b'<hp:Webhook xmlns:hp="urn:hpwsn:1" secret=""/>',
        b'<hp:Webhook xmlns:hp="urn:hpwsn:1">text</hp:Webhook>',
    ],
)
def test_another_extension_is_not_a_webhook(extension: bytes) -> None:
    assert webhook_of(stored(extension)) is None


def test_the_signature_is_the_hmac_of_the_body() -> None:
    headers = Webhook(b"key").headers(b"[]\n").decode().split("\r\n")
    digest = hmac.new(b"key", b"[]\n", hashlib.sha256).hexdigest()
    assert headers == ["Content-Type: application/json", f"Hpwsn-Signature: sha256={digest}", ""]
    assert Webhook().headers(b"[]\n") == b"Content-Type: application/json\r\n"


def test_a_secret_is_not_in_the_representation_that_logs_have() -> None:
    assert "key" not in repr(Webhook(b"key"))
