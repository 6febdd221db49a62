"""`hpwsn profile`: where a node spends its CPU time, and on request what is in its memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from hpwsn.commands.operations.operator_api import (
    TIMEOUT,
    add_command,
    add_node_options,
    address,
    dump,
    request,
    table,
)

SHORTEST, LONGEST, USUAL = 0.01, 60.0, 10.0
_EXAMPLES = """\
  hpwsn profile --seconds 10
  hpwsn profile --seconds 5 --memory --json
  HPWSN_TOKEN=$(cat DATA/job.token) hpwsn profile --url https://broker.example.org/wsn
"""
_FUNCTIONS = ("self", "total", "function", "place")
_TYPES = ("bytes", "count", "type")


def add_profile_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `profile`."""
    about = "sample where a running node spends CPU time and memory"
    parser = add_command(commands, "profile", about, _EXAMPLES)
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=USUAL,
        metavar="N",
        help=f"how long to sample (default: {USUAL:g}; at most {LONGEST:g})",
    )
    parser.add_argument(
        "--memory", action="store_true", help="also count objects by type; the node pauses for that"
    )
    parser.add_argument("--number", type=int, default=20, metavar="N", help="rows to print (default: 20)")
    add_node_options(parser)
    parser.set_defaults(handler=_profile)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not SHORTEST <= seconds <= LONGEST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from {SHORTEST:g} to {LONGEST:g}"
        )
    return seconds


def _profile(arguments: argparse.Namespace) -> int:
    memory = "true" if arguments.memory else None
    url = address(arguments, "profile", seconds=arguments.seconds, memory=memory)
    # Without a token, the address of the node must be one of this machine, which the node says if it is not.
    answer = request("POST", url, ca=arguments.ca, timeout=arguments.seconds + TIMEOUT)
    print(dump(answer) if arguments.json else "\n".join(lines(answer, arguments.number)))
    return 0


def lines(found: dict[str, Any], number: int) -> Iterator[str]:
    """The profile as tables; `self` and `total` are seconds of CPU time."""
    share = 100 * found["cpu"] / found["seconds"] if found["seconds"] else 0
    yield (
        f"{found['cpu']:.3f} s of CPU time in {found['seconds']:g} s ({share:.0f} % of a core),"
        f" {found['samples']} samples, {found['overhead']:.3f} s for the profile itself"
    )
    threads = ", ".join(f"{one['thread']} {one['cpu']:.3f} s" for one in found["threads"] if one["cpu"])
    yield f"threads: {threads or 'none used CPU time'}"
    yield ""
    rows = [
        {**one, "self": f"{one['self']:.3f}", "total": f"{one['total']:.3f}", "place": _place(one)}
        for one in found["functions"][:number]
    ]
    yield table(rows, _FUNCTIONS, "no function used CPU time")
    if memory := found["memory"]:
        yield ""
        yield (
            f"{memory['objects']:,} objects and {memory['frozen']:,} of the start, {memory['sampled']:.0%}"
            f" looked at in {memory['took']:.2f} s; the node paused for {memory['paused'] * 1000:.0f} ms"
        )
        rows = [{**one, "bytes": f"{one['bytes']:,}"} for one in memory["types"][:number]]
        yield table(rows, _TYPES, "")


def _place(one: dict[str, Any]) -> str:
    return f"{one['file']}:{one['line']}"
