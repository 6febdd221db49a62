"""What may be relayed to another node, and in which form. Pure.

`/nodes/NAME/REST` stands for `/REST` at the node NAME. Only operator addresses are relayed: the SOAP
addresses are for the node's own clients, and a relayed request is never relayed again. The signature covers
the name of the relaying node, so that the receiver knows for certain who relayed. Headers pass only if they
belong to the request itself: no cookies, nothing about the connection, nothing about the page's origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote, urlsplit

RELAYED_BY = "Hpwsn-Relayed-By"
"""The header with the name of the relaying node, in percent-encoding."""
ADMIN = "/admin"
"""The admin node as a relaying node; the name of a node never contains a slash."""
TOO_EARLY = 425
"""The status for a request that was signed before the node's start; the signed answer has the node's time."""
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE"})

_WITH_ALL_BELOW = frozenset(
    {
        "deadletters",
        "filters",
        "pullpoints",
        "readings",
        "registrations",
        "sensors",
        "streams",
        "subscriptions",
        "topics",
        "virtual",
    }
)
_ALONE = frozenset(
    {
        "alerts",
        "cluster",
        "events-log",
        "healthz",
        "history",
        "live",
        "metrics",
        "openapi.json",
        "profile",
        "readyz",
        "session",
        "status",
    }
)
_REQUEST_HEADERS = (
    "Accept",
    "Accept-Encoding",
    "Authorization",
    "Content-Type",
    "Hpwsn-Message-Id",
    "Hpwsn-Pushed-By",
    "Hpwsn-Receipt-To",
    "Hpwsn-Registration",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "traceparent",
    "tracestate",
)
_DROPPED_FROM_ANSWERS = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "location",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "server",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def is_relayed_address(path: str) -> bool:
    """Whether a path, in percent-encoding and without a query, is an operator address."""
    first, slash, _ = path.removeprefix("/").partition("/")
    if any(unquote(segment) in (".", "..") for segment in path.split("/")):
        return False
    return first in _WITH_ALL_BELOW or (first in _ALONE and not slash)


def split_address(raw_path: str) -> tuple[str, str]:
    """Return the name and the path at that node of a path `/nodes/NAME/REST` in percent-encoding."""
    _, _, name, *rest = raw_path.split("/", 3)
    return unquote(name), "/" + "".join(rest)


def signed_target(by: str, target: str) -> str:
    """Return what is signed as the target of a relayed request: differs from that of any other request."""
    return f"relayed by {quote(by, safe='', errors='surrogateescape')}: {target}"


def passed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that are sent on."""
    return {name: headers[name] for name in _REQUEST_HEADERS if name in headers}


def answered_headers(headers: Iterable[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """Return the headers of a node's answer that are sent on, with `Location` as seen from here."""
    given = list(headers)
    named = {
        each.strip().lower()
        for key, value in given
        if key.lower() == "connection"
        for each in value.split(",")
    }
    passed = [
        (key, value)
        for key, value in given
        if key.lower() not in _DROPPED_FROM_ANSWERS | named and not key.lower().startswith("access-control-")
    ]
    for key, value in given:
        if key.lower() == "location" and (mapped := _map_location(value, name)):
            passed.append(("Location", mapped))
    return passed


def _map_location(location: str, name: str) -> str | None:
    """Return an address at a node as one below /nodes here; None for anything but an operator address."""
    try:
        found = urlsplit(location)
    except ValueError:
        return None
    if not found.path.startswith("/") or not is_relayed_address(found.path):
        return None
    query = f"?{found.query}" if found.query else ""
    return f"/nodes/{quote(name, safe='')}{found.path}{query}"
