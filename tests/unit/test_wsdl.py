"""Our contract against the standard's own files, and against zeep, which nobody here wrote.

The comparison with the standard takes a valid instance of every element that travels, damages it in every way
(see tests/contract_instances.py), and wants the same verdict from both schemas.
"""

from datetime import UTC, datetime, timedelta
from itertools import filterfalse
from pathlib import Path

import pytest
import zeep
from lxml import etree
from zeep import xsd

from hpwsn import contracts
from tests.contract_instances import (
    BESIDE,
    NS,
    SIMPLE,
    TOPIC_EXPRESSION,
    XML,
    damaged,
    element,
    name,
    valid_instance,
)
from tests.contract_schema import WSDL_FILE, contract_schema, joined_schema

ACTIONS = "http://docs.oasis-open.org/wsn/bw-2"
BROKERED = "http://docs.oasis-open.org/wsn/brw-2"
WSRF = "http://docs.oasis-open.org/wsrf"

# The interface of the standard that gives each operation its action, whichever port type repeats it.
ACTION_OWNER = {
    "Subscribe": "NotificationProducer",
    "GetCurrentMessage": "NotificationProducer",
    "Notify": "NotificationConsumer",
    "CreatePullPoint": "CreatePullPoint",
    "GetMessages": "PullPoint",
    "DestroyPullPoint": "PullPoint",
    "Renew": "SubscriptionManager",
    "Unsubscribe": "SubscriptionManager",
    "PauseSubscription": "PausableSubscriptionManager",
    "ResumeSubscription": "PausableSubscriptionManager",
    "RegisterPublisher": f"{BROKERED}/RegisterPublisher",
    "DestroyRegistration": f"{BROKERED}/PublisherRegistrationManager",
    "GetResourceProperty": f"{WSRF}/rpw-2/GetResourceProperty",
    "GetMultipleResourceProperties": f"{WSRF}/rpw-2/GetMultipleResourceProperties",
    "QueryResourceProperties": f"{WSRF}/rpw-2/QueryResourceProperties",
    "Destroy": f"{WSRF}/rlw-2/ImmediateResourceTermination",
    "SetTerminationTime": f"{WSRF}/rlw-2/ScheduledResourceTermination",
}
PORT_TYPES = {
    "NotificationBroker": {"Subscribe", "GetCurrentMessage", "Notify", "RegisterPublisher"},
    "CreatePullPoint": {"CreatePullPoint"},
    "PullPoint": {"GetMessages", "DestroyPullPoint", "Notify"},
    "PausableSubscriptionManager": {"Renew", "Unsubscribe", "PauseSubscription", "ResumeSubscription"},
    "PublisherRegistrationManager": {"DestroyRegistration"},
    "GetResourceProperty": {"GetResourceProperty"},
    "GetMultipleResourceProperties": {"GetMultipleResourceProperties"},
    "QueryResourceProperties": {"QueryResourceProperties"},
    "ImmediateResourceTermination": {"Destroy"},
    "ScheduledResourceTermination": {"SetTerminationTime"},
}
# WS-ResourceLifetime is not among the files of tests/oasis.py: its interfaces are written out here.
LIFETIME = {
    "ImmediateResourceTermination": {"Destroy": ("ResourceNotDestroyedFault",)},
    "ScheduledResourceTermination": {
        "SetTerminationTime": ("UnableToSetTerminationTimeFault", "TerminationTimeChangeRejectedFault")
    },
}
CALLS = [
    (port_type + version, operation)
    for version in ("Soap11", "Soap12")
    for port_type, operations in PORT_TYPES.items()
    for operation in sorted(operations)
]


def action_of(operation: str) -> str:
    """The action of an operation, without the word for its direction."""
    owner = ACTION_OWNER[operation]
    return f"{owner if '/' in owner else f'{ACTIONS}/{owner}'}/{operation}"


@pytest.fixture(scope="module")
def wsdl() -> etree._Element:
    return etree.parse(WSDL_FILE).getroot()


