"""Every answer, fault detail and delivery of the node against the normative schemas, wherever those are."""

from typing import Any

import pytest

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.raw_soap import Reply, call, notify, subscribe

ANSWERS = "w:SubscriptionReference/a:Address"
PAYLOADS = (
    "<plain>1</plain>",
    '<n:n xmlns:n="urn:n">2</n:n>',
    "only text",
    f"<w:odd xmlns:w='{raw_soap.WSNT}'/>",
)


def _topic(text: str, dialect: str = raw_soap.SIMPLE) -> str:
    return f'<w:GetCurrentMessage><w:Topic Dialect="{dialect}">{text}</w:Topic></w:GetCurrentMessage>'


def _renew(text: str) -> str:
    return f"<w:Renew><w:TerminationTime>{text}</w:TerminationTime></w:Renew>"


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_every_answer_is_valid(node: NodeProcess, oasis: Any, version: str) -> None:
    async def ask(url: str, body: str, status: int = 200) -> Reply:
        reply = await call(url, body, version)
        assert reply.status == status, reply.body
        if reply.body:
            oasis.validate(reply.content)
        return reply

    async with Consumer() as consumer:
        for end in ("", "<w:InitialTerminationTime>PT1H</w:InitialTerminationTime>"):
            reference = (await ask(node.url, subscribe(consumer.url, "A", more=end))).text(ANSWERS)
        await ask(node.url, notify("A", *PAYLOADS), 202)
        await ask(
            node.url, notify("p:A", "<n/>", dialect=None).replace("<w:Topic", '<w:Topic xmlns:p="u"'), 202
        )
        for number, payload in enumerate(PAYLOADS):
            await ask(node.url, notify(f"B:n{number}", payload), 202)
            await ask(node.url, _topic(f"B:n{number}"))
        for end in ("PT1H", "2999-01-01T00:00:00"):
            await ask(reference, _renew(end))
        await ask(
            reference,
            '<w:Renew><w:TerminationTime x:nil="true" xmlns:x="{}"/></w:Renew>'.format(
                "http://www.w3.org/2001/XMLSchema-instance"
            ),
        )
        await ask(reference, "<w:PauseSubscription/>")
        await ask(reference, "<w:ResumeSubscription/>")
        point = (await ask(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        await ask(point, "<w:GetMessages/>")
        await ask(node.url, subscribe(point))
        await ask(node.url, notify("A", *PAYLOADS), 202)
        await ask(point, notify(None, *PAYLOADS), 202)
        pulled = await ask(point, "<w:GetMessages/>")
        assert len(pulled.content) == 2 * len(PAYLOADS)
        await ask(point, "<w:DestroyPullPoint/>")
        await consumer.wait(lambda c: len(c.messages()) >= 2 * len(PAYLOADS))
        await ask(reference, "<w:Unsubscribe/>")
        for request in consumer.requests:
            oasis.validate(Reply(200, {}, request).content)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_every_fault_detail_is_valid(shared_node: NodeProcess, oasis: Any, version: str) -> None:
    node = shared_node
    content = '<w:MessageContent Dialect="urn:other">a</w:MessageContent>'
    policy = "<w:SubscriptionPolicy><x:P xmlns:x='urn:x'/></w:SubscriptionPolicy>"
    unsupported = policy.replace("<x:P xmlns:x='urn:x'/>", "<x:Delivery xmlns:x='urn:hpwsn:1' batch='-1'/>")
    ended = "<w:InitialTerminationTime>PT0S</w:InitialTerminationTime>"
    requests = [
        (node.url, subscribe("http://x/", "A", dialect="urn:other"), "TopicExpressionDialectUnknownFault"),
        (node.url, subscribe("http://x/", "//", dialect=raw_soap.FULL), "InvalidTopicExpressionFault"),
        (
            node.url,
            subscribe("http://x/", filters='<z:Z xmlns:z="urn:z"/><y xmlns=""/>'),
            "InvalidFilterFault",
        ),
        (node.url, subscribe("http://x/", filters=content), "InvalidMessageContentExpressionFault"),
        (node.url, subscribe("http://x/", more=policy), "UnrecognizedPolicyRequestFault"),
        (node.url, subscribe("http://x/", more=unsupported), "UnsupportedPolicyRequestFault"),
        (node.url, subscribe("http://x/", more=ended), "UnacceptableInitialTerminationTimeFault"),
        (node.url, subscribe("ftp://x/"), "SubscribeCreationFailedFault"),
        (node.url, _topic("never"), "NoCurrentMessageOnTopicFault"),
        (f"{node.base}/wsn/subscriptions/none", "<w:Unsubscribe/>", "ResourceUnknownFault"),
        (f"{node.base}/wsn/subscriptions/none", "<w:PauseSubscription/>", "ResourceUnknownFault"),
        (f"{node.base}/wsn/subscriptions/none", "<w:ResumeSubscription/>", "ResourceUnknownFault"),
        (f"{node.base}/wsn/subscriptions/none", _renew("PT1H"), "ResourceUnknownFault"),
        (f"{node.base}/wsn/pullpoints/none", "<w:GetMessages/>", "ResourceUnknownFault"),
        (f"{node.base}/wsn/pullpoints/none", "<w:DestroyPullPoint/>", "ResourceUnknownFault"),
    ]
    for url, body, fault in requests:
        reply = await call(url, body, version)
        assert (reply.status, reply.fault) == ({"1.1": 500, "1.2": 400}[version], fault)
        oasis.validate(reply.detail)
