"""The contract of the ONVIF door and the wire say the same: names, actions, and the form of every message."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from lxml import etree

from hpwsn.contracts import onvif_wsdl
from hpwsn.door.onvif.event_operations import EventPortType, NotificationProducer, PullPointSubscription
from hpwsn.door.soap.broker_operations import PausableSubscriptionManager
from hpwsn.door.soap.dispatch import Endpoint
from hpwsn_client.wsn.formats import onvif
from hpwsn_client.wsn.operations.messages import Message, encode_message
from hpwsn_client.wsn.soap.names import TEV, response_action
from tests.contract_schema import ONVIF_FILE, WSDL_FILE, contract_schema
from tests.unit.client.wsn.formats.test_onvif import every_message

NAMES = {"w": "http://schemas.xmlsoap.org/wsdl/", "s": "http://schemas.xmlsoap.org/wsdl/soap12/"}
ACTION = "{http://www.w3.org/2007/05/addressing/metadata}Action"
WSDL = etree.parse(ONVIF_FILE).getroot()


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    """The schemas of both contracts as one."""
    return contract_schema(tmp_path_factory.mktemp("schemas"), WSDL_FILE, ONVIF_FILE)


@given(message=every_message)
def test_every_message_is_as_the_contract_has_it(schema: etree.XMLSchema, message: Message) -> None:
    schema.assertValid(etree.fromstring(encode_message(message)))


def requests(service: type) -> set[str]:
    """The local names of what a service answers."""
    return {name.rpartition("}")[2] for name in Endpoint("any", [service], None).operations}


def operations(port_type: str) -> Iterator[etree._Element]:
    yield from WSDL.iterfind(f"w:portType[@name='{port_type}']/w:operation", NAMES)


@pytest.mark.parametrize("port_type", [EventPortType, PullPointSubscription])
def test_every_operation_of_the_contract_is_answered_under_its_action(port_type: type) -> None:
    names = [operation.get("name", "") for operation in operations(port_type.__name__)]
    assert set(names) == requests(port_type)
    for operation in operations(port_type.__name__):
        name = operation.get("name", "")
        request, response = operation.find("w:input", NAMES), operation.find("w:output", NAMES)
        assert request.get(ACTION) == f"{TEV}/{port_type.__name__}/{name}Request"
        assert response.get(ACTION) == response_action(name)


@pytest.mark.parametrize(
    ("binding", "services"),
    [
        ("PausableSubscriptionManagerBinding", [PausableSubscriptionManager]),
        ("NotificationProducerBinding", [NotificationProducer]),
    ],
)
def test_the_bindings_of_the_standard_have_what_the_door_has(binding: str, services: list[type]) -> None:
    bound = WSDL.iterfind(f"w:binding[@name='{binding}']/w:operation", NAMES)
    assert {one.get("name") for one in bound} == {name for service in services for name in requests(service)}


def test_a_node_puts_its_own_address_into_every_place() -> None:
    served = onvif_wsdl('https://example.org/a"b')
    assert b"localhost" not in served
    root = etree.fromstring(served)
    assert root.find("w:import", NAMES).get("location") == 'https://example.org/a"b/wsn?wsdl'
    addresses = {one.get("location") for one in root.iter(f"{{{NAMES['s']}}}address")}
    assert addresses == {'https://example.org/a"b/onvif/events'}


def test_the_wire_reads_every_request_of_the_contract() -> None:
    for port_type in ("EventPortType", "PullPointSubscription"):
        for operation in operations(port_type):
            assert f"{{{TEV}}}{operation.get('name')}" in onvif.ONVIF_PARSERS
