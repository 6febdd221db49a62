"""Who the client is, and what a node or the admin node lets it do: `GET /session`.

There are no users yet: every client is `anonymous` and has all rights. A page shows an action only where
the session has the right to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from aiohttp import web

from hpwsn.http_json.responses import answer, check_names
from hpwsn_client import __version__

ANONYMOUS = "anonymous"
RIGHTS = ("publish", "subscribe", "read", "manage", "stream", "operate")
"""All rights, in the order of the documentation."""

Editing = Callable[[], Mapping[str, Any]]
"""Where the topics come from and whether they can be edited: `source`, `editable`, `why_not`."""


class SessionDoor:
    """The request handler for /session."""

    def __init__(self, name: str, kind: Literal["node", "admin"], editing: Editing) -> None:
        self._name = name
        self._kind = kind
        self._editing = editing

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the web application."""
        return [web.get("/session", self._session)]

    async def _session(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        return answer(
            {
                "node": self._name,
                "kind": self._kind,
                "version": __version__,
                "principal": ANONYMOUS,
                "may": list(RIGHTS),
                "topics": dict(self._editing()),
                "time": datetime.now(UTC).isoformat(),
            },
            200,
        )
