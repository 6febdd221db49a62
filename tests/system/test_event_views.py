"""Events in XML, raw, cut and at a limited pace, at the JSON door of a real node."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.harness import NodeProcess
from tests.patience import eventually, patience
from tests.raw_soap import SIMPLE, call, notify, send

XML = "<m:reading xmlns:m='urn:m' unit='°C'><!-- kept --><m:value>21.5</m:value>\n</m:reading>"
STORED = '<m:reading xmlns:m="urn:m" unit="°C"><!-- kept --><m:value>21.5</m:value>\n</m:reading>'
Events = list[dict[str, Any]]


@pytest.fixture(name="node", scope="module")
def running_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    limits = ("--set", "server.depth_limit=20", "--set", "server.body_limit=4000000")
    with NodeProcess(tmp_path_factory.mktemp("node") / "data", *limits) as running:
        yield running


async def post(node: NodeProcess, topic: str, body: str | bytes, kind: str) -> tuple[int, dict[str, Any]]:
    data = body.encode() if isinstance(body, str) else body
    reply = await send(f"{node.base}/topics/{topic}/events", data, kind)
    return reply.status, json.loads(reply.body)


async def post_json(node: NodeProcess, topic: str, *events: Any) -> int:
    status, told = await post(node, topic, json.dumps(events, ensure_ascii=False), "application/json")
    assert status == 202, told
    last: int = told["last"]
    return last


async def read(node: NodeProcess, topic: str, **params: Any) -> tuple[int, Any]:
    url = f"{node.base}/topics/{topic}/events"
    headers = params.pop("headers", {})
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params=params, headers=headers) as response,
    ):
        return response.status, json.loads(await response.read())


async def poll(node: NodeProcess, topic: str, **params: Any) -> Events:
    status, events = await read(node, topic, **params)
    assert status == 200, events
    found: Events = events
    return found


class Stream:
    """A client of server-sent events: the id, the type and the data of each."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[int, str, dict[str, Any]]:
        fields: dict[str, str] = {}
        async with patience():
            while True:
                line = (await self._response.content.readline()).decode()
                assert line, "the stream ended"
                name, _, value = line.rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    return int(fields["id"]), fields.get("event", "message"), json.loads(fields["data"])


@asynccontextmanager
async def stream(
    node: NodeProcess, topic: str, headers: dict[str, str] | None = None, **params: Any
) -> AsyncIterator[Stream]:
    asked = {"Accept": "text/event-stream", **(headers or {})}
    url = f"{node.base}/topics/{topic}/events"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params=params, headers=asked) as response,
    ):
        assert response.status == 200, await response.text()
        assert (await response.content.readline()).startswith(b": after")
        yield Stream(response)


@pytest.mark.parametrize("kind", ["application/xml", "text/xml; charset=utf-8"])
async def test_an_element_is_the_payload_of_one_event(node: NodeProcess, kind: str) -> None:
    status, told = await post(node, "xml:one", XML, kind)
    assert (status, told["first"]) == (202, told["last"])
    (event,) = await poll(node, "xml:one", after=told["first"] - 1)
    assert event["data"] == {"unit": "°C", "value": 21.5}
    (raw,) = await poll(node, "xml:one", after=told["first"] - 1, payload="raw")
    assert raw == {**{name: event[name] for name in ("offset", "topic", "time", "id")}, "raw": STORED}


async def test_a_soap_subscriber_gets_the_posted_element(node: NodeProcess) -> None:
    point = (await call(node.url, "<w:CreatePullPoint/>")).text(".//a:Address")
    wanted = f'<w:Filter><w:TopicExpression Dialect="{SIMPLE}">xml:soap</w:TopicExpression></w:Filter>'
    consumer = f"<w:ConsumerReference><a:Address>{point}</a:Address></w:ConsumerReference>"
    assert (await call(node.url, f"<w:Subscribe>{consumer}{wanted}</w:Subscribe>")).status == 200
    await post(
        node, "xml:soap", "<?xml version='1.0' encoding='latin-1'?><a>é</a>".encode("latin-1"), "text/xml"
    )

    async def pulled() -> bool:
        reply = await call(point, "<w:GetMessages/>")
        return "<a>é</a>" in reply.body.decode()

    await eventually(pulled)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("<a>\n <b></a>", (2, 9)),
        ("<a/><b/>", (1, 5)),
        ("", (1, 1)),
        ("no element", (1, 1)),
        ("<p:a/>", (1, 5)),
        ("<!DOCTYPE a><a/>", None),
        ("<d>" * 16 + "</d>" * 16, None),
    ],
)
async def test_wrong_xml_is_refused_with_its_place(
    node: NodeProcess, body: str, place: tuple[int, int] | None
) -> None:
    status, told = await post(node, "xml:wrong", body, "application/xml")
    assert status == 400
    assert told["error"]
    assert (told.get("line"), told.get("column")) == (place or (None, None))
    assert await poll(node, "xml:wrong") == []


