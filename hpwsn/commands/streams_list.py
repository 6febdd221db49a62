"""`hpwsn streams list` and `show`: the services of a node, with their figures, plans and requests.

`list --watch` repeats the list until Ctrl-C. On a terminal each list replaces the one before; elsewhere the
lists follow each other, separated by an empty line.
"""

import argparse
import sys
import time
from typing import Any

from hpwsn.commands.operations.operator_api import (
    NodeRequestFailed,
    add_command,
    add_node_options,
    address,
    dump,
    fields,
    request,
    table,
)
from hpwsn.errors import BadArguments

_LIST = """\
  hpwsn streams list
  hpwsn streams list --watch
  hpwsn streams list --watch 10 --json
"""
_SHOW = """\
  hpwsn streams show urn:example:flow
"""
_FIGURES = {
    "rows/s": "rows_per_second",
    "lag": "lag",
    "batch s": "batch_seconds",
    "state rows": "state_rows",
    "failures": "failures",
}
_COLUMNS = ("uri", "state", "topic", "constraints", "inputs", *_FIGURES, "ui")
INTERVAL = 2.0
"""Seconds between two lists, the interval of the jobs' heartbeats."""
PAGE = 1000
"""Services in one request, the most that a node gives."""
_CLEAR = "\x1b[H\x1b[2J"


def add_list_parsers(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the actions `list` and `show` to the command `streams`."""
    listing = add_command(actions, "list", "list the services registered at a node", _LIST)
    add_node_options(listing)
    listing.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=INTERVAL,
        metavar="SECONDS",
        help="repeat the list until Ctrl-C (default: every 2 seconds)",
    )
    listing.set_defaults(handler=_list)
    show = add_command(actions, "show", "show one service", _SHOW)
    show.add_argument("uri", metavar="URI", help="the uri of the service")
    add_node_options(show)
    show.set_defaults(handler=_show)


def _list(arguments: argparse.Namespace) -> int:
    if arguments.watch is not None and not 0.1 <= arguments.watch <= 86400:
        raise BadArguments(
            f"--watch {arguments.watch:g}: give the seconds between two lists, from 0.1 to 86400"
        )
    if arguments.watch is None:
        print(_listed(arguments))
    else:
        _watch(arguments)
    return 0


def _watch(arguments: argparse.Namespace) -> None:
    """Repeat the list until Ctrl-C; only the first request must succeed, because a node may restart."""
    shown, clear = _listed(arguments), sys.stdout.isatty()
    try:
        while True:
            print(f"{_CLEAR}{shown}" if clear else f"{shown}\n", flush=True)
            time.sleep(arguments.watch)
            try:
                shown = _listed(arguments)
            except NodeRequestFailed as error:
                shown = str(error)
    except KeyboardInterrupt:
        return


def _listed(arguments: argparse.Namespace) -> str:
    services = _services(arguments)
    if arguments.json:
        return dump({"items": services, "next": None})
    return table([_row(one) for one in services], _COLUMNS, "no services")


def _services(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The services of all pages."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        answer = request("GET", address(arguments, "streams", limit=PAGE, after=after), ca=arguments.ca)
        found += answer.get("items", [])
        after = answer.get("next")
        if not after:
            return found


def _show(arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, "streams", arguments.uri), ca=arguments.ca)
    print(dump(answer) if arguments.json else _shown(answer))
    return 0


def _shown(service: dict[str, Any]) -> str:
    """The fields of a service, then its diagram, its requests and the end of its log, if it has them."""
    plan, lines = service.pop("plan", None), service.pop("log", None)
    requests = service.pop("requests", None) or {"total": 0, "items": []}
    service["requests"] = requests["total"]
    for name in ("reason", "log_note"):
        if not service.get(name):
            service.pop(name, None)
    parts = [fields(service)]
    if plan:
        parts.append("\n".join(plan["diagram"]))
    if requests["items"]:
        parts.append(table(requests["items"], ("kind", "client", "topics", "filter"), ""))
    if lines:
        parts.append("the end of its log:\n" + "\n".join(f"  {line}" for line in lines))
    return "\n\n".join(parts)


def _row(service: dict[str, Any]) -> dict[str, Any]:
    figures = service.get("figures")
    found = figures if isinstance(figures, dict) else {}
    named = {name: service.get(name) for name in ("constraints", "inputs")}
    texts = {
        name: [f"{key}: {value}" for key, value in given.items()] if isinstance(given, dict) else []
        for name, given in named.items()
    }
    return {**service, **texts, **{name: found.get(figure) for name, figure in _FIGURES.items()}}
