"""zeep as a foreign client: the client itself, what it sends, its receiver, and the fixtures for them.

Every response and fault detail that zeep receives, and every delivery that the receiver gets, is validated
against the OASIS schemas wherever those are.
"""

import os
import queue
import re
import threading
import uuid
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import requests
import zeep
from lxml import etree
from zeep import xsd
from zeep.wsa import WsAddressingPlugin

from tests.harness import NodeProcess

BESIDE_CHECKOUT = Path(__file__).resolve().parents[3] / "shared" / "oasis"
OASIS = Path(os.environ.get("OASIS_SCHEMAS", BESIDE_CHECKOUT)).resolve()
SOAP = {
    "Soap11": "http://schemas.xmlsoap.org/soap/envelope/",
    "Soap12": "http://www.w3.org/2003/05/soap-envelope",
}
NS = {
    "wsa": "http://www.w3.org/2005/08/addressing",
    "bf": "http://docs.oasis-open.org/wsrf/bf-2",
    "r": "http://docs.oasis-open.org/wsrf/r-2",
    "wsnt": "http://docs.oasis-open.org/wsn/b-2",
    "hp": "urn:hpwsn:1",
    "x": "urn:example:traffic",
}
WSAM_ACTION = "{http://www.w3.org/2007/05/addressing/metadata}Action"
NOTIFY_ACTION = "http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify"
DIALECT = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/"
XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"
DECLARED = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NS.items())
PATIENCE = 30.0

# zeep knows no mixed content, so a Topic's text needs a type of its own.
TopicText = xsd.ComplexType(xsd.Element("_value_1", xsd.String()), [xsd.Attribute("Dialect", xsd.AnyURI())])


def name(prefixed: str) -> str:
    prefix, local = prefixed.split(":")
    return f"{{{NS[prefix]}}}{local}"


def element(text: str) -> etree._Element:
    """An element, the root of its own document, with every prefix of NS bound."""
    return etree.fromstring(re.sub(r"^<[\w:]+", lambda tag: f"{tag[0]} {DECLARED}", text))


def topic(text: str, dialect: str = "Concrete") -> Any:
    return TopicText(text, Dialect=DIALECT + dialect)


def topic_filter(text: str, dialect: str) -> dict[str, list[etree._Element]]:
    tag = "wsnt:TopicExpression"
    return {"_value_1": [element(f'<{tag} Dialect="{DIALECT}{dialect}">{text}</{tag}>')]}


def reading(number: int) -> etree._Element:
    return element(f"<x:reading>{number}</x:reading>")


def message(where: str, payload: etree._Element) -> dict[str, Any]:
    return {"Topic": topic(where), "Message": {"_value_1": payload}}


@cache
def standard() -> etree.XMLSchema | None:
    """The standard's schemas, where they are."""
    if not OASIS.is_dir():
        return None
    files = {"wsnt": "b-2.xsd", "r": "r-2.xsd", "bf": "bf-2.xsd", "wsa": "ws-addr.xsd"}
    imports = "".join(
        f'<xs:import namespace="{NS[prefix]}" schemaLocation="{(OASIS / file).as_uri()}"/>'
        for prefix, file in files.items()
    )
    return etree.XMLSchema(
        etree.fromstring(f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>')
    )


def check_standard(el: etree._Element) -> None:
    schema = standard()
    if schema is not None:
        schema.assertValid(etree.fromstring(etree.tostring(el)))


class CheckResponses(zeep.Plugin):
    """Validates what the node answers: the body, or each element of a fault's detail."""

    def ingress(self, envelope: etree._Element, http_headers: Any, operation: Any) -> Any:
        body = envelope.find("{*}Body")[0]
        detail = body.xpath("*[local-name()='detail' or local-name()='Detail']/*")
        for el in detail if etree.QName(body).localname == "Fault" else [body]:
            check_standard(el)
        return envelope, http_headers


class Receiver(ThreadingHTTPServer):
    """The subscriber's own service: it records each Notify it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Recorder)
        self.url = f"http://127.0.0.1:{self.server_port}/inbox"
        self.envelopes: queue.Queue[etree._Element] = queue.Queue()
        self.waiting: list[etree._Element] = []

    def take(self, count: int) -> list[etree._Element]:
        """The next NotificationMessages, however many Notify they came in."""
        while len(self.waiting) < count:
            notify = self.envelopes.get(timeout=PATIENCE).find("{*}Body/wsnt:Notify", NS)
            check_standard(notify)
            self.waiting += notify.findall("wsnt:NotificationMessage", NS)
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def take_readings(self, count: int) -> list[str]:
        return [m.findtext("wsnt:Message/x:reading", namespaces=NS) for m in self.take(count)]

    def is_empty(self) -> bool:
        return not self.waiting and self.envelopes.empty()


class Recorder(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Recorded before it is answered: the next one may come at once, in another thread.
        self.server.envelopes.put(etree.fromstring(body))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Says nothing: the test does."""


@pytest.fixture
def receivers() -> Iterator[list[Receiver]]:
    """Three receivers, each on a port of its own."""
    servers = [Receiver() for _ in range(3)]
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,)) for server in servers]
    for thread in threads:
        thread.start()
    yield servers
    for server, thread in zip(servers, threads, strict=True):
        server.shutdown()
        thread.join()
        server.server_close()


