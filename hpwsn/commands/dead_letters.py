"""`hpwsn deadletters`: lists, shows, replays and drops notifications that could not be delivered."""

import argparse
from collections.abc import Iterator
from typing import Any

from hpwsn.commands.operator_api import (
    NodeRequestFailed,
    add_command,
    add_node_options,
    address,
    dump,
    fields,
    request,
    table,
)

COLUMNS = ("id", "time", "subscription", "topic", "consumer", "reason")
PAGE = 500

_EXAMPLES = """\
  hpwsn deadletters list
  hpwsn deadletters show 17
  hpwsn deadletters replay 17 18
  hpwsn deadletters replay --subscription ID
  hpwsn deadletters drop --all
"""


def add_deadletters_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `deadletters` with its actions."""
    about = "list, replay or drop notifications that could not be delivered"
    parser = add_command(commands, "deadletters", about, _EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = add_command(actions, "list", "list dead letters, oldest first", _EXAMPLES)
    listing.add_argument("--limit", type=int, default=100, help="maximum number (default: 100; 0 means all)")
    listing.add_argument("--subscription", metavar="ID", help="only those of one subscription")
    listing.set_defaults(handler=_list)
    show = add_command(actions, "show", "show one dead letter with its payload", _EXAMPLES)
    show.add_argument("id", metavar="ID", type=int)
    show.set_defaults(handler=_show)
    replay = add_command(actions, "replay", "send dead letters to their subscriptions again", _EXAMPLES)
    drop = add_command(actions, "drop", "remove dead letters permanently", _EXAMPLES)
    for action, verb in ((replay, "replay"), (drop, "drop")):
        which = action.add_mutually_exclusive_group(required=True)
        which.add_argument("ids", metavar="ID", type=int, nargs="*", default=[], help="dead letters by id")
        which.add_argument("--subscription", metavar="ID", help="all of one subscription")
        which.add_argument("--all", action="store_true", help="all dead letters")
        action.set_defaults(handler=_change, verb=verb)
    for action in (listing, show, replay, drop):
        add_node_options(action)


def _list(arguments: argparse.Namespace) -> int:
    found = list(_pages(arguments))
    print(dump({"deadletters": found}) if arguments.json else table(found, COLUMNS, "no dead letters"))
    return 0


def _pages(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    after, left = 0, arguments.limit or None
    while left is None or left > 0:
        limit = PAGE if left is None else min(left, PAGE)
        url = address(arguments, "deadletters", after=after, limit=limit, subscription=arguments.subscription)
        found = request("GET", url, ca=arguments.ca).get("deadletters", [])
        yield from found
        if len(found) < limit:
            return
        after = found[-1]["id"]
        left = None if left is None else left - len(found)


def _show(arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, "deadletters", str(arguments.id)), ca=arguments.ca)
    print(dump(answer) if arguments.json else fields(answer))
    return 0


def _change(arguments: argparse.Namespace) -> int:
    ids = sorted(set(arguments.ids))
    which = {"ids": ids, "subscription": arguments.subscription, "all": arguments.all}
    selection = {name: value for name, value in which.items() if value}
    answer = request("POST", address(arguments, "deadletters", arguments.verb), selection, ca=arguments.ca)
    print(dump(answer) if arguments.json else fields(answer))
    if (found := sum(answer.values())) < len(ids):
        missing = (
            f"there is no dead letter {ids[0]}" if len(ids) == 1 else f"only {found} of {len(ids)} exist"
        )
        raise NodeRequestFailed(f"{missing}; `hpwsn deadletters list` shows all dead letters")
    return 0
