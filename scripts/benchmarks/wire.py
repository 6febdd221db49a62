"""Wire: CPU time to parse a Notify and to encode its messages, against a plain lxml parse."""

from collections.abc import Callable, Iterable

from lxml import etree

from benchmarks.frame import Options, Row, Table, figure, progress, time_calls
from benchmarks.report import as_tables
from hpwsn_client.wsn.operations.notifications import (
    NotificationMessage,
    encode_content,
    encode_notify,
    parse_notify,
)
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope, parse_envelope
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

SIZES = (1, 100)
PAYLOAD = b'<m:reading xmlns:m="urn:example">' + b"<m:value>21.5</m:value>" * 40 + b"</m:reading>"


def run(options: Options) -> Table:
    """Times each stage for a Notify of one message and of many."""
    groups = tuple(_measure(size, options) for size in SIZES)
    return Table("wire", "µs per message", groups, body=body_of(row for group in groups for row in group))


def body_of(rows: Iterable[Row]) -> str:
    """A line for each stage, a column for each number of messages."""
    return as_tables(
        ("µs per message", stage, f"{size} per Notify", figure(row.value))
        for row in rows
        for stage, _, size in (row.name.rpartition(", "),)
    )


def _measure(size: int, options: Options) -> tuple[Row, ...]:
    progress(f"{size} messages of {len(PAYLOAD)} bytes")
    times = time_calls(_candidates(size), options.seconds)
    return tuple(Row(f"{name}, {size}", taken / size * 1e6) for name, taken in times.items())


def _candidates(size: int) -> dict[str, Callable[[], object]]:
    topic = TopicExpression.of(Topic.parse("ALL:TRAFFIC"))
    data = encode_envelope(SoapVersion.SOAP11, encode_notify([NotificationMessage(topic, PAYLOAD)] * size))
    messages = _read(data)
    return {
        "lxml parse": lambda: etree.fromstring(data),
        "parse envelope": lambda: parse_envelope(data),
        "parse envelope and Notify": lambda: _read(data),
        "encode deliveries": lambda: [encode_content(message) for message in messages],
    }


def _read(data: bytes) -> tuple[NotificationMessage, ...]:
    body = parse_envelope(data).body
    if body is None:
        raise ValueError("the benchmark's own envelope has no body")
    return parse_notify(body)
