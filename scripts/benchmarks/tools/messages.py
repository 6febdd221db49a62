"""The bytes that benchmarks send, prepared once: payloads, Notify envelopes, whole requests."""

from urllib.parse import urlsplit

from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_notify
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.names import ACTION_NOTIFY
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

TOPIC = "bench:ingest"
READING = (
    b'<m:reading xmlns:m="urn:example:sensors"><m:sensor>hall-7</m:sensor>'
    b"<m:quantity>temperature</m:quantity><m:value>21.5</m:value><m:unit>Cel</m:unit><m:time>2026-01-01T12:00:00Z</m:time></m:reading>"
)
"""What a sensor sends, about 200 bytes."""

DIFFERENT = 61
"""Requests that are sent in turn."""
SOAP_HEADERS = f'Content-Type: text/xml; charset=utf-8\r\nSOAPAction: "{ACTION_NOTIFY}"\r\n'.encode()


def payload(size: int) -> bytes:
    """A payload of so many bytes, mostly text."""
    frame = b'<m:report xmlns:m="urn:example:sensors"><m:text>%s</m:text></m:report>'
    return frame % (b"x" * (size - len(frame) + 2))


def varied(content: bytes, number: int) -> bytes:
    """Another reading of its kind: sensor, value and time differ from one number to the next."""
    value = b"%d.%d" % (number * 7 % 130, number % 10)
    time = b"%02d:%02d:%02dZ" % (number // 3600 % 24, number // 60 % 60, number % 60)
    sensor = b"hall-%d" % (number * 13 % 2000)
    return content.replace(b"hall-7", sensor).replace(b"21.5", value).replace(b"12:00:00Z", time)


PARTIAL = b'<hp:Routing xmlns:hp="urn:hpwsn:1" partial="true"/>'
"""The header by which a publisher lets subscribers at other nodes get the pieces of a split message."""


def envelope(
    topic: str = TOPIC, content: bytes = READING, messages: int = 1, number: int = 0, partial: bool = False
) -> bytes:
    """A SOAP 1.1 envelope with a Notify; no two readings are equal, within it or by its number."""
    expression = TopicExpression.of(Topic.parse(topic))
    numbers = range(number * messages, (number + 1) * messages)
    body = encode_notify([NotificationMessage(expression, varied(content, each)) for each in numbers])
    return encode_envelope(SoapVersion.SOAP11, body, (PARTIAL,) if partial else ())


def requests(url: str, topic: str, content: bytes, messages: int, partial: bool = False) -> list[bytes]:
    """Some different requests, to be sent in turn."""
    numbers = range(DIFFERENT)
    return [request(url, envelope(topic, content, messages, number, partial)) for number in numbers]


def request(url: str, body: bytes) -> bytes:
    """The POST of a body to a URL, as it goes over the wire."""
    parts = urlsplit(url)
    head = f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n".encode()
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (head, SOAP_HEADERS, len(body), body)
