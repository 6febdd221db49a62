"""`hpwsn streams list` and `show`: the services of a node, with their figures, plans and requests.

`list --watch` repeats the list until Ctrl-C. On a terminal each list replaces the one before; elsewhere the
lists follow each other, separated by an empty line.
"""

import argparse
from typing import Any

from hpwsn.commands.operations.operator_api import (
    add_command,
    add_node_options,
    address,
    dump,
    fields,
    items,
    request,
    table,
)
from hpwsn.commands.operations.watching import add_watch_option, show

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


def add_list_parsers(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the actions `list` and `show` to the command `streams`."""
    listing = add_command(actions, "list", "list the services registered at a node", _LIST)
    add_node_options(listing)
    add_watch_option(listing, "the list")
    listing.set_defaults(handler=_list)
    one = add_command(actions, "show", "show one service", _SHOW)
    one.add_argument("uri", metavar="URI", help="the uri of the service")
    add_node_options(one)
    one.set_defaults(handler=_show)


def _list(arguments: argparse.Namespace) -> int:
    show(arguments, lambda: _listed(arguments))
    return 0


def _listed(arguments: argparse.Namespace) -> str:
    answer = items(arguments, "streams")
    if arguments.json:
        return dump(answer)
    return table([_row(one) for one in answer["items"]], _COLUMNS, "no services")


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
    if isinstance(plan, list):
        rows = [{"": position, **entry} for position, entry in enumerate(plan)]
        parts.append(table(rows, ("", "op", "inputs", "text"), "no operators"))
    elif plan:
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
