"""Addresses of MQTT brokers, and reasons in words."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from hpwsn.sensors.gateways.mqtt_address import MqttAddress, reason_of


@pytest.mark.parametrize(
    ("url", "place", "secure"),
    [
        ("mqtt://broker", ("broker", 1883), False),
        ("mqtts://broker", ("broker", 8883), True),
        ("mqtt://127.0.0.1:99/", ("127.0.0.1", 99), False),
        ("mqtts://[::1]:99", ("::1", 99), True),
    ],
)
def test_a_url_names_host_and_port(url: str, place: tuple[str, int], secure: bool) -> None:
    address = MqttAddress(url)
    assert (address.place, address.secure, address.words) == (place, secure, f"{place[0]}:{place[1]}")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mqtt://", "is not of the form"),
        ("mqtt://broker/path", "is not of the form"),
        ("mqtt://broker?x=1", "is not of the form"),
        ("mqtt://user:secret@broker", "sensors.mqtt_user"),
        ("mqtt://broker:99999", "ort"),
    ],
)
def test_another_url_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        _ = MqttAddress(url).place
    assert "secret" not in str(refused.value)


def test_the_password_is_read_anew_and_has_no_end_of_line(tmp_path: Path) -> None:
    file = tmp_path / "password"
    address = MqttAddress("mqtt://broker", "u", str(file))
    for password in ("one", "two"):
        file.write_text(f"{password}\r\n")
        assert address.password() == password
    assert MqttAddress("mqtt://broker").password() is None
    file.unlink()
    with pytest.raises(OSError) as missing:
        address.password()
    assert reason_of(missing.value) == f"{file}: No such file or directory"


def test_certificates_that_cannot_be_used_have_a_reason(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(OSError) as wrong:
        MqttAddress("mqtts://broker", ca_file=str(tmp_path / "ca.pem")).tls_context()
    assert isinstance(wrong.value, ssl.SSLError)
    assert reason_of(wrong.value)


def test_an_error_without_words_is_named() -> None:
    assert reason_of(TimeoutError()) == "TimeoutError"
    assert reason_of(ConnectionRefusedError(111, "Connection refused")) == "Connection refused"
