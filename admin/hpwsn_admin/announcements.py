"""The body of a registration: what a node announces about itself, parsed and checked."""

from __future__ import annotations

import json
from typing import Any

from hpwsn.routing.topology.topology import MalformedTopology, check_name
from hpwsn_admin.registry import Announcement

_TEXT_LIMIT = 2048
"""Characters of a text."""
_KEY_LIMIT = 64
"""Characters of an identity or a session."""


def parse_announcement(body: bytes, remote: str) -> Announcement:
    """Read a registration; without a host, the node is at `remote`. MalformedTopology says what is wrong."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedTopology(f"the body is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise MalformedTopology("the body must be a JSON object")
    port = fields.get("port")
    if type(port) is not int or not 0 < port < 65536:
        raise MalformedTopology(f"'port' is {str(port)[:80]!r}; give a number from 1 to 65535")
    return Announcement(
        name=check_name(_text(fields, "name")),
        cluster=check_name(_text(fields, "cluster")),
        url=_text(fields, "url"),
        host=_text(fields, "host") or remote,
        port=port,
        version=_text(fields, "version"),
        identity=_text(fields, "identity", _KEY_LIMIT),
        session=_text(fields, "session", _KEY_LIMIT),
    )


def _text(fields: dict[str, Any], key: str, limit: int = _TEXT_LIMIT) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or len(value) > limit:
        raise MalformedTopology(f"{key!r} must be a text of at most {limit} characters")
    return value
