"""Signed requests to the admin node: the signature is verified, and the response is signed.

Rejected requests are logged, the same error of the same host once a minute.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from hpwsn.routing.membership.signing import SIGNATURE, InvalidSignature, TooEarly, Verifier

log = logging.getLogger(__name__)

_LOG_INTERVAL = 60.0
"""Seconds in which the same error of the same host is logged once."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SignedHandler = Callable[[web.Request, bytes], Awaitable[web.Response]]


class SignedRequests:
    """Verifies requests with the cluster secret, and signs their responses."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._last_logged: dict[tuple[str, str], float] = {}

    def only(self, handler: SignedHandler) -> Handler:
        """Wrap a handler so that it gets signed requests only, with their body; its response is signed."""

        async def handle(request: web.Request) -> web.Response:
            body = await request.read()
            try:
                nonce = self.check(request, body)
            except InvalidSignature as error:
                return self.refuse(request, error)
            return self.sign(nonce, await handler(request, body))

        return handle

    def also(self, handler: SignedHandler) -> Handler:
        """As `only`, but an unsigned request gets an unsigned response."""
        signed = self.only(handler)

        async def handle(request: web.Request) -> web.StreamResponse:
            return await (signed(request) if SIGNATURE in request.headers else handler(request, b""))

        return handle

    def check(self, request: web.Request, body: bytes) -> str:
        """The nonce of a signed request; InvalidSignature if it is not signed."""
        return self._verifier.check(request.method, request.raw_path, request.headers, body, now=time.time())

    def sign(self, nonce: str, response: web.Response) -> web.Response:
        """Sign the response to the request with this nonce."""
        assert isinstance(response.body, bytes)
        response.headers[SIGNATURE] = self._verifier.sign_answer(nonce, response.status, response.body)
        return response

    def sign_line(self, nonce: str, number: int, line: bytes) -> bytes:
        """A line of an endless response, signed."""
        return self._verifier.sign_line(nonce, number, line)

    def refuse(self, request: web.Request, error: InvalidSignature) -> web.Response:
        """The response to a request with an invalid signature."""
        now, key = time.monotonic(), (request.remote or "?", str(error)[:40])
        if now - self._last_logged.get(key, -_LOG_INTERVAL) >= _LOG_INTERVAL:
            if len(self._last_logged) > 1000:
                self._last_logged.clear()
            self._last_logged[key] = now
            log.warning("%s %s from %s is rejected: %s", request.method, request.path, key[0], error)
        if not isinstance(error, TooEarly):
            return web.json_response({"error": str(error)}, status=401)
        response = web.json_response({"error": str(error), "now": time.time()}, status=401)
        return self.sign(error.nonce, response)
