"""Internal topics at every door of a real node: only a reader with the token of jobs gets what is on them.

After an internal notification each test publishes a public one, and waits for it where the internal one must
not be: deliveries keep their order, so nothing internal can come later.
"""

from __future__ import annotations

import asyncio
import io
import json
import stat
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import pyarrow as pa
import pytest

from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client import Client, DemandPublisher, Receiver, SyncClient
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.activemq import ActiveMQ, BackedNode
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess, hpwsn
from tests.original_messages import CREATE, SUBSCRIBE
from tests.patience import eventually, patience, until
from tests.raw_soap import CONCRETE_SET, FULL, NAMES, Reply, call, envelope, notify, send, subscribe
from tests.slapd import ADMIN, Slapd
from tests.stomp_application import StompApplication

TREE = """\
[topics.traffic]
[topics.traffic.anpr]
visibility = "internal"
[topics.traffic.anpr.lane1]
[topics.traffic.flow]
[topics.elsewhere]
"""
PUBLIC_TREE = TREE.replace('"internal"', '"public"')
PLATE = "B34C91"
ROWS, ARROW = "application/vnd.hpwsn.rows", "application/vnd.apache.arrow.stream"
TEV = "http://www.onvif.org/ver10/events/wsdl"
PROTOBUF = "application/x-protobuf"
FORMS = ["application/json", ROWS, ARROW, PROTOBUF]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    file = tmp_path / "topics.toml"
    file.write_text(TREE)
    return file


@pytest.fixture
def node(tmp_path: Path, tree: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path / "data", "--topics", str(tree)) as running:
        yield running


def token(node: NodeProcess) -> str:
    return (node.data / "job.token").read_text().strip()


def shows(node: NodeProcess) -> dict[str, str]:
    """The header of a job."""
    return {"Authorization": f"Bearer {token(node)}"}


async def post(node: NodeProcess, topic: str, *events: Any) -> None:
    reply = await send(
        f"{node.base}/topics/{topic}/events", json.dumps(list(events)).encode(), "application/json"
    )
    assert reply.status == 202, reply.body


async def publish_both(node: NodeProcess, mark: str = "mark") -> None:
    """A plate on the internal topics, then a mark on a public one."""
    await post(node, "traffic:anpr", {"vid": PLATE}, {"vid": PLATE})
    await post(node, "traffic:anpr:lane1", {"vid": PLATE})
    await post(node, "traffic:flow", {"mark": mark})


async def get(
    node: NodeProcess, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{node.base}{path}", headers=headers or {}) as response,
    ):
        return response.status, dict(response.headers), await response.read()


async def on_file(node: NodeProcess, tree: Path, text: str, internal: bool) -> None:
    """Write the topic file, and wait until the running node has read it."""
    tree.write_text(text)

    async def taken() -> bool:
        status, _, _ = await get(node, "/topics/traffic:anpr/events?max=1", "HEAD")
        return (status == 401) is internal

    await eventually(taken)


# The token


async def test_the_token_is_for_its_owner_only_and_outlives_a_restart(node: NodeProcess) -> None:
    first, file = token(node), node.data / "job.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    node.terminate()
    node.start()
    assert token(node) == first
    node.terminate()
    file.write_text("\n")
    node.start()
    assert token(node) != first
    assert len(token(node)) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "job.token has no valid token and is replaced" in node.log()
    await publish_both(node)
    for secret in (first, token(node)):
        assert secret not in node.log()
        kept = [each for each in node.data.rglob("*") if each.is_file() and each != file]
        assert not [each.name for each in kept if secret.encode() in each.read_bytes()]


# Readers


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("topic", ["traffic:anpr", "traffic:anpr:lane1"])
async def test_a_poll_of_an_internal_topic_needs_the_token(node: NodeProcess, topic: str, form: str) -> None:
    await publish_both(node)
    path = f"/topics/{topic}/events?column=vid" if form == ROWS else f"/topics/{topic}/events"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {token(node)}"}):
        for method in ("GET", "HEAD"):
            asked = path if method == "GET" else path.partition("?")[0]
            status, answered, body = await get(node, asked, method, {"Accept": form, **headers})
            assert status == 401
            assert answered["WWW-Authenticate"].startswith("Bearer")
            assert token(node).encode() not in body
            assert PLATE.encode() not in body
    status, _, body = await get(node, path, headers={"Accept": form, **shows(node)})
    assert status == 200
    assert PLATE.encode() in body


