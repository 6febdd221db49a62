"""zeep as a foreign client of a running node, over real sockets, from nothing but the WSDL the node serves.

Every response, fault detail and delivery is validated against the OASIS schemas (zeep_foreign). zeep adds
WS-Addressing headers by itself where the WSDL names actions ("wsam"); without those attributes it adds them
by its plugin, or not at all ("none").
"""

import time
from datetime import timedelta
from typing import Any

import pytest
import requests
from lxml import etree
from zeep import xsd

from tests.harness import NodeProcess
from tests.interop.zeep_foreign import (
    DIALECT,
    EVERY_WAY,
    NOTIFY_ACTION,
    NS,
    SOAP,
    XPATH,
    Foreign,
    Receiver,
    address,
    element,
    expect_fault,
    message,
    name,
    reading,
    topic,
    topic_filter,
    topic_path,
)
from tests.patience import PATIENCE


def test_the_wsdl_names_the_node_itself(shared_node: NodeProcess) -> None:
    response = requests.get(f"{shared_node.url}?wsdl", timeout=PATIENCE)
    locations = etree.fromstring(response.content).xpath("//*[local-name()='address']/@location")
    assert response.headers["Content-Type"].split(";")[0] == "text/xml"
    assert len(locations) == 20
    assert all(location.startswith(shared_node.url) for location in locations)


@pytest.mark.parametrize("foreign", EVERY_WAY, ids="-".join, indirect=True)
def test_each_dialect_selects_what_it_names(foreign: Foreign, receivers: list[Receiver], root: str) -> None:
    simple, concrete, full = receivers
    foreign.subscribe(simple.url, root, "Simple", InitialTerminationTime="PT1H")
    foreign.subscribe(concrete.url, f"{root}/Speed", "Concrete")
    foreign.subscribe(full.url, f"{root}/*|{root}//Deep", "Full")
    foreign.broker.Notify(
        NotificationMessage=[
            message(root, reading(1)),
            message(f"{root}/Speed", reading(2)),
            message(f"{root}/Speed/Deep", reading(3)),
            message(f"{root}/Other", reading(4)),
            message(f"{root}/Speed", reading(5)),
        ]
    )
    assert simple.take_readings(5) == ["1", "2", "3", "4", "5"]
    assert concrete.take_readings(2) == ["2", "5"]
    assert full.take_readings(4) == ["2", "3", "4", "5"]
    assert simple.is_empty()
    assert concrete.is_empty()
    assert full.is_empty()


