"""The ONVIF door over real sockets, by hand-written SOAP: pulls, waits, lifetimes, filters, limits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from lxml import etree

from hpwsn.broker.delivery.backlog import PRESENT
from hpwsn_client.wsn.soap.wsse import UsernameToken, digest_token, encode_security
from tests import raw_soap
from tests.consumer import Consumer
from tests.contract_schema import ONVIF_FILE, WSDL_FILE, contract_schema
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import CONCRETE_SET, Reply, notify, subscribe

TEV = "http://www.onvif.org/ver10/events/wsdl"
TDS = "http://www.onvif.org/ver10/device/wsdl"
TT = "http://www.onvif.org/ver10/schema"
TER = "http://www.onvif.org/ver10/error"
TNS1 = "http://www.onvif.org/ver10/topics"
ITEM_FILTER = "http://www.onvif.org/ver10/tev/messageContentFilter/ItemFilter"
NAMES = {**raw_soap.NAMES, "t": TEV, "d": TDS, "tt": TT}
SYNCHRONIZE = "<t:SetSynchronizationPoint/>"
MOTION = "tns1:RuleEngine/CellMotionDetector/Motion"


def scoped(body: str) -> str:
    """A request with the prefixes that the tests use."""
    return (
        body.replace(">", f' xmlns:t="{TEV}" xmlns:d="{TDS}" xmlns:tns1="{TNS1}">', 1)
        if ">" in body
        else body
    )


async def ask(url: str, body: str, headers: str = "", version: str = "1.2") -> Reply:
    if body.endswith("/>") and body.count("<") == 1:
        body = f"{body[:-2]}></{body[1:-2]}>"
    return await raw_soap.call(url, scoped(body), version, headers)


def text(reply: Reply, path: str) -> str:
    return (reply.content.findtext(path, namespaces=NAMES) or "").strip()


def creation(topic: str | None = None, lifetime: str = "PT60S", filters: str = "", more: str = "") -> str:
    on = "" if topic is None else f'<w:TopicExpression Dialect="{CONCRETE_SET}">{topic}</w:TopicExpression>'
    wanted = f"<t:Filter>{on}{filters}</t:Filter>" if on or filters else ""
    end = f"<t:InitialTerminationTime>{lifetime}</t:InitialTerminationTime>" if lifetime else ""
    return f"<t:CreatePullPointSubscription>{wanted}{end}{more}</t:CreatePullPointSubscription>"


async def created(node: NodeProcess, topic: str | None = None, lifetime: str = "PT60S", **more: str) -> str:
    """The address of a new subscription."""
    reply = await ask(f"{node.base}/onvif/events", creation(topic, lifetime, **more))
    assert reply.status == 200, reply.body
    return text(reply, "t:SubscriptionReference/a:Address")


def pulling(wait: str = "PT0S", limit: int = 10) -> str:
    asked = f"<t:Timeout>{wait}</t:Timeout><t:MessageLimit>{limit}</t:MessageLimit>"
    return f"<t:PullMessages>{asked}</t:PullMessages>"


async def pull(address: str, wait: str = "PT0S", limit: int = 10) -> list[str]:
    reply = await ask(address, pulling(wait, limit))
    assert reply.status == 200, reply.body
    return payloads(reply)


def payloads(reply: Reply) -> list[str]:
    return ["".join(m[0].itertext()) for m in reply.content.iterfind(".//w:Message", NAMES)]


def life(reply: Reply, prefix: str = "t") -> float:
    now, end = (text(reply, f"{prefix}:{name}") for name in ("CurrentTime", "TerminationTime"))
    return (datetime.fromisoformat(end) - datetime.fromisoformat(now)).total_seconds()


async def publish(node: NodeProcess, topic: str, *contents: str) -> None:
    body = notify(
        topic, *contents, dialect=None if ":" not in topic or "/" not in topic else raw_soap.CONCRETE
    )
    assert (await ask(node.url, body)).status == 202


async def pull_points(node: NodeProcess) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{node.base}/status") as response:
        status = await response.json()
    return int(status["pull_points"])


@pytest.fixture(scope="module")
def strict_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with narrow limits."""
    limits = ("max_timeout=2", "max_messages=10", "lifetime=120")
    settings = [part for limit in limits for part in ("--set", f"onvif.{limit}")]
    with NodeProcess(tmp_path_factory.mktemp("strict") / "data", *settings) as running:
        yield running


