"""Web pages of other origins: what a browser lets them do, by the headers that the node sends (CORS)."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
import pytest

from tests.harness import NodeProcess

MAPS = "https://maps.example"
EVIL = "https://evil.example"


async def ask(
    node: NodeProcess, method: str, path: str, headers: Mapping[str, str], json: object = None
) -> aiohttp.ClientResponse:
    async with aiohttp.ClientSession() as session:
        response = await session.request(method, f"{node.base}{path}", headers=headers, json=json)
        await response.read()
        return response


@pytest.fixture
def open_node(node: NodeProcess) -> NodeProcess:
    """A node that lets the pages of one other origin in."""
    node.terminate()
    node.arguments += ("--set", f"server.cors_origins={MAPS}")
    node.start()
    return node


async def test_a_listed_page_reads_writes_and_is_told_what_it_may_send(open_node: NodeProcess) -> None:
    preflight = await ask(
        open_node,
        "OPTIONS",
        "/topics/ring/events",
        {
            "Origin": MAPS,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
            "Access-Control-Request-Private-Network": "true",
        },
    )
    assert preflight.status == 204
    assert preflight.headers["Access-Control-Allow-Origin"] == MAPS
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"].split(", ")
    assert "Content-Type" in preflight.headers["Access-Control-Allow-Headers"].split(", ")
    assert preflight.headers["Access-Control-Allow-Private-Network"] == "true"
    posted = await ask(open_node, "POST", "/topics/ring/events", {"Origin": MAPS}, {"n": 1})
    assert (posted.status, posted.headers["Access-Control-Allow-Origin"]) == (202, MAPS)
    read = await ask(open_node, "GET", "/topics/ring/events", {"Origin": MAPS})
    assert [event["data"] for event in await read.json()] == [{"n": 1}]
    assert "Hpwsn-After" in read.headers["Access-Control-Expose-Headers"].split(", ")
    assert read.headers["Vary"] == "Origin"
    missing = await ask(open_node, "GET", "/nothing", {"Origin": MAPS})
    assert (missing.status, missing.headers["Access-Control-Allow-Origin"]) == (404, MAPS)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{open_node.base}/topics/ring/events", origin=MAPS),
    ):
        pass


async def test_a_stream_of_events_has_the_headers_before_its_first_event(open_node: NodeProcess) -> None:
    headers = {"Origin": MAPS, "Accept": "text/event-stream"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{open_node.base}/topics/ring/events", headers=headers) as response,
    ):
        assert response.headers["Access-Control-Allow-Origin"] == MAPS


async def test_another_page_writes_nothing_and_reads_no_answer(open_node: NodeProcess) -> None:
    for origin in (EVIL, "null", "http://[", f"{MAPS}.evil.example"):
        posted = await ask(open_node, "POST", "/topics/ring/events", {"Origin": origin}, {"n": 1})
        assert (posted.status, "server.cors_origins" in (await posted.json())["error"]) == (403, True)
        read = await ask(open_node, "GET", "/topics/ring/events", {"Origin": origin})
        assert "Access-Control-Allow-Origin" not in read.headers
        assert (await read.json(), read.headers["Vary"]) == ([], "Origin")
        preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        assert (await ask(open_node, "OPTIONS", "/topics/ring/events", preflight)).status == 405


async def test_by_default_only_pages_of_the_node_itself_write(shared_node: NodeProcess) -> None:
    path = "/topics/own-pages/events"
    assert (await ask(shared_node, "POST", path, {"Origin": EVIL}, {"n": 1})).status == 403
    rebound = f"evil.example:{shared_node.port}"
    headers = {"Origin": f"http://{rebound}", "Host": rebound}
    assert (await ask(shared_node, "POST", path, headers, {"n": 1})).status == 403
    own = await ask(shared_node, "POST", path, {"Origin": shared_node.base}, {"n": 1})
    assert (own.status, "Vary" in own.headers, "Access-Control-Allow-Origin" in own.headers) == (
        202,
        False,
        False,
    )
    assert (await ask(shared_node, "POST", path, {}, {"n": 2})).status == 202
    read = await ask(shared_node, "GET", path, {"Origin": EVIL})
    assert "Access-Control-Allow-Origin" not in read.headers


async def test_a_write_from_another_site_is_refused_without_an_origin_too(open_node: NodeProcess) -> None:
    path = "/topics/sites/events"
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 202), ("none", 202)):
        posted = await ask(open_node, "POST", path, {"Sec-Fetch-Site": site}, {"n": 1})
        assert (site, posted.status) == (site, status)
    listed = {"Origin": MAPS, "Sec-Fetch-Site": "cross-site"}
    assert (await ask(open_node, "POST", path, listed, {"n": 1})).status == 202
    own = {"Origin": open_node.base, "Sec-Fetch-Site": "cross-site"}
    assert (await ask(open_node, "POST", path, own, {"n": 1})).status == 403
    assert (await ask(open_node, "GET", path, {"Sec-Fetch-Site": "cross-site"})).status == 200


async def test_the_node_s_page_may_be_opened_as_localhost(shared_node: NodeProcess) -> None:
    path, own = "/topics/own-pages/events", f"localhost:{shared_node.port}"
    headers = {"Origin": f"http://{own}", "Host": own, "Sec-Fetch-Site": "same-origin"}
    assert (await ask(shared_node, "POST", path, headers, {"n": 1})).status == 202
    other = {"Origin": "http://localhost:1", "Host": own}
    assert (await ask(shared_node, "POST", path, other, {"n": 1})).status == 403


async def test_a_page_under_a_name_that_leads_to_the_node_opens_no_socket(shared_node: NodeProcess) -> None:
    rebound = f"evil.example:{shared_node.port}"
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(
                f"{shared_node.base}/topics/own-pages/events",
                origin=f"http://{rebound}",
                headers={"Host": rebound},
            )
    assert refused.value.status == 403


async def test_a_page_of_the_public_url_writes_through_a_proxy_that_changes_the_host(
    node: NodeProcess,
) -> None:
    node.terminate()
    node.arguments += ("--set", "server.public_url=https://Broker.example:443/b")
    node.start()
    path, public = "/topics/public/events", "https://broker.example"
    for site, status in (("same-origin", 202), ("cross-site", 403)):
        headers = {"Origin": public, "Sec-Fetch-Site": site}
        assert (site, (await ask(node, "POST", path, headers, {"n": 1})).status) == (site, status)
    for origin in ("http://broker.example", "https://broker.example:8443", EVIL):
        assert (await ask(node, "POST", path, {"Origin": origin}, {"n": 1})).status == 403
