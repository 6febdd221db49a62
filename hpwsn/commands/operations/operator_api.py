"""The command line's client for the operator API of a node: JSON over HTTP, one-line errors, tables.

It does not use SOAP. It connects to the node directly, never through a proxy. A bearer token of the
environment is sent to the node, and not on to where the node redirects.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
from collections.abc import Collection, Iterable, Mapping, Sequence
from http.client import HTTPException
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import BaseHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from hpwsn.errors import BadArguments, HpwsnError
from hpwsn_client.environment import CA, DEFAULT_URL, URL, authorization, bearer_token
from hpwsn_client.tls import certificate_problem, handshake_problem, tls_context

TIMEOUT = 30.0
REMEDY = "start one with `hpwsn serve`, or give --url"
WHERE = f"The address of the node is --url, else ${URL}, else {DEFAULT_URL}."


PAGE = 500
"""Items of a list that are requested at once."""


class NodeRequestFailed(HpwsnError):
    """The operator API of the node did not answer, or rejected the request; `status` is None without HTTP."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    examples: str,
    asks_node: bool = True,
) -> argparse.ArgumentParser:
    """Add a parser whose help ends with examples; with `asks_node` it also says which node is used."""
    return commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"{WHERE}\n\nexamples:\n{examples}" if asks_node else f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_node_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that sends requests to a node."""
    parser.add_argument("--url", help="the node's address, as in its `ready` line")
    add_ca_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for a script to read")


def add_ca_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the trusted certificate authorities."""
    parser.add_argument(
        "--ca",
        metavar="FILE",
        help=f"PEM file of certificate authorities for https (default: ${CA}, else the system's)",
    )


def base_url(url: str) -> str:
    """The base URL of the node, from the address of its broker; BadArguments if it is not valid."""
    check_address(url, f"give --url as {DEFAULT_URL}")
    return url.rstrip("/").removesuffix("/wsn")


