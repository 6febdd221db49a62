"""Authentication of ONVIF requests: UsernameTokens are checked against a file of users.

Without a file, every request is accepted. With a file, the Created time of a digest must be close to the
node's clock, and each nonce is accepted once within that time window. ONVIF Core Specification, section
5.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hpwsn.errors import SettingError
from hpwsn_client.wsn.soap.envelope import Envelope
from hpwsn_client.wsn.soap.names import TER
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.wsse import UsernameToken, find_token

MAX_NONCES = 1_000_000
"""The most nonces in memory; when they are full, tokens are refused until old nonces expire."""


class Credentials:
    """The users and their passwords, and the used nonces."""

    def __init__(self, users: Mapping[str, str], window: float) -> None:
        self._users = users
        self._window = window
        self._used_nonces: dict[tuple[str, bytes], float] = {}
        """The expiry time of each used nonce, by user and nonce; the oldest is first."""

    @classmethod
    def load(cls, file: str, window: float) -> Credentials:
        """Read the file of users; with an empty file name, `check` accepts every request."""
        return cls(_read(Path(file)) if file else {}, window)

    def check(self, envelope: Envelope, now: float) -> None:
        """Raise the fault of ONVIF unless the request has a valid UsernameToken."""
        if not self._users:
            return
        token = find_token(envelope.headers)
        if token is None:
            raise _not_authorized("the request has no UsernameToken; send one in a wsse:Security header")
        if not self._password_matches(token):
            raise _not_authorized("the user name or the password is wrong")
        if token.digest:
            self._check_fresh(token, now)

    def _password_matches(self, token: UsernameToken) -> bool:
        # An unknown name takes as much time as a known one; an empty password is never valid.
        password = self._users.get(token.username, "")
        return token.proves(password) and bool(password)

    def _check_fresh(self, token: UsernameToken, now: float) -> None:
        created = token.created_at()
        if created is None or not token.nonce:
            raise _not_authorized(
                "the digest has no Nonce or no Created time; send both, Created as 2030-01-31T12:00:00Z"
            )
        if abs(created.timestamp() - now) > self._window:
            raise _not_authorized(
                f"Created is {token.created}, more than {self._window:g} s from this node's clock"
                " (onvif.token_window); get the node's time with GetSystemDateAndTime"
            )
        self._remove_expired(now)
        key = token.username, token.nonce
        if key in self._used_nonces or len(self._used_nonces) >= MAX_NONCES:
            raise _not_authorized("this token was used before; create a new Nonce for each message")
        self._used_nonces[key] = now + 2 * self._window

    def _remove_expired(self, now: float) -> None:
        while self._used_nonces:
            oldest = next(iter(self._used_nonces))
            if self._used_nonces[oldest] >= now:
                return
            del self._used_nonces[oldest]


def _not_authorized(reason: str) -> SoapFault:
    return SoapFault(f"Sender not authorized: {reason}", subcode=f"{{{TER}}}NotAuthorized", status=400)


def _read(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _unusable(file, f"cannot be read: {reason}; name a file that this user can read") from error
    users = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not (name.strip() and colon and password):
            raise _unusable(file, f"has an invalid line {number}; write it as name:password")
        users[name.strip()] = password
    if not users:
        raise _unusable(file, "has no users; write a line name:password for each")
    return users


def _unusable(file: Path, reason: str) -> SettingError:
    return SettingError("onvif.users_file", file, reason)
