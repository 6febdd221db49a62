"""Authentication with the UsernameToken of WS-Security 1.0, with a plain password or a digest.

The module parses and encodes tokens and verifies passwords (UsernameToken Profile 1.0, section 3.1). It has
no clock and no list of users: the node checks the age of a token and detects replays.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lxml import etree

from hpwsn_client.wsn.soap.names import WSSE, WSU
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.times import format_time, parse_time
from hpwsn_client.wsn.soap.xml import escape

SECURITY = f"{{{WSSE}}}Security"
_PROFILE = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0"
DIGEST = _PROFILE + "#PasswordDigest"
TEXT = _PROFILE + "#PasswordText"
_BASE64 = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
_TOKEN, _USERNAME, _PASSWORD, _NONCE = (
    f"{{{WSSE}}}{name}" for name in ("UsernameToken", "Username", "Password", "Nonce")
)
_CREATED = f"{{{WSU}}}Created"
MAX_CHARACTERS = 1024
"""Maximum characters of a user name, a password or a nonce."""


@dataclass(frozen=True, slots=True)
class UsernameToken:
    """A user name with a password, or with the digest of a password, a nonce and a time."""

    username: str
    password: str
    digest: bool = False
    nonce: bytes = b""
    created: str = ""
    """The time as it was sent, because the digest is over these characters."""

    def proves(self, password: str) -> bool:
        """Whether the token matches the password."""
        expected = password_digest(self.nonce, self.created, password) if self.digest else password
        return hmac.compare_digest(expected.encode(), self.password.encode())

    def created_at(self) -> datetime | None:
        """The creation time in the token; None if it is missing or not valid."""
        try:
            moment = parse_time(self.created)
        except ValueError:
            return None
        return moment if isinstance(moment, datetime) else None


def password_digest(nonce: bytes, created: str, password: str) -> str:
    """Base64 of SHA-1 of nonce, time and password."""
    data = nonce + created.encode() + password.encode()
    return base64.b64encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def digest_token(username: str, password: str, nonce: bytes, created: datetime) -> UsernameToken:
    """A token with the digest of the password."""
    time = format_time(created)
    return UsernameToken(username, password_digest(nonce, time, password), True, nonce, time)


def find_token(headers: Iterable[etree._Element]) -> UsernameToken | None:
    """The UsernameToken in the headers of a message; None if there is none."""
    for header in headers:
        token = header.find(_TOKEN) if header.tag == SECURITY else None
        if token is not None:
            return parse_username_token(token)
    return None


def parse_username_token(element: etree._Element) -> UsernameToken:
    """Parse a UsernameToken element."""
    password = element.find(_PASSWORD)
    kind = TEXT if password is None else (password.get("Type") or TEXT).strip()
    if kind not in (TEXT, DIGEST):
        raise InvalidMessage(f"the Password has the Type {kind[:80]!r}; use {DIGEST} or {TEXT}")
    return UsernameToken(
        _text(element, _USERNAME).strip(),
        _text(element, _PASSWORD),
        kind == DIGEST,
        _nonce(_text(element, _NONCE)),
        _text(element, _CREATED).strip(),
    )


def encode_security(token: UsernameToken) -> bytes:
    """Encode a wsse:Security header with the token."""
    nonce = base64.b64encode(token.nonce).decode()
    nonce_element = f'<wsse:Nonce EncodingType="{_BASE64}">{nonce}</wsse:Nonce>' if token.nonce else ""
    created = f'<wsu:Created xmlns:wsu="{WSU}">{escape(token.created)}</wsu:Created>' if token.created else ""
    kind = DIGEST if token.digest else TEXT
    return (
        f'<wsse:Security xmlns:wsse="{WSSE}"><wsse:UsernameToken>'
        f"<wsse:Username>{escape(token.username)}</wsse:Username>"
        f'<wsse:Password Type="{kind}">{escape(token.password)}</wsse:Password>{nonce_element}{created}'
        "</wsse:UsernameToken></wsse:Security>"
    ).encode()


def _text(element: etree._Element, tag: str) -> str:
    text = element.findtext(tag) or ""
    if len(text) > MAX_CHARACTERS:
        raise InvalidMessage(f"{tag} has {len(text)} characters; at most {MAX_CHARACTERS} are allowed")
    return text


def _nonce(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidMessage(f"the Nonce {text[:80]!r} is not Base64; encode it") from None
