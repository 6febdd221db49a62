"""`--watch`: a command that shows its answer again and again until Ctrl-C, on a terminal in one place."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from hpwsn.commands.operations.operator_api import NodeRequestFailed
from hpwsn.errors import BadArguments

INTERVAL = 2.0
"""Seconds between two answers, if the user does not say."""
SHORTEST, LONGEST = 0.1, 86400.0
_CLEAR = "\x1b[H\x1b[2J"
_COLOURS = {"red": 31, "green": 32, "yellow": 33, "bold": 1, "dim": 2}


def add_watch_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--watch`; `what` is repeated."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=INTERVAL,
        metavar="SECONDS",
        help=f"repeat {what} until Ctrl-C (default: every {INTERVAL:g} seconds)",
    )


def show(arguments: argparse.Namespace, answer: Callable[[], str]) -> None:
    """Print the answer once, or until Ctrl-C with `--watch`.

    Only the first request must succeed, because a node may restart while somebody watches.
    """
    seconds = arguments.watch
    if seconds is not None and not SHORTEST <= seconds <= LONGEST:
        raise BadArguments(
            f"--watch {seconds:g}: give the seconds between two answers, from {SHORTEST:g} to {LONGEST:g}"
        )
    shown = answer()
    if seconds is None:
        print(shown)
        return
    clear = sys.stdout.isatty()
    try:
        while True:
            print(f"{_CLEAR}{shown}" if clear else f"{shown}\n", flush=True)
            time.sleep(seconds)
            try:
                shown = answer()
            except NodeRequestFailed as error:
                shown = str(error)
    except KeyboardInterrupt:
        return


def coloured(text: str, colour: str) -> str:
    """The text in a colour, if standard output is a terminal and the user has not set NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
