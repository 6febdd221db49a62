"""`hpwsn subscriptions`: what a node's subscriptions are doing, for its operator.

It talks to the node's operator API (JSON over HTTP) and knows nothing of SOAP. A node is reached directly,
never through a proxy.
"""

import argparse
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from hpwsn.errors import HpwsnError

DEFAULT_URL = "http://127.0.0.1:8080/wsn"
TIMEOUT = 30.0
COLUMNS = ("id", "state", "topics", "consumer", "waiting", "delivered", "failures", "terminates")

_EXAMPLES = """\
The node is the one at --url, else at $HPWSN_URL, else at http://127.0.0.1:8080/wsn.

examples:
  hpwsn subscriptions list
  hpwsn subscriptions show ID --json
  hpwsn subscriptions drop ID --url http://broker.example.org:8080/wsn
"""


class NodeRequestFailed(HpwsnError):
    """The node's operator API could not be reached, or refused."""


def add_subscriptions_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `subscriptions` with its actions."""
    parser = _add(commands, "subscriptions", "look at or end the subscriptions of a node")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = _add(actions, "list", "all subscriptions, one a line")
    listing.set_defaults(handler=_list)
    show = _add(actions, "show", "everything about one subscription")
    show.set_defaults(handler=_show)
    drop = _add(actions, "drop", "end one subscription")
    drop.set_defaults(handler=_drop)
    for action in (show, drop):
        action.add_argument("id", metavar="ID", help="the last part of the subscription's address")
    for action in (listing, show, drop):
        action.add_argument("--url", help="the node's address, as it prints it when ready")
        action.add_argument("--json", action="store_true", help="print JSON for a script to read")


def base_url(url: str) -> str:
    """The node's base address from the address of its broker."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise NodeRequestFailed(f"{url!r} is no address of a node; give --url as {DEFAULT_URL}")
    return url.rstrip("/").removesuffix("/wsn")


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, about: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _list(arguments: argparse.Namespace) -> int:
    answer = _request("GET", _address(arguments))
    found = answer.get("subscriptions", [])
    print(_dump(answer) if arguments.json else "\n".join(_table(found)))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    answer = _request("GET", _address(arguments, arguments.id))
    print(_dump(answer) if arguments.json else "\n".join(f"{key:12} {_cell(answer[key])}" for key in answer))
    return 0


def _drop(arguments: argparse.Namespace) -> int:
    _request("DELETE", _address(arguments, arguments.id))
    print(_dump({"dropped": arguments.id}) if arguments.json else f"dropped {arguments.id}")
    return 0


def _address(arguments: argparse.Namespace, *path: str) -> str:
    base = base_url(arguments.url or os.environ.get("HPWSN_URL") or DEFAULT_URL)
    return "/".join((base, "subscriptions", *(quote(part, safe="") for part in path)))


def _request(method: str, url: str) -> dict[str, Any]:
    request = Request(url, method=method, headers={"Accept": "application/json"})
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=TIMEOUT) as response:
            answer = json.loads(response.read() or b"{}")
    except HTTPError as error:
        raise NodeRequestFailed(_refusal(url, error)) from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        remedy = "start one with `hpwsn serve`, or give --url"
        raise NodeRequestFailed(f"no node answers at {url}: {reason}; {remedy}") from None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NodeRequestFailed(f"what answers at {url} is no HPwsn node; check --url")
    return answer


def _refusal(url: str, error: HTTPError) -> str:
    with error:
        if error.code == 404:
            return f"the node knows nothing at {url}; `hpwsn subscriptions list` shows what there is"
        words = error.read(500).decode("utf-8", "replace").strip()
    return f"the node refused {url}: HTTP {error.code} {words or error.reason}"


def _table(found: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    if not found:
        return ["no subscriptions"]
    rows = [
        [name.upper() for name in COLUMNS],
        *([_cell(one.get(name)) for name in COLUMNS] for one in found),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return (
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


def _dump(answer: object) -> str:
    return json.dumps(answer, indent=2, ensure_ascii=False)