@pytest.mark.parametrize("foreign", EVERY_WAY, ids="-".join, indirect=True)
def test_a_delivery_is_addressed_and_in_the_version_of_the_subscribe(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    subscribed = foreign.subscribe(receivers[0].url, f"{root}//.", "Full")
    foreign.notify(f"{root}/Speed", 1)
    envelope = receivers[0].envelopes.get(timeout=PATIENCE)
    header = envelope.find("{*}Header")
    delivered = envelope.find("{*}Body/wsnt:Notify/wsnt:NotificationMessage", NS)
    reference = delivered.findtext("wsnt:SubscriptionReference/wsa:Address", namespaces=NS)
    assert etree.QName(envelope).namespace == SOAP[foreign.version]
    assert header.findtext("wsa:Action", namespaces=NS) == NOTIFY_ACTION
    assert header.findtext("wsa:To", namespaces=NS) == receivers[0].url
    assert header.findtext("wsa:MessageID", namespaces=NS)
    assert reference == address(subscribed.SubscriptionReference)
    assert topic_path(delivered)[-2:] == [root, "Speed"]


def test_reference_parameters_come_back_as_headers(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    consumer = {
        "Address": receivers[0].url,
        "ReferenceParameters": {"_value_1": [element("<x:lane>left</x:lane>")]},
    }
    foreign.broker.Subscribe(ConsumerReference=consumer, Filter=topic_filter(root, "Concrete"))
    foreign.notify(root, 1)
    lane = receivers[0].envelopes.get(timeout=PATIENCE).find("{*}Header/x:lane", NS)
    assert lane.text == "left"
    assert lane.get(name("wsa:IsReferenceParameter")) in ("true", "1")


def test_content_filters_hold_as_well_as_topics(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    selected = topic_filter(root, "Concrete")
    content = f'<wsnt:MessageContent Dialect="{XPATH}">number(/x:reading) &gt; 2</wsnt:MessageContent>'
    selected["_value_1"].append(element(content))
    foreign.broker.Subscribe(ConsumerReference={"Address": receivers[0].url}, Filter=selected)
    foreign.notify(root, 1, 2, 3, 1, 4)
    assert receivers[0].take_readings(2) == ["3", "4"]


def test_renew_moves_the_end_of_a_subscription(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    subscribed = foreign.subscribe(receivers[0].url, root, InitialTerminationTime="PT1H")
    span = subscribed.TerminationTime - subscribed.CurrentTime
    assert abs(span - timedelta(hours=1)) < timedelta(minutes=1)
    manager = foreign.subscription(subscribed)
    renewed = manager.Renew(TerminationTime="PT2H")
    assert abs(renewed.TerminationTime - renewed.CurrentTime - timedelta(hours=2)) < timedelta(minutes=1)
    assert manager.Renew(TerminationTime=xsd.Nil).TerminationTime is None


def test_a_paused_subscription_keeps_its_messages(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    paused, witness = receivers[:2]
    manager = foreign.subscription(foreign.subscribe(paused.url, root))
    foreign.subscribe(witness.url, root)
    foreign.notify(root, 1)
    assert paused.take_readings(1) == ["1"]
    manager.PauseSubscription()
    foreign.notify(root, 2, 3)
    assert witness.take_readings(3) == ["1", "2", "3"]
    assert paused.is_empty()
    manager.ResumeSubscription()
    foreign.notify(root, 4)
    assert paused.take_readings(3) == ["2", "3", "4"]


def test_after_unsubscribe_the_subscription_is_unknown(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    gone, witness = receivers[:2]
    manager = foreign.subscription(foreign.subscribe(gone.url, root))
    foreign.subscribe(witness.url, root)
    manager.Unsubscribe()
    foreign.notify(root, 1)
    assert witness.take_readings(1) == ["1"]
    assert gone.is_empty()
    for operation in ("Unsubscribe", "PauseSubscription", "ResumeSubscription"):
        expect_fault("r:ResourceUnknownFault", manager[operation])
    expect_fault("r:ResourceUnknownFault", manager.Renew, TerminationTime="PT1H")


def test_the_current_message_is_the_last_of_its_topic(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    foreign.subscribe(receivers[0].url, root, "Simple")
    expect_fault("wsnt:NoCurrentMessageOnTopicFault", foreign.broker.GetCurrentMessage, Topic=topic(root))
    foreign.notify(root, 1, 2)
    foreign.notify(f"{root}/Child", 3)
    assert receivers[0].take_readings(3) == ["1", "2", "3"]
    [current] = foreign.broker.GetCurrentMessage(Topic=topic(root))
    assert (current.tag, current.text) == (name("x:reading"), "2")


def test_a_payload_without_namespace_is_the_current_message_too(
    foreign: Foreign, receivers: list[Receiver], root: str
) -> None:
    foreign.subscribe(receivers[0].url, root)
    foreign.broker.Notify(NotificationMessage=[message(root, etree.fromstring("<plain>1</plain>"))])
    [delivered] = receivers[0].take(1)
    assert delivered.findtext("wsnt:Message/plain", namespaces=NS) == "1"
    [current] = foreign.broker.GetCurrentMessage(Topic=topic(root))
    assert current._value_1.tag == "plain"


def pull(point: Any, count: int, at_most: int) -> list[Any]:
    """Messages of a pull point, asked for until there are enough."""
    pulled: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(pulled) < count and time.monotonic() < deadline:
        response = point.GetMessages(MaximumNumber=at_most)
        batch = response.NotificationMessage if response is not None else []
        assert len(batch) <= at_most
        pulled += batch
    return pulled


def test_a_pull_point_holds_messages_until_they_are_asked_for(foreign: Foreign, root: str) -> None:
    created = foreign.factory.CreatePullPoint()
    point = foreign.at("PullPoint", address(created.PullPoint))
    foreign.subscribe(address(created.PullPoint), root)
    foreign.notify(root, 1, 2, 3)
    pulled = pull(point, 3, at_most=2)
    assert [m.Message._value_1.text for m in pulled] == ["1", "2", "3"]
    assert not point.GetMessages().NotificationMessage
    point.DestroyPullPoint()
    expect_fault("r:ResourceUnknownFault", point.GetMessages)
    expect_fault("r:ResourceUnknownFault", point.DestroyPullPoint)


def test_a_pull_point_takes_a_notify_of_its_own(foreign: Foreign, root: str) -> None:
    point = foreign.at("PullPoint", address(foreign.factory.CreatePullPoint().PullPoint))
    point.Notify(NotificationMessage=[message(root, reading(1)), message(root, reading(2))])
    assert [m.Message._value_1.text for m in pull(point, 2, at_most=5)] == ["1", "2"]
    point.DestroyPullPoint()


def test_a_named_pull_point_is_the_same_for_the_same_name(foreign: Foreign, root: str) -> None:
    names = {name("wsnt:pullPointQueueName"): root}
    first, second = (address(foreign.factory.CreatePullPoint(_attr_1=names).PullPoint) for _ in range(2))
    assert first == second
    assert first != address(foreign.factory.CreatePullPoint().PullPoint)


BAD_SUBSCRIBES = {
    "InvalidFilterFault": {"Filter": {"_value_1": ["<x:Colour>red</x:Colour>"]}},
    "TopicExpressionDialectUnknownFault": {
        "Filter": {"_value_1": ['<wsnt:TopicExpression Dialect="urn:x">A</wsnt:TopicExpression>']}
    },
    "InvalidTopicExpressionFault": {
        "Filter": {"_value_1": [f'<wsnt:TopicExpression Dialect="{DIALECT}Full">A/|</wsnt:TopicExpression>']}
    },
    "InvalidMessageContentExpressionFault": {
        "Filter": {"_value_1": [f'<wsnt:MessageContent Dialect="{XPATH}">1 +</wsnt:MessageContent>']}
    },
    "UnrecognizedPolicyRequestFault": {"SubscriptionPolicy": {"_value_1": ["<x:Colour/>"]}},
    "UnsupportedPolicyRequestFault": {
        "SubscriptionPolicy": {"_value_1": ['<hp:Delivery overflow="explode"/>']}
    },
    "UnacceptableInitialTerminationTimeFault": {"InitialTerminationTime": "2001-01-01T00:00:00Z"},
}
OWN_FIELD = {
    "InvalidFilterFault": "UnknownFilter",
    "UnrecognizedPolicyRequestFault": "UnrecognizedPolicy",
    "UnsupportedPolicyRequestFault": "UnsupportedPolicy",
    "UnacceptableInitialTerminationTimeFault": "MinimumTime",
}


@pytest.mark.parametrize("fault_name", BAD_SUBSCRIBES)
def test_a_bad_subscribe_is_told_what_is_wrong_in_the_standards_words(
    foreign: Foreign, receivers: list[Receiver], fault_name: str
) -> None:
    arguments: dict[str, Any] = {
        key: {"_value_1": [element(text) for text in value["_value_1"]]} if isinstance(value, dict) else value
        for key, value in BAD_SUBSCRIBES[fault_name].items()
    }
    consumer = {"Address": receivers[0].url}
    fault = expect_fault(
        f"wsnt:{fault_name}", foreign.broker.Subscribe, ConsumerReference=consumer, **arguments
    )
    detail = fault.detail[0]
    assert type(foreign.client.wsdl.types.deserialize(detail)).__name__ == f"{fault_name}Type"
    assert fault.message
    assert detail.findtext("bf:Description", namespaces=NS)
    if fault_name in OWN_FIELD:
        assert detail.findtext(f"wsnt:{OWN_FIELD[fault_name]}", namespaces=NS)
    assert fault.code.endswith({"Soap11": ":Client", "Soap12": ":Sender"}[foreign.version])
    assert foreign.statuses[-1] == {"Soap11": 500, "Soap12": 400}[foreign.version]


def test_a_renew_into_the_past_is_refused(foreign: Foreign, receivers: list[Receiver], root: str) -> None:
    manager = foreign.subscription(foreign.subscribe(receivers[0].url, root))
    fault = expect_fault("wsnt:UnacceptableTerminationTimeFault", manager.Renew, TerminationTime="-PT1H")
    assert fault.detail[0].findtext("wsnt:MinimumTime", namespaces=NS)
    manager.Unsubscribe()


def test_the_current_message_of_several_topics_is_refused(foreign: Foreign, root: str) -> None:
    foreign.broker.Notify(NotificationMessage=[message(f"{root}/{n}", reading(1)) for n in ("A", "B")])
    several = topic(f"{root}/*", "Full")
    expect_fault("wsnt:MultipleTopicsSpecifiedFault", foreign.broker.GetCurrentMessage, Topic=several)