async def test_xml_as_deep_as_the_limit_allows_in_a_delivery_is_accepted(node: NodeProcess) -> None:
    assert (await post(node, "xml:deep", "<d>" * 15 + "</d>" * 15, "text/xml"))[0] == 202


async def test_too_large_xml_is_refused(node: NodeProcess) -> None:
    assert (await post(node, "xml:large", "<a>" + "x" * 4_000_000 + "</a>", "text/xml"))[0] == 413


async def test_raw_is_what_soap_and_json_publishers_stored(node: NodeProcess) -> None:
    await call(node.url, notify("raw", "<x><y>1</y></x>"))
    last = await post_json(node, "raw", {"y": 2, "text": 'quote " and \\ and\nline'}, {"y": 3})
    events = await poll(node, "raw", payload="raw")
    assert [event["raw"] for event in events] == [
        "<x><y>1</y></x>",
        '<hp:event xmlns:hp="urn:hpwsn:1"><y>2</y><text>quote " and \\ and\nline</text></hp:event>',
        '<hp:event xmlns:hp="urn:hpwsn:1"><y>3</y></hp:event>',
    ]
    assert all(set(event) == {"offset", "topic", "time", "id", "raw"} for event in events)
    assert await poll(node, "raw", payload="raw", filter="y > 1 and y < 3") == [events[1]]
    assert await poll(node, "raw", payload="raw", filter="//y = 3", dialect="xpath") == [events[2]]
    assert await poll(node, "raw", payload="raw", after=last - 1, upto=last) == [events[2]]
    async with stream(node, "raw", payload="raw", after=0, filter="y >= 2") as streamed:
        assert [await streamed.next() for _ in range(2)] == [
            (event["offset"], "message", event) for event in events[1:]
        ]
    async with aiohttp.ClientSession() as session:
        url = f"{node.base}/topics/raw/events"
        async with session.ws_connect(url, params={"payload": "raw", "after": 0}) as socket:
            assert [await socket.receive_json() for _ in range(3)] == events


async def test_polls_in_both_views_at_once_get_their_own(node: NodeProcess) -> None:
    async with (
        stream(node, "both", payload="raw") as raw,
        stream(node, "both") as plain,
        stream(node, "both", cut=1) as cut,
    ):
        offset = await post_json(node, "both", {"n": 1})
        assert (await raw.next())[2]["raw"].endswith("<n>1</n></hp:event>")
        assert (await plain.next())[2]["data"] == {"n": 1}
        event = (await cut.next())[2]
        assert (event["offset"], event["data"], event["raw"], event["truncated"]) == (offset, None, "<", True)


