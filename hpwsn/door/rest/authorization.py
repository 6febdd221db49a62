"""The credentials of a request: the header Authorization with a bearer token (RFC 6750).

Only the token of jobs exists. A wrong bearer token is refused where a request reads, also on public topics:
its owner would else silently get less than it expects. Other schemes are for proxies, and are ignored.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from hpwsn_client.wsn.soap import faults

CHALLENGE = 'Bearer realm="hpwsn"'
"""The header WWW-Authenticate of a refusal."""

Accepts = Callable[[str], bool]


class NotAuthorized(faults.SoapFault):
    """The request needs a valid token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, status=401)


def reads_internal(request: web.Request, accepts: Accepts) -> bool:
    """Whether the client may read internal topics; NotAuthorized if its token is wrong."""
    scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
    if scheme.lower() != "bearer":
        return False
    if not accepts(token.strip()):
        raise NotAuthorized("the bearer token is not valid; DATA/job.token of the node has the one of jobs")
    return True