async def test_what_is_published_waits_in_order_to_be_pulled(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "order//.")
    await publish(shared_node, "order:a", *(f"<n>{n}</n>" for n in range(5)))
    assert await pull(address, limit=2) == ["0", "1"]
    assert await pull(address) == ["2", "3", "4"]
    assert await pull(address) == []


async def test_a_subscription_says_where_it_is_and_until_when(shared_node: NodeProcess) -> None:
    reply = await ask(f"{shared_node.base}/onvif/events", creation("A"))
    assert text(reply, "t:SubscriptionReference/a:Address").startswith(
        f"{shared_node.base}/onvif/subscriptions/"
    )
    assert life(reply, "w") == pytest.approx(60, abs=5)


async def test_a_pull_waits_for_the_first_message_and_answers_with_it(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "wait")
    waiting = asyncio.create_task(pull(address, "PT60S"))
    while not waiting.done():
        await publish(shared_node, "wait", "<n>news</n>")
        await asyncio.wait([waiting], timeout=0.2)
    assert set(await waiting) == {"news"}


async def test_a_pull_that_nothing_comes_for_is_answered_without_messages(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "silence")
    assert await pull(address, "PT0.2S") == []


async def test_each_pull_sets_the_lifetime_anew_to_the_span_first_asked_for(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "span", "PT30S")
    ends = []
    for _ in range(3):
        reply = await ask(address, pulling("PT0.2S"))
        assert life(reply) == pytest.approx(30, abs=5)
        ends.append(datetime.fromisoformat(text(reply, "t:TerminationTime")))
    assert ends[0] < ends[1] < ends[2]


async def test_the_span_is_known_where_an_end_was_asked_for_by_its_time(shared_node: NodeProcess) -> None:
    end = datetime.now(UTC) + timedelta(seconds=30)
    address = await created(shared_node, "timed", end.isoformat())
    assert await pull(address, "PT1S") == []
    assert life(await ask(address, pulling())) == pytest.approx(30, abs=5)
    renewed = await ask(address, pulling())
    assert datetime.fromisoformat(text(renewed, "t:TerminationTime")) > end


async def test_a_wait_longer_than_the_lifetime_keeps_the_subscription_alive(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "long", "PT4S")
    assert await pull(address, "PT6S") == []


async def test_a_pull_does_not_shorten_what_a_renew_has_granted(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "renewed", "PT10S")
    renewed = await ask(address, "<w:Renew><w:TerminationTime>PT1H</w:TerminationTime></w:Renew>")
    assert life(renewed, "w") == pytest.approx(3600, abs=5)
    assert life(await ask(address, pulling())) == pytest.approx(3600, abs=60)


async def test_a_subscription_that_asks_for_no_lifetime_gets_that_of_the_node(
    strict_node: NodeProcess,
) -> None:
    address = await created(strict_node, "unasked", "")
    assert life(await ask(address, pulling())) == pytest.approx(120, abs=10)


