"""The full lane: aiohttp's protocol, which answers requests that are not HTTP in JSON.

aiohttp answers them in plain text and logs a traceback, though the fault is the client's. It also leaves a
handler that waits unaware that its client has disconnected; `while_connected` ends the wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from hpwsn.http_json.responses import answer

log = logging.getLogger(__name__)

LONGEST = 300
"""Characters of the reason that are answered: a reason quotes the request."""
LOST = "the client has disconnected"


class FullLane(web.RequestHandler):
    """One connection; requests that can be parsed go to the application."""

    __slots__ = ("_tell_lost",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tell_lost: Callable[[], object] | None = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the wait of the handler, if it waits within `while_connected`."""
        super().connection_lost(exc)
        if self._tell_lost is not None:
            self._tell_lost()

    @contextmanager
    def while_connected(self) -> Iterator[None]:
        """Run the rest of a handler; ConnectionResetError ends it as soon as the client disconnects."""
        task = asyncio.current_task()
        assert task is not None
        if self.transport is None:
            raise ConnectionResetError(LOST)
        lost = False

        def cancel() -> None:
            nonlocal lost
            lost = True
            task.cancel()

        self._tell_lost = cancel
        try:
            yield
        except asyncio.CancelledError:
            if not lost or task.uncancel():
                raise
            raise ConnectionResetError(LOST) from None
        finally:
            self._tell_lost = None

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


def while_connected(request: web.Request) -> AbstractContextManager[None]:
    """Run the rest of a request's handler; ConnectionResetError ends it as soon as the client disconnects."""
    lane = request.protocol
    assert isinstance(lane, FullLane)
    return lane.while_connected()
