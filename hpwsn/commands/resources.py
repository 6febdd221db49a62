"""`hpwsn subscriptions` and `hpwsn registrations`: list, show and drop these resources of a node."""

import argparse
from dataclasses import dataclass
from functools import partial

from hpwsn.commands.operator_api import add_command, add_node_options, address, dump, fields, request, table


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of resource: its singular and plural, the summary of its command, the columns of a list."""

    one: str
    several: str
    purpose: str
    columns: tuple[str, ...]


SUBSCRIPTIONS = Resource(
    "subscription",
    "subscriptions",
    "list, show or end the subscriptions of a node",
    ("id", "state", "topics", "consumer", "waiting", "delivered", "failures", "terminates"),
)
REGISTRATIONS = Resource(
    "registration",
    "registrations",
    "list, show or end the registrations of publishers",
    ("id", "publisher", "topics", "demand", "terminates"),
)


def add_resource_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", kind: Resource
) -> None:
    """Add the command of a kind of resource with its actions."""
    examples = _examples(kind)
    parser = add_command(commands, kind.several, kind.purpose, examples)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = add_command(actions, "list", f"list all {kind.several}, one per line", examples)
    listing.set_defaults(handler=partial(_list, kind))
    show = add_command(actions, "show", f"show all fields of one {kind.one}", examples)
    show.set_defaults(handler=partial(_show, kind))
    drop = add_command(actions, "drop", f"end one {kind.one}", examples)
    drop.set_defaults(handler=partial(_drop, kind))
    for action in (show, drop):
        action.add_argument("id", metavar="ID", help=f"the last part of the {kind.one}'s address")
    for action in (listing, show, drop):
        add_node_options(action)


def _examples(kind: Resource) -> str:
    return (
        f"  hpwsn {kind.several} list\n"
        f"  hpwsn {kind.several} show ID --json\n"
        f"  hpwsn {kind.several} drop ID --url http://broker.example.org:8080/wsn\n"
    )


def _list(kind: Resource, arguments: argparse.Namespace) -> int:
    found, after = [], None
    while True:
        answer = request("GET", address(arguments, kind.several, after=after), ca=arguments.ca)
        found += answer.get("items", answer.get(kind.several, []))
        after = answer.get("next")
        if after is None:
            break
    if "items" in answer:
        answer["items"] = found
    print(dump(answer) if arguments.json else table(found, kind.columns, f"no {kind.several}"))
    return 0


def _show(kind: Resource, arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, kind.several, arguments.id), ca=arguments.ca)
    print(dump(answer) if arguments.json else fields(answer))
    return 0


def _drop(kind: Resource, arguments: argparse.Namespace) -> int:
    request("DELETE", address(arguments, kind.several, arguments.id), ca=arguments.ca)
    print(dump({"dropped": arguments.id}) if arguments.json else f"dropped {arguments.id}")
    return 0
