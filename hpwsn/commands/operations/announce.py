"""`hpwsn announce`: tells a node that a consumer is reachable, so that what waits for it is delivered now.

For scripts that notice a link come up. A consumer that no subscription has is not an error, since its
subscriptions may have ended meanwhile; the output says so.
"""

from __future__ import annotations

import argparse

from hpwsn.commands.operations.operator_api import (
    add_command,
    add_node_options,
    address,
    check_address,
    dump,
    request,
)

_EXAMPLES = """\
  hpwsn announce http://10.0.0.7:9000/events
  hpwsn announce http://10.0.0.7:9000/events --url https://broker.example.org/wsn --json
"""
_REMEDY = "give the address of the consumer, as it was subscribed"


def add_announce_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `announce`."""
    about = "say that a consumer is reachable, and deliver what waits for it now"
    parser = add_command(commands, "announce", about, _EXAMPLES)
    parser.add_argument("consumer", help="the address to which notifications are delivered")
    add_node_options(parser)
    parser.set_defaults(handler=_announce)


def _announce(arguments: argparse.Namespace) -> int:
    check_address(arguments.consumer, _REMEDY)
    url = address(arguments, "presence")
    woken = request("POST", url, {"consumer": arguments.consumer}, ca=arguments.ca)
    print(dump(woken) if arguments.json else summary(woken["subscriptions"], woken["waiting"]))
    return 0


def summary(subscriptions: int, waiting: int) -> str:
    """One line for a terminal."""
    if not subscriptions:
        return "no subscription of this node has this consumer, or all are paused"
    one, some = subscriptions == 1, waiting == 1
    return (
        f"{subscriptions} subscription{'' if one else 's'} woken,"
        f" {waiting} notification{' was' if some else 's were'} waiting"
    )
