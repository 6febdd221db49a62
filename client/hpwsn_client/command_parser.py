"""The parser of every command, and the one form in which a command says what is wrong.

Each error and each warning begins with the same words on standard error, whichever program, command or
parser it is from, so that a script or a person finds them by these words.
"""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

ERROR = "hpwsn: error: "
WARNING = "hpwsn: warning: "


class CommandParser(argparse.ArgumentParser):
    """A parser whose own errors look like those of the commands; sub-parsers get this class as well."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit with status 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{ERROR}{message}\n")


def print_error(message: str) -> None:
    """Tell why a command failed."""
    print(f"{ERROR}{message}", file=sys.stderr)


def print_warning(message: str) -> None:
    """Tell of something wrong that a command survives."""
    print(f"{WARNING}{message}", file=sys.stderr)