async def test_the_refusal_says_what_is_wrong(node: NodeProcess) -> None:
    _, _, body = await get(node, "/topics/traffic:anpr/events")
    error = json.loads(body)["error"]
    assert error == "topic traffic:anpr is internal: only jobs read it, with the token of DATA/job.token"


@pytest.mark.parametrize("form", FORMS)
async def test_a_reader_of_the_topic_above_gets_what_is_public(node: NodeProcess, form: str) -> None:
    await publish_both(node)
    columns = "column=vid&column=mark&" if form == ROWS else ""
    for path in ("/topics/traffic/events?", "/topics/elsewhere/events?also=traffic&"):
        for also in ("", f"filter=vid = '{PLATE}' or mark = 'mark'&after=0"):
            given = path + columns + also
            status, _, body = await get(node, given, headers={"Accept": form})
            assert status == 200, body
            assert PLATE.encode() not in body
            assert b"mark" in body
            _, _, body = await get(node, given, headers={"Accept": form, **shows(node)})
            assert body.count(PLATE.encode()) == 3
            assert b"mark" in body


async def test_arrow_has_the_same_events_as_json(node: NodeProcess) -> None:
    await publish_both(node)
    counts = []
    for headers in ({}, shows(node)):
        _, _, body = await get(node, "/topics/traffic/events", headers={"Accept": ARROW, **headers})
        counts.append(pa.ipc.open_stream(body).read_all().num_rows)
    assert counts == [1, 4]


async def test_an_internal_topic_among_others_is_refused(node: NodeProcess) -> None:
    for method in ("GET", "HEAD"):
        path = "/topics/elsewhere/events?also=traffic:flow&also=traffic:anpr"
        status, _, _ = await get(node, path, method)
        assert status == 401
        status, _, _ = await get(node, path, method, shows(node))
        assert status == 200


async def test_the_number_of_waiting_events_does_not_count_internal_ones(node: NodeProcess) -> None:
    await publish_both(node)
    path = "/topics/traffic/events?after=0"
    assert (await get(node, path, "HEAD"))[1]["Hpwsn-Waiting"] == "1"
    assert (await get(node, path, "HEAD", shows(node)))[1]["Hpwsn-Waiting"] == "4"


async def test_a_wrong_token_is_refused_also_where_everybody_reads(node: NodeProcess) -> None:
    status, _, _ = await get(node, "/topics/traffic:flow/events", headers={"Authorization": "Bearer wrong"})
    assert status == 401
    status, _, _ = await get(node, "/topics/traffic:flow/events", headers={"Authorization": "Basic eDp5"})
    assert status == 200


async def test_a_stream_and_a_socket_are_refused_or_leave_the_internal_part_out(node: NodeProcess) -> None:
    stream = {"Accept": "text/event-stream"}
    async with aiohttp.ClientSession() as session, patience():
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            status, _, _ = await get(node, "/topics/traffic:anpr/events", headers={**stream, **headers})
            assert status == 401
            with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
                await session.ws_connect(f"{node.base}/topics/traffic:anpr/events", headers=headers)
        above = f"{node.base}/topics/traffic/events"
        async with (
            session.get(above, headers=stream) as open_stream,
            session.get(above, headers={**stream, **shows(node)}) as job_stream,
            session.ws_connect(above) as socket,
            session.ws_connect(above, headers=shows(node)) as job_socket,
        ):
            for opened in (open_stream, job_stream):
                assert (await opened.content.readline()).startswith(b": after")
            await publish_both(node)
            for opened, plates in ((open_stream, 0), (job_stream, 3)):
                text = b""
                while b"mark" not in text:
                    text += await opened.content.readline()
                assert text.count(PLATE.encode()) == plates
            for opened, plates in ((socket, 0), (job_socket, 3)):
                text = ""
                while "mark" not in text:
                    text += await opened.receive_str()
                assert text.count(PLATE) == plates


