"""What the commands of the client share: parser, client, errors as exit statuses, types of options.

Each parser sets `run`, a function of the parsed arguments that returns the exit status: 0 for success, 1 for
an error of the broker or the network, 2 for wrong arguments. Results go to stdout, all other output to
stderr.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hpwsn_client.commands.completion import print_error
from hpwsn_client.environment import CA, DEFAULT_URL, URL

if TYPE_CHECKING:
    from hpwsn_client.facades.sync import SyncClient


def add_command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    purpose: str,
    examples: str,
    command: Callable[[argparse.Namespace], None],
    interrupted: int = 130,
) -> argparse.ArgumentParser:
    """Add a parser with the options of all commands; `interrupted` is the exit status after Ctrl-C."""
    parser = subparsers.add_parser(
        name,
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    url = os.environ.get(URL) or DEFAULT_URL
    parser.add_argument("--url", help=f"URL of the broker (default {URL}, now {url.replace('%', '%%')})")
    parser.add_argument(
        "--ca", metavar="FILE", help=f"PEM file of authorities for https (default {CA}, else the system's)"
    )
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, default=30.0, help=argparse.SUPPRESS)
    parser.set_defaults(run=lambda args: _run(command, args, interrupted))
    return parser


def _run(command: Callable[[argparse.Namespace], None], args: argparse.Namespace, interrupted: int) -> int:
    """Run a command and return its exit status; an error prints one line on stderr."""
    from hpwsn_client.errors import HpwsnClientError
    from hpwsn_client.wsn.soap.faults import SoapFault

    try:
        with sigterm_as_interrupt():
            command(args)
    except (HpwsnClientError, SoapFault) as error:
        return _fail(error, 1)
    except (ValueError, UnicodeError) as error:
        return _fail(error, 2)
    except BrokenPipeError:
        _silence_stdout()
    except KeyboardInterrupt:
        return interrupted
    return 0


def _fail(error: Exception, status: int) -> int:
    message = str(error) or type(error).__name__
    print_error(one_line("; ".join([message, *getattr(error, "__notes__", ())])))
    return status


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def open_client(args: argparse.Namespace) -> SyncClient:
    """The client for the broker of the arguments."""
    from hpwsn_client.facades.sync import SyncClient

    return SyncClient(args.url, timeout=args.timeout, tls=args.ca)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that the command unsubscribes before it ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _silence_stdout() -> None:
    """Redirect stdout to /dev/null after a broken pipe, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_topic(parse: Callable[[str], object], topic: str) -> None:
    """Raise ValueError for an invalid topic, so that the exit status is 2 and not 1."""
    from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault

    try:
        parse(topic)
    except InvalidTopicExpressionFault as fault:
        raise ValueError(fault.reason) from None


def positive(text: str) -> int:
    """The type of an option: a whole number greater than zero."""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def port_number(text: str) -> int:
    """The type of an option: a port, 0 for any."""
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, a number from 0 to 65535")
    return int(text)


def seconds(text: str) -> float:
    """The type of an option: a duration in seconds, greater than zero."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return number