@pytest.mark.parametrize("size", [100, 70_000, 2_000_000])
async def test_a_large_payload_is_cut_at_its_beginning_and_can_be_had_whole(
    node: NodeProcess, size: int
) -> None:
    offset = await post_json(node, f"cut:s{size}", {"blob": "é" * (size // 2)})
    (whole,) = await poll(node, f"cut:s{size}", after=offset - 1, upto=offset, payload="raw")
    stored = whole["raw"].encode()
    (plain,) = await poll(node, f"cut:s{size}")
    for view in ("raw", "json"):
        for limit in (len(stored) - 1, 61, 62):
            (event,) = await poll(node, f"cut:s{size}", payload=view, cut=limit)
            assert (event["truncated"], event["size"]) == (True, len(stored))
            assert event["raw"].encode() == stored[:limit].decode(errors="ignore").encode()
            assert ("data" in event, event.get("data")) == (view == "json", None)
        expected = whole if view == "raw" else plain
        assert await poll(node, f"cut:s{size}", payload=view, cut=len(stored)) == [expected]
    async with stream(node, f"cut:s{size}", cut=65536, after=offset - 1) as streamed:
        event = (await streamed.next())[2]
        assert ("truncated" in event) == (len(stored) > 65536)


async def test_small_events_beside_a_cut_one_keep_their_data(node: NodeProcess) -> None:
    await post_json(node, "mixed", {"n": 1}, {"n": "x" * 500}, {"n": 3})
    events = await poll(node, "mixed", cut=200)
    assert [event["data"] for event in events] == [{"n": 1}, None, {"n": 3}]
    assert [event.get("truncated", False) for event in events] == [False, True, False]
    assert len(events[1]["raw"]) == 200


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"payload": "xml"}, "payload is 'xml'; give raw or json"),
        ({"cut": "0"}, "cut is '0'; give a number of bytes, 1 or more"),
        ({"max_rate": "-1"}, "max_rate is '-1'; give a number of events a second, 1 or more"),
        ({"max_rate": "5"}, "max_rate is for streams and WebSockets"),
        (
            {"payload": "raw", "headers": {"Accept": "application/vnd.hpwsn.rows"}},
            "payload and cut are for JSON",
        ),
        ({"cut": "9", "headers": {"Accept": "application/x-protobuf"}}, "payload and cut are for JSON"),
    ],
)
async def test_wrong_parameters_are_refused_in_words(
    node: NodeProcess, params: dict[str, Any], words: str
) -> None:
    status, told = await read(node, "wrong", **params)
    assert (status, words in told["error"]) == (400, True)


@pytest.mark.parametrize("view", [{}, {"payload": "raw"}, {"cut": 20}, {"payload": "raw", "cut": 20}])
@pytest.mark.parametrize("content", [{}, {"filter": "n >= 0"}, {"filter": "//n >= 0"}])
async def test_a_watcher_gets_its_rate_and_the_number_of_the_others(
    node: NodeProcess, view: dict[str, Any], content: dict[str, Any]
) -> None:
    name = f"rate:v{len(view)}{'p' * ('payload' in view)}c{len(content.get('filter', ''))}"
    async with stream(node, name, max_rate=5, **view, **content) as watching:
        last = await post_json(node, name, *({"n": n} for n in range(200)))
        first = last - 199
        events = [await watching.next() for _ in range(5)]
        assert [(offset, kind) for offset, kind, _ in events] == [(first + n, "message") for n in range(5)]
        plain = await poll(node, name, after=first - 1, upto=first + 4, **view)
        assert [event for _, _, event in events] == plain
        seen, skipped, upto = 5, 0, 0
        while upto < last:  # a commit may be cut in several, and each second has room again
            upto, kind, data = await watching.next()
            seen += kind == "message"
            skipped += data["skipped"] if kind == "skipped" else 0
        assert seen + skipped == 200
        assert skipped > 0


async def test_a_watcher_resumes_after_what_was_skipped(node: NodeProcess) -> None:
    async with stream(node, "resume", max_rate=2) as watching:
        last = await post_json(node, "resume", *({"n": n} for n in range(50)))
        upto = 0
        while upto < last:
            upto, _, _ = await watching.next()
    more = await post_json(node, "resume", {"n": 50})
    async with stream(node, "resume", headers={"Last-Event-ID": str(upto)}, max_rate=2) as again:
        offset, kind, event = await again.next()
        assert (offset, kind, event["data"]) == (more, "message", {"n": 50})


async def test_the_log_is_read_at_the_same_rate(node: NodeProcess) -> None:
    last = await post_json(node, "log", *({"n": n} for n in range(40)))
    async with stream(node, "log", after=0, max_rate=3) as watching:
        events = [await watching.next() for _ in range(4)]
        assert [kind for _, kind, _ in events] == ["message"] * 3 + ["skipped"]
        assert events[3] == (last, "skipped", {"skipped": 37})


async def test_a_socket_gets_the_number_as_a_message(node: NodeProcess) -> None:
    async with aiohttp.ClientSession() as session:
        url = f"{node.base}/topics/socket/events"
        async with session.ws_connect(url, params={"max_rate": 2}) as socket, patience():
            await post_json(node, "socket", *({"n": n} for n in range(30)))
            got = [await socket.receive_json() for _ in range(3)]
            assert [each["data"]["n"] for each in got[:2]] == [0, 1]
            assert got[2] == {"skipped": 28}
