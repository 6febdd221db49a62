"""UsernameTokens: as we write them, as zeep writes them, and as nobody should."""

import base64
import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from zeep.wsse.username import UsernameToken as ZeepToken

from hpwsn_client.wsn.soap.faults import InvalidMessage
from hpwsn_client.wsn.soap.names import SOAP12, WSSE, WSU
from hpwsn_client.wsn.soap.wsse import (
    DIGEST,
    MAX_CHARACTERS,
    UsernameToken,
    digest_token,
    encode_security,
    find_token,
    password_digest,
)
from hpwsn_client.wsn.soap.xml import parse_xml

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=20).filter(
    lambda text: text == text.strip()
)
nonces = st.binary(min_size=1, max_size=32)


def security(inside):
    return parse_xml(f'<s:Security xmlns:s="{WSSE}" xmlns:u="{WSU}">{inside}</s:Security>'.encode())


@given(texts, texts, nonces, st.booleans())
def test_a_token_comes_back_as_it_was_written(name, password, nonce, digest):
    token = digest_token(name, password, nonce, NOW) if digest else UsernameToken(name, password)
    assert find_token([parse_xml(encode_security(token))]) == token


@given(texts, texts, texts, nonces)
def test_a_digest_proves_its_password_and_no_other(name, password, other, nonce):
    token = digest_token(name, password, nonce, NOW)
    assert token.proves(password)
    assert token.proves(other) == (other == password)
    assert UsernameToken(name, password).proves(other) == (other == password)


@pytest.mark.parametrize("zulu", [True, False])
@pytest.mark.parametrize("digest", [True, False])
def test_tokens_of_zeep_are_understood(digest, zulu):
    envelope = etree.fromstring(f'<e:Envelope xmlns:e="{SOAP12}"><e:Body/></e:Envelope>')
    ZeepToken("admin", "sécret", use_digest=digest, zulu_timestamp=zulu).apply(envelope, {})
    token = find_token(envelope[0])
    assert token.username == "admin"
    assert token.digest is digest
    assert token.proves("sécret")
    assert not token.proves("secret")
    assert not digest or token.created_at() is not None


def test_the_digest_is_over_nonce_time_and_password_in_this_order():
    nonce, created, password = b"\x2c\xa2\xed", "2010-09-16T07:50:45Z", "userpassword"
    by_hand = hashlib.sha1(nonce + created.encode() + password.encode()).digest()
    assert base64.b64decode(password_digest(nonce, created, password)) == by_hand


def test_a_message_without_a_token_has_none():
    assert find_token([]) is None
    assert find_token([security("")]) is None


@pytest.mark.parametrize(
    "inside",
    [
        '<s:Password Type="urn:other">x</s:Password>',
        "<s:Nonce>not base64!</s:Nonce>",
        f"<s:Username>{'x' * (MAX_CHARACTERS + 1)}</s:Username>",
        f"<s:Password>{'x' * (MAX_CHARACTERS + 1)}</s:Password>",
        f"<s:Nonce>{'x' * (MAX_CHARACTERS + 1)}</s:Nonce>",
    ],
)
def test_a_token_that_cannot_be_meant_is_refused(inside):
    with pytest.raises(InvalidMessage):
        find_token([security(f"<s:UsernameToken>{inside}</s:UsernameToken>")])


def test_a_name_of_the_greatest_length_is_taken():
    inside = f"<s:UsernameToken><s:Username>{'x' * MAX_CHARACTERS}</s:Username></s:UsernameToken>"
    assert find_token([security(inside)]).username == "x" * MAX_CHARACTERS


@pytest.mark.parametrize("created", ["", "yesterday", "PT1H"])
def test_a_token_whose_time_is_no_time_has_none(created):
    assert UsernameToken("a", "b", True, b"n", created).created_at() is None


def test_an_empty_token_proves_nothing_but_an_empty_password():
    token = find_token([security("<s:UsernameToken/>")])
    assert token == UsernameToken("", "")
    assert not token.proves("secret")


def test_the_type_of_a_digest_is_that_of_the_profile():
    assert DIGEST.encode() in encode_security(digest_token("a", "b", b"n", NOW))
