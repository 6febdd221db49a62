"""`/nodes/NAME/…` at nodes and at the admin node: requests to another node, signed, answered by that node."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import pytest
from aiohttp import ClientPayloadError, ClientSession, web
from yarl import URL

from hpwsn.routing.membership.signing import Signer, Verifier
from hpwsn.routing.relay.relay_rules import ADMIN, RELAYED_BY, signed_target
from hpwsn_client import Client
from tests.cluster import SECRET, AdminProcess, Member
from tests.harness import NodeProcess, quiet_port
from tests.patience import eventually, patience

ODD = "hall 2 ü"
"""A name with characters that a URL and a header cannot have as they are."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("relay")


@pytest.fixture(scope="module")
def admin(folder: Path) -> Iterator[AdminProcess]:
    with AdminProcess(folder / "admin") as running:
        yield running


@pytest.fixture(scope="module")
def members(folder: Path, admin: AdminProcess) -> Iterator[dict[str, Member]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                Member(folder / str(number), name, "plant", admin.base, "--set", "server.body_limit=1000000")
            )
            for number, name in enumerate(("one", "two", ODD))
        }


@pytest.fixture
async def http() -> AsyncIterator[ClientSession]:
    async with ClientSession() as session:
        yield session


@pytest.fixture(params=["one", "admin"])
async def entry(
    request: pytest.FixtureRequest, admin: AdminProcess, members: dict[str, Member], http: ClientSession
) -> str:
    """The address of a process that relays: a node that knows all others, and the admin node."""
    base = admin.base if request.param == "admin" else members[request.param].base

    async def knows_all() -> bool:
        async with http.get(f"{base}/cluster") as answer:
            found = await answer.json()
        return sum(len(cluster["nodes"]) for cluster in found["clusters"]) == len(members)

    await eventually(knows_all)
    return base


async def get(http: ClientSession, url: str) -> tuple[int, Any]:
    async with http.get(url) as answer:
        return answer.status, await answer.json(content_type=None)


