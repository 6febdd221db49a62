"""Which requests of operators go into the events log: those that changed something.

One middleware watches the addresses of the operator API, so that no door can forget to tell. Publishing,
checks, dry runs and the heartbeats of jobs change nothing that an operator would look for later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from aiohttp import web

KIND = "action"
WHO = "anonymous"
"""Everybody, as long as there are no users."""

CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
WATCHED = (
    "/subscriptions",
    "/pullpoints",
    "/registrations",
    "/deadletters",
    "/streams",
    "/sensors",
    "/virtual",
    "/topics/changes",
    "/topics/import",
)
"""The beginnings of the addresses that an operator changes."""

Note = Callable[[str, str, str], None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OperatorActions:
    """Tells the events log, by `note` with kind, text and who, of each change that an operator made."""

    def __init__(self, note: Note, node: str = "") -> None:
        self._note = note
        self._own = f"/nodes/{quote(node, safe='')}"

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note a request that was answered with success."""
        response = await handler(request)
        if request.method in CHANGING and response.status < 400:
            # A request for this node by its name is answered here, and changes as much.
            path = request.rel_url.raw_path.removeprefix(self._own)
            if _is_watched(request, path):
                self._note(KIND, f"{request.method} {path}", WHO)
        return response


def _is_watched(request: web.Request, path: str) -> bool:
    if path.endswith(("/events", "/readings")):
        return False  # a publication; the test comes first, since these are many
    if request.query.get("dry_run", "false") != "false":
        return False
    if request.method == "PUT" and path.startswith("/streams/"):
        return False  # a job's heartbeat
    return any(path == start or path.startswith(f"{start}/") for start in WATCHED)
