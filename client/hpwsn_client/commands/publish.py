"""The command `publish`: a payload of the command line or of standard input, as JSON, XML or text."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING, BinaryIO

from hpwsn_client.commands.broker_command import add_command, check_topic, one_line, open_client, positive
from hpwsn_client.commands.completion import print_warning

if TYPE_CHECKING:
    from hpwsn_client.arguments import Payload
    from hpwsn_client.facades.sync import SyncClient

_PUBLISH_EXAMPLES = """examples:
  %(prog)s ALL:ALARM "fire in the hall"
  %(prog)s roads:A1 '{"speed": 61.5}'
  %(prog)s ALL:ALARM '<alarm><level>3</level></alarm>' --message-id alarm-17
  %(prog)s ALL:ALARM - < alarm.xml
  tail -f app.log | %(prog)s LOGS - --lines --text
"""
_CHUNK = 1 << 16
_BATCH = 100


def add_publish_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `publish`."""
    parser = add_command(subparsers, "publish", "publish a notification", _PUBLISH_EXAMPLES, _publish)
    parser.add_argument("topic", metavar="TOPIC", help="A:B:C, or '' for no topic")
    parser.add_argument(
        "payload",
        metavar="PAYLOAD",
        help="JSON (an object or an array of objects), XML (begins with '<'), text, or - for standard input",
    )
    parser.add_argument(
        "--lines", action="store_true", help="with -: publish each line of the input as a notification"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--as", dest="form", choices=("json", "xml", "text"), help="what the payload is, however it begins"
    )
    form.add_argument("--text", dest="form", action="store_const", const="text", help="the same as --as text")
    parser.add_argument(
        "--message-id", metavar="ID", help="idempotency key: the broker publishes a repeated id once"
    )
    parser.add_argument(
        "--traceparent", metavar="TRACE", help="W3C trace context that consumers get with the notification"
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
    parser.add_argument("--repeat", metavar="N", type=positive, default=1, help="publish the payload N times")


def _publish(args: argparse.Namespace) -> None:
    from hpwsn_client.arguments import concrete_topic

    if args.message_id is not None and (args.lines or args.repeat > 1):
        raise ValueError("--message-id applies to one notification; leave out --lines and --repeat")
    if args.message_id is not None and not args.message_id.strip():
        raise ValueError("--message-id is empty; give an id, or leave the option out")
    if args.traceparent is not None and (args.lines or args.repeat > 1):
        raise ValueError("--traceparent applies to one notification; leave out --lines and --repeat")
    if args.receipt_to is not None and (args.lines or args.repeat > 1):
        raise ValueError("--receipt-to applies to one notification; leave out --lines and --repeat")
    if args.lines and args.payload != "-":
        raise ValueError("--lines reads standard input; give - as the payload")
    if args.topic:
        check_topic(concrete_topic, args.topic)
    with open_client(args) as client:
        if args.lines:
            _publish_lines(client, args)
            return
        payloads = _payloads(args)
        if len(payloads) > 1 and any((args.message_id, args.receipt_to, args.traceparent)):
            raise ValueError(
                "--message-id, --receipt-to and --traceparent apply to one notification;"
                f" the array has {len(payloads)}"
            )
        if args.repeat > 1 or len(payloads) > 1:
            _publish_repeated(client, args, payloads)
        else:
            client.notify(
                args.topic or None,
                payloads[0],
                message_id=args.message_id,
                reliable=args.reliable,
                partial=args.partial,
                receipt_to=args.receipt_to,
                traceparent=args.traceparent,
            )


def _publish_lines(client: SyncClient, args: argparse.Namespace) -> None:
    progress = _Progress("published")
    for lines in _line_chunks(sys.stdin.buffer):
        payloads = [each for line in lines if line.strip() for each in _parse_payloads(line, args.form)]
        items = [(args.topic or None, payload) for payload in payloads]
        progress.add(client.notify_many(items, reliable=args.reliable, partial=args.partial))
    progress.end()


def _publish_repeated(client: SyncClient, args: argparse.Namespace, payloads: list[Payload]) -> None:
    total = args.repeat * len(payloads)
    progress = _Progress("published", total)
    items = ((args.topic or None, payload) for payload in islice(cycle(payloads), total))
    while progress.done < total:
        batch = list(islice(items, _BATCH))
        progress.add(client.notify_many(batch, reliable=args.reliable, partial=args.partial))
    progress.end()


def _payloads(args: argparse.Namespace) -> list[Payload]:
    if args.payload != "-":
        return _parse_payloads(args.payload.encode("utf-8", "surrogateescape"), args.form)
    data = sys.stdin.buffer.read()
    return _parse_payloads(data.removesuffix(b"\n").removesuffix(b"\r"), args.form)


def _parse_payloads(data: bytes, form: str | None) -> list[Payload]:
    """The payloads in the data, several if it is a JSON array.

    `form` is json, xml or text. If it is None, the first character decides: `<` is XML in its declared
    encoding, `{` and `[` are JSON, and all other data is text in UTF-8.
    """
    from hpwsn_client.wsn.operations.notifications import text_payload

    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:2]
    if form is None and start[:1] in (b"{", b"["):
        return _json_or_text(data)
    if form == "json":
        return _json_events(data)
    if form == "text":
        return [text_payload(data.decode())]
    is_xml = form == "xml" or start[:1] == b"<" or start in (b"\xff\xfe", b"\xfe\xff")
    return [data if is_xml else data.decode()]


def _json_or_text(data: bytes) -> list[Payload]:
    try:
        return _json_events(data)
    except ValueError as error:
        print_warning(one_line(f"published as text, since it is not JSON: {error}; --as says what it is"))
        return [data.decode()]


def _json_events(data: bytes) -> list[Payload]:
    """The payloads of JSON events, which readers of JSON get as they were written."""
    from hpwsn_client.wsn.formats.json_events import encode_event
    from hpwsn_client.wsn.formats.json_text import parse_events
    from hpwsn_client.wsn.soap.faults import SoapFault

    try:
        return [encode_event(event) for event in parse_events(data)]
    except SoapFault as fault:
        raise ValueError(fault.reason) from None


def _line_chunks(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Lists of complete lines as they arrive, so that a slow pipe does not wait for a full batch."""
    rest = b""
    while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]
        *lines, rest = (rest + chunk).split(b"\n")
        yield [line.removesuffix(b"\r") for line in lines]
    yield [rest]


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