@pytest.fixture(scope="module")
def our_schema(tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    return contract_schema(tmp_path_factory.mktemp("inline"))


@pytest.fixture(scope="module")
def oasis_schema(oasis_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    files = {
        "wsnt": "b-2.xsd",
        "r": "r-2.xsd",
        "rp": "rp-2.xsd",
        "br": "br-2.xsd",
        "bf": "bf-2.xsd",
        "wsa": "ws-addr.xsd",
        "wstop": "t-1.xsd",
    }
    location = {NS[prefix]: (oasis_folder / file).as_uri() for prefix, file in files.items()}
    return joined_schema(tmp_path_factory.mktemp("oasis") / "all.xsd", location)


def travelling_elements() -> list[str]:
    parts = etree.parse(WSDL_FILE).iterfind("wsdl:message/wsdl:part", NS)
    return sorted(part.get("element") for part in parts)


def without_schema(prefixed: str) -> bool:
    """Whether an element is of WS-ResourceLifetime, whose schema is not among those of tests/oasis.py."""
    return prefixed.startswith("rl:")


@pytest.mark.parametrize("prefixed", [*filter(without_schema, travelling_elements())])
def test_our_schema_has_the_elements_of_resource_lifetime(prefixed: str, our_schema: etree.XMLSchema) -> None:
    instance = valid_instance(prefixed)
    our_schema.assertValid(instance)
    verdicts = {our_schema.validate(document) for _, document in damaged(instance)}
    assert verdicts == {True, False}


@pytest.mark.parametrize("prefixed", [*filterfalse(without_schema, travelling_elements()), *BESIDE])
def test_our_schema_and_the_standards_give_the_same_verdict(
    prefixed: str, our_schema: etree.XMLSchema, oasis_schema: etree.XMLSchema
) -> None:
    instance = valid_instance(prefixed)
    oasis_schema.assertValid(instance)
    our_schema.assertValid(instance)
    verdicts = set()
    for words, document in damaged(instance):
        verdict = oasis_schema.validate(document)
        verdicts.add(verdict)
        if "Description" in words and f"{{{XML}}}" in words:
            continue  # the one difference, explained at the top of the WSDL's types
        assert our_schema.validate(document) is verdict, f"{words}: the standard says {verdict}"
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("prefix", "file"),
    [("wsnt", "b-2.xsd"), ("br", "br-2.xsd"), ("bf", "bf-2.xsd"), ("r", "r-2.xsd"), ("wsa", "ws-addr.xsd")],
)
def test_our_schema_declares_the_same_global_names(
    prefix: str, file: str, wsdl: etree._Element, oasis_folder: Path
) -> None:
    ours = wsdl.find(f"wsdl:types/xs:schema[@targetNamespace='{NS[prefix]}']", NS)
    theirs = etree.parse(oasis_folder / file).getroot()
    assert global_names(ours) == global_names(theirs)


def global_names(schema: etree._Element) -> set[tuple[str, str]]:
    return {(declaration.tag, declaration.get("name")) for declaration in schema.iterfind("xs:*[@name]", NS)}


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ('<hp:Delivery maxQueue="10000" overflow="drop-oldest" batch="64"/>', True),
        ('<hp:Delivery overflow="dead-letter" expires="PT1H" discipline="cet"/>', True),
        ('<hp:Delivery discipline="cet" alpha="20" beta="PT2000S"/>', True),
        ('<hp:Delivery discipline="cet" alpha="0"/>', False),
        ('<hp:Delivery discipline="cet" beta="2000"/>', False),
        ("<hp:Delivery/>", True),
        ('<hp:Delivery overflow="explode"/>', False),
        ('<hp:Delivery batch="0"/>', False),
        ('<hp:Delivery expires="soon"/>', False),
        ('<hp:Delivery colour="red"/>', False),
        ('<hp:Routing reliable="true" partial="false" f:mustUnderstand="1"/>', True),
        ('<hp:Routing reliable="perhaps"/>', False),
        ("<hp:MessageId>order 17</hp:MessageId>", True),
        ("<hp:MessageId><f:a/></hp:MessageId>", False),
        ("<hp:text>hello</hp:text>", True),
        ("<hp:message><plain/></hp:message>", True),
        ("<hp:message/>", False),
        ('<hp:event><speed>60</speed><hp:field name="a b"><x>1</x></hp:field></hp:event>', True),
        ("<hp:event><hp:field>no name</hp:field></hp:event>", False),
        ("<hp:event><f:foreign/></hp:event>", False),
    ],
)
def test_our_own_elements_are_as_the_architecture_writes_them(
    text: str, valid: bool, our_schema: etree.XMLSchema
) -> None:
    assert our_schema.validate(element(text)) is valid


