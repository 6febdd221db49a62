"""Publisher registrations over real sockets: made, read, ended, refused, and required where that is set."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from lxml import etree

from hpwsn.commands.main import main
from tests.consumer import Consumer
from tests.contract_schema import contract_schema
from tests.harness import NodeProcess
from tests.original_messages import NOTIFICATION
from tests.patience import eventually
from tests.producer import register
from tests.raw_soap import CONCRETE, FULL, TYPES, WSA, XPATH, Reply, call, notify, send, subscribe
from tests.scraped import scrape

BR, RL = "http://docs.oasis-open.org/wsn/br-2", "http://docs.oasis-open.org/wsrf/rl-2"
RP, XSI = "http://docs.oasis-open.org/wsrf/rp-2", "http://www.w3.org/2001/XMLSchema-instance"
NS = {"r": BR, "l": RL, "a": "http://www.w3.org/2005/08/addressing"}
SCOPE = f'xmlns:r="{BR}" xmlns:l="{RL}" xmlns:p="{RP}" xmlns:xsi="{XSI}"'
DESTROY_REGISTRATION = f"<r:DestroyRegistration {SCOPE}/>"
DESTROY = f"<l:Destroy {SCOPE}/>"
BOTH = pytest.mark.parametrize("version", ["1.1", "1.2"])
PUBLISHER = "http://127.0.0.1:1/publisher"


def reference(reply: Reply) -> str:
    assert reply.status == 200, reply.body
    found = [
        reply.content.findtext(f"r:{name}/a:Address", namespaces=NS)
        for name in ("PublisherRegistrationReference", "ConsumerReference")
    ]
    assert found[0] == found[1]
    return str(found[0])


async def registered(node: NodeProcess, *given: Any, **more: Any) -> str:
    return reference(await call(node.url, register(*given, **more)))


def get(name: str) -> str:
    return f"<p:GetResourceProperty {SCOPE}>{name}</p:GetResourceProperty>"


def query(expression: str) -> str:
    return (
        f'<p:QueryResourceProperties {SCOPE}><p:QueryExpression Dialect="{XPATH}">{expression}'
        "</p:QueryExpression></p:QueryResourceProperties>"
    )


def end_at(inside: str) -> str:
    return f"<l:SetTerminationTime {SCOPE}>{inside}</l:SetTerminationTime>"


def ahead(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def figures(node: NodeProcess) -> dict[str, Any]:
    reply = await send(f"{node.base}/status", b"", method="GET")
    return dict(json.loads(reply.body))


# Registering, and what a registration tells of itself


@BOTH
async def test_every_answer_about_registrations_is_valid(
    shared_node: NodeProcess, oasis: Any, tmp_path: Path, version: str
) -> None:
    contract = contract_schema(tmp_path)

    async def ask(url: str, body: str) -> Reply:
        reply = await call(url, body, version)
        assert reply.status == 200, reply.body
        contract.assertValid(etree.fromstring(etree.tostring(reply.content)))
        if not list(reply.content.iter(f"{{{RL}}}*")):
            oasis.validate(reply.content)
        return reply

    asked = register(PUBLISHER, "A", "B:C", until=ahead(3600), dialect=CONCRETE)
    registration = reference(await ask(shared_node.url, asked))
    assert registration.startswith(f"{shared_node.url}/registrations/")
    names = ("r:PublisherReference", "r:Topic", "r:Demand", "r:CreationTime", "r:ConsumerReference")
    for name in (*names, "l:CurrentTime", "l:TerminationTime", "p:QueryExpressionDialect"):
        found = await ask(registration, get(name))
        assert {etree.QName(child).localname for child in found.content} == {name.split(":")[1]}
    several = "".join(f"<p:ResourceProperty>{name}</p:ResourceProperty>" for name in names)
    body = f"<p:GetMultipleResourceProperties {SCOPE}>{several}</p:GetMultipleResourceProperties>"
    assert len((await ask(registration, body)).content) == len(names) + 1
    whole = (await ask(registration, query("/"))).content[0]
    assert whole.tag == f"{{{BR}}}PublisherRegistrationRP"
    assert [topic.text for topic in whole.iterfind("r:Topic", NS)] == ["A", "B:C"]
    assert (await ask(registration, query("string(//r:Demand)"))).body.count(b"false") == 1
    await ask(registration, end_at("<l:RequestedLifetimeDuration>PT1H</l:RequestedLifetimeDuration>"))
    await ask(registration, end_at('<l:RequestedTerminationTime xsi:nil="true"/>'))
    await ask(registration, DESTROY_REGISTRATION)
    await ask(reference(await ask(shared_node.url, register())), DESTROY)


@BOTH
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (register(None, "A", demand=True), "PublisherRegistrationFailedFault"),
        (register("urn:not:http", "A", demand=True), "PublisherRegistrationFailedFault"),
        (register("http://u:p@h/", "A", demand=True), "PublisherRegistrationFailedFault"),
        (register(f"{WSA}/anonymous", "A", demand=True), "PublisherRegistrationFailedFault"),
        (register(f"{WSA}/none", "A", demand=True), "PublisherRegistrationFailedFault"),
        (register(None, *(["A"] * 1001)), "PublisherRegistrationRejectedFault"),
        (register(None, *(["A|B"] * 501), dialect=FULL), "PublisherRegistrationRejectedFault"),
        (register(None, "A//"), "InvalidTopicExpressionFault"),
        (register(None, "p:A/B"), "InvalidTopicExpressionFault"),
        (register(None, "A", dialect="urn:unknown"), "InvalidTopicExpressionFault"),
        (register(until="2001-01-01T00:00:00Z"), "UnacceptableInitialTerminationTimeFault"),
        (register(until="soon"), "UnacceptableInitialTerminationTimeFault"),
        (register(until="-PT1H"), "UnacceptableInitialTerminationTimeFault"),
        (register(until="PT0S"), "UnacceptableInitialTerminationTimeFault"),
    ],
)
async def test_what_cannot_be_registered_is_the_fault_of_the_standard(
    shared_node: NodeProcess, oasis: Any, version: str, body: str, fault: str
) -> None:
    reply = await call(shared_node.url, body, version)
    assert reply.fault == fault
    assert reply.status == (400 if version == "1.2" else 500)
    oasis.validate(reply.detail)
    assert reply.detail.findtext("{*}Timestamp")
    assert reply.detail.findtext("{*}Description")


async def test_a_broker_is_no_publisher_on_demand_of_itself(shared_node: NodeProcess) -> None:
    reply = await call(shared_node.url, register(shared_node.url, "A", demand=True))
    assert (reply.fault, b"this broker" in reply.body) == ("PublisherRegistrationFailedFault", True)


async def test_a_registrations_address_is_no_consumer_of_the_same_node(shared_node: NodeProcess) -> None:
    registration = await registered(shared_node)
    assert (await call(shared_node.url, subscribe(registration, "A"))).fault == "SubscribeCreationFailedFault"


@BOTH
@pytest.mark.parametrize(
    "body",
    [DESTROY_REGISTRATION, DESTROY, get("r:Topic"), query("/"), notify("A", "<n/>"), end_at("<l:Bad/>")],
    ids=["DestroyRegistration", "Destroy", "Get", "Query", "Notify", "SetTerminationTime"],
)
async def test_a_registration_that_is_not_there_is_unknown_whatever_is_asked(
    shared_node: NodeProcess, version: str, body: str
) -> None:
    reply = await call(f"{shared_node.url}/registrations/none", body, version)
    assert reply.fault == "ResourceUnknownFault"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (get("r:Unknown"), "InvalidResourcePropertyQNameFault"),
        (query("///"), "InvalidQueryExpressionFault"),
        (
            end_at("<l:RequestedTerminationTime>never</l:RequestedTerminationTime>"),
            "UnableToSetTerminationTimeFault",
        ),
        (
            end_at("<l:RequestedTerminationTime>2001-01-01T00:00:00Z</l:RequestedTerminationTime>"),
            "TerminationTimeChangeRejectedFault",
        ),
    ],
)
async def test_what_cannot_be_asked_of_a_registration_is_refused_and_it_lives_on(
    shared_node: NodeProcess, body: str, fault: str
) -> None:
    registration = await registered(shared_node)
    assert (await call(registration, body)).fault == fault
    assert (await call(registration, get("r:Demand"))).status == 200


async def test_an_operation_of_another_address_is_not_supported(shared_node: NodeProcess) -> None:
    registration = await registered(shared_node)
    for url, body in ((registration, register()), (shared_node.url, DESTROY_REGISTRATION)):
        reply = await call(url, body)
        assert (reply.status, b"is not an operation of this address" in reply.body) == (500, True)


async def test_a_fixed_tree_takes_publishers_of_its_topics_only(tmp_path: Path) -> None:
    topics = tmp_path / "topics.toml"
    topics.write_text("[topics.A]\n[topics.A.B]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(topics)) as node:
        for given, dialect in (("A:B", ""), ("A//.", FULL), ("*", FULL)):
            await registered(node, None, given, dialect=dialect)
        for given, dialect in (("A:X", ""), ("X//.", FULL)):
            reply = await call(node.url, register(None, "A", given, dialect=dialect))
            assert reply.fault == "TopicNotSupportedFault"


async def test_the_same_publisher_topics_and_demand_is_one_registration(shared_node: NodeProcess) -> None:
    first = await registered(shared_node, PUBLISHER, "S:A", "S:B", until=ahead(60))
    assert await registered(shared_node, PUBLISHER, "S:B", "S:A") == first
    assert len((await call(first, get("l:TerminationTime"))).content[0].attrib) == 1  # nil: for ever now
    others = [
        await registered(shared_node, PUBLISHER, "S:A"),
        await registered(shared_node, PUBLISHER, "S:A", "S:B", demand=True),
        await registered(shared_node, f"{PUBLISHER}2", "S:A", "S:B"),
        await registered(shared_node, None, "S:A", "S:B"),
        await registered(shared_node, None, "S:A", "S:B"),
    ]
    assert len({first, *others}) == 6


async def test_a_publisher_that_registers_while_its_registration_ends_is_registered(
    shared_node: NodeProcess,
) -> None:
    body = register("http://publisher.example.org/again", "A")
    for _ in range(10):
        old = reference(await call(shared_node.url, body))
        many = (
            call(old, DESTROY_REGISTRATION) if number == 5 else call(shared_node.url, body)
            for number in range(12)
        )
        assert {reply.status for reply in await asyncio.gather(*many)} == {200}
        assert reference(await call(shared_node.url, body)) != old


async def test_the_limit_of_registrations_is_kept_to_one(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "registrations.limit=2") as node:
        first = await registered(node, PUBLISHER, "A")
        await registered(node)
        refused = await call(node.url, register())
        assert (refused.fault, b"registrations.limit" in refused.body) == (
            "PublisherRegistrationRejectedFault",
            True,
        )
        assert await registered(node, PUBLISHER, "A") == first
        await call(first, DESTROY_REGISTRATION)
        await registered(node)


async def test_the_limit_of_topics_is_kept_to_one(shared_node: NodeProcess) -> None:
    await registered(shared_node, None, *(f"T{number}" for number in range(1000)))
    await registered(shared_node, None, *(["A|B"] * 500), dialect=FULL)


async def test_a_lifetime_longer_than_granted_is_refused_with_the_longest(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "registrations.max_lifetime=1 h") as node:
        reply = await call(node.url, register(until=ahead(7200)))
        assert reply.fault == "UnacceptableInitialTerminationTimeFault"
        assert reply.detail.findtext("{*}MaximumTime")
        granted = await call(await registered(node), get("l:TerminationTime"))
        assert granted.content[0].text


async def test_registrations_survive_kill_9_and_end_on_time(node: NodeProcess) -> None:
    lasting = await registered(node, PUBLISHER, "A", "B")
    passing = await registered(node, until=ahead(4))
    gone = await registered(node)
    await call(gone, DESTROY_REGISTRATION)
    node.kill()
    node.start()
    properties = (await call(lasting, query("/"))).content[0]
    assert [topic.text for topic in properties.iterfind("r:Topic", NS)] == ["A", "B"]
    assert await registered(node, PUBLISHER, "A", "B") == lasting
    assert (await call(gone, get("r:Demand"))).fault == "ResourceUnknownFault"

    async def has_ended() -> bool:
        return (await figures(node))["registrations"]["live"] == 1

    await eventually(has_ended)
    assert (await call(passing, get("r:Demand"))).fault == "ResourceUnknownFault"


async def test_set_termination_time_moves_the_end(node: NodeProcess) -> None:
    registration = await registered(node)
    await call(registration, end_at("<l:RequestedLifetimeDuration>PT0.3S</l:RequestedLifetimeDuration>"))

    async def has_ended() -> bool:
        return (await call(registration, get("r:Demand"))).status != 200

    await eventually(has_ended)


@contextlib.contextmanager
def locked(node: NodeProcess) -> Iterator[None]:
    """The journal held by somebody else."""
    with contextlib.closing(sqlite3.connect(node.data / "journal.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


@BOTH
async def test_a_journal_that_takes_nothing_is_the_standards_fault_and_nothing_changes(
    node: NodeProcess, oasis: Any, version: str
) -> None:
    registration = await registered(node)
    with locked(node):
        for url, body, fault in (
            (node.url, register(), f"{{{BR}}}PublisherRegistrationFailedFault"),
            (registration, DESTROY_REGISTRATION, f"{{{BR}}}ResourceNotDestroyedFault"),
            (registration, DESTROY, f"{{{RL}}}ResourceNotDestroyedFault"),
        ):
            reply = await call(url, body, version)
            assert (reply.status, reply.detail.tag) == (503, fault)
            assert int(reply.headers["Retry-After"]) > 0
            oasis.validate(reply.detail)
    assert (await figures(node))["registrations"]["live"] == 1
    assert (await call(registration, DESTROY_REGISTRATION, version)).status == 200


# Publishing as a registered publisher


async def test_a_notify_to_the_registration_is_published_like_any_other(node: NodeProcess) -> None:
    registration = await registered(node, None, "A")
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A"))
        assert (await call(registration, notify("A", "<n>1</n>", "<n>2</n>"))).status == 202
        await consumer.wait(lambda c: c.payloads() == ["1", "2"])


async def test_anybody_may_publish_where_registration_is_not_required(shared_node: NodeProcess) -> None:
    found = await call(shared_node.url, get("r:RequiresRegistration"))
    assert found.content[0].text == "false"
    assert (await call(shared_node.url, notify("Free", "<n/>"))).status == 202


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node at which only registered publishers may publish."""
    data = tmp_path_factory.mktemp("strict") / "data"
    with NodeProcess(data, "--set", "registrations.required=true") as running:
        yield running


