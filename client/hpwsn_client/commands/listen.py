"""The command `listen`: subscribes, prints notifications as they arrive, and leaves nothing behind."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from hpwsn_client.commands.broker_command import (
    add_command,
    check_topic,
    one_line,
    open_client,
    port_number,
    positive,
    seconds,
)
from hpwsn_client.commands.completion import print_warning
from hpwsn_client.commands.subscription_lease import SubscriptionLease

if TYPE_CHECKING:
    from hpwsn_client.facades.sync import SyncClient, SyncPullPoint, SyncReceiver
    from hpwsn_client.notification import Notification
    from hpwsn_client.wsn.formats.json_events import JsonObject
    from hpwsn_client.wsn.operations.filters import ContentFilter

_LISTEN_EXAMPLES = """examples:
  %(prog)s ALL                          ALL and its subtopics
  %(prog)s '*'                          all topics
  %(prog)s ALL:ALARM --filter 'level > 2 and has(keywords, "fire")' --count 10
  %(prog)s ALL:ALARM --filter '@level > 2 and contains(., "fire")'
  %(prog)s ALL --json | jq .text
  %(prog)s ALL --pull                   if the broker cannot connect to this machine
"""
_MIN_POLL_INTERVAL, _MAX_POLL_INTERVAL = 0.05, 1.0
_PULL_BATCH = 100


def add_listen_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `listen`."""
    parser = add_command(
        subparsers,
        "listen",
        "print notifications as they arrive",
        _LISTEN_EXAMPLES,
        _listen,
        interrupted=0,
    )
    parser.add_argument("topic", metavar="TOPIC", help="A:B:C, with its subtopics; '*' or '' for all topics")
    parser.add_argument(
        "--filter", metavar="EXPR", help="a filter on the payload, in the predicate language or XPath 1.0"
    )
    parser.add_argument(
        "--dialect",
        choices=("predicates", "xpath"),
        help="language of the filter (default: XPath if it has paths, prefixes or XPath functions)",
    )
    parser.add_argument("--count", metavar="N", type=positive, help="stop after N notifications")
    parser.add_argument("--json", action="store_true", help="print a JSON object on each line")
    parser.add_argument(
        "--expires", metavar="SECONDS", type=seconds, help="end the subscription after this time"
    )
    parser.add_argument(
        "--lease",
        metavar="SECONDS",
        type=seconds,
        default=300.0,
        help="lifetime at the broker, renewed while this command runs (default: 300)",
    )
    parser.add_argument(
        "--pull", action="store_true", help="fetch from a pull point instead of listening on a port"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument(
        "--port", type=port_number, default=0, help="port to listen on (default: a free port)"
    )
    parser.add_argument("--public-url", metavar="URL", help="the receiver's URL as the broker sees it")


def _listen(args: argparse.Namespace) -> None:
    from hpwsn_client.arguments import topic_expression

    topic = None if args.topic in ("", "*") else args.topic
    if topic is not None:
        check_topic(topic_expression, topic)
    deadline = None if args.expires is None else time.monotonic() + args.expires
    with ExitStack() as stack:
        client = stack.enter_context(open_client(args))
        consumer, notifications = _consumer(args, client, stack, deadline)
        content = _filter(args.filter, args.dialect)
        with _column_marked(args.filter):
            if args.expires is None:
                lease = SubscriptionLease(
                    lambda lifetime: client.subscribe(topic, consumer, content=content, expires=lifetime),
                    args.lease,
                )
                lease.open()
                stack.callback(_clean_up, lease.close)
            else:
                subscription = client.subscribe(topic, consumer, content=content, expires=args.expires)
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
        pull_point = client.create_pull_point(lifetime=args.lease)
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
                print_warning(one_line(f"{error}; retrying"))
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
        print_warning(one_line(f"not removed at the broker: {error}"))


def _as_line(notification: Notification) -> str:
    data = _data(notification)
    text = notification.text if data is None else json.dumps(data, ensure_ascii=False)
    return f"{notification.topic or ''}\t{' '.join(text.splitlines())}"


def _data(notification: Notification) -> JsonObject | None:
    """The JSON object of a notification that was published as JSON; None if it is XML or text."""
    from hpwsn_client.wsn.formats.json_events import decode_event
    from hpwsn_client.wsn.soap.names import hp

    return decode_event(notification.payload) if notification.element.tag == hp("event") else None


def _as_json(notification: Notification) -> str:
    origin = {"subscription": notification.subscription, "producer": notification.producer}
    return json.dumps(
        {
            "topic": notification.topic,
            "text": notification.text if notification.is_text else None,
            "data": _data(notification),
            "payload": notification.payload.decode(),
            **{name: None if epr is None else epr.address for name, epr in origin.items()},
            "message_id": notification.message_id,
            **({"traceparent": notification.traceparent} if notification.traceparent else {}),
        },
        ensure_ascii=False,
    )
