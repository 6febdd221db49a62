"""The page as it is served by a real node and a real admin node, also behind a proxy with a prefix."""

from __future__ import annotations

import gzip
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from hpwsn.page.page_door import VIEWS
from hpwsn.page.page_files import JOINED, without_comments
from tests.cluster import AdminProcess
from tests.harness import NodeProcess
from tests.patience import PATIENCE

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
STATIC = Path(__file__).parents[2] / "hpwsn" / "page" / "static"
ADDRESS = re.compile(r'(?:src|href)="(?!data:)([^"]+)"')
PASSED = ("Accept", "Accept-Encoding", "If-None-Match")


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    """One admin node for the module."""
    with AdminProcess(tmp_path_factory.mktemp("admin") / "data") as running:
        yield running


@pytest.fixture(params=["node", "admin node"])
def server(request: pytest.FixtureRequest, shared_node: NodeProcess, admin: AdminProcess) -> NodeProcess:
    """Each of the two processes that serve the page."""
    return shared_node if request.param == "node" else admin


@pytest.fixture
async def proxied(shared_node: NodeProcess) -> AsyncIterator[str]:
    """The address of the node behind a reverse proxy that takes the prefix /broker away."""

    plain = ("Accept-Encoding",)

    async def forward(request: web.Request) -> web.Response:
        target = shared_node.base + request.rel_url.raw_path_qs.removeprefix("/broker")
        headers = {name: request.headers[name] for name in PASSED if name in request.headers}
        async with (
            aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=plain) as session,
            session.request(request.method, target, headers=headers, allow_redirects=False) as answer,
        ):
            kept = {name: value for name, value in answer.headers.items() if name != "Transfer-Encoding"}
            return web.Response(body=await answer.read(), status=answer.status, headers=kept)

    app = web.Application()
    app.router.add_route("*", "/broker/{rest:.*}", forward)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/broker"
    await runner.cleanup()


async def ask(
    address: str, headers: Mapping[str, str] = {}, method: str = "GET", follow: bool = False
) -> tuple[aiohttp.ClientResponse, bytes]:
    plain = ("Accept-Encoding",)  # unless a test asks for another coding
    async with aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=plain) as session:
        response = await session.request(method, address, headers=headers, allow_redirects=follow)
        return response, await response.read()


def ask_raw(server: NodeProcess, target: bytes) -> bytes:
    """The answer to a request whose target no client library would send."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b""))


async def test_a_browser_is_led_to_the_page_and_all_others_are_answered_as_ever(server: NodeProcess) -> None:
    browser, _ = await ask(f"{server.base}/", BROWSER)
    assert (browser.status, browser.headers["Location"], browser.headers["Vary"]) == (302, "ui/", "Accept")
    for headers in ({"Accept": "*/*"}, {"Accept": "application/json"}):
        other, text = await ask(f"{server.base}/", headers)
        assert (other.status, other.content_type) == (200, "text/plain")
        assert text.startswith(b"HPwsn ")
    assert "Set-Cookie" not in browser.headers


async def test_the_page_and_every_file_that_it_names_are_served(server: NodeProcess) -> None:
    response, text = await ask(f"{server.base}/ui/", BROWSER)
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    for address in ADDRESS.findall(text.decode()):
        file, content = await ask(f"{server.base}/ui/{address}", {"Accept-Encoding": "identity"})
        kept = b"".join((STATIC / part).read_bytes() for part in JOINED.get(address, (address,)))
        sent = without_comments(kept) if address.startswith("app/") else kept
        assert (address, file.status, content) == (address, 200, sent)
    for view in VIEWS:
        assert (await ask(f"{server.base}/ui/{view}"))[1] == text


async def test_every_file_of_ours_is_served_and_documents_have_the_policy_of_the_page(
    server: NodeProcess,
) -> None:
    policy = (await ask(f"{server.base}/ui/"))[0].headers["Content-Security-Policy"]
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    for path in sorted(STATIC.glob("*/**/*")):
        if path.is_file():
            response, _ = await ask(f"{server.base}/ui/{path.relative_to(STATIC)}")
            assert (path, response.status) == (path, 200)
            has_policy = path.suffix not in (".js", ".css", ".woff2")
            assert response.headers.get("Content-Security-Policy") == (policy if has_policy else None)
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_file_is_compressed_on_request_and_not_sent_again(server: NodeProcess) -> None:
    address = f"{server.base}/ui/vendor/preact.module.js"
    packed, content = await ask(address, {"Accept-Encoding": "gzip, br"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(content) == (STATIC / "vendor" / "preact.module.js").read_bytes()
    again, nothing = await ask(
        address, {"Accept-Encoding": "gzip, br", "If-None-Match": packed.headers["ETag"]}
    )
    assert (again.status, nothing) == (304, b"")
    head, nothing = await ask(address, {"Accept-Encoding": "gzip"}, "HEAD")
    assert (head.status, nothing) == (200, b"")
    assert head.headers["Content-Length"] == str(len(content))


async def test_nothing_outside_the_page_can_be_read(server: NodeProcess) -> None:
    for target in (
        b"/ui/app/../../page_door.py",
        b"/ui/../../../../../../etc/hostname",
        b"/ui/vendor/..%2f..%2f..%2fpage_door.py",
        b"/ui/vendor/%2e%2e/%2e%2e/page_door.py",
        b"/ui/vendor/..\\..\\page_door.py",
        b"/ui//etc/hostname",
        b"/ui/app/%00.js",
        b"/ui/app/\xff.js",
    ):
        status = ask_raw(server, target).split(b" ", 2)[1]
        assert (target, status) in ((target, b"404"), (target, b"400"))


async def test_a_write_is_refused_and_an_unknown_view_is_named(server: NodeProcess) -> None:
    refused, text = await ask(f"{server.base}/ui/topics", method="POST")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")
    unknown, text = await ask(f"{server.base}/ui/nothing")
    assert (unknown.status, unknown.content_type) == (404, "application/json")
    assert b"/ui/nothing" in text


async def test_the_page_is_not_relayed_to_other_nodes(server: NodeProcess) -> None:
    for name in ("NAME", "admin"):
        response, _ = await ask(f"{server.base}/nodes/{name}/ui/", BROWSER)
        assert response.status == 404


async def test_behind_a_prefix_every_address_stays_below_it(proxied: str) -> None:
    for start in ("/", "/ui", "/ui?scope=all"):
        response, text = await ask(proxied + start, BROWSER, follow=True)
        assert (response.status, response.url.path) == (200, "/broker/ui/")
        assert text.startswith(b"<!doctype html>")
    for address in ADDRESS.findall(text.decode()):
        file, _ = await ask(f"{proxied}/ui/{address}")
        assert (address, file.status) == (address, 200)


async def test_the_log_of_a_start_says_where_the_page_is(server: NodeProcess) -> None:
    assert f"its page is {server.base}/ui/" in server.log()
