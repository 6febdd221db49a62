"""Stream services at a real node: the registry, requests outside of constraints, every mode of delivery."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import signal
import subprocess
import sys
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

import aiohttp
import pytest

from hpwsn.commands.main import main
from hpwsn.streams.spark.reading.broker_link import BrokerLink
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from tests.consumer import Consumer
from tests.harness import NodeProcess, environment, hpwsn
from tests.patience import PATIENCE, eventually, patience
from tests.raw_soap import call, subscribe
from tests.scraped import scrape
from tests.stream_examples import examples

FLOW = {
    "topic": "traffic:flow",
    "instance": "run-1",
    "description": "Vehicles by camera",
    "attributes": {"cid": "string", "flow": "bigint"},
    "constraints": {"flow": "> 0"},
    "inputs": {"anpr": "topic roads:anpr"},
    "figures": {"rows_per_second": 12.5},
}
OUTSIDE = "flow &lt; 0 lies outside the constraint flow: &gt; 0"


async def ask(method: str, url: str, **more: Any) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.request(method, url, **more) as response:
        text = await response.text()
        return response.status, json.loads(text) if text else None


def content(expression: str) -> str:
    return f'<w:MessageContent Dialect="{DIALECT_PREDICATES}">{expression}</w:MessageContent>'


def events_url(node: NodeProcess, topic: str) -> str:
    return f"{node.base}/topics/{topic}/events"


async def test_a_service_is_listed_changed_kept_over_a_restart_and_removed(node: NodeProcess) -> None:
    one = f"{node.base}/streams/urn%3Acity%2Fflow"
    assert await ask("GET", f"{node.base}/streams") == (200, {"items": [], "next": None, "total": 0})
    assert (await ask("PUT", one, json=FLOW))[0] == 200
    status, answer = await ask("PUT", one, json=FLOW | {"instance": "run-2"})
    assert (status, "another checkpoint" in answer["error"]) == (409, True)
    assert (await ask("PUT", one, json=FLOW | {"constraints": {"flow": ">"}}))[0] == 400
    assert (await ask("PUT", one, data=b"{"))[0] == 400
    assert (await ask("PUT", one, data=io.BytesIO(b" " * 2**20 + b"{}")))[0] == 413
    node.kill()
    node.start()
    ((_, answer),) = [await ask("GET", f"{node.base}/streams")]
    found = answer["items"][0]
    assert {name: found[name] for name in ("uri", "state", "topic", "constraints")} == {
        "uri": "urn:city/flow",
        "state": "silent",
        "topic": "traffic:flow",
        "constraints": {"flow": "> 0"},
    }
    refused = await call(
        node.url, subscribe("http://127.0.0.1:9/", "traffic:flow", filters=content("flow &lt; 0"))
    )
    assert refused.fault == "InvalidFilterFault"
    assert OUTSIDE in refused.body.decode()
    assert (await ask("PUT", one, json=FLOW | {"instance": "run-2"}))[1]["state"] == "running"
    assert (await ask("DELETE", one))[0] == 204
    assert (await ask("DELETE", one))[0] == 404
    assert (await ask("GET", one))[0] == 404
    allowed = await call(
        node.url, subscribe("http://127.0.0.1:9/", "traffic:flow", filters=content("flow &lt; 0"))
    )
    assert allowed.status == 200


async def test_the_plan_that_a_job_registers_is_shown_and_kept(node: NodeProcess) -> None:
    one = f"{node.base}/streams/urn%3Aflow"
    plan = [
        {"op": "filter", "inputs": ["anpr"], "text": "filter speed > 60"},
        {"op": "count", "inputs": [0], "text": "count by cid"},
    ]
    assert (await ask("GET", one))[0] == 404
    assert (await ask("PUT", one, json=FLOW))[0] == 200
    assert (await ask("GET", one))[1]["plan"] is None
    status, answer = await ask("PUT", one, json=FLOW | {"plan": plan})
    assert (status, "plan" in answer) == (200, False)
    status, answer = await ask("PUT", one, json=FLOW | {"plan": [*plan, {"op": ""}]})
    assert (status, "plan, entry 2: op is missing" in answer["error"]) == (400, True)
    node.kill()
    node.start()
    assert (await ask("GET", one))[1]["plan"] == plan
    assert "plan" not in (await ask("GET", f"{node.base}/streams"))[1]["items"][0]
    # `stop` tells a service that the node does not run from one that it runs, with or without a plan.
    shown = await asyncio.to_thread(hpwsn, "streams", "show", "urn:flow", "--url", node.url)
    assert [line.split(maxsplit=3) for line in shown.stdout.splitlines()[-3:]] == [
        ["OP", "INPUTS", "TEXT"],
        ["0", "filter", "anpr", "filter speed > 60"],
        ["1", "count", "0", "count by cid"],
    ]
    stopped = await asyncio.to_thread(hpwsn, "streams", "stop", "urn:flow", "--url", node.url)
    assert "urn:flow is forgotten" in stopped.stdout


async def test_metrics_have_the_figures_of_every_service_with_its_uri_as_a_label(node: NodeProcess) -> None:
    figures = {"rows_per_second": 12.5, "lag": 3, "state_rows": 7, "failures": 1, "of my own": 5}
    for uri, state in (("urn%3Aa", "running"), ("urn%3A%22b%5C", "stopped")):
        document = FLOW | {"figures": figures, "state": state}
        assert (await ask("PUT", f"{node.base}/streams/{uri}", json=document))[0] == 200
    metrics = await asyncio.to_thread(scrape, node.base)
    of_each = [("rows_per_second", 12.5), ("lag", 3), ("state_rows", 7), ("failures_total", 1)]
    shown = {
        (sample.name, sample.labels["service"], sample.value)
        for name, family in metrics.families.items()
        if name.startswith("hpwsn_stream_")
        for sample in family.samples
    }
    assert shown == {
        (f"hpwsn_stream_{name}", uri, value)
        for uri, running in (('urn:"b\\', 0), ("urn:a", 1))
        for name, value in [("running", running), *of_each]
    }


async def test_the_list_comes_in_pages_and_each_service_once(
    node: NodeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    uris = sorted(["urn:é", "http://example.org/a", "urn:b", "a b", "urn:a"])
    for uri in uris:
        assert (await ask("PUT", f"{node.base}/streams/{quote(uri, safe='')}", json=FLOW))[0] == 200
    found: list[str] = []
    query = "?limit=2"
    while query:
        status, page = await ask("GET", f"{node.base}/streams{query}")
        assert (status, len(page["items"]) <= 2) == (200, True)
        found += [one["uri"] for one in page["items"]]
        # The cursor goes into the address as it is.
        query = page["next"] and f"?limit=2&after={page['next']}"
    assert found == uris
    for query in ("limit=0", "limit=x", "after=%25", "before=1"):
        assert (await ask("GET", f"{node.base}/streams?{query}"))[0] == 400
    assert await asyncio.to_thread(main, ["streams", "list", "--url", node.url, "--json"]) == 0
    assert [one["uri"] for one in json.loads(capsys.readouterr().out)["items"]] == uris


async def test_a_service_may_have_a_page_and_only_an_address_is_one(node: NodeProcess) -> None:
    one = f"{node.base}/streams/urn:page"
    status, answer = await ask("PUT", one, json=FLOW | {"ui": "http://localhost:4040"})
    assert (status, answer["ui"]) == (200, "http://localhost:4040")
    for ui in ("javascript:alert(1)", "http://a b", 5):
        assert (await ask("PUT", one, json=FLOW | {"ui": ui}))[0] == 400
    assert "ui" not in (await ask("PUT", one, json=FLOW))[1]


def watching(node: NodeProcess, output: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hpwsn", "streams", "list", "--watch", "0.1", "--url", node.url]
    return subprocess.Popen(command, stdout=output, env=environment())


def ended(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGINT)
    return process.wait(PATIENCE)


async def test_a_watched_list_is_repeated_until_ctrl_c_and_redrawn_on_a_terminal(node: NodeProcess) -> None:
    with watching(node, subprocess.PIPE) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"no services\n", b"\n", b"no services\n"]
        await ask("PUT", f"{node.base}/streams/urn:flow", json=FLOW)
        while b"urn:flow" not in process.stdout.readline():
            pass
        # A node that is away for a while ends nothing.
        node.terminate()
        while b"no node answers" not in process.stdout.readline():
            pass
        assert ended(process) == 0
    node.start()
    controller, terminal = pty.openpty()
    with watching(node, terminal) as process, os.fdopen(controller, "rb", buffering=0) as screen:
        seen = b""
        while seen.count(b"\x1b[H\x1b[2J") < 2:
            seen += screen.read(4096)
        assert b"urn:flow" in seen
        assert ended(process) == 0
        os.close(terminal)


async def test_one_service_is_shown_with_its_fields(
    node: NodeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    await ask("PUT", f"{node.base}/streams/urn%3Acity%2Fflow", json=FLOW)
    assert await asyncio.to_thread(main, ["streams", "show", "urn:city/flow", "--url", node.url]) == 0
    assert "figures      rows_per_second=12.5\n" in capsys.readouterr().out
    assert await asyncio.to_thread(main, ["streams", "show", "urn:none", "--url", node.url]) == 1


async def socket_events(response: aiohttp.ClientWebSocketResponse, number: int) -> list[dict[str, Any]]:
    async with patience():
        return [json.loads(await response.receive_str()) for _ in range(number)]


async def stream_events(response: aiohttp.ClientResponse, number: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async with patience():
        while len(found) < number:
            line = await response.content.readline()
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
    return found


async def test_polling_stream_socket_and_push_give_the_same_for_the_same_request(
    shared_node: NodeProcess,
) -> None:
    url, wanted = events_url(shared_node, "modes"), "n > 3 and kind = 'a'"
    some = [{"n": n, "kind": "ab"[n % 2]} for n in range(40)]
    params = {"filter": wanted, "after": "0"}
    expected = [event for event in some if event["n"] > 3 and event["kind"] == "a"]
    async with Consumer() as consumer, aiohttp.ClientSession() as session:
        filters = content(wanted.replace(">", "&gt;"))
        await call(shared_node.url, subscribe(consumer.url, "modes", filters=filters))
        await session.post(url, json=some[:20])
        async with (
            session.ws_connect(f"{url}?filter=n%20%3E%203%20and%20kind%20%3D%20'a'&after=0") as socket,
            session.get(url, params=params, headers={"Accept": "text/event-stream"}) as stream,
        ):
            # The second half comes while they are connected.
            await session.post(url, json=some[20:])
            by_socket = await socket_events(socket, len(expected))
            by_stream = await stream_events(stream, len(expected))
        polled = (await ask("GET", url, params=params))[1]
        await consumer.wait(lambda c: len(c.messages()) == len(expected))
        pushed = [int(message.findtext(".//n") or "") for message in consumer.messages()]
    assert by_socket == by_stream == polled
    assert [event["data"] for event in polled] == expected
    assert pushed == [event["n"] for event in expected]


async def test_a_request_outside_the_constraints_is_refused_in_every_mode(shared_node: NodeProcess) -> None:
    await ask("PUT", f"{shared_node.base}/streams/urn:refused", json=FLOW | {"topic": "refused"})
    url, params = events_url(shared_node, "refused"), {"filter": "flow < 0"}
    for headers in ({}, {"Accept": "text/event-stream"}):
        status, answer = await ask("GET", url, params=params, headers=headers)
        assert (status, "flow < 0 lies outside the constraint flow: > 0" in answer["error"]) == (400, True)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{url}?filter=flow%20%3C%200")
        assert refused.value.status == 400
        async with session.ws_connect(f"{url}?filter=flow%20%3E%205"):
            pass
    reply = await call(
        shared_node.url, subscribe("http://127.0.0.1:9/", "refused", filters=content("flow &lt; 0"))
    )
    assert (reply.fault, OUTSIDE in reply.body.decode()) == ("InvalidFilterFault", True)


REQUESTS = {
    "genTrafficFlow": ("flow > 10 and time > 2024-03-04", "flow < 0", "flow > 3 and time < 2009-01-01"),
    "getANPR": ("cid = 'cam-001' and time >= 2010-01-02", "time < 2009-01-01", "not exists(vid)"),
    "inteGPS": (
        "(longitude > 116 or latitude < 40) and not speed <= 60 and time > 2012-05-01T08:00:00Z",
        "time <= 2010-01-01",
        "longitude > 130 and latitude > 32 and speed < 50",
        "speed > 3 and (latitude < 39 or longitude < 116)",
    ),
    "companionVehicles": ("vid = '京A00001' and cameras > 4", "cameras < 3", "time < 2009-01-01"),
}
"""For each example service, a request within its constraints and some that have a part outside."""


@pytest.mark.parametrize("name", REQUESTS)
async def test_requests_within_the_constraints_of_an_example_are_accepted_and_others_refused(
    shared_node: NodeProcess, name: str
) -> None:
    service, (inside, *outside) = examples()[name], REQUESTS[name]
    document = FLOW | {"topic": f"held:{name}", "constraints": service.ranges}
    assert (await ask("PUT", f"{shared_node.base}/streams/urn:held:{name}", json=document))[0] == 200
    url = events_url(shared_node, document["topic"])

    async def by_soap(request: str) -> str:
        reply = await call(
            shared_node.url,
            subscribe("http://127.0.0.1:9/", document["topic"], filters=content(escape(request))),
        )
        return "accepted" if reply.status == 200 else reply.fault

    assert (await ask("GET", url, params={"filter": inside}))[0] == 200
    assert await by_soap(inside) == "accepted"
    for request in outside:
        status, answer = await ask("GET", url, params={"filter": request})
        assert (status, "lies outside the constraint" in answer["error"]) == (400, True)
        assert await by_soap(request) == "InvalidFilterFault"


async def test_a_year_as_a_number_is_refused_with_the_way_to_write_it(shared_node: NodeProcess) -> None:
    document = FLOW | {"topic": "years", "constraints": {"time": "> 2010-01-01"}}
    await ask("PUT", f"{shared_node.base}/streams/urn:years", json=document)
    _, answer = await ask("GET", events_url(shared_node, "years"), params={"filter": "time > 2012"})
    assert "lies outside the constraint time: > 2010-01-01 (a number is not a date; write" in answer["error"]


async def test_a_socket_says_where_it_begins_answers_pings_and_passes_over_what_it_is_told(
    shared_node: NodeProcess,
) -> None:
    url = events_url(shared_node, "told")
    async with aiohttp.ClientSession() as session:
        async with session.post(url, json={"n": 1}) as answer:
            last = (await answer.json())["last"]
        async with session.head(url) as ended:
            assert (ended.status, int(ended.headers["Hpwsn-After"]) >= last) == (200, True)
        # Events of other topics, which the log has as well, are none that wait.
        await session.post(events_url(shared_node, "told-not"), json={"n": 1})
        for after, waiting in ((0, "1"), (last, "0")):
            async with session.head(url, params={"after": after}) as ended:
                assert ended.headers["Hpwsn-Waiting"] == waiting
        async with session.ws_connect(url, headers={"Last-Event-ID": "0"}) as socket:
            assert (await socket_events(socket, 1))[0]["data"] == {"n": 1}
        async with session.ws_connect(url) as socket:
            assert int(socket._response.headers["Hpwsn-After"]) >= last
            await socket.send_str("hello")
            await socket.ping()
            await session.post(url, json={"n": 2})
            assert (await socket_events(socket, 1))[0]["data"] == {"n": 2}
            await socket.send_str("x" * 5000)
            async with patience():
                assert (await socket.receive()).data == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_pages_of_other_servers_open_no_socket_unless_they_are_named(
    shared_node: NodeProcess, node: NodeProcess
) -> None:
    async with aiohttp.ClientSession() as session:
        for origin in ("https://evil.example", "null"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(events_url(shared_node, "a"), origin=origin)
            assert refused.value.status == 403
        async with session.ws_connect(events_url(shared_node, "a"), origin=shared_node.base):
            pass
        node.terminate()
        node.arguments += ("--set", "server.websocket_origins=https://maps.example")
        node.start()
        async with session.ws_connect(events_url(node, "a"), origin="https://maps.example") as socket:
            node.process.terminate()
            async with patience():
                assert (await socket.receive()).data == aiohttp.WSCloseCode.GOING_AWAY

        async def ended() -> bool:
            return node.process.poll() == 0

        await eventually(ended)


async def test_what_asks_for_a_socket_and_is_no_handshake_is_told_so(shared_node: NodeProcess) -> None:
    status, answer = await ask("GET", events_url(shared_node, "a"), headers={"Upgrade": "websocket"})
    assert (status, "handshake" in answer["error"]) == (400, True)


async def test_what_a_sink_publishes_under_ids_is_in_the_log_once_whenever_the_node_is_killed(
    node: NodeProcess,
) -> None:
    def publish() -> None:
        link = BrokerLink(node.url)
        for request in range(60):
            lines = b"\n".join(b'{"n": %d}' % (request * 10 + row) for row in range(10))
            link.publish("killed", lines, f"urn:x#run/0/0/{request * 10}")
        link.close()

    async def found() -> list[int]:
        _, events = await ask("GET", events_url(node, "killed"), params={"max": "1000"})
        return [event["data"]["n"] for event in events]

    publishing = asyncio.create_task(asyncio.to_thread(publish))
    for some in (50, 250):

        async def has_come(some: int = some) -> bool:
            return len(await found()) >= some

        await eventually(has_come)
        node.kill()
        node.start()
    async with patience():
        await publishing
    assert await found() == list(range(600))
