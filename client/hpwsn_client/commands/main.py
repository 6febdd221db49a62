"""The commands `publish` and `listen`, for `hpwsn-client` and, through the add_… functions, for `hpwsn`.

Each parser sets `run`, a function of the parsed arguments that returns the exit status: 0 for success, 1 for
an error of the broker or the network, 2 for wrong arguments. Results go to stdout, all other output to
stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice, repeat
from typing import TYPE_CHECKING, BinaryIO
from unicodedata import east_asian_width

from hpwsn_client.commands.completion import CommandParser, add_completion_parser, print_error, print_warning
from hpwsn_client.environment import CA, DEFAULT_URL, URL

if TYPE_CHECKING:
    from hpwsn_client.arguments import Payload
    from hpwsn_client.facades.sync import SyncClient, SyncPullPoint, SyncReceiver
    from hpwsn_client.notification import Notification
    from hpwsn_client.wsn.operations.filters import ContentFilter

_PUBLISH_EXAMPLES = """examples:
  %(prog)s ALL:ALARM "fire in the hall"
  %(prog)s ALL:ALARM '<alarm><level>3</level></alarm>' --message-id alarm-17
  %(prog)s ALL:ALARM - < alarm.xml
  tail -f app.log | %(prog)s LOGS - --lines --text
"""
_LISTEN_EXAMPLES = """examples:
  %(prog)s ALL                          ALL and its subtopics
  %(prog)s '*'                          all topics
  %(prog)s ALL:ALARM --filter 'level > 2 and has(keywords, "fire")' --count 10
  %(prog)s ALL:ALARM --filter '@level > 2 and contains(., "fire")'
  %(prog)s ALL --json | jq .text
  %(prog)s ALL --pull                   if the broker cannot connect to this machine
"""
_CHUNK = 1 << 16
_MIN_POLL_INTERVAL, _MAX_POLL_INTERVAL = 0.05, 1.0
_PULL_BATCH = 100


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


def add_publish_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `publish`."""
    parser = _add(subparsers, "publish", "publish a notification", _PUBLISH_EXAMPLES, _publish)
    parser.add_argument("topic", metavar="TOPIC", help="A:B:C, or '' for no topic")
    parser.add_argument(
        "payload", metavar="PAYLOAD", help="text, XML (begins with '<'), or - for standard input"
    )
    parser.add_argument(
        "--lines", action="store_true", help="with -: publish each line of the input as a notification"
    )
    parser.add_argument(
        "--text", action="store_true", help="the payload is plain text, even if it begins with '<'"
    )
    parser.add_argument(
        "--message-id", metavar="ID", help="idempotency key: the broker publishes a repeated id once"
    )
    parser.add_argument(
        "--reliable", action="store_true", help="guarantee delivery to the other nodes of a cluster"
    )
    parser.add_argument(
        "--partial", action="store_true", help="subscribers at other nodes may receive it in fragments"
    )
    parser.add_argument(
        "--receipt-to", metavar="URL", help="the broker posts a receipt for each consumer to this address"
    )
    parser.add_argument(
        "--repeat", metavar="N", type=_positive, default=1, help="publish the payload N times"
    )


