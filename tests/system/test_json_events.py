"""The JSON door of a real node: publish, poll and follow, beside SOAP and across restarts."""

from __future__ import annotations

import asyncio
import io
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually, patience
from tests.raw_soap import CONCRETE, call, notify, subscribe

JSON, NDJSON = "application/json", "application/x-ndjson"
Events = list[dict[str, Any]]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: Any


async def ask(method: str, url: str, **more: Any) -> Reply:
    async with aiohttp.ClientSession() as session, session.request(method, url, **more) as response:
        text = await response.text()
        return Reply(response.status, dict(response.headers), json.loads(text) if text else None)


async def post(
    node: NodeProcess, topic: str, data: Any, kind: str = "application/json", **more: Any
) -> Reply:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    headers = {"Content-Type": kind, **more.pop("headers", {})}
    return await ask(
        "POST", f"{node.base}/topics/{topic}/events", data=io.BytesIO(body), headers=headers, **more
    )


async def poll(node: NodeProcess, topic: str, **params: Any) -> Events:
    reply = await ask("GET", f"{node.base}/topics/{topic}/events", params=params)
    assert reply.status == 200, reply
    found: Events = reply.body
    return found


class Stream:
    """A client of server-sent events, of the few lines that the form needs."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> dict[str, Any]:
        fields: dict[str, str] = {}
        while True:
            line = (await self.response.content.readline()).decode()
            assert line, "the stream ended"
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "data" in fields:
                event: dict[str, Any] = json.loads(fields["data"])
                assert fields["id"] == str(event["offset"])
                return event
            else:
                fields = {}

    async def take(self, number: int) -> Events:
        async with patience():
            return [await self.next() for _ in range(number)]


@asynccontextmanager
async def stream(
    node: NodeProcess, topic: str, last: int | None = None, **params: Any
) -> AsyncIterator[Stream]:
    headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": str(last)})
    url = f"{node.base}/topics/{topic}/events"
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=timeout, read_bufsize=2**20) as session,
        session.get(url, headers=headers, params=params) as response,
    ):
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        yield Stream(response)


def numbers(events: Events) -> list[Any]:
    return [event["data"].get("n") for event in events]


async def test_an_object_an_array_and_lines_are_published_and_read_with_a_cursor(node: NodeProcess) -> None:
    one = await post(node, "s:hall", {"n": 1, "on": True, "id": "007", "tags": ["a"]})
    assert (one.status, one.body) == (202, {"first": 1, "last": 1})
    assert (await post(node, "s:hall", [{"n": 2}, {"n": 3}])).body == {"first": 2, "last": 3}
    assert (await post(node, "s:roof", b'{"n": 4}\n\n{"n": 5}\n', NDJSON)).body == {"first": 4, "last": 5}
    events = await poll(node, "s")
    assert [list(event) for event in events] == [["offset", "topic", "time", "id", "data"]] * 5
    assert [event["offset"] for event in events] == [1, 2, 3, 4, 5]
    assert [event["topic"] for event in events] == ["s:hall"] * 3 + ["s:roof"] * 2
    assert events[0]["data"] == {"n": 1, "on": True, "id": "007", "tags": ["a"]}
    assert events[0]["id"] is None
    assert numbers(await poll(node, "s", after=1, max=2)) == [2, 3]
    assert numbers(await poll(node, "s:roof")) == [4, 5]
    assert numbers(await poll(node, "s%2Froof")) == [4, 5], "A/B is the same topic"
    assert await poll(node, "s", after=5) == await poll(node, "s", after=99) == await poll(node, "x") == []


async def test_an_id_is_published_once_also_after_a_kill(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        first = await post(node, "a", [{"n": 1}, {"n": 2}], params={"id": "batch-1"})
        assert first.body == {"first": 1, "last": 2}
        again = await post(node, "a", [{"n": 1}, {"n": 2}], headers={"Hpwsn-Message-Id": "batch-1"})
        assert (again.status, again.body) == (202, {"first": 1, "last": 2})
        header = '<hp:MessageId xmlns:hp="urn:hpwsn:1">batch-1</hp:MessageId>'
        assert (await call(node.url, notify("a", "<n>9</n>"), headers=header)).status == 202
        both = await post(node, "a", {}, params={"id": "x"}, headers={"Hpwsn-Message-Id": "y"})
        assert both.status == 400
        node.kill()
        node.start()
        late = await post(node, "a", {"n": 3}, params={"id": "batch-1"})
        assert (late.status, late.body) == (202, {"first": 1, "last": 2})
        events = await poll(node, "a")
        assert [(e["offset"], e["id"], e["data"]["n"]) for e in events] == [
            (1, "batch-1", 1),
            (2, "batch-1", 2),
        ]


async def test_both_doors_see_the_same_events_in_the_same_order(node: NodeProcess) -> None:
    async with Consumer() as consumer, stream(node, "both") as news:
        await call(node.url, subscribe(consumer.url, "both"))

        async def publish(door: int) -> None:
            for n in range(20):
                if door == 0:
                    topic = f"both/d{n % 3}"
                    await call(node.url, notify(topic, f"<r><n>{n}</n></r>", dialect=CONCRETE))
                else:
                    await post(node, f"both:d{n % 3}", {"n": 100 + n, "wind speed": [1, 2]})

        await asyncio.gather(publish(0), publish(1))
        followed = await news.take(40)
        polled = await poll(node, "both")
        await consumer.wait(lambda c: len(c.messages()) >= 40)
    assert followed == polled
    heard = [int(m.xpath("string(.//*[local-name()='n'])")) for m in consumer.messages()]
    assert heard == numbers(polled)
    ours = next(m for m in consumer.messages() if m.find(".//{urn:hpwsn:1}event") is not None)
    event = ours.find(".//{urn:hpwsn:1}event")
    assert [child.tag for child in event] == ["n", "{urn:hpwsn:1}field", "{urn:hpwsn:1}field"]
    assert event[1].get("name") == "wind speed"


async def test_text_and_xml_of_soap_publishers_are_read_as_json(node: NodeProcess) -> None:
    await call(node.url, notify("x", "only text", '<r xmlns="urn:r"><a>1</a><a>2</a><b><c>x</c></b></r>'))
    assert [event["data"] for event in await poll(node, "x")] == [
        {"text": "only text"},
        {"a": [1, 2], "b": {"c": "x"}},
    ]


async def test_a_poll_waits_for_the_first_event_and_no_longer(node: NodeProcess) -> None:
    waiting = asyncio.ensure_future(poll(node, "late", wait=20))
    await post(node, "other", {"n": 0})
    await post(node, "late:below", {"n": 1})
    assert numbers(await asyncio.wait_for(waiting, PATIENCE)) == [1]
    assert await poll(node, "late", after=2, wait=0.05) == []


async def test_a_filter_selects_by_the_xml_form_and_tells_how_far_it_looked(node: NodeProcess) -> None:
    await post(node, "f", [{"n": n, "odd key": n} for n in range(300)])
    assert numbers(await poll(node, "f", filter="n > 297")) == [298, 299]
    assert numbers(await poll(node, "f", filter="hp:field[@name='odd key'] = 5")) == [5]
    assert numbers(await poll(node, "f", filter="n + 1 = 6", dialect="xpath")) == [5]
    assert numbers(await poll(node, "f", filter="`odd key` in (5, 7) and not n = 7")) == [5]
    url = f"{node.base}/topics/f/events"
    nothing = await ask("GET", url, params={"filter": "n = 1000"})
    assert (nothing.body, nothing.headers["Hpwsn-After"]) == ([], "300")
    some = await ask("GET", url, params={"filter": "n >= 10", "max": "10"})
    assert numbers(some.body) == list(range(10, 20))
    after = some.headers["Hpwsn-After"]
    assert numbers(await poll(node, "f", filter="n >= 10", after=after, max=1)) == [20]
    async with stream(node, "f", filter="n = 299", after=0) as news:
        assert numbers(await news.take(1)) == [299]


async def test_a_stream_starts_now_or_after_what_the_client_had_last(node: NodeProcess) -> None:
    await post(node, "t", [{"n": n} for n in range(250)])
    async with (
        stream(node, "t") as now,
        stream(node, "t", after=0) as old,
        stream(node, "t", 248, after=3) as last,
    ):
        await post(node, "t:new", {"n": 250})
        assert numbers(await now.take(1)) == [250]
        assert numbers(await old.take(251)) == list(range(251))
        assert numbers(await last.take(3)) == [248, 249, 250]


async def test_a_stream_of_a_topic_that_is_new_misses_nothing(node: NodeProcess) -> None:
    async with stream(node, "young") as news:
        for n in range(50):
            await post(node, f"young:t{n}", {"n": n})
        assert numbers(await news.take(50)) == list(range(50))


async def test_a_client_that_takes_nothing_costs_no_memory_and_gets_all_in_the_end(node: NodeProcess) -> None:
    large = {"blob": "x" * 200_000}
    async with stream(node, "slow", after=0) as news:
        for n in range(100):
            assert (await post(node, "slow", {**large, "n": n})).status == 202
        status = await ask("GET", f"{node.base}/status")
        assert status.body["journal"]["last_offset"] == 100
        first = await poll(node, "slow", max=1000)
        assert 0 < len(first) < 100, "an answer is bounded in bytes"
        await poll(node, "slow", after=99)
        read = b""
        while read.count(b"\n\n") < 101:
            read += await news.response.content.readany()
    found = [json.loads(line[6:]) for line in read.split(b"\n") if line.startswith(b"data: ")]
    assert numbers(found) == list(range(100))


async def test_streams_and_waiting_polls_end_with_the_node(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with stream(node, "end") as news:
            waiting = asyncio.ensure_future(poll(node, "end", wait=200))
            await post(node, "end:x", {"n": 1})
            assert numbers(await waiting) == [1]
            waiting = asyncio.ensure_future(poll(node, "end", wait=200, after=1))
            await news.take(1)
            assert node.process is not None
            node.process.send_signal(signal.SIGTERM)
            assert b"data" not in await asyncio.wait_for(news.response.content.read(), PATIENCE)
            await asyncio.gather(waiting, return_exceptions=True)
        assert await asyncio.to_thread(node.process.wait, 10) == 0
        assert "Traceback" not in node.log()


async def test_a_path_that_means_a_topic_is_told_the_address_of_its_events(node: NodeProcess) -> None:
    for method, path in (("GET", "A/B"), ("GET", "A/B/events"), ("POST", "A/B/events")):
        refused = await ask(method, f"{node.base}/topics/{path}")
        assert (refused.status, "'/topics/A:B/events'" in refused.body["error"]) == (404, True), path


async def test_a_fixed_tree_knows_its_topics_only(tmp_path: Path) -> None:
    (tmp_path / "topics.toml").write_text("[topics.ALL]\n[topics.ALL.ALARM]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(tmp_path / "topics.toml")) as node:
        refused = await post(node, "ALL:ALRM", {"n": 1})
        assert refused.status == 404
        assert "ALL:ALARM" in refused.body["error"]
        assert (await ask("GET", f"{node.base}/topics/NONE/events")).status == 404
        sse = {"Accept": "text/event-stream"}
        assert (await ask("GET", f"{node.base}/topics/NONE/events", headers=sse)).status == 404
        assert (await post(node, "ALL:ALARM", {"n": 1})).status == 202
        assert numbers(await poll(node, "ALL")) == [1]


@pytest.mark.parametrize(
    ("data", "kind", "status", "words"),
    [
        (b'{"a": 1,\n "b" 2}', JSON, 400, "line 2, column 6"),
        (b'{"a": 1}\n{"b": }', NDJSON, 400, "line 2, column 7"),
        (b"[]", JSON, 400, "empty"),
        (b"", NDJSON, 400, "no event"),
        (b"[1]", JSON, 400, "item 1 is a number"),
        (b'{"a": "\\u0000"}', JSON, 400, "U+0000"),
        (b"{}", "text/plain", 415, "application/json"),
        (b"[" + b"{}," * 10_000 + b"{}]", JSON, 413, "10000"),
        (b'{"a": "' + b"x" * (17 << 20) + b'"}', JSON, 413, "server.body_limit"),
        (b'{"' + b"n" * 99_999 + b'": [' + b"0," * 99_999 + b"0]}", JSON, 413, "as XML"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, JSON, 400, "deeper"),
    ],
)
async def test_what_cannot_be_published_is_refused_and_nothing_is_stored(
    shared_node: NodeProcess, data: bytes, kind: str, status: int, words: str
) -> None:
    reply = await post(shared_node, "refused", data, kind)
    assert (reply.status, words in reply.body["error"]) == (status, True), reply
    assert await poll(shared_node, "refused") == []


async def test_bad_json_names_line_and_column_as_numbers(shared_node: NodeProcess) -> None:
    reply = await post(shared_node, "refused", b'{"a": 1,\n "b" 2}')
    assert (reply.body["line"], reply.body["column"]) == (2, 6)


async def test_a_bad_predicate_names_its_column_as_a_number(shared_node: NodeProcess) -> None:
    url = f"{shared_node.base}/topics/a/events"
    reply = await ask("GET", url, params={"filter": "speed >> 60"})
    assert (reply.status, reply.body["column"]) == (400, 8)
    assert "column 8" in reply.body["error"]


@pytest.mark.parametrize(
    ("topic", "params", "words"),
    [
        ("a b", {}, "topic"),
        ("a", {"after": "x"}, "after"),
        ("a", {"after": "-1"}, "after"),
        ("a", {"after": ""}, "after"),
        ("a", {"max": ""}, "max"),
        ("a", {"wait": ""}, "wait"),
        ("a", {"max": "0"}, "max"),
        ("a", {"wait": "inf"}, "wait"),
        ("a", {"filter": "n >", "dialect": "xpath"}, "XPath"),
        ("a", {"filter": "n >"}, "column 4"),
        ("a", {"filter": "n > 2 and n < 1"}, "never match"),
        ("a", {"filter": "n > 2", "dialect": "sql"}, "dialect"),
        ("a", {"filter": "p:n"}, "prefix"),
        ("a", {"filter": "//*[//*[//*[//*[//*]]]]"}, "fewer levels"),
        ("a", {"filtr": "n > 2"}, "filter, dialect"),
    ],
)
async def test_what_cannot_be_read_is_refused_with_the_value(
    shared_node: NodeProcess, topic: str, params: dict[str, str], words: str
) -> None:
    for accept in ("application/json", "text/event-stream"):
        url = f"{shared_node.base}/topics/{topic}/events"
        if accept == "text/event-stream" and params.keys() & {"max", "wait"}:
            continue
        reply = await ask("GET", url, params=params, headers={"Accept": accept})
        assert (reply.status, words in reply.body["error"]) == (400, True), reply


async def test_a_bad_last_event_id_is_refused_to_a_poll_as_to_a_stream(shared_node: NodeProcess) -> None:
    for accept in ("application/json", "text/event-stream"):
        headers = {"Accept": accept, "Last-Event-ID": "x"}
        reply = await ask("GET", f"{shared_node.base}/topics/a/events", headers=headers)
        assert (reply.status, "Last-Event-ID" in reply.body["error"]) == (400, True)


async def test_a_parameter_with_a_slip_publishes_nothing_and_one_against_caches_is_let_pass(
    shared_node: NodeProcess,
) -> None:
    url = f"{shared_node.base}/topics/slips/events"
    refused = await ask("POST", url, params={"reliabel": "true"}, json={"n": 1})
    assert (refused.status, "id, reliable, partial" in refused.body["error"]) == (400, True)
    assert await poll(shared_node, "slips", _="1763300000") == []


async def test_another_method_is_told_which_ones_there_are(shared_node: NodeProcess) -> None:
    reply = await ask("DELETE", f"{shared_node.base}/topics/a/events")
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD, POST")
    assert "DELETE" in reply.body["error"]


async def test_a_wait_may_be_written_as_any_number_of_json(shared_node: NodeProcess) -> None:
    for wait in ("0", "0.001", "1e-3", "1E-300", "0.00100000000000000002"):
        assert await poll(shared_node, "quiet", wait=wait) == []


async def test_a_topic_of_another_namespace_is_read_by_its_full_name(shared_node: NodeProcess) -> None:
    body = notify("p:A/B", "<n>1</n>", dialect=CONCRETE).replace("<w:Topic", '<w:Topic xmlns:p="urn:p"')
    await call(shared_node.url, body)
    events = await poll(shared_node, "%7Burn:p%7DA")
    assert [event["topic"] for event in events] == ["{urn:p}A:B"]


async def test_a_journal_that_is_full_is_a_503_that_says_when_to_come_back(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "journal.max_bytes=1MiB") as node:

        async def full() -> bool:
            reply = await post(node, "full", {"blob": "x" * 100_000})
            return reply.status == 503 and int(reply.headers["Retry-After"]) >= 1 and "error" in reply.body

        await eventually(full)
        assert await poll(node, "full"), "and what is there can be read"