async def test_a_lifetime_that_nobody_asked_for_keeps_to_what_the_node_grants(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.max_lifetime=10") as node:
        for _ in range(5):
            address = await created(node, "short", "")
        assert 0 < life(await ask(address, pulling())) <= 10
        refused = await ask(f"{node.base}/onvif/events", creation("short", "PT11S"))
        assert refused.fault == "UnacceptableInitialTerminationTimeFault"


async def test_a_full_journal_lets_those_in_who_empty_it(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "journal.max_bytes=1MiB") as node:
        address = await created(node, "full")
        large = notify("full", f"<n>{'x' * 100_000}</n>")

        async def is_full() -> bool:
            return (await ask(node.url, large)).status == 503

        await eventually(is_full)
        assert len(await pull(address, "PT1S")) > 0


async def test_an_end_takes_the_pull_point_along(node: NodeProcess) -> None:
    address = await created(node, "ends")
    assert await pull_points(node) == 1
    assert (await ask(address, "<w:Unsubscribe/>")).status == 200
    await eventually(lambda: _are(node, 0))
    assert (await ask(address, pulling())).fault == "ResourceUnknownFault"
    assert (await ask(address, "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
    assert (await ask(address, SYNCHRONIZE)).fault == "ResourceUnknownFault"


async def _are(node: NodeProcess, count: int) -> bool:
    return await pull_points(node) == count


async def test_an_expired_subscription_takes_its_pull_point_along(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "subscriptions.grace=0") as node:
        address = await created(node, "expires", "PT1S")
        await eventually(lambda: _are(node, 0))
        assert (await ask(address, pulling())).fault == "ResourceUnknownFault"


async def test_a_waiting_pull_is_told_when_its_subscription_ends(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "told")
    waiting = asyncio.create_task(ask(address, pulling("PT60S")))
    assert (await ask(address, SYNCHRONIZE)).status == 200
    await ask(address, "<w:Unsubscribe/>")
    assert (await waiting).fault == "ResourceUnknownFault"


async def test_a_refused_subscription_leaves_no_pull_point(node: NodeProcess) -> None:
    refused = (
        creation("A", "PT0S"),
        creation("A/*"),
        creation(filters="<w:MessageContent>(</w:MessageContent>"),
    )
    found = [(await ask(f"{node.base}/onvif/events", body)).fault for body in refused]
    assert found == [
        "UnacceptableInitialTerminationTimeFault",
        "InvalidTopicExpressionFault",
        "InvalidMessageContentExpressionFault",
    ]
    assert await pull_points(node) == 0


async def test_the_same_address_works_after_the_process_was_killed(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    address = await created(node, "kept//.")
    await publish(node, "kept:a", "<n>1</n>", "<n>2</n>")
    assert await pull(address, limit=1) == ["1"]
    assert await pull(address, limit=1) == ["2"]
    await publish(node, "kept:a", "<n>3</n>")
    node.kill()
    with node:
        await publish(node, "kept:b", "<n>4</n>")
        # The last batch was not followed by another call, so that nobody knows whether it arrived.
        assert (await pull(address))[-2:] == ["3", "4"]
        assert life(await ask(address, pulling())) == pytest.approx(60, abs=5)
        assert (await ask(address, "<w:Unsubscribe/>")).status == 200


async def test_a_pull_point_that_a_crash_left_alone_is_removed_at_the_next_start(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    address = await created(node, "left")
    plain = (await ask(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    node.kill()
    id_ = address.rpartition("/")[2]
    _forget_subscription(tmp_path / "data", id_)
    with node:
        assert await pull_points(node) == 1
        assert (await ask(plain, "<w:GetMessages/>")).status == 200


def _forget_subscription(data: Path, id_: str) -> None:
    db = sqlite3.connect(data / "journal.db")
    with db:
        assert db.execute("DELETE FROM subscriptions WHERE id = ?", (id_,)).rowcount == 1
    db.close()


async def test_a_stopping_node_answers_those_who_wait(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    address = await created(node, "stop")
    waiting = asyncio.create_task(ask(address, pulling("PT60S")))
    assert (await ask(address, SYNCHRONIZE)).status == 200
    await asyncio.to_thread(node.terminate)
    reply = await waiting
    assert (reply.status, payloads(reply)) == (200, [])


async def test_what_a_client_lost_with_its_connection_is_pulled_again_even_by_one_that_waits(
    shared_node: NodeProcess,
) -> None:
    address = await created(shared_node, "lost")
    gone = asyncio.create_task(ask(address, pulling("PT60S")))
    assert (await ask(address, SYNCHRONIZE)).status == 200
    gone.cancel()
    waiting = asyncio.create_task(pull(address, "PT30S"))
    await publish(shared_node, "lost", "<n>kept</n>")
    assert await waiting == ["kept"]


@pytest.mark.parametrize(
    ("wait", "limit", "status"),
    [("PT2S", 10, 200), ("PT2.001S", 10, 400), ("PT2S", 11, 400), ("P1M", 1, 400)],
)
async def test_a_pull_for_too_much_is_told_how_much_there_can_be(
    strict_node: NodeProcess, wait: str, limit: int, status: int
) -> None:
    address = await created(strict_node, "limits")
    await publish(strict_node, "limits", "<n/>")
    reply = await ask(address, pulling(wait, limit))
    assert reply.status == status
    if status != 200:
        assert reply.detail.tag == f"{{{TEV}}}PullMessagesFaultResponse"
        assert reply.detail.findtext("t:MaxTimeout", namespaces=NAMES) == "PT2S"
        assert reply.detail.findtext("t:MaxMessageLimit", namespaces=NAMES) == "10"


@pytest.fixture(scope="module")
def narrow_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node where one pull may wait."""
    with NodeProcess(tmp_path_factory.mktemp("narrow") / "data", "--set", "onvif.waiting_limit=1") as running:
        yield running


async def test_more_waiting_pulls_than_allowed_are_asked_to_come_back(narrow_node: NodeProcess) -> None:
    address = await created(narrow_node, "busy")
    asked = [asyncio.create_task(ask(address, pulling("PT10M"))) for _ in range(2)]
    (refused,), (waiting,) = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert refused.result().status == 503
    assert refused.result().headers["Retry-After"]
    assert await pull(address, "PT0S") == []
    await publish(narrow_node, "busy", "<n>1</n>")
    assert payloads(await waiting) == ["1"]


async def test_a_client_that_leaves_while_it_waits_makes_room_for_another(narrow_node: NodeProcess) -> None:
    address = await created(narrow_node, "left")

    async def stay() -> None:
        while (await ask(address, pulling("PT10M"))).status == 503:
            pass

    waiting = asyncio.create_task(stay())
    await eventually(lambda: _is(address, 503))
    waiting.cancel()
    await eventually(lambda: _is(address, 200))


async def _is(address: str, status: int) -> bool:
    return (await ask(address, pulling("PT0.01S"))).status == status


async def test_seek_is_refused_as_an_optional_action(shared_node: NodeProcess) -> None:
    address = await created(shared_node)
    reply = await ask(address, "<t:Seek><t:UtcTime>2030-01-01T00:00:00Z</t:UtcTime></t:Seek>")
    assert reply.status == 500
    assert _subcode(reply) == f"{{{TER}}}ActionNotSupported"


async def test_an_operation_that_is_not_here_is_refused_by_name(shared_node: NodeProcess) -> None:
    reply = await ask(f"{shared_node.base}/onvif/events", "<t:GetEventBrokers/>")
    assert reply.status == 400
    assert _subcode(reply) == f"{{{raw_soap.WSA}}}ActionNotSupported"


def _subcode(reply: Reply) -> str:
    value = reply.content.find(".//{*}Subcode/{*}Value")
    assert value is not None
    prefix, _, local = (value.text or "").strip().rpartition(":")
    return f"{{{value.nsmap[prefix]}}}{local}"


async def test_a_pull_from_a_subscription_that_is_pushed_is_refused(shared_node: NodeProcess) -> None:
    reply = await ask(f"{shared_node.base}/onvif/events", subscribe("http://127.0.0.1:9/", "pushed"))
    address = text(reply, "w:SubscriptionReference/a:Address")
    refused = await ask(address, pulling())
    assert refused.status == 400
    assert b"CreatePullPointSubscription" in refused.body
    assert (await ask(address, "<w:Unsubscribe/>")).status == 200


async def test_topics_are_chosen_by_a_union_of_paths_and_subtrees(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "tns1:RuleEngine/CellMotionDetector//.|tns1:Device/Trigger")
    for topic, content in [
        (MOTION, "motion"),
        ("tns1:RuleEngine/Other", "other rule"),
        ("tns1:Device/Trigger", "trigger"),
        ("tns1:Device/Trigger/Relay", "below"),
    ]:
        await publish(shared_node, topic, f"<n>{content}</n>")
    assert await pull(address) == ["motion", "trigger"]


async def test_content_is_chosen_by_an_item_filter(shared_node: NodeProcess) -> None:
    item = '<tt:SimpleItem Name="IsMotion" Value="{0}"/>{0}'
    wanted = 'boolean(//tt:SimpleItem[@Name="IsMotion" and @Value="true"])'
    content = f'<w:MessageContent Dialect="{ITEM_FILTER}">{wanted}</w:MessageContent>'
    address = await created(shared_node, "items", filters=content)
    for value in ("true", "false"):
        await publish(shared_node, "items", f'<tt:Message xmlns:tt="{TT}">{item.format(value)}</tt:Message>')
    assert await pull(address) == ["true"]


async def test_a_synchronization_point_queues_the_present_state_once_more(shared_node: NodeProcess) -> None:
    await publish(shared_node, "state:a", "<n>old</n>", "<n>a</n>")
    await publish(shared_node, "state:b", "<n>b</n>")
    await publish(shared_node, "elsewhere", "<n>no</n>")
    address = await created(shared_node, "state//.")
    assert await pull(address) == []
    for _ in range(2):
        assert (await ask(address, SYNCHRONIZE)).status == 200
        assert await pull(address, "PT5S") == ["a", "b"]
    await publish(shared_node, "state:a", "<n>new</n>")
    assert (await ask(address, SYNCHRONIZE)).status == 200
    assert sorted(await pull(address) + await pull(address)) == ["b", "new"]


async def test_a_synchronization_point_is_for_as_many_topics_as_the_document_says(node: NodeProcess) -> None:
    for first, last in ((0, 10_000), (10_000, PRESENT + 1)):
        messages = "".join(notify(f"many:n{n}", f"<n>{n}</n>")[10:-11] for n in range(first, last))
        assert (await ask(node.url, f"<w:Notify>{messages}</w:Notify>")).status == 202
    address = await created(node, "many//.")
    assert (await ask(address, SYNCHRONIZE)).status == 200
    found: list[str] = []
    while batch := await pull(address, limit=1000):
        found += batch
    assert found == [str(n) for n in range(1, PRESENT + 1)]


async def test_a_synchronization_point_keeps_to_the_content_filter(shared_node: NodeProcess) -> None:
    await publish(shared_node, "sieve:a", "<n>1</n>")
    await publish(shared_node, "sieve:b", "<n>2</n>")
    address = await created(shared_node, "sieve//.", filters="<w:MessageContent>. > 1</w:MessageContent>")
    assert (await ask(address, SYNCHRONIZE)).status == 200
    assert await pull(address, "PT5S") == ["2"]


async def test_a_synchronization_point_pushes_the_present_state_once_more(shared_node: NodeProcess) -> None:
    await publish(shared_node, "door:a", "<n>a</n>")
    async with Consumer() as consumer:
        reply = await ask(f"{shared_node.base}/onvif/events", subscribe(consumer.url, "door"))
        address = text(reply, "w:SubscriptionReference/a:Address")
        assert (await ask(address, SYNCHRONIZE)).status == 200
        await consumer.wait(lambda c: c.payloads() == ["a"])
        await publish(shared_node, "door:b", "<n>b</n>")
        await consumer.wait(lambda c: c.payloads() == ["a", "b"])
        assert (await ask(address, SYNCHRONIZE)).status == 200
        await consumer.wait(lambda c: c.payloads() == ["a", "b", "a", "b"])
        assert (await ask(address, "<w:Unsubscribe/>")).status == 200


async def test_a_consumer_that_refuses_the_present_state_still_gets_what_is_new(node: NodeProcess) -> None:
    await publish(node, "A", "<n>old</n>")
    async with Consumer(lambda number: 500 if number == 1 else 202) as consumer:
        reply = await ask(f"{node.base}/onvif/events", subscribe(consumer.url, "A"))
        assert (await ask(text(reply, "w:SubscriptionReference/a:Address"), SYNCHRONIZE)).status == 200
        await consumer.wait(lambda c: len(c.requests) == 1)
        await publish(node, "A", "<n>new</n>")
        await consumer.wait(lambda c: c.payloads() == ["old", "new"])


async def test_a_request_at_the_door_itself_finds_its_subscription_by_where_it_is_sent_to(
    shared_node: NodeProcess,
) -> None:
    address = await created(shared_node, "to")
    await publish(shared_node, "to", "<n>1</n>")
    door, to = f"{shared_node.base}/onvif/events", f"<a:To>{address}</a:To>"
    assert payloads(await ask(door, pulling(), to)) == ["1"]
    assert (await ask(door, pulling())).fault == "ResourceUnknownFault"
    assert (await ask(door, "<w:Unsubscribe/>", to)).status == 200
    assert (await ask(address, pulling())).fault == "ResourceUnknownFault"


async def test_answers_are_related_to_their_requests_with_the_actions_of_onvif(
    shared_node: NodeProcess,
) -> None:
    headers = "<a:MessageID>urn:uuid:1</a:MessageID><a:Action>urn:any</a:Action>"
    reply = await ask(f"{shared_node.base}/onvif/events", creation("related"), headers)
    action = reply.envelope.findtext(".//a:Action", namespaces=NAMES)
    assert action == f"{TEV}/EventPortType/CreatePullPointSubscriptionResponse"
    assert reply.envelope.findtext(".//a:RelatesTo", namespaces=NAMES) == "urn:uuid:1"
    pulled = await ask(text(reply, "t:SubscriptionReference/a:Address"), pulling(), headers)
    action = pulled.envelope.findtext(".//a:Action", namespaces=NAMES)
    assert action == f"{TEV}/PullPointSubscription/PullMessagesResponse"


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_every_answer_is_as_the_contract_has_it(
    shared_node: NodeProcess, tmp_path: Path, version: str
) -> None:
    schema = contract_schema(tmp_path, WSDL_FILE, ONVIF_FILE)
    door = f"{shared_node.base}/onvif/events"
    address = await created(shared_node, f"valid{version[-1]}")
    await publish(shared_node, f"valid{version[-1]}", '<n xmlns="urn:n">1</n>')
    requests = [
        (door, creation("valid")),
        (door, "<t:GetEventProperties/>"),
        (door, "<t:GetServiceCapabilities/>"),
        (address, pulling()),
        (address, SYNCHRONIZE),
        (address, "<w:Renew><w:TerminationTime>PT60S</w:TerminationTime></w:Renew>"),
        (address, "<w:Unsubscribe/>"),
    ]
    for url, body in requests:
        reply = await ask(url, body, version=version)
        assert reply.status == 200, reply.body
        schema.assertValid(etree.fromstring(etree.tostring(reply.content)))


async def test_the_properties_tell_the_topics_and_the_dialects(shared_node: NodeProcess) -> None:
    await publish(shared_node, MOTION, "<n/>")
    reply = await ask(f"{shared_node.base}/onvif/events", "<t:GetEventProperties/>")
    topics = reply.content.find(f".//{{{TNS1}}}RuleEngine/CellMotionDetector/Motion")
    assert topics is not None
    dialects = [e.text for e in reply.content.iterfind("w:TopicExpressionDialect", NAMES)]
    assert dialects[:2] == [CONCRETE_SET, raw_soap.FULL]
    assert text(reply, "t:MessageContentFilterDialect") == ITEM_FILTER


async def test_a_camera_may_publish_at_the_door(shared_node: NodeProcess) -> None:
    address = await created(shared_node, "camera")
    assert (await ask(f"{shared_node.base}/onvif/events", notify("camera", "<n>1</n>"))).status == 202
    assert await pull(address) == ["1"]


async def test_the_door_is_no_consumer_of_its_own_messages(shared_node: NodeProcess) -> None:
    door = f"{shared_node.base}/onvif/events"
    assert (await ask(door, subscribe(door, "A"))).fault == "SubscribeCreationFailedFault"


async def test_the_device_service_leads_to_the_events(shared_node: NodeProcess) -> None:
    device = f"{shared_node.base}/onvif/device_service"
    services = await ask(
        device, "<d:GetServices><d:IncludeCapability>true</d:IncludeCapability></d:GetServices>"
    )
    found = {
        s.findtext("d:Namespace", namespaces=NAMES): s.findtext("d:XAddr", namespaces=NAMES)
        for s in services.content
    }
    assert found == {TDS: device, TEV: f"{shared_node.base}/onvif/events"}
    assert services.content.find(f".//{{{TEV}}}Capabilities") is not None
    events = await ask(device, "<d:GetCapabilities><d:Category>Events</d:Category></d:GetCapabilities>")
    assert events.content.findtext(".//tt:Events/tt:XAddr", namespaces=NAMES) == found[TEV]
    assert events.content.find(".//tt:Device", NAMES) is None
    media = await ask(device, "<d:GetCapabilities><d:Category>Media</d:Category></d:GetCapabilities>")
    assert _subcode(media) == f"{{{TER}}}ActionNotSupported"
    assert (await ask(device, "<d:GetDeviceInformation/>")).status == 200
    assert (await ask(device, "<d:SystemReboot/>")).status == 400


def _security(token: UsernameToken) -> str:
    return encode_security(token).decode().replace("<wsse:Security", '<wsse:Security s:mustUnderstand="1"', 1)


async def test_credentials_are_taken_as_they_come_where_nobody_checks_them(shared_node: NodeProcess) -> None:
    door = f"{shared_node.base}/onvif/events"
    for token in (UsernameToken("any", "body"), digest_token("any", "body", b"n", datetime(2000, 1, 1))):
        assert (await ask(door, "<t:GetEventProperties/>", _security(token))).status == 200
    assert (await ask(shared_node.url, "<w:CreatePullPoint/>", _security(token))).status == 500


async def test_credentials_are_checked_where_a_file_says_whose(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("admin:secret\n")
    with NodeProcess(tmp_path / "data", "--set", f"onvif.users_file={users}") as node:
        door, device = f"{node.base}/onvif/events", f"{node.base}/onvif/device_service"
        for body in ("<d:GetSystemDateAndTime/>", "<d:GetServices/>", "<d:GetCapabilities/>"):
            assert (await ask(device, body)).status == 200
        assert (await ask(device, "<d:GetDeviceInformation/>")).status == 400
        now = datetime.now().astimezone()
        proof, wrong = (digest_token("admin", word, b"nonce", now) for word in ("secret", "guess"))
        for headers in ("", _security(wrong)):
            refused = await ask(door, creation("A"), headers)
            assert (refused.status, _subcode(refused)) == (400, f"{{{TER}}}NotAuthorized")
        assert (await ask(door, creation("A"), _security(proof))).status == 200
        assert (await ask(door, creation("A"), _security(proof))).status == 400


async def test_a_file_of_users_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", "--set", f"onvif.users_file={tmp_path}/none")
    with pytest.raises(AssertionError, match=r"onvif\.users_file = .* cannot be read"):
        node.start()


async def test_the_door_shows_its_contract(shared_node: NodeProcess) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{shared_node.base}/onvif/events?wsdl") as response:
            assert response.status == 200
            assert f"{shared_node.base}/onvif/events".encode() in await response.read()
        async with session.get(f"{shared_node.base}/onvif/events") as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")
