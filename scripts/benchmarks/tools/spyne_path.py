"""Spyne's own full path: an application with typed models behind its WsgiApplication.

`python -m benchmarks.tools.spyne_path MESSAGES SECONDS` calls it in its own process, without any HTTP, and
prints how many notifications a second it reads.
"""

import io
import logging
import sys
import time
from typing import Any

import hpwsn.door  # noqa: F401 - Spyne is importable only after it

# isort: split
from lxml import etree
from spyne import AnyUri, AnyXml, Application, ComplexModel, Service, Unicode, XmlAttribute, XmlData, rpc
from spyne.protocol.soap import Soap11
from spyne.server.wsgi import WsgiApplication

from benchmarks.tools.messages import envelope
from hpwsn_client.wsn.operations.notifications import NOTIFICATION_CLOSE, NOTIFICATION_OPEN
from hpwsn_client.wsn.soap.names import WSNT


class Topic(ComplexModel):
    """A topic's text and its dialect."""

    __namespace__ = WSNT
    _type_info = [("text", XmlData(Unicode)), ("Dialect", XmlAttribute(AnyUri))]  # noqa: RUF012


class NotificationMessage(ComplexModel):
    """The payload is a tree, since it may be anything."""

    __namespace__ = WSNT
    _type_info = [("Topic", Topic), ("ProducerReference", AnyXml), ("Message", AnyXml)]  # noqa: RUF012


_taken: list[tuple[str, bytes]] = []


class NotificationBroker(Service):
    """Notify alone."""

    @rpc(
        NotificationMessage.customize(max_occurs="unbounded"),
        _in_variable_names={"message": "NotificationMessage"},
    )
    def Notify(ctx: Any, message: Any) -> None:  # noqa: N802, N805
        """Keep the messages for whoever called."""
        _taken.extend(map(_as_bytes, message))


def _as_bytes(message: Any) -> tuple[str, bytes]:
    parts = NOTIFICATION_OPEN, etree.tostring(message.Message, with_tail=False), NOTIFICATION_CLOSE
    return message.Topic.text, b"".join(parts)


logging.getLogger("spyne").setLevel(logging.ERROR)
_application = WsgiApplication(
    Application([NotificationBroker], WSNT, in_protocol=Soap11(validator="soft"), out_protocol=Soap11())
)


def extract(body: bytes) -> list[tuple[str, bytes]]:
    """The topic and the bytes of each message, by way of Spyne; the answer is written and thrown away."""
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/wsn",
        "QUERY_STRING": "",
        "SERVER_NAME": "bench",
        "SERVER_PORT": "80",
        "CONTENT_TYPE": "text/xml; charset=utf-8",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
    }
    statuses: list[str] = []
    answer = b"".join(_application(environ, lambda status, headers, *_: statuses.append(status)))
    if not statuses[0].startswith("200"):
        raise RuntimeError(f"Spyne refused the Notify: {answer[:300]!r}")
    taken = _taken.copy()
    _taken.clear()
    return taken


def measure(messages: int, seconds: float) -> float:
    """Notifications read in a second, with nothing around it."""
    body = envelope(messages=messages)
    extract(body)
    count, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        count += len(extract(body))
    return count / (time.perf_counter() - began)


if __name__ == "__main__":
    print(measure(int(sys.argv[1]), float(sys.argv[2])))
