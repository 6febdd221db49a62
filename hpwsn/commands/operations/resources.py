"""`hpwsn subscriptions`, `pullpoints` and `registrations`: list, show and end these resources of a node."""

import argparse
from dataclasses import dataclass
from functools import partial

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


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of resource: its singular and plural, the name and summary of its command, columns of a list.

    `end` is the action that ends one, and `ended` the participle of that action.
    """

    one: str
    several: str
    command: str
    purpose: str
    columns: tuple[str, ...]
    end: str = "drop"
    ended: str = "dropped"


SUBSCRIPTIONS = Resource(
    "subscription",
    "subscriptions",
    "subscriptions",
    "list, show or end the subscriptions of a node",
    ("id", "state", "topics", "consumer", "waiting", "delivered", "failures", "terminates"),
)
PULL_POINTS = Resource(
    "pull point",
    "pull points",
    "pullpoints",
    "list, show or destroy the pull points of a node",
    ("id", "name", "waiting", "oldest", "last_read", "terminates", "created"),
    end="destroy",
    ended="destroyed",
)
REGISTRATIONS = Resource(
    "registration",
    "registrations",
    "registrations",
    "list, show or end the registrations of publishers",
    ("id", "publisher", "topics", "demand", "terminates"),
)


def add_resource_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", kind: Resource
) -> None:
    """Add the command of a kind of resource with its actions."""
    examples = _examples(kind)
    parser = add_command(commands, kind.command, kind.purpose, examples)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = add_command(actions, "list", f"list all {kind.several}, one per line", examples)
    listing.set_defaults(handler=partial(_list, kind))
    show = add_command(actions, "show", f"show all fields of one {kind.one}", examples)
    show.set_defaults(handler=partial(_show, kind))
    end = add_command(actions, kind.end, f"end one {kind.one}", examples)
    end.set_defaults(handler=partial(_end, kind))
    for action in (show, end):
        action.add_argument("id", metavar="ID", help=f"the last part of the {kind.one}'s address")
    for action in (listing, show, end):
        add_node_options(action)


def _examples(kind: Resource) -> str:
    return (
        f"  hpwsn {kind.command} list\n"
        f"  hpwsn {kind.command} show ID --json\n"
        f"  hpwsn {kind.command} {kind.end} ID --url http://broker.example.org:8080/wsn\n"
    )


def _list(kind: Resource, arguments: argparse.Namespace) -> int:
    answer = items(arguments, kind.command)
    print(dump(answer) if arguments.json else table(answer["items"], kind.columns, f"no {kind.several}"))
    return 0


def _show(kind: Resource, arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, kind.command, arguments.id), ca=arguments.ca)
    print(dump(answer) if arguments.json else fields(answer))
    return 0


def _end(kind: Resource, arguments: argparse.Namespace) -> int:
    request("DELETE", address(arguments, kind.command, arguments.id), ca=arguments.ca)
    print(dump({kind.ended: arguments.id}) if arguments.json else f"{kind.ended} {arguments.id}")
    return 0