async def test_a_poll_that_waits_is_not_woken_by_what_it_must_not_see(node: NodeProcess) -> None:
    path = "/topics/traffic/events?wait=300"
    waiting = asyncio.ensure_future(get(node, path))
    job = asyncio.ensure_future(get(node, path, headers=shows(node)))

    async def waits() -> bool:
        return (await get(node, "/readyz"))[0] == 200

    await eventually(waits)
    await post(node, "traffic:anpr", {"vid": PLATE})
    async with patience():
        assert PLATE.encode() in (await job)[2]
    await post(node, "traffic:flow", {"mark": "mark"})
    async with patience():
        _, _, body = await waiting
    assert PLATE.encode() not in body
    assert b"mark" in body


async def test_a_service_that_says_its_topic_is_internal_opens_no_other_way(node: NodeProcess) -> None:
    """Anybody may register a service; its events are those of its topic."""
    await publish_both(node)
    for uri, topic in (("urn:x", "traffic:anpr"), ("urn:y", "traffic")):
        document = {"topic": topic, "instance": "me", "state": "running"}
        reply = await send(
            f"{node.base}/streams/{uri}", json.dumps(document).encode(), "application/json", "PUT"
        )
        assert reply.status == 200, reply.body
    for form in (*FORMS, "text/event-stream"):
        status, _, _ = await get(node, "/streams/urn:x/events", headers={"Accept": form})
        assert status == 401
    assert (await get(node, "/streams/urn:x/events", "HEAD"))[0] == 401
    _, _, body = await get(node, "/streams/urn:x/events", headers=shows(node))
    assert PLATE.encode() in body
    _, _, body = await get(node, "/streams/urn:y/events")
    assert PLATE.encode() not in body
    assert b"mark" in body


# SOAP


@pytest.mark.parametrize(
    ("topic", "dialect"),
    [
        ("traffic:anpr", "Simple"),
        ("traffic:anpr:lane1", "Simple"),
        ("t:traffic/anpr", "Concrete"),
        ("t:traffic/anpr/*", "Full"),
        ("t:traffic/anpr//.", "Full"),
        ("t:traffic/anpr|t:traffic/anpr/lane1", "Full"),
    ],
)
async def test_a_subscribe_of_internal_topics_only_is_a_fault(
    node: NodeProcess, topic: str, dialect: str
) -> None:
    uri = f"http://docs.oasis-open.org/wsn/t-1/TopicExpression/{dialect}"
    body = subscribe("http://127.0.0.1:9/", topic, dialect=uri)
    reply = await call(node.url, body.replace("<w:Subscribe", '<w:Subscribe xmlns:t="urn:hpwsn:topics"', 1))
    assert (reply.status, reply.fault) == (500, "TopicNotSupportedFault")
    assert "is internal" in reply.body.decode()
    assert json.loads((await get(node, "/subscriptions"))[2])["subscriptions"] == []


async def test_other_subscriptions_get_what_is_public_and_nothing_internal(node: NodeProcess) -> None:
    raw = "<w:SubscriptionPolicy><w:UseRaw/></w:SubscriptionPolicy>"
    predicate = f'vid = "{PLATE}" or mark = "mark"'
    content = f'<w:MessageContent Dialect="urn:hpwsn:predicates">{predicate}</w:MessageContent>'
    asked: list[dict[str, Any]] = [
        {"topic": "traffic"},
        {"topic": None},
        {"topic": "t:traffic//.", "dialect": FULL},
        {"topic": "t:*/*", "dialect": FULL},
        {"topic": "traffic", "more": raw},
        {"topic": "traffic", "filters": content},
        {"topic": None, "filters": content},
    ]
    consumers = [Consumer() for _ in asked]
    try:
        for consumer, wanted in zip(consumers, asked, strict=True):
            await consumer.__aenter__()
            body = subscribe(consumer.url, **wanted)
            body = body.replace("<w:Subscribe", '<w:Subscribe xmlns:t="urn:hpwsn:topics"', 1)
            reply = await call(node.url, body)
            assert reply.status == 200, reply.body
        await publish_both(node)
        for consumer in consumers:
            await consumer.wait(lambda c: any(b"mark" in body for body in c.requests))
            assert not [body for body in consumer.requests if PLATE.encode() in body]
    finally:
        for consumer in consumers:
            await consumer.__aexit__(None, None, None)


