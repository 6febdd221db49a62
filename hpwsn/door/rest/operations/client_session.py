"""Who the client is, and what the node lets it do: `GET /session`.

The node has no users yet: every client is `anonymous` and has all rights. A page shows an action only where
the session has the right to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.door.rest.json_answers import answer, answers_in_json, check_names
from hpwsn_client import __version__

ANONYMOUS = "anonymous"
RIGHTS = ("publish", "subscribe", "read", "manage", "stream", "operate")
"""All rights, in the order of the documentation."""

Editing = Callable[[], Mapping[str, Any]]
"""Where the topics come from and whether they can be edited: `source`, `editable`, `why_not`."""


class SessionDoor:
    """The request handler for /session."""

    def __init__(self, name: str, broker: Broker, editing: Editing) -> None:
        self._name = name
        self._broker = broker
        self._editing = editing

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.get("/session", self._session)]

    @answers_in_json
    async def _session(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        return answer(
            {
                "node": self._name,
                "kind": "node",
                "version": __version__,
                "principal": ANONYMOUS,
                "may": list(RIGHTS),
                "topics": dict(self._editing()),
                "time": self._broker.now().isoformat(),
            },
            200,
        )
