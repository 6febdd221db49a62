"""zeep registers a publisher and ends its registration, from nothing but the node's WSDL."""

from datetime import UTC, datetime
from typing import Any

import pytest
import zeep
from lxml import etree
from zeep import xsd

from tests.harness import NodeProcess

BR = "http://docs.oasis-open.org/wsn/br-2"
SIMPLE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple"

# zeep knows no mixed content, so an expression needs a type of its own.
Text = xsd.ComplexType(xsd.Element("_value_1", xsd.String()), [xsd.Attribute("Dialect", xsd.AnyURI())])


@pytest.mark.parametrize("version", ["Soap11", "Soap12"])
def test_zeep_registers_a_publisher_publishes_as_it_and_ends_it(
    shared_node: NodeProcess, version: str
) -> None:
    client = zeep.Client(f"{shared_node.url}?wsdl")
    client.set_ns_prefix("br", BR)

    def at(port_type: str, url: str) -> Any:
        return client.create_service(f"{{urn:hpwsn:1}}{port_type}{version}", url)

    broker = at("NotificationBroker", shared_node.url)
    answer = broker.RegisterPublisher(
        PublisherReference={"Address": "http://127.0.0.1:1/publisher"},
        Topic=[Text("zeep:A", Dialect=SIMPLE), Text("zeep:B", Dialect=SIMPLE)],
        Demand=False,
        InitialTerminationTime=datetime(2999, 1, 1, tzinfo=UTC),
    )
    registration = answer.PublisherRegistrationReference.Address._value_1
    consumer = at("NotificationBroker", answer.ConsumerReference.Address._value_1)
    payload = etree.fromstring("<n>1</n>")
    topic = Text("zeep:A", Dialect=SIMPLE)
    consumer.Notify(NotificationMessage=[{"Topic": topic, "Message": {"_value_1": payload}}])
    demand = at("GetResourceProperty", registration).GetResourceProperty("br:Demand")
    assert len(demand if isinstance(demand, list) else demand["_value_1"]) == 1
    manager = at("PublisherRegistrationManager", registration)
    manager.DestroyRegistration()
    with pytest.raises(zeep.exceptions.Fault, match="does not exist here"):
        manager.DestroyRegistration()
    client.transport.session.close()


def test_zeep_gets_the_standards_fault_for_demand_without_a_reference(shared_node: NodeProcess) -> None:
    client = zeep.Client(f"{shared_node.url}?wsdl")
    broker = client.create_service("{urn:hpwsn:1}NotificationBrokerSoap11", shared_node.url)
    with pytest.raises(zeep.exceptions.Fault) as caught:
        broker.RegisterPublisher(Demand=True)
    (detail,) = caught.value.detail
    assert detail.tag == f"{{{BR}}}PublisherRegistrationFailedFault"
    client.transport.session.close()