async def test_the_current_message_of_an_internal_topic_is_a_fault(node: NodeProcess, tree: Path) -> None:
    await on_file(node, tree, PUBLIC_TREE, internal=False)
    await post(node, "traffic:anpr", {"vid": "public"})
    await on_file(node, tree, TREE, internal=True)
    await publish_both(node)
    body = (
        "<w:GetCurrentMessage><w:Topic"
        ' Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">traffic:anpr</w:Topic>'
        "</w:GetCurrentMessage>"
    )
    reply = await call(node.url, body)
    assert (reply.status, reply.fault) == (500, "TopicNotSupportedFault")
    await on_file(node, tree, PUBLIC_TREE, internal=False)
    reply = await call(node.url, body)
    assert PLATE not in reply.body.decode()
    assert "public" in reply.body.decode()


async def test_a_pull_point_gets_nothing_internal(node: NodeProcess) -> None:
    created = await call(node.url, "<w:CreatePullPoint/>")
    point = created.text("w:PullPoint/a:Address")
    refused = await call(node.url, subscribe(point, "traffic:anpr"))
    assert refused.fault == "TopicNotSupportedFault"
    assert (await call(node.url, subscribe(point, "traffic"))).status == 200
    await publish_both(node)
    assert await pulled(point) == ["mark"]


async def pulled(point: str) -> list[str]:
    """What a pull point has, once it has something."""
    found: list[str] = []

    async def some() -> bool:
        reply = await call(point, "<w:GetMessages/>")
        found.extend("".join(m.itertext()) for m in reply.content.iterfind(".//w:Message", NAMES))
        return bool(found)

    await eventually(some)
    return found


async def test_the_door_of_the_original_refuses_and_leaves_out(node: NodeProcess) -> None:
    async def process(text: str) -> Reply:
        return await send(f"{node.url}/process", text.encode())

    async with Consumer() as consumer:
        for topic in ("traffic:anpr", "traffic"):
            created = await process(CREATE.format(name=""))
            endpoint = created.content.findtext(".//a:Address", namespaces=NAMES)
            request = SUBSCRIBE.format(endpoint=endpoint, topic=topic, receiver=consumer.url)
            reply = await process(request)
            if topic == "traffic:anpr":
                assert reply.fault == "TopicNotSupportedFault"
            else:
                assert reply.status == 200, reply.body
        await publish_both(node)
        await consumer.wait(lambda c: len(c.requests) >= 1)
        assert b"mark" in consumer.requests[0]


async def test_onvif_refuses_and_leaves_out(node: NodeProcess) -> None:
    async def ask(url: str, body: str) -> Reply:
        return await send(
            url,
            envelope(body.replace(">", f' xmlns:t="{TEV}" xmlns:tns="urn:hpwsn:topics">', 1), "1.2"),
            "application/soap+xml; charset=utf-8",
        )

    def create(topic: str) -> str:
        on = f'<w:TopicExpression Dialect="{CONCRETE_SET}">{topic}</w:TopicExpression>'
        return (
            f"<t:CreatePullPointSubscription><t:Filter>{on}</t:Filter>"
            "<t:InitialTerminationTime>PT60S</t:InitialTerminationTime></t:CreatePullPointSubscription>"
        )

    door = f"{node.base}/onvif/events"
    for expression in ("tns:traffic/anpr", "tns:traffic/anpr//.", "tns:traffic/anpr|tns:traffic/anpr/lane1"):
        assert (await ask(door, create(expression))).fault == "TopicNotSupportedFault"
    refused = await ask(door, subscribe("http://127.0.0.1:9/", "tns:traffic/anpr", dialect=CONCRETE_SET))
    assert refused.fault == "TopicNotSupportedFault"
    created = await ask(door, create("tns:traffic//."))
    assert created.status == 200, created.body
    address = created.content.findtext(".//a:Address", namespaces=NAMES)
    await publish_both(node)
    pull = "<t:PullMessages><t:Timeout>PT60S</t:Timeout><t:MessageLimit>10</t:MessageLimit></t:PullMessages>"
    reply = await ask(address, pull)
    assert PLATE not in reply.body.decode()
    assert "mark" in reply.body.decode()
    assert (await ask(address, "<t:SetSynchronizationPoint></t:SetSynchronizationPoint>")).status == 200
    await post(node, "traffic:flow", {"mark": "second"})
    seen = ""
    while "second" not in seen:
        seen += (await ask(address, pull)).body.decode()
    assert PLATE not in seen