# Port types, actions, bindings


def parts_of(messages: dict[str, etree._Element], reference: etree._Element | None) -> list[tuple[str, str]]:
    """The parts of a message as (name, element's Clark name); of no message, none."""
    if reference is None:
        return []
    prefix, local = reference.get("message").split(":")
    message = messages[f"{{{reference.nsmap[prefix]}}}{local}"]
    parts = list(message.iter(name("wsdl:part")))
    qnames = [part.get("element").split(":") for part in parts]
    return [(p.get("name"), f"{{{p.nsmap[q[0]]}}}{q[1]}") for p, q in zip(parts, qnames, strict=True)]


def interfaces(*documents: etree._Element) -> dict[str, dict[str, object]]:
    """Port type → operation → what goes in, comes out and fails, with all names resolved."""
    messages = {
        f"{{{document.get('targetNamespace')}}}{message.get('name')}": message
        for document in documents
        for message in document.iterfind("wsdl:message", NS)
    }
    return {
        port_type.get("name"): {
            operation.get("name"): (
                parts_of(messages, operation.find("wsdl:input", NS)),
                parts_of(messages, operation.find("wsdl:output", NS)),
                {f.get("name"): parts_of(messages, f) for f in operation.iterfind("wsdl:fault", NS)},
            )
            for operation in port_type.iterfind("wsdl:operation", NS)
        }
        for document in documents
        for port_type in document.iterfind("wsdl:portType", NS)
    }


def test_port_types_have_the_standards_operations_messages_and_faults(
    wsdl: etree._Element, oasis_folder: Path
) -> None:
    files = ("bw-2.wsdl", "brw-2.wsdl", "rw-2.wsdl", "rpw-2.wsdl")
    standard = interfaces(*(etree.parse(oasis_folder / file).getroot() for file in files))
    ours = interfaces(wsdl)
    resources = {port_type: ours.pop(port_type) for port_type in LIFETIME}
    assert ours == {port_type: standard[port_type] for port_type in PORT_TYPES if port_type not in LIFETIME}
    assert resources == {port_type: lifetime_interface(port_type) for port_type in LIFETIME}


def lifetime_interface(port_type: str) -> dict[str, object]:
    """A port type of WS-ResourceLifetime in the form of `interfaces`."""
    unknown = {f: [(f, name(f"r:{f}"))] for f in ("ResourceUnknownFault", "ResourceUnavailableFault")}
    return {
        operation: (
            [(f"{operation}Request", name(f"rl:{operation}"))],
            [(f"{operation}Response", name(f"rl:{operation}Response"))],
            {**unknown, **{f: [(f, name(f"rl:{f}"))] for f in faults}},
        )
        for operation, faults in LIFETIME[port_type].items()
    }


def test_every_message_has_the_standards_action(wsdl: etree._Element) -> None:
    for operation in wsdl.iterfind("wsdl:portType/wsdl:operation", NS):
        local = operation.get("name")
        base = action_of(local)
        actions = [operation.find(f"wsdl:{way}", NS) for way in ("input", "output")]
        written = [a.get(name("wsam:Action")) for a in actions if a is not None]
        assert written == ([base] if local == "Notify" else [f"{base}Request", f"{base}Response"])


