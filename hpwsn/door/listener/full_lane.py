"""The full lane: aiohttp's protocol, which answers requests that are not HTTP in JSON.

aiohttp answers them in plain text and logs a traceback, though the fault is the client's.
"""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http import HttpProcessingError

from hpwsn.http_json.responses import answer

log = logging.getLogger(__name__)

LONGEST = 300
"""Characters of the reason that are answered: a reason quotes the request."""


class FullLane(web.RequestHandler):
    """One connection; requests that can be parsed go to the application."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer with an error, and close the connection."""
        if not isinstance(exc, HttpProcessingError) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        reason = " ".join((message or exc.message).split())[:LONGEST]
        log.debug("a request from %s is not valid HTTP: %s", request.remote, reason)
        response = answer({"error": f"the request is not valid HTTP: {reason}"}, status)
        response.force_close()
        return response
