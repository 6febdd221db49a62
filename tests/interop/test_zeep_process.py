"""zeep as a client of the original's contract, from nothing but the WSDL at `/wsn/process?wsdl`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import zeep
from lxml import etree
from zeep.plugins import HistoryPlugin

from hpwsn_client.wsn.formats.original import (
    CreateEndpoint,
    EndSubscription,
    Package,
    PackedNotification,
    Request,
    SubscribeEndpoint,
    encode_process,
)
from hpwsn_client.wsn.operations.notifications import NotificationMessage, text_payload
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression
from tests.contract_schema import PROCESS_FILE, contract_schema
from tests.harness import NodeProcess
from tests.interop.zeep_foreign import NS, Receiver
from tests.patience import PATIENCE

PUBLIC = "https://broker.example/hp&wsn"


class OriginalClient:
    """zeep on the contract of WsnProcess; keeps what went over the wire."""

    def __init__(self, url: str) -> None:
        self.history = HistoryPlugin(maxlen=None)
        self.client = zeep.Client(f"{url}/process?wsdl", plugins=[self.history])
        self.bodies: list[etree._Element] = []

    def call(self, request: Request) -> str:
        """The string that the service returns for the XML of a request."""
        inner = etree.fromstring(encode_process(request))[0]
        answer: str | None = self.client.service.WsnProcess(etree.tostring(inner, encoding="unicode"))
        for sent_or_received in (self.history.last_sent, self.history.last_received):
            (body,) = sent_or_received["envelope"].find("{*}Body")
            self.bodies.append(body)
        return answer or ""

    def address(self, request: Request) -> str:
        """The address in the answer."""
        return etree.fromstring(self.call(request)).findtext(".//wsa:Address", namespaces=NS) or ""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    """The schema of the contract's one operation."""
    return contract_schema(tmp_path_factory.mktemp("schemas"), PROCESS_FILE)


@pytest.fixture
def public_node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node behind a proxy."""
    with NodeProcess(tmp_path / "data", "--set", f"server.public_url={PUBLIC}") as running:
        running.url = f"http://127.0.0.1:{running.port}/wsn"
        yield running


def test_the_four_messages_as_strings_and_every_body_is_as_the_contract_has_it(
    shared_node: NodeProcess, receivers: list[Receiver], schema: etree.XMLSchema
) -> None:
    original, topic = OriginalClient(shared_node.url), Topic.parse("ALL:ALARM")
    endpoint = original.address(CreateEndpoint("mine"))
    expression = TopicExpression.of(topic)
    subscription = original.address(SubscribeEndpoint(endpoint, expression, receivers[0].url))
    message = NotificationMessage(expression, text_payload("5 < 6 & so on"))
    assert original.call(PackedNotification(message, Package("1235324366:344", partial=True))) == ""
    delivered = receivers[0].envelopes.get(timeout=PATIENCE)
    assert delivered.findtext(".//wsnt:Message", namespaces=NS) == "5 < 6 & so on"
    ended = etree.fromstring(original.call(EndSubscription(subscription)))
    assert etree.QName(ended).localname == "UnsubscribeResponse"
    with pytest.raises(zeep.exceptions.Fault, match="has ended"):
        original.call(EndSubscription(subscription))
    assert len(original.bodies) == 8
    for body in original.bodies:
        schema.assertValid(body)


@pytest.mark.parametrize("query", ["?wsdl", "?WSDL"])
def test_the_contract_names_the_node_itself(shared_node: NodeProcess, query: str) -> None:
    response = requests.get(f"{shared_node.url}/process{query}", timeout=PATIENCE)
    assert response.headers["Content-Type"].split(";")[0] == "text/xml"
    assert addresses(response.content) == [f"{shared_node.url}/process"]


def test_the_contract_names_the_public_address_of_a_node_behind_a_proxy(public_node: NodeProcess) -> None:
    response = requests.get(f"{public_node.url}/process?wsdl", timeout=PATIENCE)
    assert addresses(response.content) == [f"{PUBLIC}/wsn/process"]


def test_without_the_query_it_says_where_the_contract_is(shared_node: NodeProcess) -> None:
    response = requests.get(f"{shared_node.url}/process", timeout=PATIENCE)
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert "?wsdl" in response.text


def addresses(wsdl: bytes) -> list[str]:
    return etree.fromstring(wsdl).xpath("//*[local-name()='address']/@location")
