"""The properties and lifetimes of the broker and of subscriptions, asked for over real sockets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests import raw_soap
from tests.contract_schema import contract_schema
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import Reply, call, notify, send, subscribe

RP, RL = "http://docs.oasis-open.org/wsrf/rp-2", "http://docs.oasis-open.org/wsrf/rl-2"
BR, WSTOP = "http://docs.oasis-open.org/wsn/br-2", "http://docs.oasis-open.org/wsn/t-1"
SCOPE = f'xmlns:p="{RP}" xmlns:l="{RL}" xmlns:br="{BR}" xmlns:t="{WSTOP}"'
BROKER = (
    "w:TopicExpression",
    "w:FixedTopicSet",
    "w:TopicExpressionDialect",
    "t:TopicSet",
    "br:RequiresRegistration",
)
SUBSCRIPTION = ("w:ConsumerReference", "w:Filter", "w:SubscriptionPolicy", "w:CreationTime")
TIMES = ("l:CurrentTime", "l:TerminationTime")
DESTROY = f"<l:Destroy {SCOPE}/>"
XSI = "http://www.w3.org/2001/XMLSchema-instance"


def get(name: str) -> str:
    return f"<p:GetResourceProperty {SCOPE}>{name}</p:GetResourceProperty>"


def get_all(*names: str) -> str:
    inside = "".join(f"<p:ResourceProperty>{name}</p:ResourceProperty>" for name in names)
    return f"<p:GetMultipleResourceProperties {SCOPE}>{inside}</p:GetMultipleResourceProperties>"


def query(expression: str, dialect: str = raw_soap.XPATH) -> str:
    given = f' Dialect="{dialect}"' if dialect else ""
    return (
        f"<p:QueryResourceProperties {SCOPE}><p:QueryExpression{given}>{expression}</p:QueryExpression>"
        "</p:QueryResourceProperties>"
    )


def end_at(inside: str) -> str:
    return f'<l:SetTerminationTime {SCOPE} xmlns:xsi="{XSI}">{inside}</l:SetTerminationTime>'


def after(duration: str) -> str:
    return end_at(f"<l:RequestedLifetimeDuration>{duration}</l:RequestedLifetimeDuration>")


def names(reply: Reply) -> list[str]:
    return [etree.QName(child).localname for child in reply.content]


async def subscribed(node: NodeProcess, topic: str = "A:B", more: str = "") -> str:
    """The address of a new subscription, whose consumer nobody will call."""
    point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    reply = await call(node.url, subscribe(point, topic, more=more))
    return reply.text("w:SubscriptionReference/a:Address")


POLICY = "<w:SubscriptionPolicy><w:UseRaw/></w:SubscriptionPolicy>"


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_every_answer_about_properties_is_valid(
    node: NodeProcess, oasis: Any, tmp_path: Path, version: str
) -> None:
    contract = contract_schema(tmp_path)

    async def ask(url: str, body: str) -> Reply:
        reply = await call(url, body, version)
        assert reply.status == 200, reply.body
        contract.assertValid(etree.fromstring(etree.tostring(reply.content)))
        # The schema of rl-2 is not among those of the standard here, and these answers hold its elements.
        if not list(reply.content.iter(f"{{{RL}}}*")):
            oasis.validate(reply.content)
        return reply

    subscription = await subscribed(node, more=POLICY)
    await call(
        node.url, notify("p:X/Y", "<n/>", dialect=None).replace("<w:Topic", '<w:Topic xmlns:p="urn:p"')
    )
    for url, properties in ((node.url, BROKER), (subscription, SUBSCRIPTION + TIMES)):
        properties = (*properties, "p:QueryExpressionDialect")
        for name in properties:
            assert set(names(await ask(url, get(name)))) == {name.split(":")[1]}
        await ask(url, get_all(*properties))
        for expression in (
            "//*",
            "/",
            "count(//*)",
            "//@Dialect",
            "//text()",
            "//w:Nothing",
            "true()",
            "'a'",
        ):
            await ask(url, query(expression))
    for request in (
        after("PT1H"),
        end_at("<l:RequestedTerminationTime>2999-01-01T00:00:00</l:RequestedTerminationTime>"),
        end_at('<l:RequestedTerminationTime xsi:nil="true"/>'),
        DESTROY,
    ):
        await ask(subscription, request)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_every_fault_about_resources_is_valid(
    shared_node: NodeProcess, oasis: Any, tmp_path: Path, version: str
) -> None:
    contract = contract_schema(tmp_path)
    subscription = await subscribed(shared_node)
    nobody = f"{shared_node.base}/wsn/subscriptions/none"
    past = "<l:RequestedTerminationTime>2000-01-01T00:00:00Z</l:RequestedTerminationTime>"
    requests = [
        (shared_node.url, get("w:Filter"), "InvalidResourcePropertyQNameFault"),
        (subscription, get("w:TopicSet"), "InvalidResourcePropertyQNameFault"),
        (subscription, get_all("w:Filter", "Filter"), "InvalidResourcePropertyQNameFault"),
        (shared_node.url, query("a", "urn:other"), "UnknownQueryExpressionDialectFault"),
        (shared_node.url, query("a b"), "InvalidQueryExpressionFault"),
        (shared_node.url, query("//a[//b[//c[//d[//e]]]]"), "InvalidQueryExpressionFault"),
        (shared_node.url, query("none:a"), "InvalidQueryExpressionFault"),
        (nobody, get("w:Filter"), "ResourceUnknownFault"),
        (nobody, get_all("w:Filter"), "ResourceUnknownFault"),
        (nobody, query("//w:Filter"), "ResourceUnknownFault"),
        (nobody, after("PT1H"), "ResourceUnknownFault"),
        (nobody, DESTROY, "ResourceUnknownFault"),
        (subscription, after("PT0S"), "TerminationTimeChangeRejectedFault"),
        (subscription, end_at(past), "TerminationTimeChangeRejectedFault"),
        (subscription, after("soon"), "UnableToSetTerminationTimeFault"),
        (
            subscription,
            end_at("<l:RequestedTerminationTime>PT1H</l:RequestedTerminationTime>"),
            "UnableToSetTerminationTimeFault",
        ),
    ]
    for url, body, fault in requests:
        reply = await call(url, body, version)
        assert (reply.status, reply.fault) == ({"1.1": 500, "1.2": 400}[version], fault), body
        oasis.validate(reply.detail)
        contract.assertValid(etree.fromstring(etree.tostring(reply.detail)))


async def test_a_query_too_costly_for_the_properties_is_a_fault(node: NodeProcess) -> None:
    for start in range(0, 2400, 800):
        topics = [f"T:n{number}" for number in range(start, start + 800)]
        messages = "".join(notify(topic, "<n/>")[len("<w:Notify>") : -len("</w:Notify>")] for topic in topics)
        assert (await call(node.url, f"<w:Notify>{messages}</w:Notify>")).status == 202
    assert (await call(node.url, query("count(//*)"))).status == 200
    reply = await call(node.url, query("count(//*[..//*])"))
    assert reply.fault == "QueryEvaluationErrorFault"


async def test_the_broker_tells_its_topics_dialects_and_rules(node: NodeProcess) -> None:
    await call(node.url, notify("A:B", "<n/>"))
    reply = await call(node.url, get_all(*BROKER))
    assert names(reply) == [
        "TopicExpression",
        "FixedTopicSet",
        *["TopicExpressionDialect"] * 4,
        "TopicSet",
        "RequiresRegistration",
    ]
    assert reply.text("w:FixedTopicSet") == "false"
    assert reply.text(f"{{{BR}}}RequiresRegistration") == "false"
    dialects = {
        element.text for element in reply.content.findall(f"{{{raw_soap.WSNT}}}TopicExpressionDialect")
    }
    assert dialects == {raw_soap.SIMPLE, raw_soap.CONCRETE, raw_soap.FULL, raw_soap.CONCRETE_SET}
    (topic,) = reply.content.findall(f"{{{WSTOP}}}TopicSet/{{urn:hpwsn:topics}}A/B")
    assert topic.get(f"{{{WSTOP}}}topic") == "true"


async def test_a_fixed_tree_is_told_as_it_is_declared(tmp_path: Path) -> None:
    tree = tmp_path / "topics.toml"
    tree.write_text("[topics.A.B]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(tree)) as node:
        reply = await call(node.url, query("//w:FixedTopicSet | //*[@t:topic='true']"))
        assert names(reply) == ["FixedTopicSet", "A", "B"]
        assert reply.text("w:FixedTopicSet") == "true"


async def test_the_topic_expressions_of_the_broker_can_be_subscribed_to(node: NodeProcess) -> None:
    await call(node.url, notify("A:B", "<n/>"))
    (expression,) = (await call(node.url, get("w:TopicExpression"))).content
    written = etree.tostring(expression, with_tail=False).decode()
    point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    assert (await call(node.url, subscribe(point, filters=written))).status == 200
    await call(node.url, notify("A:B:C", "<n/>"))
    assert len((await call(point, "<w:GetMessages/>")).content) == 1


async def test_a_subscription_tells_what_was_asked_of_it(shared_node: NodeProcess) -> None:
    before = datetime.now(UTC)
    subscription = await subscribed(shared_node, "told", POLICY)
    reply = await call(subscription, get_all(*SUBSCRIPTION, *TIMES))
    assert names(reply) == [name.split(":")[1] for name in SUBSCRIPTION + TIMES]
    assert "/wsn/pullpoints/" in reply.text("w:ConsumerReference/a:Address")
    assert reply.text("w:Filter/w:TopicExpression") == "told"
    assert reply.content.find("w:SubscriptionPolicy/w:UseRaw", raw_soap.NAMES) is not None
    created = datetime.fromisoformat(reply.text("w:CreationTime"))
    assert (
        before - timedelta(seconds=1) <= created <= datetime.fromisoformat(reply.text(f"{{{RL}}}CurrentTime"))
    )
    assert reply.content[-1].get(f"{{{XSI}}}nil") == "true"


async def test_a_property_without_a_value_is_an_empty_answer(shared_node: NodeProcess) -> None:
    subscription = await subscribed(shared_node, "empty")
    reply = await call(subscription, get("w:SubscriptionPolicy"))
    assert (reply.status, len(reply.content)) == (200, 0)


async def test_an_xpath_without_a_dialect_is_taken_for_one(shared_node: NodeProcess) -> None:
    reply = await call(await subscribed(shared_node, "query"), query("string(w:Filter)", dialect=""))
    assert reply.text("{urn:hpwsn:1}result") == "query"


async def test_set_termination_time_shows_in_the_properties(shared_node: NodeProcess) -> None:
    subscription = await subscribed(shared_node, "timed")
    reply = await call(subscription, after("PT1H"))
    end = reply.text(f"{{{RL}}}NewTerminationTime")
    now = datetime.fromisoformat(reply.text(f"{{{RL}}}CurrentTime"))
    assert abs(datetime.fromisoformat(end) - now - timedelta(hours=1)) < timedelta(seconds=5)
    assert (await call(subscription, get("l:TerminationTime"))).text(f"{{{RL}}}TerminationTime") == end


async def test_set_termination_time_revives_a_subscription_that_has_just_expired(
    shared_node: NodeProcess,
) -> None:
    subscription = await subscribed(shared_node, "revived")

    async def unknown() -> bool:
        return (await call(subscription, get("w:Filter"))).status == 500

    assert (await call(subscription, after("PT0.1S"))).status == 200
    await eventually(unknown)
    assert (await call(subscription, after("PT1H"))).status == 200
    assert not await unknown()


async def test_destroy_ends_a_subscription_for_good(shared_node: NodeProcess) -> None:
    subscription = await subscribed(shared_node, "ended")
    assert names(await call(subscription, DESTROY)) == []
    for request in (DESTROY, get("w:Filter"), "<w:Unsubscribe/>", after("PT1H")):
        assert (await call(subscription, request)).fault == "ResourceUnknownFault"


async def test_an_addressed_request_is_answered_with_the_action_of_its_own_standard(
    shared_node: NodeProcess,
) -> None:
    subscription = await subscribed(shared_node, "addressed")
    for body, action in (
        (get("w:Filter"), "rpw-2/GetResourceProperty/GetResourcePropertyResponse"),
        (query("."), "rpw-2/QueryResourceProperties/QueryResourcePropertiesResponse"),
        (after("PT1H"), "rlw-2/ScheduledResourceTermination/SetTerminationTimeResponse"),
        (DESTROY, "rlw-2/ImmediateResourceTermination/DestroyResponse"),
    ):
        reply = await call(subscription, body, headers="<a:MessageID>urn:1</a:MessageID>")
        found = reply.envelope.findtext("{*}Header/a:Action", namespaces=raw_soap.NAMES)
        assert found == f"http://docs.oasis-open.org/wsrf/{action}"


@pytest.mark.parametrize("body", [DESTROY, after("PT1H"), f"<p:SetResourceProperties {SCOPE}/>", "<x/>"])
async def test_what_the_broker_does_not_do_is_no_action_of_it(shared_node: NodeProcess, body: str) -> None:
    reply = await call(shared_node.url, body)
    assert (reply.status, reply.content.findtext("faultcode")) == (500, "wsa:ActionNotSupported")


async def test_a_topic_namespace_can_be_fetched(node: NodeProcess, oasis: Any) -> None:
    await call(node.url, notify("A:B", "<n/>"))
    for tail in ("", "?uri=urn%3Ahpwsn%3Atopics"):
        reply = await send(f"{node.base}/topics/namespace{tail}", b"", method="GET")
        assert reply.status == 200
        oasis.validate(reply.body)
        assert [e.get("name") for e in reply.envelope.iter("{*}Topic")] == ["A", "B"]
    missing = await send(f"{node.base}/topics/namespace?uri=urn:none", b"", method="GET")
    assert missing.status == 404