async def test_the_names_of_internal_topics_are_listed(node: NodeProcess) -> None:
    body = (
        '<rp:GetResourceProperty xmlns:rp="http://docs.oasis-open.org/wsrf/rp-2"'
        ' xmlns:t="http://docs.oasis-open.org/wsn/t-1">t:TopicSet</rp:GetResourceProperty>'
    )
    await publish_both(node)
    reply = await call(node.url, body)
    assert "anpr" in reply.body.decode()
    assert PLATE not in reply.body.decode()


async def test_operators_see_counts_and_no_content(node: NodeProcess) -> None:
    await publish_both(node)
    for path in ("/status", "/metrics", "/subscriptions", "/deadletters", "/streams", "/registrations", "/"):
        _, _, body = await get(node, path)
        assert PLATE.encode() not in body
        assert token(node).encode() not in body


# A publisher with demand


async def test_what_a_publisher_on_demand_sends_stays_internal(node: NodeProcess) -> None:
    """A subscription to a topic above is interest; the publisher sends, and the subscriber gets nothing."""
    async with Client(node.url) as client, DemandPublisher() as publisher, Receiver() as receiver:
        await client.register_publisher("traffic:anpr", publisher=publisher, demand=True)
        await client.subscribe("traffic", receiver)
        async with patience():
            await publisher.wait_until_wanted("traffic:anpr")
            assert await publisher.notify("traffic:anpr", f"<v>{PLATE}</v>") == 1
            await client.notify("traffic:flow", "<v>mark</v>")
            assert "mark" in (await receiver.get()).text
        _, _, body = await get(node, "/topics/traffic:anpr/events", headers=shows(node))
        assert PLATE.encode() in body


# A topic that changes


async def test_subscriptions_get_nothing_from_then_on_and_go_on_when_it_is_public(
    node: NodeProcess, tree: Path
) -> None:
    """Also what waits, in a pull point, in a pause, and behind a consumer that is away."""
    await on_file(node, tree, PUBLIC_TREE, internal=False)
    async with Consumer() as consumer, Consumer() as paused:
        assert (await call(node.url, subscribe(consumer.url, "traffic"))).status == 200
        point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        assert (await call(node.url, subscribe(point, "traffic"))).status == 200
        reply = await call(node.url, subscribe(paused.url, "traffic"))
        manager = reply.text("w:SubscriptionReference/a:Address")
        assert (await call(manager, "<w:PauseSubscription/>")).status == 200
        await post(node, "traffic:anpr", {"vid": "before"})
        await consumer.wait(lambda c: any(b"before" in body for body in c.requests))
        await on_file(node, tree, TREE, internal=True)
        await publish_both(node, "during")
        await consumer.wait(lambda c: any(b"during" in body for body in c.requests))
        assert (await pulled(point))[0] == "during"
        assert (await call(manager, "<w:ResumeSubscription/>")).status == 200
        await paused.wait(lambda c: any(b"during" in body for body in c.requests))
        assert not [body for body in paused.requests if b"before" in body]
        assert (await call(manager, "<w:PauseSubscription/>")).status == 200
        node.terminate()
        node.start()
        await publish_both(node, "restarted")
        await on_file(node, tree, PUBLIC_TREE, internal=False)
        await post(node, "traffic:anpr", {"vid": "after"})
        await consumer.wait(lambda c: any(b"after" in body for body in c.requests))
        # The restart may give what was not acknowledged once more.
        assert (await pulled(point))[-2:] == ["restarted", "after"]
        assert (await call(manager, "<w:ResumeSubscription/>")).status == 200
        await paused.wait(lambda c: any(b"after" in body for body in c.requests))
        for each in (consumer, paused):
            assert not [body for body in each.requests if PLATE.encode() in body]
    _, _, body = await get(node, "/topics/traffic:anpr/events")
    assert [event["data"]["vid"] for event in json.loads(body)] == ["before", "after"]
    _, _, body = await get(node, "/topics/traffic:anpr/events", headers=shows(node))
    assert body.count(PLATE.encode()) == 6


