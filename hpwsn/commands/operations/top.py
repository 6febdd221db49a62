"""`hpwsn top`: the busiest topics and the slowest consumers of a node."""

from __future__ import annotations

import argparse
from typing import Any

from hpwsn.commands.operations.operator_api import (
    add_command,
    add_node_options,
    address,
    dump,
    request,
    table,
)
from hpwsn.commands.operations.watching import add_watch_option, coloured, show

MOST = 1000
_EXAMPLES = """\
  hpwsn top
  hpwsn top --watch --number 20
  hpwsn top --json
"""
_TOPICS = ("events/s", "topic", "subscribers", "last")
_CONSUMERS = ("waiting", "oldest", "sent/s", "state", "consumer", "topics", "reason")


def add_top_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `top`."""
    parser = add_command(commands, "top", "show the busiest topics and the slowest consumers", _EXAMPLES)
    parser.add_argument(
        "--number", metavar="N", type=_number, default=10, help="rows of each table (default: 10)"
    )
    add_node_options(parser)
    add_watch_option(parser, "the tables")
    parser.set_defaults(handler=_top)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 5 and 0 < int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST}")
    return int(text)


def _top(arguments: argparse.Namespace) -> int:
    show(arguments, lambda: _screen(arguments))
    return 0


def _screen(arguments: argparse.Namespace) -> str:
    topics = _list(arguments, "topics", "-rate")
    behind = [one for one in _list(arguments, "subscriptions", "-waiting") if one["waiting"]]
    if arguments.json:
        return dump({"topics": topics, "subscriptions": behind})
    return "\n".join(
        (
            coloured("Busiest topics", "bold"),
            table([_topic(one) for one in topics], _TOPICS, "no events in the last 10 seconds"),
            "",
            coloured("Slowest consumers", "bold"),
            table([_consumer(one) for one in behind], _CONSUMERS, "no notifications wait"),
        )
    )


def _list(arguments: argparse.Namespace, path: str, sort: str) -> list[dict[str, Any]]:
    answer = request("GET", address(arguments, path, sort=sort, limit=arguments.number), ca=arguments.ca)
    found: list[dict[str, Any]] = answer["items"]
    return found


def _topic(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "events/s": f"{one['rate']:.1f}", "last": (one["last"] or {}).get("time")}


def _consumer(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "sent/s": f"{one['rate']:.1f}"}
