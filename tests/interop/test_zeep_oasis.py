"""zeep on the standard's own WSDL and schemas: the node answers whoever built on the OASIS files.

Those files have port types and no bindings, so a WSDL of bindings alone is written around them, as any author
of a client does. rlw-2 is not among them; test_zeep_resources has its operations from our WSDL.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zeep
from lxml import etree
from zeep import xsd

from tests.harness import NodeProcess

WSN, WSRF = "http://docs.oasis-open.org/wsn/", "http://docs.oasis-open.org/wsrf/"
WSNT, WSTOP = WSN + "b-2", WSN + "t-1"
CONCRETE = f"{WSTOP}/TopicExpression/Concrete"
XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"
CONTRACTS = {"brw": (WSN + "brw-2", "brw-2.wsdl"), "bw": (WSN + "bw-2", "bw-2.wsdl")}
CONTRACTS["rpw"] = (WSRF + "rpw-2", "rpw-2.wsdl")
OPERATIONS = {
    "brw:NotificationBroker": ("Subscribe", "GetCurrentMessage", "Notify"),
    "bw:CreatePullPoint": ("CreatePullPoint",),
    "bw:PullPoint": ("GetMessages", "DestroyPullPoint", "Notify"),
    "bw:PausableSubscriptionManager": ("Renew", "Unsubscribe", "PauseSubscription", "ResumeSubscription"),
    "rpw:GetResourceProperty": ("GetResourceProperty",),
    "rpw:GetMultipleResourceProperties": ("GetMultipleResourceProperties",),
    "rpw:QueryResourceProperties": ("QueryResourceProperties",),
}
BINDINGS = {"1.1": "soap", "1.2": "soap12"}

# zeep knows no mixed content, so a text with a dialect needs a type of its own.
Text = xsd.ComplexType(xsd.Element("_value_1", xsd.String()), [xsd.Attribute("Dialect", xsd.AnyURI())])


def bindings(folder: Path, version: str) -> str:
    """A WSDL that binds the standard's port types to one version of SOAP."""
    soap = f"http://schemas.xmlsoap.org/wsdl/{BINDINGS[version]}/"
    scope = "".join(f' xmlns:{prefix}="{uri}"' for prefix, (uri, _) in CONTRACTS.items())
    imports = "".join(
        f'<import namespace="{uri}" location="{folder / file}"/>' for uri, file in CONTRACTS.values()
    )
    return (
        f'<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:b" xmlns:s="{soap}"'
        f"{scope}>{imports}{''.join(binding(*item) for item in OPERATIONS.items())}</definitions>"
    )


def binding(port_type: str, operations: tuple[str, ...]) -> str:
    body = '<s:body use="literal"/>'
    inside = "".join(
        f'<operation name="{name}"><s:operation soapAction="" style="document"/><input>{body}</input>'
        + ("</operation>" if name == "Notify" else f"<output>{body}</output></operation>")
        for name in operations
    )
    transport = '<s:binding transport="http://schemas.xmlsoap.org/soap/http" style="document"/>'
    return f'<binding name="{port_type.partition(":")[2]}" type="{port_type}">{transport}{inside}</binding>'


class Standard:
    """A zeep client that has read nothing of ours."""

    def __init__(self, wsdl: Path, url: str) -> None:
        self.url = url
        self.client = zeep.Client(str(wsdl))
        self.client.set_ns_prefix("wsnt", WSNT)
        self.client.set_ns_prefix("wstop", WSTOP)
        self.broker = self.at("NotificationBroker")

    def at(self, port_type: str, url: str | None = None) -> Any:
        return self.client.create_service(f"{{urn:b}}{port_type}", url or self.url)

    def pull_point(self) -> str:
        return str(self.at("CreatePullPoint").CreatePullPoint().PullPoint.Address._value_1)

    def subscribe(self, consumer: str, topic: str, **more: Any) -> str:
        expression = etree.Element(f"{{{WSNT}}}TopicExpression", Dialect=CONCRETE)
        expression.text = topic
        made = self.broker.Subscribe(
            ConsumerReference={"Address": consumer}, Filter={"_value_1": [expression]}, **more
        )
        return str(made.SubscriptionReference.Address._value_1)

    def notify(self, topic: str, *numbers: int, to: Any = None) -> None:
        messages = [
            {"Topic": Text(topic, Dialect=CONCRETE), "Message": {"_value_1": reading(n)}} for n in numbers
        ]
        (to or self.broker).Notify(NotificationMessage=messages)