class TestWhatIsRelayed:
    @pytest.mark.parametrize("name", ["two", ODD])
    async def test_the_named_node_answers(
        self, http: ClientSession, entry: str, members: dict[str, Member], name: str
    ) -> None:
        status, told = await get(http, f"{entry}/nodes/{quote(name)}/status")
        assert (status, told["node"]) == (200, name)

    async def test_events_are_posted_and_read_there(
        self, http: ClientSession, entry: str, members: dict[str, Member]
    ) -> None:
        topic = f"relayed:t{secrets.token_hex(4)}"
        url = f"{entry}/nodes/two/topics/{topic}/events"
        async with http.post(url, json={"speed": 61.5}) as answer:
            assert answer.status == 202
            span = await answer.json()
        assert span == {"first": span["last"], "last": span["last"]}
        status, events = await get(http, f"{url}?after={span['first'] - 1}")
        assert (status, [event["data"] for event in events]) == (200, [{"speed": 61.5}])
        _, direct = await get(http, f"{members['two'].base}/topics/{topic}/events?after={span['first'] - 1}")
        assert direct == events

    async def test_a_subscription_is_ended_there(
        self, http: ClientSession, entry: str, members: dict[str, Member]
    ) -> None:
        async with Client(f"{members['two'].base}/wsn") as client:
            made = await client.subscribe("relayed", "http://127.0.0.1:9/")
        id_ = made.epr.address.rpartition("/")[2]
        status, shown = await get(http, f"{entry}/nodes/two/subscriptions/{id_}")
        assert (status, shown["id"]) == (200, id_)
        async with http.delete(f"{entry}/nodes/two/subscriptions/{id_}") as answer:
            assert answer.status == 204
        status, _ = await get(http, f"{members['two'].base}/subscriptions/{id_}")
        assert status == 404

    async def test_the_pages_of_a_list_follow_each_other(
        self, http: ClientSession, entry: str, members: dict[str, Member]
    ) -> None:
        uris = {f"urn:relayed:{number}" for number in range(3)}
        for uri in uris:
            service = {"topic": "relayed", "instance": "i", "state": "running"}
            async with http.put(f"{members['two'].base}/streams/{uri}", json=service) as answer:
                assert answer.status in (200, 201, 204), await answer.text()
        found, url = [], f"{entry}/nodes/two/streams?limit=2"
        after: str | None = ""
        while after is not None:
            status, page = await get(http, f"{url}&after={after}" if after else url)
            assert (status, len(page["items"]) <= 2) == (200, True)
            found += [each["uri"] for each in page["items"]]
            after = page["next"]
        assert (len(found), set(found)) == (3, uris)

    async def test_server_sent_events_arrive_while_the_stream_is_open(
        self, http: ClientSession, entry: str, members: dict[str, Member]
    ) -> None:
        topic = f"streamed:t{secrets.token_hex(4)}"
        accept = {"Accept": "text/event-stream"}
        async with patience(), http.get(f"{entry}/nodes/two/topics/{topic}/events", headers=accept) as stream:
            assert (stream.status, stream.content_type) == (200, "text/event-stream")
            assert (await stream.content.readline()).startswith(b": after")
            for number in range(3):
                async with http.post(f"{members['two'].base}/topics/{topic}/events", json={"n": number}):
                    pass
                await stream.content.readuntil(b"data: ")
                assert json.loads(await stream.content.readline())["data"] == {"n": number}

    async def test_a_handler_that_reads_the_body_piece_by_piece_gets_it(
        self, http: ClientSession, entry: str
    ) -> None:
        for name in ("one", "two"):
            url = f"{entry}/nodes/{name}/filters/check"
            async with http.post(url, json={"filter": "speed > 60"}) as answer:
                assert (answer.status, (await answer.json())["ok"]) == (200, True)

    async def test_errors_of_the_node_come_back_as_they_are(self, http: ClientSession, entry: str) -> None:
        status, told = await get(http, f"{entry}/nodes/two/topics/a/events?filtre=x")
        assert status == 400 and "filtre" in told["error"]

    async def test_the_own_name_is_answered_without_a_relay(
        self, http: ClientSession, members: dict[str, Member]
    ) -> None:
        base = members["one"].base
        status, told = await get(http, f"{base}/nodes/one/status")
        assert (status, told["node"]) == (200, "one")
        async with http.post(f"{base}/nodes/one/topics/own/events", json=[{"n": 1}]) as answer:
            assert answer.status == 202
        status, told = await get(http, f"{base}/nodes/one/nowhere")
        assert status == 404 and "error" in told

    async def test_a_change_under_the_own_name_is_in_the_events_log(
        self, http: ClientSession, members: dict[str, Member]
    ) -> None:
        base = members["one"].base
        async with Client(f"{base}/wsn") as client:
            made = await client.subscribe("relayed", "http://127.0.0.1:9/")
        id_ = made.epr.address.rpartition("/")[2]
        async with http.delete(f"{base}/nodes/one/subscriptions/{id_}") as answer:
            assert answer.status == 204
        _, log = await get(http, f"{base}/events-log?limit=1000")
        assert f"DELETE /subscriptions/{id_}" in [event["text"] for event in log["items"]]

    async def test_a_node_alone_answers_by_its_name(
        self, http: ClientSession, shared_node: NodeProcess
    ) -> None:
        _, status = await get(http, f"{shared_node.base}/status")
        found = await get(http, f"{shared_node.base}/nodes/{quote(status['node'])}/readyz")
        assert found == (200, {"ready": True, "problems": []})
        code, told = await get(http, f"{shared_node.base}/nodes/other/status")
        assert code == 404 and status["node"] in told["error"]