def add_listen_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `listen`."""
    parser = _add(subparsers, "listen", "print notifications as they arrive", _LISTEN_EXAMPLES, _listen)
    parser.add_argument("topic", metavar="TOPIC", help="A:B:C, with its subtopics; '*' or '' for all topics")
    parser.add_argument(
        "--filter", metavar="EXPR", help="a filter on the payload, in the predicate language or XPath 1.0"
    )
    parser.add_argument(
        "--dialect",
        choices=("predicates", "xpath"),
        help="language of the filter (default: XPath if it has paths, prefixes or XPath functions)",
    )
    parser.add_argument("--count", metavar="N", type=_positive, help="stop after N notifications")
    parser.add_argument("--json", action="store_true", help="print a JSON object on each line")
    parser.add_argument(
        "--expires", metavar="SECONDS", type=_seconds, help="end the subscription after this time"
    )
    parser.add_argument(
        "--pull", action="store_true", help="fetch from a pull point instead of listening on a port"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=_port, default=0, help="port to listen on (default: a free port)")
    parser.add_argument("--public-url", metavar="URL", help="the receiver's URL as the broker sees it")


def _add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    purpose: str,
    examples: str,
    command: Callable[[argparse.Namespace], None],
) -> argparse.ArgumentParser:
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
    parser.add_argument("--timeout", metavar="SECONDS", type=_seconds, default=30.0, help=argparse.SUPPRESS)
    parser.set_defaults(run=lambda args: _run(command, args))
    return parser


def _run(command: Callable[[argparse.Namespace], None], args: argparse.Namespace) -> int:
    """Run a command and return its exit status; an error prints one line on stderr."""
    from hpwsn_client.errors import HpwsnClientError
    from hpwsn_client.wsn.soap.faults import SoapFault

    try:
        with _sigterm_as_interrupt():
            command(args)
    except (HpwsnClientError, SoapFault) as error:
        return _fail(error, 1)
    except (ValueError, UnicodeError) as error:
        return _fail(error, 2)
    except BrokenPipeError:
        _silence_stdout()
    except KeyboardInterrupt:
        return 0 if command is _listen else 130
    return 0


def _fail(error: Exception, status: int) -> int:
    message = str(error) or type(error).__name__
    print_error(_one_line("; ".join([message, *getattr(error, "__notes__", ())])))
    return status


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _client(args: argparse.Namespace) -> SyncClient:
    from hpwsn_client.facades.sync import SyncClient

    return SyncClient(args.url, timeout=args.timeout, tls=args.ca)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
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


def _publish(args: argparse.Namespace) -> None:
    from hpwsn_client.arguments import concrete_topic

    if args.message_id is not None and (args.lines or args.repeat > 1):
        raise ValueError("--message-id applies to one notification; leave out --lines and --repeat")
    if args.message_id is not None and not args.message_id.strip():
        raise ValueError("--message-id is empty; give an id, or leave the option out")
    if args.receipt_to is not None and (args.lines or args.repeat > 1):
        raise ValueError("--receipt-to applies to one notification; leave out --lines and --repeat")
    if args.lines and args.payload != "-":
        raise ValueError("--lines reads standard input; give - as the payload")
    if args.topic:
        _check_topic(concrete_topic, args.topic)
    with _client(args) as client:
        if args.lines:
            _publish_lines(client, args)
        elif args.repeat > 1:
            _publish_repeated(client, args)
        else:
            client.notify(
                args.topic or None,
                _payload(args),
                message_id=args.message_id,
                reliable=args.reliable,
                partial=args.partial,
                receipt_to=args.receipt_to,
            )


def _publish_lines(client: SyncClient, args: argparse.Namespace) -> None:
    progress = _Progress("published")
    for lines in _line_chunks(sys.stdin.buffer):
        payloads = [_parse_payload(line, args.text) for line in lines if line.strip()]
        items = [(args.topic or None, payload) for payload in payloads]
        progress.add(client.notify_many(items, reliable=args.reliable, partial=args.partial))
    progress.end()


def _publish_repeated(client: SyncClient, args: argparse.Namespace) -> None:
    progress = _Progress("published", args.repeat)
    item = (args.topic or None, _payload(args))
    while progress.done < args.repeat:
        items = repeat(item, min(100, args.repeat - progress.done))
        progress.add(client.notify_many(items, reliable=args.reliable, partial=args.partial))
    progress.end()


def _payload(args: argparse.Namespace) -> Payload:
    if args.payload != "-":
        return _parse_payload(args.payload.encode("utf-8", "surrogateescape"), args.text)
    data = sys.stdin.buffer.read()
    return _parse_payload(data.removesuffix(b"\n").removesuffix(b"\r"), args.text)


def _parse_payload(data: bytes, text: bool) -> Payload:
    """Data that begins with '<' is XML in its declared encoding; other data is text in UTF-8."""
    from hpwsn_client.wsn.operations.notifications import text_payload

    if text:
        return text_payload(data.decode())
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:2]
    return data if start[:1] == b"<" or start in (b"\xff\xfe", b"\xfe\xff") else data.decode()


def _line_chunks(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Lists of complete lines as they arrive, so that a slow pipe does not wait for a full batch."""
    rest = b""
    while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]
        *lines, rest = (rest + chunk).split(b"\n")
        yield [line.removesuffix(b"\r") for line in lines]
    yield [rest]


def _check_topic(parse: Callable[[str], object], topic: str) -> None:
    """Raise ValueError for an invalid topic, so that the exit status is 2 and not 1."""
    from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault

    try:
        parse(topic)
    except InvalidTopicExpressionFault as fault:
        raise ValueError(fault.reason) from None


def _listen(args: argparse.Namespace) -> None:
    from hpwsn_client.arguments import topic_expression

    topic = None if args.topic in ("", "*") else args.topic
    if topic is not None:
        _check_topic(topic_expression, topic)
    deadline = None if args.expires is None else time.monotonic() + args.expires
    with ExitStack() as stack:
        client = stack.enter_context(_client(args))
        consumer, notifications = _consumer(args, client, stack, deadline)
        with _column_marked(args.filter):
            subscription = client.subscribe(
                topic, consumer, content=_filter(args.filter, args.dialect), expires=args.expires
            )
        stack.callback(_clean_up, subscription.unsubscribe)
        what = "everything" if topic is None else topic
        print(f"listening to {what} at {client.url} (Ctrl-C ends)", file=sys.stderr, flush=True)
        for notification in islice(notifications, args.count):
            print(_as_json(notification) if args.json else _as_line(notification), flush=True)


