"""What a node tells about itself: session, history, alerts, events log and live stream, on real nodes."""

import asyncio
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hpwsn.monitoring.node_history import FIGURES
from hpwsn_client import __version__
from tests.harness import NodeProcess
from tests.live_stream import Stream, live
from tests.patience import eventually, patience
from tests.raw_soap import call, notify, subscribe

ALERTS_AT_ONCE = ("--set", "monitoring.alert_after=0", "--set", "monitoring.alert_keep=0")


async def get(node: NodeProcess, path: str, status: int = 200) -> Any:
    """The JSON at a path."""
    async with aiohttp.ClientSession() as session, session.get(node.base + path) as answer:
        assert answer.status == status, await answer.text()
        assert answer.content_type == "application/json"
        return await answer.json()


async def sampled(node: NodeProcess, count: int = 2) -> dict[str, Any]:
    """The history of the last 5 minutes, once it has so many samples."""
    found: dict[str, Any] = {}

    async def enough() -> bool:
        nonlocal found
        found = await get(node, "/history")
        return sum(value is not None for value in found["series"]["cpu"]["mean"]) >= count

    await eventually(enough)
    return found


async def events(node: NodeProcess) -> list[tuple[str, str]]:
    """Kind and text of the logged events, newest first."""
    return [(one["kind"], one["text"]) for one in (await get(node, "/events-log"))["items"]]


async def subscribed(node: NodeProcess, consumer: str) -> str:
    """The path of a new subscription to A in the operator API."""
    address = (await call(node.url, subscribe(consumer, "A"))).text(".//a:Address")
    return f"/subscriptions/{address.rpartition('/')[2]}"


async def test_a_session_says_who_and_where_the_client_is(shared_node: NodeProcess) -> None:
    session = await get(shared_node, "/session")
    assert datetime.fromisoformat(session.pop("time")).utcoffset() is not None
    assert isinstance(session.pop("node"), str)
    topics = session.pop("topics")
    assert set(topics) == {"source", "editable", "why_not"}
    assert topics["editable"] is (topics["why_not"] is None)
    assert session == {
        "kind": "node",
        "version": __version__,
        "principal": "anonymous",
        "may": ["publish", "subscribe", "read", "manage", "stream", "operate"],
    }


async def test_a_session_cannot_be_posted_yet(shared_node: NodeProcess) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{shared_node.base}/session", json={}) as answer,
    ):
        assert answer.status == 405
        assert "error" in await answer.json()


async def test_a_history_is_compressed_for_clients_that_take_it(shared_node: NodeProcess) -> None:
    sizes = {}
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        for coding in ("identity", "gzip"):
            headers = {"Accept-Encoding": coding}
            async with session.get(f"{shared_node.base}/history?range=24h", headers=headers) as answer:
                assert answer.headers.get("Content-Encoding", "identity") == coding
                sizes[coding] = len(await answer.read())
    assert sizes["gzip"] < sizes["identity"] / 5


async def test_the_history_has_every_figure_of_the_node(shared_node: NodeProcess) -> None:
    name = (await get(shared_node, "/session"))["node"]
    history = await sampled(shared_node)
    assert set(history) == {"from", "step", "series", "restarts"}
    assert history["step"] == 1
    assert history["restarts"] == []
    assert set(history["series"]) == set(FIGURES)
    for figure, series in history["series"].items():
        assert [len(series[which]) for which in ("min", "mean", "max")] == [300] * 3, figure
    last = [value for value in history["series"]["memory"]["mean"] if value is not None][-1]
    assert 10e6 < last < 1e9
    one = await get(shared_node, f"/history?node={name}&range=24h&metrics=cpu,files")
    assert set(one["series"]) == {"cpu", "files"}
    assert one["step"] == 60
    assert one["series"]["files"]["max"][-1] > 5


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/history?range=2d", 400, "range is '2d'; give 5m, 1h, 24h"),
        ("/history?metrics=cpu,speed", 400, "metrics has 'speed'"),
        ("/history?metrics=", 400, "metrics has ''"),
        ("/history?node=nobody", 404, "'nobody'"),
        ("/history?node=hall%202%2F", 404, "ask another node by /nodes/hall%202%2F/history"),
        (f"/history?node={'n' * 81}", 404, "/nodes/NAME/history"),
        ("/history?node=%ff", 404, "/history"),
        ("/history?rage=5m", 400, "parameter 'rage' is unknown"),
        ("/alerts?limit=0", 400, "limit is '0'"),
        ("/alerts?after=a%20b", 400, "after is 'a b'"),
        ("/events-log?after=x", 400, "after is 'x'"),
        ("/events-log?limit=-1", 400, "limit is '-1'"),
        ("/events-log?kind=start", 400, "parameter 'kind' is unknown"),
        ("/live?kinds=status,weather", 400, "kinds has 'weather'"),
        ("/live?kinds=", 400, "kinds has ''"),
        ("/live?seconds=86401", 400, "seconds is '86401'"),
        ("/live?seconds=nan", 400, "seconds is 'nan'"),
        ("/live?kind=status", 400, "parameter 'kind' is unknown"),
        ("/session?user=mia", 400, "parameter 'user' is unknown"),
    ],
)
async def test_a_bad_parameter_is_named(shared_node: NodeProcess, path: str, status: int, words: str) -> None:
    assert words in (await get(shared_node, path, status))["error"]