class TestWhatIsNot:
    async def test_a_relay_on_the_same_machine_does_not_make_a_client_local(
        self, http: ClientSession, entry: str
    ) -> None:
        async with http.post(f"{entry}/nodes/two/profile?seconds=0.01") as answer:
            assert (answer.status, "token" in (await answer.json())["error"]) == (401, True)

    @pytest.mark.parametrize(
        "path", ["wsn", "wsn/subscriptions/x", "onvif/events", "nodes/one/status", "cluster/taken/x", ""]
    )
    async def test_other_addresses_are_not(self, http: ClientSession, entry: str, path: str) -> None:
        status, told = await get(http, f"{entry}/nodes/two/{path}")
        assert status == 404 and "not relayed" in told["error"]

    async def test_an_unknown_node_is_not_found(self, http: ClientSession, entry: str) -> None:
        status, told = await get(http, f"{entry}/nodes/nobody/status")
        assert status == 404 and "nobody" in told["error"] and "two" in told["error"]

    async def test_another_method_is_told_which_there_are(self, http: ClientSession, entry: str) -> None:
        async with http.put(f"{entry}/nodes/two/streams/urn:x", json={}) as answer:
            assert answer.status == 405
            assert "POST" in (await answer.json())["error"]

    async def test_a_body_above_the_limit_is_too_large(
        self, http: ClientSession, members: dict[str, Member]
    ) -> None:
        url = f"{members['one'].base}/nodes/two/topics/large/events"
        for size, status in ((1_000_000, 202), (1_000_001, 413)):
            body = b'{"n": 1}'.ljust(size)
            async with http.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
                assert answer.status == status, await answer.text()

    async def test_a_web_socket_is_not(self, http: ClientSession, entry: str) -> None:
        headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
        async with http.get(f"{entry}/nodes/two/topics/a/events", headers=headers) as answer:
            assert answer.status == 400
            assert "WebSockets" in (await answer.json())["error"]

    async def test_a_page_of_another_origin_may_not_write_through_it(
        self, http: ClientSession, entry: str
    ) -> None:
        headers = {"Origin": "http://evil.example"}
        async with http.post(f"{entry}/nodes/two/topics/a/events", json={}, headers=headers) as answer:
            assert answer.status == 403
            assert "evil.example" in (await answer.json())["error"]


class TestWhoMayRelay:
    def headers(self, by: str, target: str, body: bytes = b"", secret: str = SECRET) -> dict[str, str]:
        signed = Signer(secret.encode()).headers(
            "POST", signed_target(by, target), body, now=time.time(), nonce=secrets.token_hex(16)
        )
        return {**signed, RELAYED_BY: quote(by, safe=""), "Content-Type": "application/json"}

    async def post(
        self, http: ClientSession, node: NodeProcess, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Any]:
        async with http.post(f"{node.base}{target}", data=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def test_a_signed_relay_is_accepted_once(
        self, http: ClientSession, members: dict[str, Member]
    ) -> None:
        target, body = "/topics/signed/events", b'{"n": 1}'
        headers = self.headers(ADMIN, target, body)
        status, _ = await self.post(http, members["two"], target, headers, body)
        assert status == 202
        status, told = await self.post(http, members["two"], target, headers, body)
        assert status == 403 and "received before" in told["error"]

    @pytest.mark.parametrize("part", ["by", "target", "body", "secret", "nothing"])
    async def test_a_forged_relay_is_refused(
        self, http: ClientSession, members: dict[str, Member], part: str
    ) -> None:
        target, body = "/topics/forged/events", b'{"n": 1}'
        headers = {
            "by": {**self.headers("one", target, body), RELAYED_BY: "two"},
            "target": self.headers("one", "/topics/other/events", body),
            "body": self.headers("one", target, b'{"n": 2}'),
            "secret": self.headers("one", target, body, secret="that of another cluster"),
            "nothing": {RELAYED_BY: "one", "Content-Type": "application/json"},
        }[part]
        status, told = await self.post(http, members["two"], target, headers, body)
        assert status == 403 and "refused" in told["error"]
        status, events = await get(http, f"{members['two'].base}{target}")
        assert events == [] or status == 404

    async def test_a_name_that_is_no_text_is_refused(self, members: dict[str, Member]) -> None:
        host, port = members["two"].base.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n")
        writer.write(RELAYED_BY.encode() + b": \xff\r\nHpwsn-Time: 1\r\nHpwsn-Nonce: \xff\r\n")
        writer.write(b"Hpwsn-Signature: \xff\r\n\r\n")
        async with patience():
            response = await reader.read()
        writer.close()
        assert response.startswith(b"HTTP/1.1 403 "), response
        assert b"the signature is wrong" in response

    async def test_one_signed_before_the_node_began_is_told_the_time(
        self, http: ClientSession, members: dict[str, Member]
    ) -> None:
        target, body = "/topics/early/events", b'{"n": 1}'
        nonce = secrets.token_hex(16)
        signer = Signer(SECRET.encode())
        signed = signer.headers(
            "POST", signed_target("one", target), body, now=time.time() - 200, nonce=nonce
        )
        async with http.post(
            f"{members['two'].base}{target}", data=body, headers={**signed, RELAYED_BY: "one"}
        ) as answer:
            told = await answer.read()
            assert answer.status == 425
        signer.check_answer(nonce, 425, told, answer.headers["Hpwsn-Signature"])
        assert json.loads(told)["now"] > time.time() - 100

    async def test_a_relay_does_not_lead_to_another(
        self, http: ClientSession, members: dict[str, Member]
    ) -> None:
        target = "/nodes/one/topics/looped/events"
        status, told = await self.post(
            http, members["two"], target, self.headers("one", target, b"{}"), b"{}"
        )
        assert status == 403 and "not relayed" in told["error"]

    async def test_a_node_alone_refuses_relays(self, http: ClientSession, shared_node: NodeProcess) -> None:
        target = "/topics/signed/events"
        status, told = await self.post(http, shared_node, target, self.headers("one", target, b"{}"), b"{}")
        assert status == 403 and "no cluster" in told["error"]


class TestNodesThatDoNotAnswer:
    async def test_a_dead_node_is_named_with_a_remedy(self, http: ClientSession, tmp_path: Path) -> None:
        with (
            AdminProcess(tmp_path / "admin") as admin,
            Member(tmp_path / "a", "a", "c", admin.base) as alive,
            Member(tmp_path / "b", "b", "c", admin.base) as dying,
        ):
            await admin.comes_to(lambda: admin.states() == {"a": "alive", "b": "alive"})
            dying.kill()
            await admin.comes_to(lambda: admin.states()["b"] == "dead")
            await eventually(lambda: is_dead(http, alive.base, "b"))
            for base in (admin.base, alive.base):
                async with http.get(f"{base}/nodes/b/status") as answer:
                    told = await answer.json()
                    assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
                assert "b is dead since" in told["error"] and "start it again" in told["error"]

    async def test_a_node_that_is_gone_but_not_yet_known_to_be_dead(
        self, http: ClientSession, admin: AdminProcess
    ) -> None:
        await pretend(http, admin, "gone", f"http://127.0.0.1:{quiet_port()}")
        async with http.get(f"{admin.base}/nodes/gone/status") as answer:
            told = await answer.json()
            assert answer.status in (502, 503), told
        assert "gone" in told["error"]


class Played:
    """A node that is played by a test, to see what a relay sends and what it makes of the answer."""

    def __init__(self, *answers: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
        self._answers = list(answers)
        self.seen: list[tuple[web.Request, bytes]] = []

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request, await request.read()))
        return await self._answers[min(len(self.seen), len(self._answers)) - 1](request)


