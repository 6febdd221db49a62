"""Internal topics: only a reader with the token of jobs gets their events."""

from __future__ import annotations

import asyncio
import json
import stat

import aiohttp
import pyarrow as pa
import pytest

from tests.harness import NodeProcess
from tests.internal_topics import PLATE, get, internal_node, internal_tree, post, publish_both, shows, token
from tests.patience import eventually, patience
from tests.raw_soap import send

__all__ = ["internal_node", "internal_tree"]

ROWS, ARROW = "application/vnd.hpwsn.rows", "application/vnd.apache.arrow.stream"
PROTOBUF = "application/x-protobuf"
FORMS = ["application/json", ROWS, ARROW, PROTOBUF]


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


async def test_operators_see_counts_and_no_content(node: NodeProcess) -> None:
    await publish_both(node)
    for path in ("/status", "/metrics", "/subscriptions", "/deadletters", "/streams", "/registrations", "/"):
        _, _, body = await get(node, path)
        assert PLATE.encode() not in body
        assert token(node).encode() not in body
