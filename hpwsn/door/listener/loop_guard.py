"""Refuses a node's own pushes, which would be published and pushed again without end.

Most such consumers are refused when they subscribe. What remains are names that lead to the node only when
they are resolved, or through a proxy. The refusal makes the push a failed delivery.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from hpwsn.push_mark import PUSHED_BY, PushMark

REFUSED = 409
PULL_POINTS = "/wsn/pullpoints/"
"""Under this path a push is queued, not published."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LoopGuard:
    """Looks at the mark of each request of the full lane."""

    def __init__(self, mark: PushMark) -> None:
        self._mark = mark

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a push of this node or of its clusters with 409."""
        marks = request.headers.getall(PUSHED_BY, ())
        if any(map(self._mark.would_loop, marks)) and not request.path.startswith(PULL_POINTS):
            told = (
                "this is a push of this node or of its clusters, which would loop; subscribe another consumer"
            )
            return web.json_response({"error": told}, status=REFUSED)
        return await handler(request)