async def test_a_dead_letter_of_an_internal_topic_has_no_payload_and_is_not_sent(
    tmp_path: Path, tree: Path
) -> None:
    quick = ("delivery.retry_first=0.01", "delivery.retry_max=0.02", "retry.server_error_attempts=2")
    settings = [part for each in quick for part in ("--set", each)]
    tree.write_text(PUBLIC_TREE)
    with NodeProcess(tmp_path / "data", "--topics", str(tree), *settings) as node:
        async with Consumer(lambda number: 500) as consumer:
            assert (await call(node.url, subscribe(consumer.url, "traffic"))).status == 200
            await post(node, "traffic:anpr", {"vid": PLATE})

            async def letters() -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = json.loads((await get(node, "/deadletters"))[2])["deadletters"]
                return found

            async def one() -> bool:
                return len(await letters()) == 1

            await eventually(one)
            (letter,) = await letters()
            _, _, body = await get(node, f"/deadletters/{letter['id']}")
            assert PLATE in json.loads(body)["payload"]
            await on_file(node, tree, TREE, internal=True)
            _, _, body = await get(node, f"/deadletters/{letter['id']}")
            assert json.loads(body)["payload"] is None
            consumer.answer = lambda number: 202
            seen = len(consumer.requests)
            everything = io.BytesIO(b'{"all": true}').getvalue()
            reply = await send(f"{node.base}/deadletters/replay", everything, "application/json")
            assert json.loads(reply.body) == {"sent": 0, "ended": 1}
            await post(node, "traffic:flow", {"mark": "mark"})
            await consumer.wait(lambda c: any(b"mark" in body for body in c.requests[seen:]))
            assert not [body for body in consumer.requests[seen:] if PLATE.encode() in body]
            assert len(await letters()) == 1


async def test_a_contradiction_in_the_file_is_refused_and_the_topics_stay(
    node: NodeProcess, tree: Path, tmp_path: Path
) -> None:
    tree.write_text(TREE.replace("[topics.traffic.flow]", "[topics.traffic.anpr.x]\nvisibility = 'public'"))

    async def warned() -> bool:
        return b"cannot be public" in (await get(node, "/status"))[2]

    await eventually(warned)
    await publish_both(node)
    assert (await get(node, "/topics/traffic:anpr/events"))[0] == 401
    refused = await asyncio.to_thread(
        hpwsn, "serve", "--port", "0", "--data", str(tmp_path / "other"), "--topics", str(tree)
    )
    assert refused.returncode == 1
    assert "topic traffic:anpr:x cannot be public, since traffic:anpr above it is internal" in refused.stderr


# Other nodes, and applications on ActiveMQ


async def test_another_node_gets_nothing_internal_whatever_it_announces(tmp_path: Path, tree: Path) -> None:
    """n2 has the topic as public, and subscribes and reads; n3, in another cluster, hears by n1 only."""
    public = tmp_path / "public.toml"
    public.write_text(PUBLIC_TREE)
    with AdminProcess(tmp_path / "admin") as admin, ExitStack() as running:
        places = {"n1": ("one", tree), "n2": ("one", public), "n3": ("two", public)}
        nodes = {
            name: running.enter_context(
                Member(tmp_path / name, name, cluster, admin.base, "--topics", str(file))
            )
            for name, (cluster, file) in places.items()
        }
        async with Consumer() as second, Consumer() as third, Consumer() as first:
            for name, consumer in (("n1", first), ("n2", second), ("n3", third)):
                assert (await call(nodes[name].url, subscribe(consumer.url, "traffic"))).status == 200
            for name, consumer in (("n2", second), ("n3", third)):
                await reached(nodes["n1"], consumer, f"probe-{name}")
            await publish_both(nodes["n1"])
            header = '<hp:Routing xmlns:hp="urn:hpwsn:1" reliable="true"/>'
            body = notify("traffic:anpr", f"<v>{PLATE}</v>")
            assert (await call(nodes["n1"].url, body, headers=header)).status == 202
            await reached(nodes["n1"], second, "end-2")
            await reached(nodes["n1"], third, "end-3")
            # What another node publishes is internal where it arrives, and not passed on to a third node.
            await post(nodes["n2"], "traffic:anpr", {"vid": PLATE})
            await reached(nodes["n2"], first, "end-1")
            await reached(nodes["n2"], third, "end-4")
            for consumer in (first, third):
                assert not [body for body in consumer.requests if PLATE.encode() in body]
            assert len([body for body in second.requests if PLATE.encode() in body]) == 1
        for name in ("n1", "n3"):
            _, _, body = await get(nodes[name], "/topics/traffic/events")
            assert PLATE.encode() not in body
        _, _, body = await get(nodes["n1"], "/topics/traffic:anpr/events", headers=shows(nodes["n1"]))
        assert body.count(PLATE.encode()) == 5