def produced(topic: str | None, producer: str) -> str:
    given = f"<w:ProducerReference><a:Address>{producer}</a:Address></w:ProducerReference><w:Message>"
    return notify(topic, "<n/>").replace("<w:Message>", given)


async def accepted(node: NodeProcess) -> int:
    return int((await figures(node))["published"]["accepted"])


@BOTH
async def test_required_registration_is_told_and_enforced_at_the_broker(
    strict: NodeProcess, oasis: Any, version: str
) -> None:
    found = await call(strict.url, get("r:RequiresRegistration"), version)
    assert found.content[0].text == "true"
    before = await accepted(strict)
    for body in (notify("A", "<n/>"), produced("A", "http://127.0.0.1:1/stranger")):
        refused = await call(strict.url, body, version)
        assert refused.fault == "PublisherRegistrationRejectedFault"
        assert refused.status == (400 if version == "1.2" else 500)
        oasis.validate(refused.detail)
    assert await accepted(strict) == before


async def test_a_registered_publisher_publishes_at_its_registration_or_by_its_reference(
    strict: NodeProcess,
) -> None:
    registration = await registered(strict, f"{PUBLISHER}/mine", "M:A", "M:B")
    before = await accepted(strict)
    assert (await call(registration, notify("M:A", "<n/>"))).status == 202
    assert (await call(registration, notify("M:B:below", "<n/>"))).status == 202
    assert (await call(strict.url, produced("M:A", f"{PUBLISHER}/mine"))).status == 202
    for url, body in (
        (registration, notify("M:C", "<n/>")),
        (registration, notify(None, "<n/>")),
        (strict.url, produced("M:C", f"{PUBLISHER}/mine")),
        (strict.url, notify("M:A", "<n/>")),
    ):
        assert (await call(url, body)).fault == "PublisherRegistrationRejectedFault"
    mixed = notify("M:A", "<n/>").removesuffix("</w:Notify>") + notify("M:C", "<n/>").removeprefix(
        "<w:Notify>"
    )
    assert (await call(registration, mixed)).fault == "PublisherRegistrationRejectedFault"
    assert await accepted(strict) == before + 3
    await call(registration, DESTROY_REGISTRATION)
    assert (await call(strict.url, produced("M:A", f"{PUBLISHER}/mine"))).status == 500