def _filter(expression: str | None, dialect: str | None) -> ContentFilter | None:
    from hpwsn_client.wsn.operations.filters import ContentFilter, likely_dialect
    from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH

    if expression is None:
        if dialect is not None:
            raise ValueError("--dialect needs a filter; give --filter too")
        return None
    named = {"predicates": DIALECT_PREDICATES, "xpath": DIALECT_XPATH, None: likely_dialect(expression)}
    return ContentFilter(named[dialect], expression)


@contextmanager
def _column_marked(expression: str | None) -> Iterator[None]:
    """Print a rejected filter with a caret under the column that the broker reports."""
    from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault

    try:
        yield
    except InvalidMessageContentExpressionFault as fault:
        found = re.search(r"\bcolumn (\d+):", fault.reason)
        if found and expression and "\n" not in expression:
            print(f"  {expression}\n  {' ' * _width(expression[: int(found[1]) - 1])}^", file=sys.stderr)
        raise


def _width(text: str) -> int:
    """Terminal columns of the text: two for each wide character, such as Chinese ones."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _consumer(
    args: argparse.Namespace, client: SyncClient, stack: ExitStack, deadline: float | None
) -> tuple[SyncReceiver | SyncPullPoint, Iterator[Notification]]:
    """The consumer to subscribe, and an iterator over its notifications."""
    from hpwsn_client.facades.sync import SyncReceiver

    if args.pull:
        pull_point = client.create_pull_point()
        stack.callback(_clean_up, pull_point.destroy)
        return pull_point, _poll(pull_point, deadline)
    receiver = stack.enter_context(SyncReceiver(args.host, args.port, public_url=args.public_url))
    return receiver, _receive(receiver, deadline)


def _receive(receiver: SyncReceiver, deadline: float | None) -> Iterator[Notification]:
    from hpwsn_client.errors import TimedOut

    with suppress(TimedOut):
        while True:
            yield receiver.get(None if deadline is None else max(0.0, deadline - time.monotonic()))


def _poll(pull_point: SyncPullPoint, deadline: float | None) -> Iterator[Notification]:
    """Poll the pull point until the deadline; the interval grows while there are no messages."""
    interval, fetch = _MIN_POLL_INTERVAL, _fetch_or_warn(pull_point)
    while deadline is None or time.monotonic() < deadline:
        if messages := fetch():
            yield from messages
            interval = _MIN_POLL_INTERVAL
        else:
            time.sleep(interval)
            interval = min(2 * interval, _MAX_POLL_INTERVAL)


def _fetch_or_warn(pull_point: SyncPullPoint) -> Callable[[], Sequence[Notification]]:
    """A function that fetches messages, or warns and returns none while the broker is unreachable.

    A pull point survives a restart of the broker, so polling continues.
    """
    from hpwsn_client.errors import ConnectionFailed

    unreachable = False

    def fetch() -> Sequence[Notification]:
        nonlocal unreachable
        try:
            messages = pull_point.get_messages(_PULL_BATCH)
        except ConnectionFailed as error:
            if not unreachable:
                print_warning(_one_line(f"{error}; retrying"))
            unreachable = True
            return ()
        unreachable = False
        return messages

    return fetch


def _clean_up(remove: Callable[[], object]) -> None:
    """Remove a resource at the broker, which may have removed it already; an error is only a warning."""
    from hpwsn_client.errors import HpwsnClientError
    from hpwsn_client.wsn.soap.faults import ResourceUnknownFault, SoapFault

    try:
        with suppress(ResourceUnknownFault):
            remove()
    except (HpwsnClientError, SoapFault) as error:
        print_warning(_one_line(f"not removed at the broker: {error}"))


def _as_line(notification: Notification) -> str:
    return f"{notification.topic or ''}\t{' '.join(notification.text.splitlines())}"


def _as_json(notification: Notification) -> str:
    origin = {"subscription": notification.subscription, "producer": notification.producer}
    return json.dumps(
        {
            "topic": notification.topic,
            "text": notification.text if notification.is_text else None,
            "payload": notification.payload.decode(),
            **{name: None if epr is None else epr.address for name, epr in origin.items()},
            "message_id": notification.message_id,
        },
        ensure_ascii=False,
    )


class _Progress:
    """Shows the progress of a long publish on stderr, if stderr is a terminal."""

    def __init__(self, verb: str, total: int | None = None) -> None:
        self.done = 0
        self._verb = verb
        self._of = "" if total is None else f" of {total}"
        self._shown_at = time.monotonic()
        self._shown = False

    def add(self, number: int) -> None:
        """Add to the count, and show it a few times a second."""
        self.done += number
        if sys.stderr.isatty() and time.monotonic() - self._shown_at > 0.2:
            self._shown_at, self._shown = time.monotonic(), True
            print(f"\r{self._verb} {self.done}{self._of}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Show the final count."""
        if self._shown:
            print(f"\r{self._verb} {self.done}{self._of}", file=sys.stderr)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, a number from 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return number


if __name__ == "__main__":
    sys.exit(main())