@pytest.mark.parametrize(("version", "prefix"), [("Soap11", "soap"), ("Soap12", "soap12")])
@pytest.mark.parametrize("port_type", PORT_TYPES)
def test_bindings_are_literal_and_carry_action_and_faults(
    port_type: str, version: str, prefix: str, wsdl: etree._Element
) -> None:
    abstract = wsdl.find(f"wsdl:portType[@name='{port_type}']", NS)
    binding = wsdl.find(f"wsdl:binding[@name='{port_type}{version}']", NS)
    assert binding.find(f"{prefix}:binding", NS).get("style") == "document"
    for operation in abstract.iterfind("wsdl:operation", NS):
        bound = binding.find(f"wsdl:operation[@name='{operation.get('name')}']", NS)
        action = operation.find("wsdl:input", NS).get(name("wsam:Action"))
        assert bound.find(f"{prefix}:operation", NS).get("soapAction") == action
        faults = [f.get("name") for f in operation.iterfind("wsdl:fault", NS)]
        assert [f.get("name") for f in bound.iterfind(f"wsdl:fault/{prefix}:fault", NS)] == faults
        assert {e.get("use") for e in bound.iterfind(f"wsdl:*/{prefix}:*", NS)} == {"literal"}


# The address


def addresses(document: bytes) -> dict[str, str]:
    ports = etree.fromstring(document).iterfind("wsdl:service/wsdl:port", NS)
    return {port.get("name"): port[0].get("location") for port in ports}


@pytest.mark.parametrize("location", ["https://broker.example:8443/wsn", 'http://[::1]/a?b=1&c="<é>"'])
def test_broker_wsdl_puts_the_nodes_address_into_every_port(location: str) -> None:
    tails = {
        "PullPoint": "/pullpoints",
        "PausableSubscriptionManager": "/subscriptions",
        "PublisherRegistrationManager": "/registrations",
        **dict.fromkeys(LIFETIME, "/subscriptions"),
    }
    expected = {
        port_type + version: location + tails.get(port_type, "")
        for port_type in PORT_TYPES
        for version in ("Soap11", "Soap12")
    }
    document = contracts.broker_wsdl(location)
    assert addresses(document) == expected
    assert b"localhost" not in document


def test_broker_wsdl_changes_nothing_but_the_addresses() -> None:
    document = contracts.broker_wsdl("http://elsewhere/wsn")
    original = WSDL_FILE.read_bytes()
    assert document.count(b"http://elsewhere/wsn") == len(addresses(original))
    assert document.replace(b"http://elsewhere/wsn", b"http://localhost:8080/wsn") == original


# Zeep


class OnlyThisFile(zeep.Transport):
    """A transport that reads the WSDL and refuses to fetch anything else."""

    def load(self, url: str) -> bytes:
        assert Path(url) == WSDL_FILE, f"the contract made zeep fetch {url}"
        return super().load(url)


@pytest.fixture(scope="module")
def client() -> zeep.Client:
    client = zeep.Client(str(WSDL_FILE), transport=OnlyThisFile())
    client.set_ns_prefix("f", NS["f"])
    return client


# zeep knows no mixed content, so a Topic's text needs a type of its own.
TopicText = xsd.ComplexType(xsd.Element("_value_1", xsd.String()), [xsd.Attribute("Dialect", xsd.AnyURI())])


