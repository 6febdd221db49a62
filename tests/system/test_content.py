"""Content is delivered as it was published: comments, instructions and plain text, on every way out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client import Client, Receiver
from tests.cluster import AdminProcess, Member
from tests.conftest import Oasis
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.original_messages import NOTIFICATION
from tests.patience import eventually
from tests.raw_soap import ENV, NAMES, SIMPLE, TYPES, XPATH, call, envelope, notify, send, subscribe
from tests.system.test_onvif import ask as ask_onvif
from tests.system.test_onvif import created, pulling
from tests.system.test_original_door import process, subscribed
from tests.unit.client.wsn import published

RAW = "<w:SubscriptionPolicy><w:UseRaw/></w:SubscriptionPolicy>"
TEXT = "{urn:hpwsn:1}text"
QUICK = ("--set", "delivery.retry_first=0.01", "--set", "delivery.retry_for=0")
REMARKED = (
    "<r><!-- before --><a>2<!-- within -->1</a><?pi some data?><!----></r>",
    '<p:r xmlns:p="urn:p" xmlns:q="urn:q" a="1" q:b="2">\n  <p:s type="q:T"/> \n<!-- q: --></p:r>',
    "<r>no comment at all</r>",
)


@pytest.fixture(scope="module", params=["fast", "full"])
def lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with the fast lane, and one without it."""
    off = ("--set", "server.fast_lane=false") if request.param == "full" else ()
    with NodeProcess(tmp_path_factory.mktemp(request.param) / "data", *QUICK, *off) as running:
        yield running


def canonical(element: etree._Element) -> bytes:
    return published.canonical(etree.tostring(element, encoding="utf-8", with_tail=False))


def element_of(parent: etree._Element | None) -> etree._Element:
    """The one element in a Message, a Body or the like."""
    assert parent is not None
    (found,) = parent.iterchildren("*")
    return found


def message_elements(document: etree._Element) -> list[etree._Element]:
    return [element_of(each) for each in document.iterfind(".//w:NotificationMessage/w:Message", NAMES)]


def body_element(data: bytes) -> etree._Element:
    root = etree.fromstring(data)
    return element_of(root.find(f"{{{etree.QName(root).namespace}}}Body"))


@dataclass
class Ways:
    """Subscribers of every kind to one topic."""

    node: NodeProcess
    topic: str
    push: dict[str, Consumer]
    raw: Consumer
    original: Consumer
    pull_point: str
    onvif: str

    async def collect(self, number: int, oasis: Oasis | None = None) -> dict[str, list[etree._Element]]:
        """The payload elements that each subscriber got, once it has so many."""
        found: dict[str, list[etree._Element]] = {}
        for version, consumer in self.push.items():
            await consumer.wait(lambda c: len(c.messages()) == number)
            notifies = [body_element(data) for data in consumer.requests]
            for each in notifies if oasis else ():
                oasis.validate(each)
            found[f"push {version}"] = [one for each in notifies for one in message_elements(each)]
        await self.raw.wait(lambda c: len(c.requests) == number)
        found["raw"] = [body_element(data) for data in self.raw.requests]
        pulled = await self._pulled(number, oasis)
        found["pull point"] = pulled
        reply = await ask_onvif(self.onvif, pulling("PT10S", 1000))
        found["onvif"] = message_elements(reply.content)
        current = await call(
            self.node.url,
            f'<w:GetCurrentMessage><w:Topic Dialect="{SIMPLE}">{self.topic}</w:Topic></w:GetCurrentMessage>',
        )
        if oasis:
            oasis.validate(current.content)
        last = element_of(current.content)
        found["current"] = [element_of(last) if last.tag == "{urn:hpwsn:1}message" else last]
        return found

    async def _pulled(self, number: int, oasis: Oasis | None) -> list[etree._Element]:
        found: list[etree._Element] = []

        async def all_there() -> bool:
            reply = await call(self.pull_point, "<w:GetMessages/>")
            if oasis:
                oasis.validate(reply.content)
            found.extend(message_elements(reply.content))
            return len(found) >= number

        await eventually(all_there)
        return found


@asynccontextmanager
async def every_way(node: NodeProcess, topic: str) -> AsyncIterator[Ways]:
    async with Consumer() as one, Consumer() as two, Consumer() as raw, Consumer() as original:
        subscriptions = [
            await call(node.url, subscribe(one.url, topic), "1.1"),
            await call(node.url, subscribe(two.url, topic), "1.2"),
            await call(node.url, subscribe(raw.url, topic, more=RAW)),
        ]
        point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        subscriptions.append(await call(node.url, subscribe(point, topic)))
        addresses = [reply.text("w:SubscriptionReference/a:Address") for reply in subscriptions]
        addresses.append(await subscribed(node, original.url, topic))
        addresses.append(await created(node, topic))
        yield Ways(node, topic, {"1.1": one, "1.2": two}, raw, original, point, addresses[-1])
        for address in addresses:
            assert (await call(address, "<w:Unsubscribe/>")).status == 200