async def empty(request: web.Request) -> web.StreamResponse:
    return web.Response(status=204)


class TestWhatTheNodeGets:
    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PATCH", "DELETE"])
    async def test_every_method_with_its_body(
        self, http: ClientSession, admin: AdminProcess, method: str
    ) -> None:
        async with Played(empty) as node:
            await pretend(http, admin, f"m{method}", node.base)
            body = b'{"paused": true}' if method in ("POST", "PATCH") else b""
            url = f"{admin.base}/nodes/m{method}/subscriptions/x"
            async with http.request(method, url, data=body or None) as answer:
                assert answer.status == 204
            ((request, got),) = node.seen
            assert (request.method, request.raw_path, got) == (method, "/subscriptions/x", body)

    async def test_only_what_belongs_to_the_request_and_the_answer_passes(
        self, http: ClientSession, admin: AdminProcess
    ) -> None:
        async def handle(request: web.Request) -> web.StreamResponse:
            return web.Response(
                status=302 if request.path == "/streams" else 201,
                headers={
                    "Location": "http://other.example:8080/subscriptions/a%2Fb?x=1"
                    if request.path == "/subscriptions"
                    else "http://other.example/",
                    "Set-Cookie": "a=b",
                    "Connection": "close, X-Hop",
                    "X-Hop": "1",
                    "Etag": '"e"',
                    "Access-Control-Allow-Origin": "*",
                },
            )

        async with Played(handle) as node:
            await pretend(http, admin, "played", node.base)
            headers = {"Cookie": "c=d", "X-Other": "1", "Accept": "text/x", "Origin": admin.base, "TE": "x"}
            url = URL(f"{admin.base}/nodes/played/subscriptions?a=%2F", encoded=True)
            async with http.post(url, json={}, headers=headers) as answer:
                assert answer.status == 201
                assert answer.headers["Location"] == "/nodes/played/subscriptions/a%2Fb?x=1"
                assert answer.headers["Etag"] == '"e"'
                for name in ("Set-Cookie", "X-Hop", "Access-Control-Allow-Origin"):
                    assert name not in answer.headers
            request, _ = node.seen[0]
            assert request.raw_path == "/subscriptions?a=%2F"
            assert request.headers["Accept"] == "text/x"
            assert request.headers[RELAYED_BY] == quote(ADMIN, safe="")
            for name in ("Cookie", "X-Other", "Origin", "TE"):
                assert name not in request.headers
            async with http.get(f"{admin.base}/nodes/played/streams", allow_redirects=False) as answer:
                assert answer.status == 302
                assert "Location" not in answer.headers
            assert [each.path for each, _ in node.seen] == ["/subscriptions", "/streams"]

    async def test_a_node_whose_clock_is_ahead_is_sent_its_own_time_after_its_start(
        self, http: ClientSession, admin: AdminProcess
    ) -> None:
        async def too_early(request: web.Request) -> web.StreamResponse:
            body = json.dumps({"error": "too early", "now": ahead}).encode()
            signature = Verifier(SECRET.encode(), window=1).sign_answer(
                request.headers["Hpwsn-Nonce"], 425, body
            )
            return web.Response(status=425, body=body, headers={"Hpwsn-Signature": signature})

        async def forged(request: web.Request) -> web.StreamResponse:
            return web.json_response({"now": ahead}, status=425, headers={"Hpwsn-Signature": "0"})

        ahead = time.time() + 100
        async with Played(too_early, empty) as node, Played(forged) as other:
            await pretend(http, admin, "ahead", node.base)
            async with http.get(f"{admin.base}/nodes/ahead/status") as answer:
                assert answer.status == 204
            first, second = (request.headers for request, _ in node.seen)
            assert float(first["Hpwsn-Time"]) < ahead - 1 < float(second["Hpwsn-Time"])
            assert first["Hpwsn-Nonce"] != second["Hpwsn-Nonce"]
            await pretend(http, admin, "forger", other.base)
            async with http.get(f"{admin.base}/nodes/forger/status") as answer:
                assert answer.status == 425
            assert len(other.seen) == 1

    async def test_a_node_that_never_answers(self, http: ClientSession, tmp_path: Path) -> None:
        async def never(request: web.Request) -> web.StreamResponse:
            await over.wait()
            return web.Response()

        over = asyncio.Event()
        limit = ("--set", "cluster.forward_timeout=0.2")
        with AdminProcess(tmp_path / "admin", *limit) as admin:
            async with Played(never) as node:
                await pretend(http, admin, "hanging", node.base)
                async with http.post(f"{admin.base}/nodes/hanging/topics/a/events", json={}) as answer:
                    assert answer.status == 504
                    told = (await answer.json())["error"]
                over.set()
        assert "no answer within 0.2 s" in told and "unknown whether" in told

    async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(
        self, http: ClientSession, admin: AdminProcess
    ) -> None:
        async def breaks(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"half")
            assert request.transport is not None
            request.transport.abort()
            return response

        async with Played(breaks) as node:
            await pretend(http, admin, "breaking", node.base)
            async with http.get(f"{admin.base}/nodes/breaking/status") as answer:
                with pytest.raises(ClientPayloadError):
                    await answer.read()


async def is_dead(http: ClientSession, base: str, name: str) -> bool:
    _, found = await get(http, f"{base}/cluster")
    return any(
        node["state"] == "dead" for one in found["clusters"] for node in one["nodes"] if node["name"] == name
    )


async def pretend(http: ClientSession, admin: AdminProcess, name: str, url: str) -> None:
    """Register a node that this test plays."""
    body = json.dumps(
        {
            "name": name,
            "cluster": "played",
            "url": url,
            "host": "127.0.0.1",
            "port": int(url.rpartition(":")[2]),
            "version": "0",
            "identity": name,
            "session": name,
        }
    ).encode()
    signed = Signer(SECRET.encode()).headers(
        "POST", "/api/nodes", body, now=time.time(), nonce=secrets.token_hex(8)
    )
    async with http.post(f"{admin.base}/api/nodes", data=body, headers=signed) as answer:
        assert answer.status == 200, await answer.text()