def arguments(operation: str) -> dict[str, object]:
    """What an author would pass to zeep for an operation."""
    topic = TopicText("A:B", Dialect=SIMPLE)
    policies = [element("<wsnt:UseRaw/>"), element('<hp:Delivery batch="1"/>')]
    payloads = [element("<f:payload/>"), element("<f:payload/>")]
    return {
        "Subscribe": {
            "ConsumerReference": {"Address": "http://consumer/"},
            "Filter": {"_value_1": [element(TOPIC_EXPRESSION)]},
            "InitialTerminationTime": "PT1H",
            "SubscriptionPolicy": {"_value_1": policies},
        },
        "GetCurrentMessage": {"Topic": topic},
        "Notify": {"NotificationMessage": [{"Topic": topic, "Message": {"_value_1": p}} for p in payloads]},
        "RegisterPublisher": {
            "PublisherReference": {"Address": "http://publisher/"},
            "Topic": [topic],
            "Demand": True,
            "InitialTerminationTime": datetime(2030, 1, 1, tzinfo=UTC),
        },
        "GetMessages": {"MaximumNumber": 5},
        "Renew": {"TerminationTime": xsd.Nil},
        "GetMultipleResourceProperties": {"ResourceProperty": ["f:a", "f:b"]},
        "QueryResourceProperties": {"QueryExpression": TopicText("//f:a", Dialect="urn:x")},
        "SetTerminationTime": {"RequestedLifetimeDuration": timedelta(hours=1)},
    }.get(operation, {})


@pytest.mark.parametrize(("port", "operation"), CALLS)
def test_zeep_builds_a_valid_request_for_every_operation(
    port: str,
    operation: str,
    client: zeep.Client,
    our_schema: etree.XMLSchema,
    oasis_schema: etree.XMLSchema,
) -> None:
    service = client.bind("HPwsn", port)
    names = ("f:a",) if operation == "GetResourceProperty" else ()
    envelope = client.create_message(service, operation, *names, **arguments(operation))
    body = envelope.find("{*}Body")[0]
    assert body.tag in {name(f"{prefix}:{operation}") for prefix in ("wsnt", "br", "rp", "rl")}
    schema = our_schema if port.removesuffix("Soap11").removesuffix("Soap12") in LIFETIME else oasis_schema
    schema.assertValid(etree.fromstring(etree.tostring(body)))
    action = action_of(operation) + ("" if operation == "Notify" else "Request")
    assert envelope.findtext("{*}Header/wsa:Action", namespaces=NS) == action


def test_zeep_can_describe_the_whole_contract(
    client: zeep.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.wsdl.dump()
    assert "GetMessages(MaximumNumber: xsd:nonNegativeInteger" in capsys.readouterr().out


# The variant with strings


def test_the_plain_variant_differs_in_three_types_and_names_the_node() -> None:
    plain = contracts.plain_broker_wsdl("http://elsewhere/wsn")
    assert addresses(plain) == addresses(contracts.broker_wsdl("http://elsewhere/wsn"))
    types = [etree.fromstring(each) for each in (plain, contracts.broker_wsdl("http://elsewhere/wsn"))]
    for tree in types:
        for name_ in ("TopicExpressionType", "QueryExpressionType", "FilterType"):
            (found,) = tree.xpath(
                f"//xs:schema[@targetNamespace='{NS['wsnt']}']/xs:complexType[@name='{name_}']", namespaces=NS
            )
            found.getparent().remove(found)
    assert etree.tostring(types[0], method="c14n") == etree.tostring(types[1], method="c14n")


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        (
            "Subscribe",
            {
                "ConsumerReference": {"Address": "http://c"},
                "Filter": {"TopicExpression": ["a:b", "c"], "MessageContent": "speed > 60"},
            },
        ),
        ("GetCurrentMessage", {"Topic": "a:b"}),
        (
            "Notify",
            {"NotificationMessage": [{"Topic": "a:b", "Message": {"_value_1": etree.fromstring("<r/>")}}]},
        ),
    ],
)
def test_a_message_of_the_plain_variant_is_one_of_the_contract(
    operation: str, arguments: dict[str, object], tmp_path: Path, our_schema: etree.XMLSchema
) -> None:
    file = tmp_path / "plain.wsdl"
    file.write_bytes(contracts.plain_broker_wsdl("http://c/wsn"))
    plain = zeep.Client(str(file))
    sent = plain.create_message(plain.bind("HPwsn", "NotificationBrokerSoap11"), operation, **arguments)
    (body,) = sent.xpath("//*[local-name()='Body']/*")
    our_schema.assertValid(etree.fromstring(etree.tostring(body)))