async def publish(node: NodeProcess, data: bytes) -> None:
    version = next(version for version, uri in ENV.items() if uri.encode() in data)
    reply = await send(node.url, data, TYPES[version])
    assert reply.status == 202, (data, reply.body)


@settings(
    max_examples=4,
    phases=(Phase.generate,),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(st.lists(published.envelopes(), min_size=10, max_size=40))
def test_what_every_subscriber_gets_is_what_was_published(
    lane: NodeProcess, sent: list[tuple[bytes, bytes]]
) -> None:
    async def exchange() -> None:
        async with every_way(lane, "a") as ways:
            for data, _ in sent:
                await publish(lane, data)
            wanted = [published.canonical(alone) for _, alone in sent]
            found = await ways.collect(len(sent))
            for way, elements in found.items():
                expected = wanted[-1:] if way == "current" else wanted
                assert list(map(canonical, elements)) == expected, way
            await ways.original.wait(lambda c: len(c.requests) == len(sent))
            got = [message_elements(body_element(data))[0] for data in ways.original.requests]
            assert list(map(canonical, got)) == wanted

    asyncio.run(exchange())


async def test_comments_are_no_data_at_the_json_door_and_stand_in_no_filters_way(lane: NodeProcess) -> None:
    wanted = (
        f'<w:MessageContent Dialect="{XPATH}">/r/a/text() = 21</w:MessageContent>'
        '<w:MessageContent Dialect="urn:hpwsn:predicates">a &gt; 20</w:MessageContent>'
    )
    async with Consumer() as consumer:
        await call(lane.url, subscribe(consumer.url, "filtered", filters=wanted))
        for payload in ("<r><a>1</a></r>", REMARKED[0]):
            await call(lane.url, notify("filtered", payload))
        await consumer.wait(lambda c: len(c.messages()) == 1)
        assert canonical(message_elements(body_element(consumer.requests[0]))[0]) == REMARKED[0].encode()
    for query in ("", "?filter=a%20%3E%2020"):
        reply = await send(f"{lane.base}/topics/filtered/events{query}", b"", method="GET")
        assert json.loads(reply.body)[-1]["data"] == {"a": 21}


async def test_comments_are_shown_in_dead_letters_sent_again_and_outlive_a_crash(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK) as node:
        async with Consumer(lambda number: 404 if number == 1 else 202) as consumer:
            point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
            await call(node.url, subscribe(point, "A"))
            await call(node.url, subscribe(consumer.url, "A"))
            await publish(node, envelope(notify("A", REMARKED[0])))

            async def letters() -> list[dict[str, Any]]:
                reply = await send(f"{node.base}/deadletters", b"", method="GET")
                found: list[dict[str, Any]] = json.loads(reply.body)["items"]
                return found

            async def one() -> bool:
                return len(await letters()) == 1

            await eventually(one)
            node.kill()
            node.start()
            (letter,) = await letters()
            shown = await send(f"{node.base}/deadletters/{letter['id']}", b"", method="GET")
            assert json.loads(shown.body)["payload"] == REMARKED[0]
            await send(f"{node.base}/deadletters/replay", b'{"all": true}', "application/json")
            await consumer.wait(lambda c: len(c.requests) == 2)
            assert REMARKED[0].encode() in consumer.requests[1]
            pulled = await call(f"{node.url}/pullpoints/{point.rsplit('/', 1)[1]}", "<w:GetMessages/>")
            assert REMARKED[0].encode() in pulled.body


# Plain text


async def at_the_originals_door(node: NodeProcess, topic: str, text: str) -> None:
    reply = await process(node, NOTIFICATION, topic=topic, fragment="0-0-1-0", message=text)
    assert reply.status == 202, reply.body


async def as_pieces_at_the_originals_door(node: NodeProcess, topic: str, text: str) -> None:
    middle = text.index("<") if "<" in text else 4
    for fragment, piece in (("1-1-0-0", text[:middle]), ("1-0-0-1", text[middle:])):
        reply = await process(node, NOTIFICATION, topic=topic, fragment=fragment, message=piece)
        assert reply.status == 202, reply.body


async def at_the_standards_door(node: NodeProcess, topic: str, text: str) -> None:
    await publish(node, envelope(notify(topic, text)))


async def as_our_element(node: NodeProcess, topic: str, text: str) -> None:
    await publish(node, envelope(notify(topic, f'<t:text xmlns:t="urn:hpwsn:1">{text}</t:text>')))


Publish = Callable[[NodeProcess, str, str], Awaitable[None]]


@pytest.mark.parametrize(
    "publish_text",
    [at_the_originals_door, as_pieces_at_the_originals_door, at_the_standards_door, as_our_element],
)
async def test_text_reaches_the_standards_subscribers_in_our_element_and_the_originals_as_text(
    lane: NodeProcess, oasis: Oasis, publish_text: Publish
) -> None:
    topic = publish_text.__name__
    written = ["plain text", "a &lt;b/&gt; &amp; 京", "one<!-- not text -->two", "  two\nlines  "]
    texts = ["plain text", "a <b/> & 京", "onetwo", "  two\nlines  "]
    if publish_text is as_pieces_at_the_originals_door:
        # All that is written so has one identification, by which a second message would be a repetition.
        written, texts = written[2:3], texts[2:3]
    async with every_way(lane, topic) as ways:
        for text in written:
            await publish_text(lane, topic, text)
        found = await ways.collect(len(texts), oasis)
        for way, elements in found.items():
            assert {each.tag for each in elements} == {TEXT}, way
            expected = texts[-1:] if way == "current" else texts
            assert ["".join(each.xpath("text()")) for each in elements] == expected, way
        await ways.original.wait(lambda c: len(c.requests) == len(texts))
        got = [
            body_element(data).find("w:NotificationMessage/w:Message", NAMES)
            for data in ways.original.requests
        ]
        assert [(each.text, len(each)) for each in got] == [(text, 0) for text in texts]
    reply = await send(f"{lane.base}/topics/{topic}/events", b"", method="GET")
    assert [event["data"] for event in json.loads(reply.body)] == [{"text": text} for text in texts]


async def test_text_beside_an_element_is_refused_at_both_doors(lane: NodeProcess) -> None:
    for message in ("text <r/>", "<r/> text", "<r/><!-- c -->text"):
        reply = await process(lane, NOTIFICATION, topic="A", fragment="0-0-1-0", message=message)
        assert (reply.status, b"it may have only elements" in reply.body) == (500, True)
        assert (await call(lane.url, notify("A", message), "1.2")).status == 400


async def test_the_client_reads_text_as_text_and_an_element_with_its_comments(lane: NodeProcess) -> None:
    async with Client(lane.url) as client, Receiver() as receiver:
        for raw in (False, True):
            subscription = await client.subscribe("client", receiver, use_raw=raw)
            await at_the_originals_door(lane, "client", "from the original")
            first = await receiver.get(20)
            assert (first.is_text, first.text) == (True, "from the original")
            await client.notify("client", REMARKED[0])
            second = await receiver.get(20)
            assert (second.is_text, second.payload, second.text) == (False, REMARKED[0].encode(), REMARKED[0])
            assert [child.tag for child in second.element] == ["a"]
            await subscription.unsubscribe()
        current = await client.get_current_message("client")
        assert current.payload == REMARKED[0].encode()


# Between nodes


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """Two nodes of a cluster, joined by UDP in small datagrams, and one of another, joined by TCP."""
    folder, small = tmp_path_factory.mktemp("members"), ("--set", "routing.fragment_size=1000")
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(folder / "admin"))
        yield {
            name: stack.enter_context(Member(folder / name, name, cluster, admin.base, *small))
            for name, cluster in (("here", "plant"), ("beside", "plant"), ("far", "office"))
        }