async def test_a_registration_without_topics_is_for_every_topic(strict: NodeProcess) -> None:
    registration = await registered(strict)
    for topic in ("Any:Thing", None):
        assert (await call(registration, notify(topic, "<n/>"))).status == 202


async def test_the_json_door_wants_a_registration_too(strict: NodeProcess) -> None:
    registration = await registered(strict, None, "J:A")
    before = await accepted(strict)

    async def post(topic: str, **headers: str) -> tuple[int, dict[str, Any]]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{strict.base}/topics/{topic}/events", json={"n": 1}, headers=headers) as response,
        ):
            return response.status, await response.json()

    for topic, named in (("J:A", ""), ("J:B", registration), ("J:A", "unknown")):
        status, answer = await post(topic, **{"Hpwsn-Registration": named})
        assert (status, list(answer)) == (403, ["error"])
    for named in (registration, registration.rpartition("/")[2]):
        assert (await post("J:A", **{"Hpwsn-Registration": named}))[0] == 202
    assert await accepted(strict) == before + 2


async def test_the_originals_door_wants_a_registration_too(strict: NodeProcess) -> None:
    before = await accepted(strict)
    await registered(strict, f"{PUBLISHER}/original", "O:A")
    own = f"<wsa:Address>{PUBLISHER}/original</wsa:Address></wsnt:ProducerReference>"
    own = f'<wsnt:ProducerReference xmlns:wsa="{NS["a"]}">{own}'

    async def process(body: str) -> Reply:
        return await send(f"{strict.base}/wsn/process", body.encode(), TYPES["1.1"])

    body = NOTIFICATION.format(topic="O:A", fragment="0-0-1-0", message="hello")
    assert (await process(body)).fault == "PublisherRegistrationRejectedFault"
    assert await accepted(strict) == before
    assert (await process(body.replace("</wsnt:Topic>", f"</wsnt:Topic>{own}"))).status == 202
    assert await accepted(strict) == before + 1