async def test_an_answer_is_counted_by_the_status_that_is_sent(node: NodeProcess) -> None:
    foreign = {"Origin": "http://evil.example"}
    for path in ("live?seconds=x", "history?range=z", "alerts?limit=0", "session?x=1", "events-log?limit=x"):
        await get(node, f"/{path}", 400)
    await get(node, "/history?node=nobody", 404)
    await get(node, "/no/such/path", 404)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{node.base}/subscriptions", json={}, headers=foreign) as answer,
    ):
        assert answer.status == 403
    counts = (await get(node, "/status"))["http"]["requests"]["operator"]
    assert (counts["4xx"], counts.get("5xx", 0)) == (8, 0)


async def test_history_and_events_outlive_a_clean_stop(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        before = await sampled(node)
        await asyncio.to_thread(node.terminate)
        await asyncio.to_thread(node.start)
        after = await get(node, "/history?range=5m&metrics=topics")
        assert sum(value is not None for value in after["series"]["topics"]["mean"]) >= 2
        assert before["restarts"] == []
        assert len(after["restarts"]) == 1
        assert [kind for kind, _ in await events(node)] == ["start", "stop", "start"]


async def test_after_kill_9_the_crash_is_told_and_what_was_saved_is_there(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        await sampled(node)
        await asyncio.to_thread(node.terminate)
        await asyncio.to_thread(node.start)
        await asyncio.to_thread(node.kill)
        await asyncio.to_thread(node.start)
        history = await get(node, "/history?metrics=topics")
        assert sum(value is not None for value in history["series"]["topics"]["mean"]) >= 2
        assert [kind for kind, _ in await events(node)] == ["start", "crash", "start", "stop", "start"]


async def test_damaged_files_are_told_and_stop_nothing(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        await sampled(node)
        await asyncio.to_thread(node.terminate)
        (history,) = (tmp_path / "data" / "history").glob("*.history")
        history.write_bytes(b"not a history")
        with (tmp_path / "data" / "events.log").open("ab") as log:
            log.write(b'{"half a line')
        await asyncio.to_thread(node.start)
        found = await events(node)
        assert [kind for kind, _ in found] == ["problem", "problem", "start", "stop", "start"]
        assert "history" in found[0][1]
        assert "is damaged" in found[0][1]
        assert "1 lines of the events log" in found[1][1]
        assert (await sampled(node))["restarts"] == []


async def test_the_events_log_has_subscriptions_and_pages(node: NodeProcess) -> None:
    for number in range(40):
        await call(node.url, subscribe(f"http://127.0.0.1:9/{number}", "A"))
    page = await get(node, "/events-log?limit=20")
    rest = await get(node, f"/events-log?limit=1000&after={page['next']}")
    assert set(page) == {"items", "next", "total"}
    assert set(page["items"][0]) == {"time", "kind", "text", "who"}
    assert len(page["items"]) == 20
    assert rest["next"] is None
    assert page["total"] == rest["total"] == len(rest["items"]) + 20
    kinds = [one["kind"] for one in (*page["items"], *rest["items"])]
    assert 30 <= kinds.count("subscription") < 40
    assert re.match(r"created: subscription \S+ to A for http://127.0.0.1:9/\d+$", page["items"][0]["text"])


async def test_actions_of_operators_are_logged_and_nothing_else(node: NodeProcess) -> None:
    path = await subscribed(node, "http://127.0.0.1:9/x")
    async with aiohttp.ClientSession() as session:
        await session.delete(node.base + path)
        await session.delete(node.base + path)  # 404: it changes nothing
        await session.post(f"{node.base}/deadletters/drop", json={"all": True})
        await session.post(f"{node.base}/topics/A/events", json={"n": 1})
    actions = [one for one in (await get(node, "/events-log"))["items"] if one["kind"] == "action"]
    assert [(one["text"], one["who"]) for one in actions] == [
        ("POST /deadletters/drop", "anonymous"),
        (f"DELETE {path}", "anonymous"),
    ]


async def test_a_consumer_that_fails_is_an_alert_until_its_subscription_ends(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *ALERTS_AT_ONCE) as node:
        assert await get(node, "/alerts") == {"items": [], "next": None, "total": 0}
        path = await subscribed(node, "http://127.0.0.1:9/gone")
        async with aiohttp.ClientSession() as session:
            await session.post(f"{node.base}/topics/A/events", json={"n": 1})

            async def alerted(names: list[str]) -> bool:
                return [one["name"] for one in (await get(node, "/alerts"))["items"]] == names

            await eventually(lambda: alerted(["ConsumersFailing"]))
            (alert,) = (await get(node, "/alerts"))["items"]
            assert set(alert) == {"name", "severity", "since", "text", "remedy", "view"}
            assert (alert["severity"], alert["view"]) == ("warning", "subscriptions")
            assert "http://127.0.0.1:9/gone" in alert["text"]
            await session.delete(node.base + path)
            await eventually(lambda: alerted([]))
        texts = [text for _, text in await events(node)]
        assert "alert ConsumersFailing is over" in texts
        assert any(text.startswith("alert ConsumersFailing: 1 consumer") for text in texts)


async def test_thresholds_raise_alerts_at_their_edge(tmp_path: Path) -> None:
    limits = ("--set", "monitoring.backlog=3", "--set", "delivery.max_queue=4")
    with NodeProcess(tmp_path / "data", *ALERTS_AT_ONCE, *limits) as node:
        await call(node.url, subscribe("http://127.0.0.1:9/gone", "A"))
        async with aiohttp.ClientSession() as session:

            async def names_with(count: int) -> set[str]:
                await session.post(f"{node.base}/topics/A/events", json={"n": count})
                waiting: list[float] = []

                async def seen() -> bool:
                    nonlocal waiting
                    history = await get(node, "/history?metrics=waiting")
                    waiting = history["series"]["waiting"]["mean"]
                    return count in waiting

                await eventually(seen)
                return {one["name"] for one in (await get(node, "/alerts"))["items"]} - {"ConsumersFailing"}

            await names_with(1)
            assert await names_with(2) == set()
            assert await names_with(3) == {"ConsumersBehind"}
            assert await names_with(4) == {"ConsumersBehind", "QueuesNearLimit"}


async def test_dead_letters_are_an_alert_an_event_and_a_figure(tmp_path: Path) -> None:
    settings = (*ALERTS_AT_ONCE, "--set", "delivery.retry_for=0", "--set", "delivery.retry_first=0.01")
    with NodeProcess(tmp_path / "data", *settings) as node:
        await call(node.url, subscribe("http://127.0.0.1:9/gone", "A"))
        async with aiohttp.ClientSession() as session:
            await session.post(f"{node.base}/topics/A/events", json={"n": 1})

        async def counted() -> bool:
            history = await get(node, "/history?metrics=dead_letters")
            return 1 in history["series"]["dead_letters"]["mean"]

        await eventually(counted)
        assert "NewDeadLetters" in [one["name"] for one in (await get(node, "/alerts"))["items"]]
        assert "dead-letters" in [kind for kind, _ in await events(node)]


async def test_a_live_status_is_the_status(node: NodeProcess) -> None:
    async with live(node, "?kinds=status") as stream:
        told = await stream.until("status")
        then = await stream.until("status")
    status = await get(node, "/status")
    assert told.keys() == status.keys()
    assert told["process"].keys() == status["process"].keys()
    assert {"cpu", "rss", "threads", "files"} <= told["process"].keys()
    assert then["uptime"] > told["uptime"]


async def test_ten_readers_get_the_same_bytes(node: NodeProcess) -> None:
    async def read(stream: Stream) -> bytes:
        await stream.until("status")
        stream.raw = b""
        await call(node.url, subscribe("http://127.0.0.1:9/x", "A"))
        while stream.raw.count(b"event: status") < 3:
            await stream.event()
        return stream.raw

    async def follow() -> bytes:
        async with live(node) as stream:
            return await read(stream)

    taken = await asyncio.gather(*(follow() for _ in range(10)))
    blocks = [dict(re.findall(rb"id: (\S+)\n(.*\n.*)\n\n", each)) for each in taken]
    shared = set(blocks[0]).intersection(*blocks)
    assert len(shared) >= 2
    assert all(each[number] == blocks[0][number] for each in blocks for number in shared)


async def test_changes_are_told_to_those_who_asked(node: NodeProcess) -> None:
    async with live(node, "?kinds=subscriptions,topics") as stream:
        revision = (await get(node, "/topics"))["revision"]
        assert await stream.event() == ("topics", {"revision": revision, "total": 0, "busiest": []})
        counts = {"live": 0, "paused": 0, "retrying": 0, "expired": 0}
        assert await stream.event() == ("subscriptions", {"total": 0, "counts": counts})
        path = await subscribed(node, "http://127.0.0.1:9/x")
        found = dict([await stream.event(), await stream.event()])
        assert found["subscriptions"] == {"total": 1, "counts": counts | {"live": 1}}
        assert (found["topics"]["total"], found["topics"]["busiest"]) == (1, [])
        assert found["topics"]["revision"] != revision
        async with (
            aiohttp.ClientSession() as session,
            session.patch(node.base + path, json={"paused": True}) as answer,
        ):
            assert answer.status == 200
        assert await stream.event() == ("subscriptions", {"total": 1, "counts": counts | {"paused": 1}})


async def test_the_busiest_topics_are_told_while_they_have_events(node: NodeProcess) -> None:
    async with live(node, "?kinds=topics") as stream:
        for number in range(11):
            for _ in range(1 if number else 2):
                assert (await call(node.url, notify(f"T{number}", "<n/>"))).status == 202
        async with patience():
            while len(busiest := (await stream.until("topics"))["busiest"]) < 10:
                pass
        assert busiest[0]["topic"] == "T0"
        rates = [each["rate"] for each in busiest]
        assert rates[0] > rates[1] == rates[9] > 0


async def test_a_reader_comes_back_with_its_last_id(node: NodeProcess) -> None:
    async with live(node) as other:
        async with live(node, "?kinds=status") as stream:
            uptime = (await stream.until("status"))["uptime"]
        last = stream.last_id
        for _ in range(3):
            await other.until("status")
        async with live(node, "?kinds=status", last) as stream:
            missed = [await stream.event() for _ in range(3)]
    assert [kind for kind, _ in missed] == ["status"] * 3
    assert all(data["uptime"] > uptime for _, data in missed)
    await asyncio.to_thread(node.terminate)
    await asyncio.to_thread(node.start)
    async with live(node, "?kinds=status", last) as stream:
        kind, data = await stream.event()
        assert kind == "reset"
        assert "read" in data["why"]
        assert (await stream.event())[0] == "status"


async def test_streams_end_cleanly_when_the_node_stops(node: NodeProcess) -> None:
    async with live(node) as stream, live(node, "?kinds=alerts") as silent:
        await stream.until("status")
        stopped = asyncio.create_task(asyncio.to_thread(node.terminate))
        async with patience():
            await stream.response.content.read()
            await silent.response.content.read()
        assert await stopped == 0


async def test_a_stream_ends_after_its_seconds(node: NodeProcess) -> None:
    async with live(node, "?kinds=alerts&seconds=0.05") as stream, patience():
        await stream.response.content.read()


async def test_an_http_1_0_client_gets_a_stream_without_chunks(node: NodeProcess) -> None:
    host, port = node.base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /live?kinds=status&seconds=2.5 HTTP/1.0\r\n\r\n")
    async with patience():
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert re.match(rb": live\n\nid: \S+\nevent: status\ndata: \{.*\}\n\n", body)
