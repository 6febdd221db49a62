"""Why something could not be reached, in words that help."""

import errno
import socket
import ssl

import pytest

from hpwsn_client.errors import reason_of


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "certificate verify failed"),
        (OSError("Multiple exceptions: one, two"), "Multiple exceptions: one, two"),
    ],
    ids=["refused", "name", "certificate", "several"],
)
def test_the_reason_is_the_systems_unless_the_number_is_not(error: OSError, reason: str) -> None:
    assert reason_of(error) == reason
