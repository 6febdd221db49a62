"""Who may use the ONVIF addresses: UsernameTokens against a file of users, each digest accepted once.

Without a file nobody is asked, and a token is accepted as it comes. With one, the time in a token must be
near ours, and a nonce is refused for as long as its time would be accepted. ONVIF Core Specification, 5.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hpwsn.errors import SettingError
from hpwsn_client.wsn.soap.envelope import Envelope
from hpwsn_client.wsn.soap.names import TER
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.wsse import UsernameToken, find_token

REMEMBERED = 1_000_000
"""Most nonces in memory: past it tokens are refused until old ones are forgotten."""


class Credentials:
    """The users, and the nonces that have been used."""

    def __init__(self, users: Mapping[str, str], window: float) -> None:
        self._users = users
        self._window = window
        self._seen: dict[tuple[str, bytes], float] = {}
        """Until when each is refused, the oldest first."""

    @classmethod
    def load(cls, file: str, window: float) -> Credentials:
        """Read the file of users; no name of one is no check."""
        return cls(_read(Path(file)) if file else {}, window)

    def check(self, envelope: Envelope, now: float) -> None:
        """Raise the fault of ONVIF unless the message proves who sends it."""
        if not self._users:
            return
        token = find_token(envelope.headers)
        if token is None:
            raise _refused("a UsernameToken is wanted in a wsse:Security header")
        if not self._proves(token):
            raise _refused("the user or the password is wrong")
        if token.digest:
            self._check_fresh(token, now)

    def _proves(self, token: UsernameToken) -> bool:
        # An unknown name costs as much as a known one, and nobody has an empty password.
        password = self._users.get(token.username, "")
        return token.proves(password) and bool(password)

    def _check_fresh(self, token: UsernameToken, now: float) -> None:
        created = token.created_at()
        if created is None or not token.nonce:
            raise _refused("a digest needs a Nonce and a Created such as 2030-01-31T12:00:00Z")
        if abs(created.timestamp() - now) > self._window:
            raise _refused(
                f"Created is {token.created}, more than {self._window:g} s from this node's clock"
                " (onvif.token_window); ask GetSystemDateAndTime for its time"
            )
        self._forget(now)
        key = token.username, token.nonce
        if key in self._seen or len(self._seen) >= REMEMBERED:
            raise _refused("this token was used before: make a new Nonce for each message")
        self._seen[key] = now + 2 * self._window

    def _forget(self, now: float) -> None:
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest] >= now:
                return
            del self._seen[oldest]


def _refused(reason: str) -> SoapFault:
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
            raise _unusable(file, f"is wrong in line {number}; write it as name:password")
        users[name.strip()] = password
    if not users:
        raise _unusable(file, "has no users; write a line name:password for each")
    return users


def _unusable(file: Path, reason: str) -> SettingError:
    return SettingError("onvif.users_file", file, reason)
