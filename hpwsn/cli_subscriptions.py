"""`hpwsn subscriptions`: what a node's subscriptions are doing, for its operator."""

import argparse

from hpwsn.operator_api import add_command, add_node_options, address, dump, fields, request, table

COLUMNS = ("id", "state", "topics", "consumer", "waiting", "delivered", "failures", "terminates")

_EXAMPLES = """\
  hpwsn subscriptions list
  hpwsn subscriptions show ID --json
  hpwsn subscriptions drop ID --url http://broker.example.org:8080/wsn
"""


def add_subscriptions_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `subscriptions` with its actions."""
    parser = add_command(commands, "subscriptions", "look at or end the subscriptions of a node", _EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = add_command(actions, "list", "all subscriptions, one a line", _EXAMPLES)
    listing.set_defaults(handler=_list)
    show = add_command(actions, "show", "everything about one subscription", _EXAMPLES)
    show.set_defaults(handler=_show)
    drop = add_command(actions, "drop", "end one subscription", _EXAMPLES)
    drop.set_defaults(handler=_drop)
    for action in (show, drop):
        action.add_argument("id", metavar="ID", help="the last part of the subscription's address")
    for action in (listing, show, drop):
        add_node_options(action)


def _list(arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, "subscriptions"))
    found = answer.get("subscriptions", [])
    print(dump(answer) if arguments.json else table(found, COLUMNS, "no subscriptions"))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, "subscriptions", arguments.id))
    print(dump(answer) if arguments.json else fields(answer))
    return 0


def _drop(arguments: argparse.Namespace) -> int:
    request("DELETE", address(arguments, "subscriptions", arguments.id))
    print(dump({"dropped": arguments.id}) if arguments.json else f"dropped {arguments.id}")
    return 0
