"""Who may speak to the admin node, or to another node for a client: requests signed with the secret.

A request carries its time, a nonce and an HMAC of method, target, time, nonce and body under a key derived
from the cluster secret, which itself never travels. An answer is signed over the nonce of its request, so
that it belongs to no other; of an answer that goes on for ever, each line is. Pure: times and nonces are
arguments. Refuses what is signed with another secret, too far from now, before the verifier began, or twice.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Mapping

TIME = "Hpwsn-Time"
NONCE = "Hpwsn-Nonce"
SIGNATURE = "Hpwsn-Signature"

_MAX_NONCES = 1_000_000
_LONGEST_NONCE = 64


class InvalidSignature(Exception):
    """A request or an answer that is not from this cluster, or not from now; the words are for its sender."""


class TooEarly(InvalidSignature):
    """A request of this cluster that was signed before the verifier began, as by a clock that is behind.

    It may be one of the verifier's former life, sent again; an answer to its `nonce` that tells the time
    lets its sender, and nobody who has only recorded it, sign anew.
    """

    def __init__(self, early: float, nonce: str) -> None:
        super().__init__(
            f"the request was signed {early:.1f} s before this process began: sign it again, or set the clock"
        )
        self.nonce = nonce


def derive_key(secret: bytes) -> bytes:
    """The key of requests, which tells nothing about the secret's other keys."""
    return hmac.digest(secret, b"hpwsn 1 requests", "sha256")


class Signer:
    """Signs requests, and checks that answers are answers to them."""

    def __init__(self, secret: bytes) -> None:
        self._key = derive_key(secret)

    def headers(self, method: str, target: str, body: bytes, *, now: float, nonce: str) -> dict[str, str]:
        """The headers of a request; `target` is its path and query as they are on the wire."""
        time = f"{now:.3f}"
        return {TIME: time, NONCE: nonce, SIGNATURE: _mac(self._key, method, target, time, nonce, body)}

    def check_answer(self, nonce: str, status: int, body: bytes, signature: str) -> None:
        """Refuse an answer that was not given by one who knows the secret to this very request."""
        if not _same(_mac(self._key, "answer", str(status), nonce, "", body), signature):
            raise InvalidSignature("the answer is not signed with our cluster.secret")

    def verify_line(self, nonce: str, number: int, line: bytes) -> bytes:
        """What the line of this number says in the answer to a request."""
        signature, _, content = line.rstrip(b"\n").partition(b" ")
        mac = _mac(self._key, "line", str(number), nonce, "", content)
        if not _same(mac, signature.decode("latin-1")):
            raise InvalidSignature("a line of the answer is not signed with our cluster.secret")
        return content


class Verifier:
    """Checks requests, and signs the answers to them; `once` is whether one that is repeated is refused."""

    def __init__(
        self, secret: bytes, *, window: float, began: float = 0.0, reject_replays: bool = True
    ) -> None:
        self._key = derive_key(secret)
        self._reject_replays = reject_replays
        self._window = window
        self._began = began
        self._used_nonces: OrderedDict[str, float] = OrderedDict()

    def check(self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, now: float) -> str:
        """The nonce of a request that may be believed; Unsigned says why another may not."""
        time, nonce = headers.get(TIME, ""), headers.get(NONCE, "")
        if not (time and nonce and SIGNATURE in headers):
            raise InvalidSignature(f"the request is not signed: it has no {TIME}, {NONCE} and {SIGNATURE}")
        if not _same(_mac(self._key, method, target, time, nonce, body), headers[SIGNATURE]):
            raise InvalidSignature("the signature is wrong: the sender has another cluster.secret")
        self._check_time(float(time), now)
        if float(time) < self._began:
            raise TooEarly(self._began - float(time), nonce)
        if self._reject_replays:
            self._check_nonce(nonce, now)
        return nonce

    def sign_answer(self, nonce: str, status: int, body: bytes) -> str:
        """The signature of the answer to the request of this nonce."""
        return _mac(self._key, "answer", str(status), nonce, "", body)

    def sign_line(self, nonce: str, number: int, content: bytes) -> bytes:
        """A line of an answer that goes on."""
        return f"{_mac(self._key, 'line', str(number), nonce, '', content)} ".encode() + content + b"\n"

    def _check_time(self, time: float, now: float) -> None:
        if abs(now - time) > self._window:
            raise InvalidSignature(
                f"the request was signed {abs(now - time):.0f} s {'before' if time < now else 'after'} now,"
                f" more than cluster.clock_window ({self._window:g} s): set the clocks of both hosts"
            )

    def _check_nonce(self, nonce: str, now: float) -> None:
        # Nonces of requests too old to be believed by their time need no memory.
        while self._used_nonces and next(iter(self._used_nonces.values())) < now - 2 * self._window:
            self._used_nonces.popitem(last=False)
        if nonce in self._used_nonces or len(nonce) > _LONGEST_NONCE:
            raise InvalidSignature("this very request was received before")
        self._used_nonces[nonce] = now
        if len(self._used_nonces) > _MAX_NONCES:
            self._used_nonces.popitem(last=False)


def _mac(key: bytes, kind: str, target: str, time: str, nonce: str, body: bytes) -> str:
    """The parts cannot run into each other: none but the last, a digest, may hold a line feed."""
    text = "\n".join((kind, target, time, nonce, hashlib.sha256(body).hexdigest()))
    return hmac.new(key, text.encode("utf-8", "surrogateescape"), "sha256").hexdigest()


def _same(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "surrogateescape"))
