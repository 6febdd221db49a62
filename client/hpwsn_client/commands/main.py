"""The command `hpwsn-client`: publish and listen, and completion for shells."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from hpwsn_client.commands.completion import CommandParser, add_completion_parser
from hpwsn_client.commands.listen import add_listen_parser
from hpwsn_client.commands.publish import add_publish_parser


def main(argv: list[str] | None = None) -> int:
    """Run `hpwsn-client` and return its exit status."""
    from hpwsn_client import __version__

    parser: argparse.ArgumentParser = CommandParser(
        "hpwsn-client", description="Publish to, or subscribe at, a WS-Notification broker."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_publish_parser(commands)
    add_listen_parser(commands)
    add_completion_parser(commands, parser)
    args = parser.parse_args(argv)
    run: Callable[[argparse.Namespace], int] = args.run
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
