"""The operator API of a node, from the side of the command line: JSON over HTTP, errors in one line, tables.

It knows nothing of SOAP. A node is reached directly, never through a proxy.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
from collections.abc import Iterable, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import BaseHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from hpwsn.errors import BadArguments, HpwsnError
from hpwsn_client.environment import CA, DEFAULT_URL, URL
from hpwsn_client.tls import certificate_problem, handshake_problem, tls_context

TIMEOUT = 30.0
WHERE = f"The node is the one at --url, else at ${URL}, else at {DEFAULT_URL}."


class NodeRequestFailed(HpwsnError):
    """The node's operator API could not be reached, or refused."""


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    examples: str,
    asks_node: bool = True,
) -> argparse.ArgumentParser:
    """A parser whose help ends with examples, and before them says which node is asked, if one is."""
    return commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"{WHERE}\n\nexamples:\n{examples}" if asks_node else f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_node_options(parser: argparse.ArgumentParser) -> None:
    """The options that every command to a node has."""
    parser.add_argument("--url", help="the node's address, as it prints it when ready")
    add_ca_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for a script to read")


def add_ca_option(parser: argparse.ArgumentParser) -> None:
    """The option that says whose certificates are trusted."""
    parser.add_argument(
        "--ca",
        metavar="FILE",
        help=f"PEM file of authorities for https (${CA}; else the system's)",
    )


def base_url(url: str) -> str:
    """The node's base address from the address of its broker."""
    check_address(url, f"give --url as {DEFAULT_URL}")
    return url.rstrip("/").removesuffix("/wsn")


def check_address(url: str, remedy: str) -> None:
    """Refuses what cannot be asked over HTTP."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not (url.isascii() and url.isprintable()) or " " in url:
        raise BadArguments(f"{url!r} is no address of a node; {remedy}")


def address(arguments: argparse.Namespace, *path: str, **query: object) -> str:
    """The URL of a resource at the node that the arguments or the environment name."""
    base = base_url(arguments.url or os.environ.get(URL) or DEFAULT_URL)
    given = {name: value for name, value in query.items() if value is not None}
    return "/".join((base, *(quote(part, safe="") for part in path))) + (
        f"?{urlencode(given)}" if given else ""
    )


def request(
    method: str,
    url: str,
    body: object = None,
    remedy: str = "start one with `hpwsn serve`, or give --url",
    ca: str | None = None,
) -> dict[str, Any]:
    """The JSON object that the node answers with; `ca` is the file of `--ca`, if it was given."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    asked = Request(url, data=data, method=method, headers=headers)
    try:
        with _opener(url, ca).open(asked, timeout=TIMEOUT) as response:
            answer = json.loads(response.read() or b"{}")
    except HTTPError as error:
        raise NodeRequestFailed(_refusal(url, error)) from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise NodeRequestFailed(_unreachable(url, reason, remedy)) from None
    except (HTTPException, ValueError):
        answer = None
    if not isinstance(answer, dict):
        raise NodeRequestFailed(f"what answers at {url} is no HPwsn node; check --url")
    return answer


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
    said = _error_of(answer)
    if error.code == 404 and not said:
        return f"what answers at {url} does not know that address: it is another kind of node, or none"
    if error.code == 404:
        return f"the node knows nothing at {url}; the command's `list` shows what there is"
    return f"the node refused {url}: HTTP {error.code} {said or answer[:500] or error.reason}"


def _error_of(answer: str) -> str:
    """What a refusal says, which is JSON with `error` where the node itself refuses."""
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, LookupError, TypeError):
        return ""


def table(found: Sequence[Mapping[str, Any]], columns: Sequence[str], nothing: str) -> str:
    """Rows under their names, or a word for no rows."""
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
    """One thing, a line for each of its fields."""
    width = max(map(len, one), default=0)
    return "\n".join(f"{name:{width}}  {cell(one[name])}" for name in one)


def cell(value: object) -> str:
    """A value as a person reads it."""
    if isinstance(value, list):
        return ", ".join(map(cell, value)) or "-"
    if isinstance(value, dict):
        return " ".join(f"{name}={cell(one)}" for name, one in value.items()) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


def dump(answer: object) -> str:
    """A value as a program reads it."""
    return json.dumps(answer, indent=2, ensure_ascii=False)