def reading(number: int) -> etree._Element:
    return etree.fromstring(f'<reading xmlns="urn:example:r">{number}</reading>')


def readings(answer: Any) -> list[int]:
    return [int(message.Message._value_1.text) for message in answer.NotificationMessage]


def found(answer: Any) -> list[Any]:
    """The values of an answer, which zeep gives as a list or in the one it makes of any."""
    values = answer if isinstance(answer, list) else answer._value_1
    return [value for value in values if value is not None]


@pytest.fixture(params=list(BINDINGS))
def standard(
    request: pytest.FixtureRequest, oasis_folder: Path, tmp_path: Path, shared_node: NodeProcess
) -> Iterator[Standard]:
    wsdl = tmp_path / "bindings.wsdl"
    wsdl.write_text(bindings(oasis_folder, request.param))
    one = Standard(wsdl, shared_node.url)
    yield one
    one.client.transport.session.close()


def test_the_standard_s_contract_serves_publisher_subscriber_and_pull_point(standard: Standard) -> None:
    point = standard.pull_point()
    standard.subscribe(point, "oasis/hall", InitialTerminationTime="PT1H")
    standard.notify("oasis/hall", 1, 2, 3)
    pulling = standard.at("PullPoint", point)
    assert readings(pulling.GetMessages(MaximumNumber=2)) == [1, 2]
    standard.notify("oasis/hall", 4, to=pulling)
    assert readings(pulling.GetMessages(MaximumNumber=9)) == [3, 4]
    current = standard.broker.GetCurrentMessage(Topic=Text("oasis/hall", Dialect=CONCRETE))
    assert [value.text for value in found(current)] == ["3"], "a pull point's own Notify is no publication"
    pulling.DestroyPullPoint()
    with pytest.raises(zeep.exceptions.Fault) as caught:
        pulling.GetMessages()
    assert caught.value.detail[0].tag == f"{{{WSRF}r-2}}ResourceUnknownFault"


def test_the_standard_s_contract_manages_a_subscription(standard: Standard) -> None:
    point = standard.pull_point()
    manager = standard.at("PausableSubscriptionManager", standard.subscribe(point, "oasis/roof"))
    renewed = manager.Renew(TerminationTime="PT2H")
    assert timedelta(minutes=119) < renewed.TerminationTime - renewed.CurrentTime <= timedelta(hours=2)
    manager.PauseSubscription()
    standard.notify("oasis/roof", 5)
    pulling = standard.at("PullPoint", point)
    assert readings(pulling.GetMessages()) == []
    manager.ResumeSubscription()
    taken: list[int] = []
    while not taken:
        taken = readings(pulling.GetMessages())
    assert taken == [5]
    manager.Unsubscribe()
    with pytest.raises(zeep.exceptions.Fault, match="does not exist here"):
        manager.Renew(TerminationTime="PT1H")


def test_the_standard_s_contract_reads_resource_properties(standard: Standard) -> None:
    one = standard.at("GetResourceProperty").GetResourceProperty("wsnt:FixedTopicSet")
    assert len(found(one)) == 1
    several = standard.at("GetMultipleResourceProperties").GetMultipleResourceProperties(
        ResourceProperty=["wsnt:TopicExpressionDialect", "wstop:TopicSet"]
    )
    assert len(found(several)) == 5
    subscription = standard.subscribe(standard.pull_point(), "oasis/props")
    querying = standard.at("QueryResourceProperties", subscription)
    answer = querying.QueryResourceProperties(QueryExpression=Text("//wsnt:CreationTime", Dialect=XPATH))
    (created,) = found(answer)
    assert isinstance(created, datetime) or created.text.endswith("Z")


def test_a_fault_is_the_standard_s_own_element(standard: Standard) -> None:
    with pytest.raises(zeep.exceptions.Fault) as caught:
        standard.broker.GetCurrentMessage(Topic=Text("oasis/silent", Dialect=CONCRETE))
    assert caught.value.detail[0].tag == f"{{{WSNT}}}NoCurrentMessageOnTopicFault"
    with pytest.raises(zeep.exceptions.Fault) as caught:
        standard.at("GetResourceProperty").GetResourceProperty("wsnt:Nothing")
    assert caught.value.detail[0].tag == f"{{{WSRF}rp-2}}InvalidResourcePropertyQNameFault"
