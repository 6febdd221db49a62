"""Web pages of other origins: which may read and change this node from a user's browser (CORS).

A page in somebody's browser reaches every address that the browser reaches, loopback too. Browsers name the
page's origin in the header Origin, and its relation to this node in Sec-Fetch-Site. Without configuration, a
page of another origin cannot write here, and its browser hides all answers from it. The setting
`server.cors_origins` lists the origins that may do both.

A page of this node has the node's own address, `localhost`, or a name that the configuration gives the node:
under any other name, a foreign page could have been given the node's address (DNS rebinding). SOAP
addresses are not covered: their content types make browsers ask first, and nobody answers there.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from hpwsn.http_json.request_errors import speaks_soap
from hpwsn.http_json.responses import Handling, answer
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic import shown

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "Hpwsn-Message-Id",
    "Hpwsn-Receipt-To",
    "Hpwsn-Registration",
    "Last-Event-ID",
    "traceparent",
    "tracestate",
)
RESPONSE_HEADERS = (
    "Hpwsn-After",
    "Hpwsn-Oldest",
    "Hpwsn-Since",
    "Hpwsn-Upto",
    "Hpwsn-Waiting",
    "Location",
    "Retry-After",
    "traceparent",
)
"""Headers of requests that a page may set, and of answers that it may read, beside those always allowed."""
MAX_AGE = 600
"""Seconds for which a browser may remember the answer to a preflight request."""
_WRITES = frozenset(METHODS) - {"GET", "HEAD"}
_OWN_SITES = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site of pages of this node, and of what a user began; only browsers send one."""
_JOIN = ", ".join


class Origins:
    """Decides about the origins of web pages.

    `readers` are the origins of `server.cors_origins`. `sockets` may write and open a WebSocket, but not read
    answers; `*` means all. `hosts` are names of the node's own pages, beside addresses and localhost. Pages
    of `public_url` are the node's own even where a proxy has changed the header Host.
    """

    def __init__(
        self,
        readers: Iterable[str] = (),
        sockets: Iterable[str] = (),
        hosts: Iterable[str] = (),
        public_url: str = "",
    ) -> None:
        self._readers = frozenset(readers)
        self._sockets = frozenset(sockets) | self._readers
        self._hosts = frozenset(host.lower() for host in hosts if host) | {"localhost"}
        self._public = _origin_of(public_url)

    def join(self, app: web.Application) -> None:
        """Add the checks of writes, the answers to preflight requests, and the headers of all answers."""
        app.middlewares.append(self.middleware)
        if self._readers:
            app.on_response_prepare.append(self._add_headers)

    def check_socket(self, request: web.Request) -> None:
        """Refuse a WebSocket to pages of other origins; browsers let any page open one to any address."""
        origin = request.headers.get("Origin")
        if origin is not None and not self._may_write(origin, request.host):
            raise SoapFault(
                f"web pages of origin {shown(origin)} may not open a WebSocket here;"
                " add it to server.websocket_origins",
                status=403,
            )

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handling) -> web.StreamResponse:
        """Answer a preflight request of a listed origin, and refuse writes of all others."""
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site", "none")
        if (origin is None and site in _OWN_SITES) or speaks_soap(request):
            return await handler(request)
        origin = origin or ""
        asks_first = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if asks_first and _listed(origin, self._readers):
            return _preflight(request)
        if request.method in _WRITES and not self._may_write(origin, request.host, site):
            which = f"origin {shown(origin)}" if origin else "other origins"
            words = f"web pages of {which} may not change this node; list their origin in server.cors_origins"
            return answer({"error": words}, 403)
        return await handler(request)

    def _may_write(self, origin: str, host: str, site: str = "none") -> bool:
        return _listed(origin, self._sockets) or (site in _OWN_SITES and self._is_own(origin, host))

    def _is_own(self, origin: str, host: str) -> bool:
        if self._public and origin.lower() == self._public:
            return True
        name = _name_of(host)
        return _host_of(origin) == host and (name in self._hosts or _is_address(name))

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        if speaks_soap(request):
            return
        vary = response.headers.get("Vary")
        response.headers["Vary"] = f"{vary}, Origin" if vary else "Origin"
        origin = request.headers.get("Origin")
        if origin is not None and _listed(origin, self._readers):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = _JOIN(RESPONSE_HEADERS)


def _listed(origin: str, origins: frozenset[str]) -> bool:
    return "*" in origins or origin in origins


def _origin_of(url: str) -> str:
    """The origin of a URL as browsers write it, without its scheme's usual port; empty if it has none."""
    parts = urlsplit(url)
    if not parts.hostname:
        return ""
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = f":{parts.port}" if parts.port and parts.port != usual else ""
    return f"{parts.scheme}://{name}{port}".lower()


def _host_of(origin: str) -> str:
    """Host and port of an origin, as the header Host has them; empty if it has none, such as `null`."""
    return origin.partition("://")[2]


def _name_of(host: str) -> str:
    """The name or address in a header Host, without its port; empty if the header is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _preflight(request: web.Request) -> web.Response:
    headers = {
        "Access-Control-Allow-Methods": _JOIN(METHODS),
        "Access-Control-Allow-Headers": _JOIN(REQUEST_HEADERS),
        "Access-Control-Max-Age": str(MAX_AGE),
    }
    if "Access-Control-Request-Private-Network" in request.headers:
        headers["Access-Control-Allow-Private-Network"] = "true"
    return web.Response(status=204, headers=headers)
