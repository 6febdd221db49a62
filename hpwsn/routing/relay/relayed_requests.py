"""The receiving side of the relay: a request with the header Hpwsn-Relayed-By must be signed by the cluster.

The signature covers method, path, query, body and the name of the relaying node; each signature is accepted
once. Handlers find that name in the request under RELAYER. Requests without the header pass unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

import aiohttp
from aiohttp import web

from hpwsn.http_json.responses import answer, read_limited
from hpwsn.routing.membership.signing import SIGNATURE, InvalidSignature, TooEarly, Verifier
from hpwsn.routing.relay.relay_rules import (
    METHODS,
    RELAYED_BY,
    TOO_EARLY,
    is_relayed_address,
    signed_target,
)

log = logging.getLogger(__name__)

RELAYER = "relayed_by"
"""The key of a request under which the verified name of the relaying node is; absent if none relayed it."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RelayedRequests:
    """Verifies relayed requests; without a verifier, this node is in no cluster and refuses them all."""

    def __init__(self, verifier: Verifier | None, body_limit: int) -> None:
        self._verifier = verifier
        self._limit = body_limit

    def join(self, app: web.Application) -> None:
        """Add the check before all handlers."""
        app.middlewares.append(self.middleware)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a relayed request pass if its signature is right."""
        if RELAYED_BY not in request.headers:
            return await handler(request)
        if self._verifier is None:
            return _refuse("this node is in no cluster; send the request without a relay")
        if request.method not in METHODS or not is_relayed_address(request.rel_url.raw_path):
            return _refuse(f"{request.method} {request.path} is not relayed; send it to the node itself")
        try:
            body = await self._check(self._verifier, request)
        except TooEarly as error:
            return self._tell_time(self._verifier, error)
        except InvalidSignature as error:
            log.warning(
                "refused %s %s, relayed by %s: %s", request.method, request.path, request.remote, error
            )
            return _refuse(f"the relayed request is refused: {error}")
        _restore_body(request, body)
        return await handler(request)

    def _tell_time(self, verifier: Verifier, error: TooEarly) -> web.Response:
        """Let the relaying node sign again: its clock lags, or this is a replay from before the start."""
        response = answer({"error": str(error), "now": time.time()}, TOO_EARLY)
        assert isinstance(response.body, bytes)
        response.headers[SIGNATURE] = verifier.sign_answer(error.nonce, TOO_EARLY, response.body)
        return response

    async def _check(self, verifier: Verifier, request: web.Request) -> bytes:
        by = unquote(request.headers[RELAYED_BY])
        body = await read_limited(request, self._limit)
        target = signed_target(by, request.raw_path)
        verifier.check(request.method, target, request.headers, body, now=time.time())
        request[RELAYER] = by
        return body


def _restore_body(request: web.Request, body: bytes) -> None:
    """Let the handler read the body that was read for the signature, in any of aiohttp's ways."""
    content = aiohttp.StreamReader(request.protocol, len(body) + 1, loop=asyncio.get_running_loop())
    content.feed_data(body)
    content.feed_eof()
    # `request.content` is a cached property, and reading the body for the signature has filled the cache.
    request._payload = request._cache["content"] = content


def _refuse(words: str) -> web.Response:
    return answer({"error": words}, 403)