async def test_other_nodes_deliver_it_as_it_was_published_too(
    members: dict[str, Member], oasis: Oasis
) -> None:
    here = members["here"]
    large = f"<r>{REMARKED[0] * 40}</r>"
    async with Consumer() as beside, Consumer() as far, Consumer() as original:
        for name, consumer in (("beside", beside), ("far", far)):
            assert (await call(members[name].url, subscribe(consumer.url, "T"))).status == 200
        await subscribed(members["far"], original.url, "T")

        async def known() -> bool:
            return all(node.status()["cluster"]["nodes_alive"] == 3 for node in members.values())

        await eventually(known)

        async def arrives() -> bool:
            await publish(here, envelope(notify("T", "<probe/>")))
            return all(b"<probe/>" in b"".join(c.requests) for c in (beside, far, original))

        await eventually(arrives)
        header = '<hp:Routing xmlns:hp="urn:hpwsn:1" reliable="true"/>'
        for payload in (*REMARKED, large):
            await publish(here, envelope(notify("T", payload), headers=header))
        await at_the_originals_door(here, "T", "text &amp; more")
        await publish(here, envelope(notify("T", "<last/>"), headers=header))
        for consumer in (beside, far, original):
            await consumer.wait(
                lambda c: b"<last/>" in c.requests[-1] and b"text &amp; more" in b"".join(c.requests)
            )
        for consumer in (beside, far):
            notifies = [body_element(data) for data in consumer.requests]
            for each in notifies:
                oasis.validate(each)
            got = [one for each in notifies for one in message_elements(each)]
            whole = [canonical(one) for one in got if one.tag not in ("probe", "last", TEXT)]
            assert whole == [published.canonical(payload.encode()) for payload in (*REMARKED, large)]
            assert [one.text for one in got if one.tag == TEXT] == ["text & more"]
        assert b">text &amp; more</wsnt:Message>" in b"".join(original.requests)
        assert REMARKED[0].encode() in b"".join(original.requests)
