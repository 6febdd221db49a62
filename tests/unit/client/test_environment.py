"""What the client takes from the environment, and what it does with files of authorities."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from hpwsn_client import Client, SyncClient
from hpwsn_client.environment import DEFAULT_URL
from hpwsn_client.tls import certificate_problem, handshake_problem, tls_context

THERE = "http://there.example:9000/wsn"


@pytest.fixture(params=[Client, SyncClient])
def kind(request: pytest.FixtureRequest) -> type[Client] | type[SyncClient]:
    return request.param


def url_of(client: Client | SyncClient) -> str:
    if isinstance(client, SyncClient):
        client.close()
    return client.url


def test_a_client_obeys_the_variable_as_it_is_when_the_client_is_made(
    kind: type[Client] | type[SyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPWSN_URL", THERE)
    assert url_of(kind()) == THERE
    assert url_of(kind("http://here.example/wsn")) == "http://here.example/wsn"
    monkeypatch.setenv("HPWSN_URL", "")
    assert url_of(kind()) == DEFAULT_URL
    monkeypatch.delenv("HPWSN_URL")
    assert url_of(kind()) == DEFAULT_URL


def test_an_address_in_the_variable_that_is_none_is_refused_with_its_name(
    kind: type[Client] | type[SyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPWSN_URL", "there:9000")
    with pytest.raises(ValueError, match=r"^the environment variable HPWSN_URL: 'there:9000' is not an http"):
        kind()


def test_authorities_are_those_given_else_of_the_variable_else_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HPWSN_CA", raising=False)
    assert tls_context() is None
    own = ssl.create_default_context()
    assert tls_context(own) is own
    monkeypatch.setenv("HPWSN_CA", str(tmp_path / "none.pem"))
    with pytest.raises(ValueError, match=r"^the environment variable HPWSN_CA: .*none.pem .*No such file"):
        Client()
    (tmp_path / "words.pem").write_text("words")
    with pytest.raises(
        ValueError, match=r"^tls: .*words.pem cannot be used: it does not contain a PEM certificate"
    ):
        Client(tls=tmp_path / "words.pem")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (9, "compare the clocks of both machines"),
        (10, "the server needs a new certificate"),
        (18, "give the PEM file"),
        (20, "give the PEM file"),
        (62, "use an address that the certificate names"),
        (64, "use an address that the certificate names"),
    ],
)
def test_each_reason_against_a_certificate_has_its_remedy(code: int, remedy: str) -> None:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_code, error.verify_message = code, "so it is."
    why, advice = certificate_problem(error)
    assert why == "so it is"
    assert advice.startswith(remedy)


def test_a_handshake_that_ends_without_a_reason_is_told_in_its_own_words() -> None:
    assert handshake_problem(ssl.SSLEOFError(8, "EOF occurred"))[0] == "EOF occurred"
