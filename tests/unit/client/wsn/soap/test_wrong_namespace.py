"""A fault for an element in a wrong namespace names the namespace that was meant."""

import pytest
from lxml import etree

from hpwsn_client.wsn.operations.messages import parse_message
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.soap.names import TEV, WSA, WSN_BR, WSN_BW, WSNT, WSRF_RL, WSRF_RP

DRAFT = "http://www.ibm.com/xmlns/stdwip/web-services/WS-BaseNotification"
OLD_WSA = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
CONSUMER = (
    f'<n:ConsumerReference xmlns:n="{WSNT}"><Address xmlns="{WSA}">http://c</Address></n:ConsumerReference>'
)


def fault_of(request: str) -> str:
    with pytest.raises(SoapFault) as refused:
        parse_message(etree.fromstring(request))
    return refused.value.reason


@pytest.mark.parametrize(
    ("request_xml", "found", "meant"),
    [
        (f'<Subscribe xmlns="{WSNT}"><ConsumerReference xmlns=""/></Subscribe>', "no namespace", WSNT),
        (f'<Subscribe xmlns="{WSNT}"><ConsumerReference xmlns="{WSN_BW}"/></Subscribe>', WSN_BW, WSNT),
        (f'<Subscribe xmlns="{WSNT}"><ConsumerReference xmlns="urn:x"/></Subscribe>', "urn:x", WSNT),
        (f'<Subscribe xmlns="{WSNT}">{CONSUMER}<Filter xmlns="{DRAFT}"/></Subscribe>', DRAFT, WSNT),
        (f'<Subscribe xmlns="{WSNT}">{CONSUMER}<Filter xmlns=""/></Subscribe>', "no namespace", WSNT),
        (
            f'<Subscribe xmlns="{WSNT}">{CONSUMER}<Filter><TopicExpression xmlns="{DRAFT}"/></Filter>'
            "</Subscribe>",
            DRAFT,
            WSNT,
        ),
        (
            f'<Subscribe xmlns="{WSNT}"><ConsumerReference><Address xmlns="{OLD_WSA}">http://c</Address>'
            "</ConsumerReference></Subscribe>",
            OLD_WSA,
            WSA,
        ),
        (f'<Notify xmlns="{WSNT}"><NotificationMessage xmlns="{WSN_BW}"/></Notify>', WSN_BW, WSNT),
        (f'<Notify xmlns="{WSNT}"><NotificationMessage xmlns="urn:x"/></Notify>', "urn:x", WSNT),
        (
            f'<Notify xmlns="{WSNT}"><NotificationMessage><Message xmlns="{WSA}"/></NotificationMessage>'
            "</Notify>",
            WSA,
            WSNT,
        ),
        (f'<RegisterPublisher xmlns="{WSN_BR}"><Topic xmlns="{WSNT}"/></RegisterPublisher>', WSNT, WSN_BR),
        (
            f'<SetTerminationTime xmlns="{WSRF_RL}"><RequestedTerminationTime xmlns=""/>'
            "</SetTerminationTime>",
            "no",
            WSRF_RL,
        ),
        (
            f'<GetMultipleResourceProperties xmlns="{WSRF_RP}"><ResourceProperty xmlns=""/>'
            "</GetMultipleResourceProperties>",
            "no namespace",
            WSRF_RP,
        ),
        (f'<PullMessages xmlns="{TEV}"><Timeout xmlns="{WSNT}">PT1S</Timeout></PullMessages>', WSNT, TEV),
    ],
)
def test_the_fault_names_the_namespace_found_and_the_one_meant(
    request_xml: str, found: str, meant: str
) -> None:
    reason = fault_of(request_xml)
    assert f"is in {'' if found.startswith('no') else 'the namespace '}{found}" in reason
    assert reason.endswith(f"write it in the namespace {meant}")


def test_an_unknown_element_gets_no_hint() -> None:
    assert "write it in" not in fault_of(f'<Subscribe xmlns="{WSNT}"><Consumer xmlns=""/></Subscribe>')


def test_an_extension_of_somebody_else_may_have_any_name() -> None:
    request = f'<Subscribe xmlns="{WSNT}">{CONSUMER}<Filter xmlns="urn:x"/></Subscribe>'
    parsed = parse_message(etree.fromstring(request))
    assert b"urn:x" in parsed.extensions[0]  # type: ignore[union-attr]