async def test_a_pull_point_takes_what_is_sent_straight_to_it(strict: NodeProcess) -> None:
    """It is a consumer of its own, and nothing is published by that."""
    point = (await call(strict.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    assert (await call(point, notify("A", "<n/>"))).status == 202


# Operators


async def test_operators_see_registrations_and_can_end_them(node: NodeProcess) -> None:
    registration = await registered(node, PUBLISHER, "A", demand=True, until=ahead(3600))
    id_ = registration.rpartition("/")[2]
    listed = json.loads((await send(f"{node.base}/registrations", b"", method="GET")).body)
    (one,) = listed["items"]
    assert (one["id"], one["publisher"], one["topics"], one["demand"]) == (id_, PUBLISHER, ["A"], True)
    assert one["upstream"][0]["state"] == "none"
    metrics = await asyncio.to_thread(scrape, node.base)
    assert metrics.value("hpwsn_registrations") == 1
    assert metrics.value("hpwsn_demand_topics") == 1
    assert json.loads((await send(f"{node.base}/registrations/{id_}", b"", method="GET")).body) == one
    assert (await send(f"{node.base}/registrations/{id_}", b"", method="DELETE")).status == 204
    for method in ("GET", "DELETE"):
        assert (await send(f"{node.base}/registrations/{id_}", b"", method=method)).status == 404


async def test_the_command_line_lists_shows_and_drops_registrations(
    node: NodeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = (await registered(node, PUBLISHER, "A:B")).rpartition("/")[2]

    async def run(*arguments: str) -> tuple[int, str]:
        status = await asyncio.to_thread(main, ["registrations", *arguments, "--url", node.url])
        return status, capsys.readouterr().out

    status, text = await run("list")
    assert (status, [word in text for word in (id_, PUBLISHER, "A:B")]) == (0, [True] * 3)
    assert json.loads((await run("show", id_, "--json"))[1])["id"] == id_
    assert await run("drop", id_) == (0, f"dropped {id_}\n")
    assert (await run("list"))[1] == "no registrations\n"
