"""Signatures of requests to the admin node, and of requests that nodes forward to each other. Pure.

A request carries its time, a nonce, and an HMAC of method, target, time, nonce and body. The key is derived
from the cluster secret, which is never sent. An answer is signed together with the nonce of its request, so
that it fits no other request; of an endless answer, each line is signed. Times and nonces are arguments.
The verifier rejects a request that is signed with another secret, too far from the current time, before the
start of the verifier, or repeated.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import OrderedDict
from collections.abc import Mapping

TIME = "Hpwsn-Time"
NONCE = "Hpwsn-Nonce"
SIGNATURE = "Hpwsn-Signature"

_MAX_NONCES = 1_000_000
_LONGEST_NONCE = 64


class InvalidSignature(Exception):
    """A request or an answer is not signed by this cluster, or not recently; the text is for its sender."""


class TooEarly(InvalidSignature):
    """A request was signed before the start of the verifier, for example because of a lagging clock.

    It may be a replay from before a restart. An answer that is signed with its `nonce` and contains the time
    allows only the original sender to sign again.
    """

    def __init__(self, early: float, nonce: str) -> None:
        super().__init__(
            f"the request was signed {early:.1f} s before this process began; sign it again, or set the clock"
        )
        self.nonce = nonce


def derive_key(secret: bytes) -> bytes:
    """Derive the key for requests; it reveals nothing about the other keys of the secret."""
    return hmac.digest(secret, b"hpwsn 1 requests", "sha256")


class Signer:
    """Signs requests, and verifies their answers."""

    def __init__(self, secret: bytes) -> None:
        self._key = derive_key(secret)

    def headers(self, method: str, target: str, body: bytes, *, now: float, nonce: str) -> dict[str, str]:
        """Return the headers of a request; `target` is its path and query as they are sent."""
        time = f"{now:.3f}"
        return {TIME: time, NONCE: nonce, SIGNATURE: _mac(self._key, method, target, time, nonce, body)}

    def check_answer(self, nonce: str, status: int, body: bytes, signature: str) -> None:
        """Raise InvalidSignature unless the answer is signed with the secret for this request."""
        if not _equal(_mac(self._key, "answer", str(status), nonce, "", body), signature):
            raise InvalidSignature(
                "the answer is not signed with this node's cluster.secret; use the same everywhere"
            )

    def verify_line(self, nonce: str, number: int, line: bytes) -> bytes:
        """Return the content of a line of an answer; raise InvalidSignature unless it is signed."""
        signature, _, content = line.rstrip(b"\n").partition(b" ")
        mac = _mac(self._key, "line", str(number), nonce, "", content)
        if not _equal(mac, signature.decode("latin-1")):
            raise InvalidSignature(
                "a line of the answer is not signed with this node's cluster.secret; use the same everywhere"
            )
        return content


class Verifier:
    """Verifies requests, and signs their answers; with `reject_replays` it accepts each request once."""

    def __init__(
        self, secret: bytes, *, window: float, began: float = 0.0, reject_replays: bool = True
    ) -> None:
        self._key = derive_key(secret)
        self._reject_replays = reject_replays
        self._window = window
        self._began = began
        self._used_nonces: OrderedDict[str, float] = OrderedDict()

    def check(self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, now: float) -> str:
        """Return the nonce of a valid request, or raise InvalidSignature."""
        time, nonce = headers.get(TIME, ""), headers.get(NONCE, "")
        if not (time and nonce and SIGNATURE in headers):
            raise InvalidSignature(
                f"the request is not signed; send the headers {TIME}, {NONCE} and {SIGNATURE}"
            )
        if not _equal(_mac(self._key, method, target, time, nonce, body), headers[SIGNATURE]):
            raise InvalidSignature(
                "the signature is wrong: the sender has another cluster.secret; use the same everywhere"
            )
        signed = _seconds(time)
        self._check_time(signed, now)
        if signed < self._began:
            raise TooEarly(self._began - signed, nonce)
        if self._reject_replays:
            self._check_nonce(nonce, now)
        return nonce

    def sign_answer(self, nonce: str, status: int, body: bytes) -> str:
        """Return the signature of the answer to the request with this nonce."""
        return _mac(self._key, "answer", str(status), nonce, "", body)

    def sign_line(self, nonce: str, number: int, content: bytes) -> bytes:
        """Return a signed line of an endless answer."""
        return f"{_mac(self._key, 'line', str(number), nonce, '', content)} ".encode() + content + b"\n"

    def _check_time(self, time: float, now: float) -> None:
        if abs(now - time) > self._window:
            raise InvalidSignature(
                f"the request was signed {abs(now - time):.0f} s {'before' if time < now else 'after'} now,"
                f" more than cluster.clock_window ({self._window:g} s); set the clocks of both hosts"
            )

    def _check_nonce(self, nonce: str, now: float) -> None:
        # Older requests are rejected by their time, so that their nonces can be forgotten.
        while self._used_nonces and next(iter(self._used_nonces.values())) < now - 2 * self._window:
            self._used_nonces.popitem(last=False)
        if nonce in self._used_nonces or len(nonce) > _LONGEST_NONCE:
            raise InvalidSignature("the same request was received before; sign each request with a new nonce")
        self._used_nonces[nonce] = now
        if len(self._used_nonces) > _MAX_NONCES:
            self._used_nonces.popitem(last=False)


def _mac(key: bytes, kind: str, target: str, time: str, nonce: str, body: bytes) -> str:
    """Return the HMAC of the parts, joined by line feeds; the parts contain none, and the body is hashed."""
    text = "\n".join((kind, target, time, nonce, hashlib.sha256(body).hexdigest()))
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), "sha256").hexdigest()


def _seconds(time: str) -> float:
    """The time of a request; not a number would pass every comparison with a limit."""
    try:
        seconds = float(time)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InvalidSignature(f"{TIME} is {time[:40]!r}; give seconds since 1970")
    return seconds


def _equal(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "surrogateescape"))