class Foreign:
    """A zeep client that speaks one version of SOAP, and remembers the HTTP statuses it saw."""

    def __init__(self, url: str, version: str, addressing: str) -> None:
        self.version = version
        self.statuses: list[int] = []
        plugins = [CheckResponses(), *([WsAddressingPlugin()] if addressing == "plugin" else [])]
        source = BytesIO(wsdl_without_actions(url)) if addressing == "none" else f"{url}?wsdl"
        self.client = zeep.Client(source, plugins=plugins)
        self.client.transport.session.hooks["response"].append(
            lambda r, **_: self.statuses.append(r.status_code)
        )
        self.broker = self.client.bind("HPwsn", f"NotificationBroker{version}")
        self.factory = self.client.bind("HPwsn", f"CreatePullPoint{version}")

    def subscription(self, response: Any) -> Any:
        """The manager at the address of a SubscribeResponse."""
        return self.at("PausableSubscriptionManager", address(response.SubscriptionReference))

    def at(self, port_type: str, url: str) -> Any:
        return self.client.create_service(f"{{urn:hpwsn:1}}{port_type}{self.version}", url)

    def notify(self, where: str, *numbers: int) -> None:
        self.broker.Notify(NotificationMessage=[message(where, reading(n)) for n in numbers])

    def subscribe(self, url: str, where: str, dialect: str = "Concrete", **more: Any) -> Any:
        return self.broker.Subscribe(
            ConsumerReference={"Address": url}, Filter=topic_filter(where, dialect), **more
        )


def address(epr: Any) -> str:
    return str(epr.Address._value_1)


def wsdl_without_actions(url: str) -> bytes:
    """The node's WSDL as a tool from before WS-Addressing Metadata would have it."""
    response = requests.get(f"{url}?wsdl", timeout=PATIENCE)
    root = etree.fromstring(response.content)
    for el in root.iter("{*}input", "{*}output"):
        el.attrib.pop(WSAM_ACTION, None)
    return etree.tostring(root)


EVERY_WAY = [(version, addressing) for version in SOAP for addressing in ("wsam", "plugin", "none")]


@pytest.fixture(params=[("Soap11", "none"), ("Soap12", "wsam")], ids="-".join)
def foreign(request: pytest.FixtureRequest, shared_node: NodeProcess) -> Iterator[Foreign]:
    one = Foreign(shared_node.url, *request.param)
    yield one
    one.client.transport.session.close()


@pytest.fixture
def root() -> str:
    """A root topic that no other test uses."""
    return f"Zeep{uuid.uuid4().hex}"


def topic_path(delivered: etree._Element) -> list[str]:
    text = delivered.findtext("wsnt:Topic", namespaces=NS)
    return re.split("[/:]", text)


def expect_fault(element_name: str, call: Any, *args: Any, **kwargs: Any) -> zeep.exceptions.Fault:
    """The fault of a call, whose detail must be the named element."""
    with pytest.raises(zeep.exceptions.Fault) as caught:
        call(*args, **kwargs)
    assert caught.value.detail is not None, caught.value.message
    assert caught.value.detail[0].tag == name(element_name), caught.value.message
    return caught.value
