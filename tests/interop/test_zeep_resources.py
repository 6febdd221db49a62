"""zeep reads the properties and sets the lifetimes of resources, from nothing but the node's WSDL."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import zeep
from lxml import etree
from zeep import xsd

from tests.harness import NodeProcess

WSNT = "http://docs.oasis-open.org/wsn/b-2"
WSTOP = "http://docs.oasis-open.org/wsn/t-1"
XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"

# zeep knows no mixed content, so an expression needs a type of its own.
Text = xsd.ComplexType(xsd.Element("_value_1", xsd.String()), [xsd.Attribute("Dialect", xsd.AnyURI())])


class Zeep:
    """A zeep client of one SOAP version, with the prefixes that its QNames use."""

    def __init__(self, url: str, version: str) -> None:
        self.url = url
        self.version = version
        self.client = zeep.Client(f"{url}?wsdl")
        self.client.set_ns_prefix("wsnt", WSNT)
        self.client.set_ns_prefix("wstop", WSTOP)

    def at(self, port_type: str, url: str | None = None) -> Any:
        return self.client.create_service(f"{{urn:hpwsn:1}}{port_type}{self.version}", url or self.url)

    def subscribe(self) -> str:
        point = self.at("CreatePullPoint").CreatePullPoint()
        made = self.at("NotificationBroker").Subscribe(
            ConsumerReference={"Address": point.PullPoint.Address._value_1}
        )
        return str(made.SubscriptionReference.Address._value_1)


@pytest.fixture(params=["Soap11", "Soap12"])
def foreign(request: pytest.FixtureRequest, shared_node: NodeProcess) -> Iterator[Zeep]:
    one = Zeep(shared_node.url, request.param)
    yield one
    one.client.transport.session.close()


def texts(values: Any) -> list[object]:
    """The values of simple properties, whether zeep knows their element or not."""
    return [value.text if isinstance(value, etree._Element) else value for value in values]


def test_zeep_reads_the_properties_of_the_broker(foreign: Zeep) -> None:
    one = foreign.at("GetResourceProperty").GetResourceProperty("wsnt:FixedTopicSet")
    assert texts(found(one)) in (["false"], [False])
    several = foreign.at("GetMultipleResourceProperties").GetMultipleResourceProperties(
        ResourceProperty=["wsnt:TopicExpressionDialect", "wstop:TopicSet"]
    )
    assert len(found(several)) == 5


def test_zeep_queries_the_properties_of_a_subscription(foreign: Zeep) -> None:
    service = foreign.at("QueryResourceProperties", foreign.subscribe())
    answer = service.QueryResourceProperties(QueryExpression=Text("//wsnt:CreationTime", Dialect=XPATH))
    assert len(found(answer)) == 1


def test_zeep_sets_the_end_of_a_subscription_and_ends_it(foreign: Zeep) -> None:
    subscription = foreign.subscribe()
    scheduled = foreign.at("ScheduledResourceTermination", subscription)
    until = scheduled.SetTerminationTime(RequestedLifetimeDuration=timedelta(hours=1))
    assert timedelta(minutes=59) < until.NewTerminationTime - until.CurrentTime < timedelta(minutes=61)
    end = datetime(2999, 1, 1, tzinfo=UTC)
    assert scheduled.SetTerminationTime(RequestedTerminationTime=end).NewTerminationTime == end
    immediate = foreign.at("ImmediateResourceTermination", subscription)
    immediate.Destroy()
    with pytest.raises(zeep.exceptions.Fault, match="does not exist here"):
        immediate.Destroy()


def found(answer: Any) -> list[Any]:
    """The elements of an answer that zeep gives as such, or in the list it makes of any."""
    values = answer if isinstance(answer, list) else answer._value_1
    return [value for value in values if value is not None]
