"""`hpwsn deadletters`: lists, groups, shows, replays and drops notifications that could not be delivered."""

import argparse
from typing import Any

from hpwsn.commands.operations.operator_api import (
    TIMEOUT,
    NodeRequestFailed,
    add_command,
    add_node_options,
    address,
    dump,
    fields,
    items,
    request,
    table,
)

COLUMNS = ("id", "time", "subscription", "topic", "consumer", "reason")
GROUP_COLUMNS = ("count", "subscription", "consumer", "reason", "first", "last")
LONGEST_WAIT = 60.0
"""Seconds that the node waits for the outcomes of a replay."""

_EXAMPLES = """\
  hpwsn deadletters list
  hpwsn deadletters groups
  hpwsn deadletters show 17
  hpwsn deadletters replay 17 18
  hpwsn deadletters replay --subscription ID --wait 60
  hpwsn deadletters drop --subscription ID --reason "connection refused"
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
    _add_reason(listing)
    listing.set_defaults(handler=_list)
    groups = add_command(actions, "groups", "count dead letters by subscription and reason", _EXAMPLES)
    groups.set_defaults(handler=_groups)
    show = add_command(actions, "show", "show one dead letter with its payload", _EXAMPLES)
    show.add_argument("id", metavar="ID", type=int)
    show.set_defaults(handler=_show)
    replay = add_command(actions, "replay", "send dead letters to their subscriptions again", _EXAMPLES)
    replay.add_argument(
        "--wait",
        metavar="SECONDS",
        type=_wait,
        default=30.0,
        help=f"how long to wait for the outcomes (default: 30; at most {LONGEST_WAIT:g})",
    )
    drop = add_command(actions, "drop", "remove dead letters permanently", _EXAMPLES)
    for action, handler in ((replay, _replay), (drop, _drop)):
        which = action.add_mutually_exclusive_group(required=True)
        which.add_argument("ids", metavar="ID", type=int, nargs="*", default=[], help="dead letters by id")
        which.add_argument("--subscription", metavar="ID", help="all of one subscription")
        which.add_argument("--all", action="store_true", help="all dead letters")
        _add_reason(action)
        action.set_defaults(handler=handler)
    for action in (listing, groups, show, replay, drop):
        add_node_options(action)


def _add_reason(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--reason", metavar="TEXT", help="with --subscription: only the group with this reason"
    )


def _wait(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {LONGEST_WAIT:g}")
    return seconds


def _list(arguments: argparse.Namespace) -> int:
    which = {"subscription": arguments.subscription, "reason": arguments.reason}
    answer = items(arguments, "deadletters", most=arguments.limit or None, **which)
    print(dump(answer) if arguments.json else table(answer["items"], COLUMNS, "no dead letters"))
    return 0


def _groups(arguments: argparse.Namespace) -> int:
    answer = items(arguments, "deadletters", "groups")
    print(dump(answer) if arguments.json else table(answer["items"], GROUP_COLUMNS, "no dead letters"))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    answer = request("GET", address(arguments, "deadletters", str(arguments.id)), ca=arguments.ca)
    print(dump(answer) if arguments.json else fields(answer))
    return 0


def _replay(arguments: argparse.Namespace) -> int:
    url = address(arguments, "deadletters", "replay", wait=arguments.wait)
    timeout = arguments.wait + TIMEOUT
    answer = request("POST", url, _selection(arguments), ca=arguments.ca, timeout=timeout)
    print(dump(answer) if arguments.json else replayed(answer))
    _check_found(arguments, answer["sent"] + answer["ended"] + answer["internal"])
    return 0


def replayed(answer: dict[str, Any]) -> str:
    """The outcome of a replay in one line."""
    told = [
        f"{answer['delivered']} delivered",
        f"{answer['failed']} failed again (still dead letters)" if answer["failed"] else "",
        f"{answer['pending']} still being sent" if answer["pending"] else "",
    ]
    line = f"replayed {answer['sent']}: {', '.join(filter(None, told))}" if answer["sent"] else "replayed 0"
    unsent = [
        f"{answer['ended']} not sent: the subscription has ended" if answer["ended"] else "",
        f"{answer['internal']} not sent: the topic is internal" if answer["internal"] else "",
    ]
    return "; ".join(filter(None, [line, *unsent]))


def _drop(arguments: argparse.Namespace) -> int:
    answer = request(
        "POST", address(arguments, "deadletters", "drop"), _selection(arguments), ca=arguments.ca
    )
    print(dump(answer) if arguments.json else fields(answer))
    _check_found(arguments, answer["dropped"])
    return 0


def _selection(arguments: argparse.Namespace) -> dict[str, Any]:
    which = {
        "ids": sorted(set(arguments.ids)),
        "subscription": arguments.subscription,
        "reason": arguments.reason,
        "all": arguments.all,
    }
    return {name: value for name, value in which.items() if value}


def _check_found(arguments: argparse.Namespace, found: int) -> None:
    ids = sorted(set(arguments.ids))
    if found < len(ids):
        missing = (
            f"there is no dead letter {ids[0]}" if len(ids) == 1 else f"only {found} of {len(ids)} exist"
        )
        raise NodeRequestFailed(f"{missing}; `hpwsn deadletters list` shows all dead letters")