def check_address(url: str, remedy: str) -> None:
    """Raise BadArguments with the remedy if the URL is not an HTTP address."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not (url.isascii() and url.isprintable()) or " " in url:
        raise BadArguments(f"{url!r} is not the address of a node; {remedy}")


def address(arguments: argparse.Namespace, *path: str, **query: object) -> str:
    """The URL of a resource of the node that is named by the arguments or the environment.

    A parameter whose value is a list is given once for each item.
    """
    base = base_url(arguments.url or os.environ.get(URL) or DEFAULT_URL)
    given = {name: value for name, value in query.items() if value is not None}
    return "/".join((base, *(quote(part, safe="") for part in path))) + (
        f"?{urlencode(given, doseq=True)}" if given else ""
    )


def request(
    method: str,
    url: str,
    body: object = None,
    remedy: str = REMEDY,
    ca: str | None = None,
    timeout: float = TIMEOUT,
) -> dict[str, Any]:
    """Send a request and return the JSON object of the response; `ca` is the value of `--ca`."""
    data = None if body is None else json.dumps(body).encode()
    return send(method, url, data, remedy=remedy, ca=ca, timeout=timeout)


def items(
    arguments: argparse.Namespace,
    *path: str,
    most: int | None = None,
    at_once: int = PAGE,
    **query: object,
) -> dict[str, Any]:
    """A list of the node in one object, from pages of `at_once` items; at most `most` items."""
    found: list[Any] = []
    after = None
    while True:
        limit = at_once if most is None else min(at_once, most - len(found))
        url = address(arguments, *path, limit=limit, after=after, **query)
        page = request("GET", url, ca=arguments.ca)
        found += page.get("items", [])
        after = page.get("next")
        if after is None or (most is not None and len(found) >= most):
            return {**page, "items": found}


def send(
    method: str,
    url: str,
    data: bytes | None = None,
    *,
    content_type: str = "application/json",
    headers: Mapping[str, str] = MappingProxyType({}),
    timeout: float = TIMEOUT,
    remedy: str = REMEDY,
    ca: str | None = None,
    accepted: Collection[int] = (),
) -> dict[str, Any]:
    """Send a request with a body of any type, and return the JSON object of the response.

    The object of an error is returned too if its status is one of `accepted`.
    """
    sent = {"Content-Type": content_type, **headers}
    body = _exchange(method, url, data, sent, "application/json", timeout, remedy, ca, accepted)
    answer = _parsed(body or b"{}")
    if not isinstance(answer, dict):
        raise NodeRequestFailed(_not_a_node(url))
    return answer


def download(
    url: str, content_type: str, *, timeout: float = TIMEOUT, remedy: str = REMEDY, ca: str | None = None
) -> bytes:
    """The bytes of a resource in one format, such as image/png."""
    return _exchange("GET", url, None, {}, content_type, timeout, remedy, ca, ())


def download_range(url: str, first: int, last: int, *, ca: str | None = None) -> bytes:
    """The bytes of a resource from one to another, both included, or fewer at the end of a connection."""
    headers = {"Range": f"bytes={first}-{last}"}
    return _exchange("GET", url, None, headers, "*/*", TIMEOUT, REMEDY, ca, ())


def _exchange(
    method: str,
    url: str,
    data: bytes | None,
    headers: Mapping[str, str],
    accept: str,
    timeout: float,
    remedy: str,
    ca: str | None,
    accepted: Collection[int],
) -> bytes:
    """Send a request and return the body of the response; NodeRequestFailed if it is an error."""
    http_request = Request(url, data=data, method=method, headers={"Accept": accept, **headers})
    try:
        for name, value in authorization(bearer_token()).items():
            http_request.add_unredirected_header(name, value)
    except ValueError as error:
        raise BadArguments(str(error)) from None
    try:
        with _opener(url, ca).open(http_request, timeout=timeout) as response:
            found: bytes = response.read()
            return found
    except HTTPError as error:
        if error.code not in accepted:
            raise NodeRequestFailed(_refusal(url, error), error.code) from None
        with error:
            return error.read()
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise NodeRequestFailed(_unreachable(url, reason, remedy)) from None
    except (HTTPException, ValueError):
        raise NodeRequestFailed(_not_a_node(url)) from None


def _not_a_node(url: str) -> str:
    return f"the server at {url.partition('?')[0]} is not an HPwsn node; check --url"


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _opener(url: str, ca: str | None) -> OpenerDirector:
    handlers: list[BaseHandler] = [ProxyHandler({})]
    if url.startswith("https:"):
        try:
            handlers.append(HTTPSHandler(context=tls_context(ca)))
        except ValueError as error:
            raise BadArguments(str(error)) from None
    return build_opener(*handlers)


def _unreachable(url: str, reason: object, remedy: str) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return "the certificate of {} is not accepted ({}); {}".format(url, *certificate_problem(reason))
    if isinstance(reason, ssl.SSLError):
        return "TLS with {} failed ({}); {}".format(url, *handshake_problem(reason))
    return f"no node answers at {url} ({getattr(reason, 'strerror', None) or reason}); {remedy}"


def _refusal(url: str, error: HTTPError) -> str:
    with error:
        answer = error.read(10_000).decode("utf-8", "replace").strip()
    error_text = _error_of(answer)
    if error.code == 404 and not error_text:
        return f"the server at {url} does not have this resource; it is another kind of node, or not a node"
    if error.code == 404:
        return f"the node has nothing at {url}; the command's `list` shows what exists"
    return f"the node rejected {url}: HTTP {error.code} {error_text or answer[:500] or error.reason}"


def _error_of(answer: str) -> str:
    """The field `error` of a JSON response; empty if the response is not from a node."""
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, LookupError, TypeError):
        return ""


def table(found: Sequence[Mapping[str, Any]], columns: Sequence[str], nothing: str) -> str:
    """A table with the columns of each row, or the text `nothing` if there are no rows."""
    if not found:
        return nothing
    rows = [
        [name.upper() for name in columns],
        *([cell(one.get(name)) for name in columns] for one in found),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(columns))]
    lines: Iterable[str] = (
        "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
    return "\n".join(lines)


def fields(one: Mapping[str, Any]) -> str:
    """The fields of one resource, one per line."""
    width = max(map(len, one), default=0)
    return "\n".join(f"{name:{width}}  {cell(one[name])}" for name in one)


def cell(value: object) -> str:
    """A value as text in a table; `-` for null and empty values."""
    if isinstance(value, list):
        return ", ".join(map(cell, value)) or "-"
    if isinstance(value, dict):
        return " ".join(f"{name}={cell(one)}" for name, one in value.items()) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


def dump(answer: object) -> str:
    """A value as indented JSON."""
    return json.dumps(answer, indent=2, ensure_ascii=False)
