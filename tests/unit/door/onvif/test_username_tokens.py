"""Who may use the ONVIF addresses: near times, new nonces, right passwords."""

from datetime import UTC, datetime

import pytest

from hpwsn.door.onvif import username_tokens
from hpwsn.door.onvif.username_tokens import Credentials
from hpwsn.errors import HpwsnError
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope, parse_envelope
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.wsse import UsernameToken, digest_token, encode_security

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC).timestamp()
WINDOW = 300.0


def message(token=None):
    headers = (encode_security(token),) if token else ()
    return parse_envelope(encode_envelope(SoapVersion.SOAP12, b"<a/>", headers))


def token(created=NOW, nonce=b"nonce", password="secret", name="admin"):
    return digest_token(name, password, nonce, datetime.fromtimestamp(created, UTC))


@pytest.fixture
def credentials():
    return Credentials({"admin": "secret", "empty": ""}, WINDOW)


def test_without_users_nobody_is_asked():
    nobody = Credentials.load("", WINDOW)
    nobody.check(message(), NOW)
    nobody.check(message(token(password="wrong")), NOW)


def test_a_digest_is_taken_once(credentials):
    credentials.check(message(token()), NOW)
    with pytest.raises(SoapFault, match="used before"):
        credentials.check(message(token()), NOW + 1)
    credentials.check(message(token(nonce=b"another")), NOW + 1)


@pytest.mark.parametrize("at", [NOW - WINDOW, NOW + WINDOW])
def test_a_time_at_the_edge_of_the_window_is_taken(credentials, at):
    credentials.check(message(token(created=at)), NOW)


@pytest.mark.parametrize("at", [NOW - WINDOW - 1, NOW + WINDOW + 1])
def test_a_time_beyond_the_window_is_refused(credentials, at):
    with pytest.raises(SoapFault, match="token_window"):
        credentials.check(message(token(created=at)), NOW)


def test_a_nonce_is_remembered_for_as_long_as_its_time_is_near(credentials):
    ahead = token(created=NOW + WINDOW)
    credentials.check(message(ahead), NOW)
    with pytest.raises(SoapFault, match="used before"):
        credentials.check(message(ahead), NOW + 2 * WINDOW)
    with pytest.raises(SoapFault, match="token_window"):
        credentials.check(message(ahead), NOW + 2 * WINDOW + 1)


def test_a_full_memory_refuses_and_goes_on_when_old_nonces_are_forgotten(credentials, monkeypatch):
    monkeypatch.setattr(username_tokens, "MAX_NONCES", 2)
    for nonce in (b"1", b"2"):
        credentials.check(message(token(nonce=nonce)), NOW)
    with pytest.raises(SoapFault):
        credentials.check(message(token(nonce=b"3")), NOW)
    later = NOW + 2 * WINDOW + 1
    credentials.check(message(token(created=later, nonce=b"3")), later)


@pytest.mark.parametrize(
    "proof",
    [
        None,
        token(password="wrong"),
        token(name="nobody"),
        token(name="empty", password=""),
        token(name="nobody", password=""),
        UsernameToken("admin", "wrong"),
        UsernameToken("admin", ""),
        token(nonce=b""),
    ],
)
def test_whoever_proves_nothing_is_refused_by_the_fault_of_onvif(credentials, proof):
    with pytest.raises(SoapFault) as caught:
        credentials.check(message(proof), NOW)
    assert caught.value.subcode == "{http://www.onvif.org/ver10/error}NotAuthorized"
    assert caught.value.http_status(SoapVersion.SOAP12) == 400


def test_a_password_as_text_is_taken_too(credentials):
    credentials.check(message(UsernameToken("admin", "secret")), NOW)


def test_the_file_has_a_user_a_line(tmp_path):
    file = tmp_path / "users"
    file.write_text("# who\n\nadmin:secret:with:colons\nviewer: blanks are kept\n")
    loaded = Credentials.load(str(file), WINDOW)
    loaded.check(message(token(password="secret:with:colons")), NOW)
    loaded.check(message(token(name="viewer", password=" blanks are kept")), NOW)


@pytest.mark.parametrize("text", ["admin", "admin:", ":secret", "", "# nobody\n"])
def test_a_file_that_names_nobody_or_no_password_is_refused(tmp_path, text):
    file = tmp_path / "users"
    file.write_text(text)
    with pytest.raises(HpwsnError, match="name:password"):
        Credentials.load(str(file), WINDOW)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(HpwsnError, match="missing"):
        Credentials.load(str(tmp_path / "missing"), WINDOW)
