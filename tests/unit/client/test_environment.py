"""What the client takes from the environment, and what it does with files of authorities."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from aiohttp import web

from hpwsn_client import BadReply, Client, SyncClient
from hpwsn_client.environment import DEFAULT_URL, authorization, bearer_token
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


def test_a_token_is_the_given_one_or_that_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HPWSN_TOKEN", raising=False)
    assert (bearer_token(), authorization("")) == ("", {})
    monkeypatch.setenv("HPWSN_TOKEN", " abc-._~+/=\n")
    assert bearer_token() == "abc-._~+/="
    assert bearer_token("given") == "given"
    assert bearer_token("") == ""
    assert authorization(bearer_token()) == {"Authorization": "Bearer abc-._~+/="}


@pytest.mark.parametrize("token", ["se cret", "secret\r\nX: y", "sécret", "=secret"])
def test_an_unusable_token_is_refused_and_not_shown(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPWSN_TOKEN", token)
    for make in (Client, bearer_token, lambda: Client(token=token)):
        with pytest.raises(ValueError, match="is not a bearer token") as refused:
            make()
        assert "cret" not in str(refused.value)


async def test_the_token_goes_to_the_broker_and_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where the broker redirects to, and not to a subscription manager elsewhere."""
    monkeypatch.setenv("HPWSN_TOKEN", "the-token")
    seen: list[tuple[str, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers.get("Authorization")))
        elsewhere = {"Location": f"http://127.0.0.1:{other.addresses[0][1]}/elsewhere"}
        return web.Response(status=307 if request.path == "/wsn" else 202, headers=elsewhere)

    app = web.Application()
    app.router.add_post("/{tail:.*}", answer)
    broker, other = web.AppRunner(app), web.AppRunner(app)
    for runner in (broker, other):
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
    base, there = (f"http://127.0.0.1:{runner.addresses[0][1]}" for runner in (broker, other))
    try:
        async with Client(f"{base}/wsn") as client:
            with pytest.raises(BadReply, match="redirects are not followed"):
                await client.notify("A", "<n/>")
            for manager in (f"{base}/manager", f"{there}/manager"):
                with pytest.raises(BadReply):
                    await client.unsubscribe(manager)
    finally:
        for runner in (broker, other):
            await runner.cleanup()
    assert seen == [("/wsn", "Bearer the-token"), ("/manager", "Bearer the-token"), ("/manager", None)]


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