async def reached(node: NodeProcess, consumer: Consumer, mark: str) -> None:
    """Publish a mark until a consumer at another node has it, which knows of the interest from then on."""

    async def there() -> bool:
        await post(node, "traffic:flow", {"mark": mark})
        return any(mark.encode() in body for body in consumer.requests)

    await eventually(there)


def test_applications_on_activemq_get_nothing_internal(activemq: ActiveMQ, tmp_path: Path) -> None:
    root = f"R{uuid.uuid4().hex[:8]}"
    tree = tmp_path / "topics.toml"
    tree.write_text(TREE.replace("traffic", root))
    node = BackedNode(
        tmp_path / "data", activemq.url, "--topics", str(tree), "--set", f"backbone.peers={root}"
    )
    with node, StompApplication(activemq) as application, SyncClient(node.url) as client:
        until(lambda: node.get("/readyz")["ready"], node.log)
        application.subscribe(f"/topic/hpwsn.{root}.>")
        client.notify(f"{root}:anpr", f"<v>{PLATE}</v>")
        client.notify(f"{root}:anpr:lane1", f"<v>{PLATE}</v>")
        client.notify(f"{root}:flow", "<v>mark</v>")
        headers, body = application.get()
        assert (headers["topic"], body) == (f"{root}:flow", b"<v>mark</v>")
        # What an application publishes there is internal at the node.
        application.connection.send(f"/topic/hpwsn.{root}.anpr", f"<v>{PLATE}</v>")
        application.connection.send(f"/topic/hpwsn.{root}.flow", "<v>second</v>")
        until(lambda: len(node.get(f"/topics/{root}/events")) == 2, node.log)
        assert PLATE not in json.dumps(node.get(f"/topics/{root}/events"))
        request = Request(f"{node.base}/topics/{root}:anpr/events", headers=shows(node))
        with urlopen(request) as answer:
            assert answer.read().count(PLATE.encode()) == 3


# LDAP


async def test_a_topic_becomes_internal_in_ldap_while_the_node_runs(slapd: Slapd, tmp_path: Path) -> None:
    slapd.directory.replace(
        [Declaration(Topic.parse(each)) for each in ("traffic:anpr:lane1", "traffic:flow")]
    )
    arguments = ("--topics", slapd.url, "--bind-dn", ADMIN, "--password-file", slapd.password_file)
    with NodeProcess(tmp_path / "data", "--topics", slapd.url) as node:
        await post(node, "traffic:anpr", {"vid": "before"})

        async def is_internal(yes: bool) -> None:
            async def taken() -> bool:
                status, _, _ = await get(node, "/topics/traffic:anpr:lane1/events")
                return (status == 401) is yes

            await eventually(taken)

        async def set_to(visibility: str) -> None:
            ended = await asyncio.to_thread(
                hpwsn, "topics", "add", "traffic:anpr", "--visibility", visibility, *arguments
            )
            assert ended.returncode == 0, ended.stderr

        for _ in range(2):
            await set_to("internal")
            await is_internal(True)
            await publish_both(node)
            await set_to("public")
            await is_internal(False)
        listed = await asyncio.to_thread(hpwsn, "topics", "list", *arguments)
        assert "[internal]" not in listed.stdout
        await set_to("internal")
        await is_internal(True)
        listed = await asyncio.to_thread(hpwsn, "topics", "list", *arguments)
        assert listed.stdout.count("[internal]") == 2
        _, _, body = await get(node, "/topics/traffic/events")
        assert PLATE.encode() not in body
        # Without the server, the saved tree still says what is internal.
        node.terminate()
        slapd.kill()
        node.start()
        assert (await get(node, "/topics/traffic:anpr/events"))[0] == 401
        assert (await get(node, "/topics/traffic:anpr/events", headers=shows(node)))[0] == 200
