"""GET /cluster: what the admin node and every node tell about all nodes and the links between them."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from hpwsn.routing.membership.node_report import MAX_BYTES, MAX_FIGURES, MAX_LINKS
from hpwsn.routing.membership.signing import Signer
from hpwsn_client import Client
from tests.cluster import SECRET, AdminProcess, Member
from tests.harness import NodeProcess, quiet_port
from tests.patience import eventually

NODE = {"name", "url", "host", "port", "version", "state", "since", "heartbeat_age", "figures"}
LINK = {"from", "to", "by", "state", "rate", "bytes", "unconfirmed"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("view")


@pytest.fixture(scope="module")
def admin(folder: Path) -> Iterator[AdminProcess]:
    with AdminProcess(folder / "admin") as running:
        yield running


@pytest.fixture(scope="module")
def members(folder: Path, admin: AdminProcess) -> Iterator[dict[str, Member]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Member(folder / name, name, "plant", admin.base))
            for name in ("one", "two")
        }


@pytest.fixture
async def http() -> AsyncIterator[ClientSession]:
    async with ClientSession() as session:
        yield session


async def cluster(http: ClientSession, base: str) -> Any:
    async with http.get(f"{base}/cluster") as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        return await answer.json()


def nodes(found: Any) -> dict[str, Any]:
    return {node["name"]: node for one in found["clusters"] for node in one["nodes"]}


async def test_a_node_alone_tells_of_itself(http: ClientSession, shared_node: NodeProcess) -> None:
    found = await cluster(http, shared_node.base)
    assert found.keys() == {"version", "clusters", "links", "partial"}
    (alone,) = found["clusters"]
    (node,) = alone["nodes"]
    assert (alone["name"], alone["representative"]) == ("default", node["name"])
    assert node.keys() == NODE
    assert (node["url"], node["state"], node["port"]) == (shared_node.base, "alive", None)
    assert node["heartbeat_age"] is None
    assert (found["links"], found["partial"]) == ([], None)


async def test_unknown_parameters_are_rejected(
    http: ClientSession, admin: AdminProcess, shared_node: NodeProcess
) -> None:
    for base in (admin.base, shared_node.base):
        async with http.get(f"{base}/cluster?all=1") as answer:
            assert answer.status == 400
            assert "all" in (await answer.json())["error"]


class TestInACluster:
    @pytest.mark.parametrize("place", ["admin", "one", "two"])
    async def test_every_process_tells_of_all_nodes(
        self, http: ClientSession, admin: AdminProcess, members: dict[str, Member], place: str
    ) -> None:
        base = admin.base if place == "admin" else members[place].base

        async def all_reported() -> bool:
            return all(node["figures"] is not None for node in nodes(await cluster(http, base)).values())

        await eventually(all_reported)
        found = await cluster(http, base)
        assert found["partial"] is None
        assert [(one["name"], one["representative"]) for one in found["clusters"]] == [("plant", "one")]
        for name, node in nodes(found).items():
            assert node.keys() == NODE
            assert (node["url"], node["state"]) == (members[name].base, "alive")
            assert node["heartbeat_age"] >= 0
        assert nodes(found).keys() == members.keys()

    async def test_the_traffic_of_a_link_shows_when_messages_cross(
        self, http: ClientSession, admin: AdminProcess, members: dict[str, Member]
    ) -> None:
        async with Client(f"{members['two'].base}/wsn") as client:
            made = await client.subscribe("crossing", f"http://127.0.0.1:{quiet_port()}/")

            async def crosses() -> bool:
                for reliable in ("true", "false"):
                    url = f"{members['one'].base}/topics/crossing/events?reliable={reliable}"
                    async with http.post(url, json={"text": "x" * 1000}) as answer:
                        assert answer.status == 202
                links = {
                    (link["from"], link["to"], link["by"]): link
                    for link in (await cluster(http, admin.base))["links"]
                }
                assert all(link.keys() == LINK for link in links.values())
                busy = [links.get(("one", "two", by), {"rate": 0.0, "bytes": 0.0}) for by in ("udp", "tcp")]
                return all(link["rate"] > 0 and link["bytes"] > 0 for link in busy)

            await eventually(crosses)
            for link in (await cluster(http, admin.base))["links"]:
                assert link["state"] in ("up", "down")
                assert link["unconfirmed"] >= 0
            assert (await cluster(http, members["two"].base))["links"]
            await made.unsubscribe()


class TestWithoutTheAdminNode:
    async def test_a_node_tells_what_it_knows_and_that_it_is_not_all(
        self, http: ClientSession, tmp_path: Path
    ) -> None:
        with ExitStack() as stack:
            admin = stack.enter_context(AdminProcess(tmp_path / "admin"))
            one = stack.enter_context(Member(tmp_path / "one", "one", "plant", admin.base))
            two = stack.enter_context(Member(tmp_path / "two", "two", "plant", admin.base))

            async def both_known() -> bool:
                return len(nodes(await cluster(http, one.base))) == 2

            await eventually(both_known)
            admin.kill()

            async def partial() -> bool:
                return (await cluster(http, one.base))["partial"] is not None

            await eventually(partial)
            found = await cluster(http, one.base)
            assert admin.base in found["partial"] and "last topology" in found["partial"]
            told = nodes(found)
            assert told.keys() == {"one", "two"}
            assert told["one"]["figures"] is not None
            assert (told["two"]["figures"], told["two"]["heartbeat_age"]) == (None, None)
            assert {link["from"] for link in found["links"]} <= {"one"}
            async with http.get(f"{one.base}/nodes/two/status") as answer:
                assert (answer.status, (await answer.json())["node"]) == (200, "two")
            assert two.base


class TestHeartbeats:
    """A node that is played by this test: of an earlier version, of a later one, and one that is broken."""

    async def beat(self, http: ClientSession, admin: AdminProcess, body: bytes) -> tuple[int, Any]:
        return await self.send(http, admin, "PUT", "/api/nodes/played/heartbeat?session=s", body)

    async def send(
        self, http: ClientSession, admin: AdminProcess, method: str, path: str, body: bytes
    ) -> tuple[int, Any]:
        signed = Signer(SECRET.encode()).headers(
            method, path, body, now=time.time(), nonce=secrets.token_hex(8)
        )
        async with http.request(method, admin.base + path, data=body, headers=signed) as answer:
            return answer.status, await answer.json()

    @pytest.fixture
    async def played(self, http: ClientSession, admin: AdminProcess) -> AsyncIterator[None]:
        given = {
            "name": "played",
            "cluster": "played",
            "url": admin.base,
            "host": "127.0.0.1",
            "port": int(admin.base.rpartition(":")[2]),
            "version": "0",
            "identity": "i",
            "session": "s",
        }
        status, _ = await self.send(http, admin, "POST", "/api/nodes", json.dumps(given).encode())
        assert status == 200
        yield
        await self.send(http, admin, "DELETE", "/api/nodes/played?session=s", b"")

    async def test_one_without_a_body_is_that_of_an_earlier_version(
        self, http: ClientSession, admin: AdminProcess, played: None
    ) -> None:
        assert (await self.beat(http, admin, b""))[0] == 200
        node = nodes(await cluster(http, admin.base))["played"]
        assert (node["state"], node["figures"]) == ("alive", None)
        assert node["heartbeat_age"] >= 0

    async def test_figures_that_are_not_known_are_ignored(
        self, http: ClientSession, admin: AdminProcess, played: None
    ) -> None:
        figures = {"published_rate": 61.5, "accept_p99": None, "of_a_later_version": 1}
        body = json.dumps({"figures": figures, "links": [], "more": 1}).encode()
        assert (await self.beat(http, admin, body))[0] == 200
        told = nodes(await cluster(http, admin.base))["played"]["figures"]
        assert told == {"published_rate": 61.5, "accept_p99": None}

    async def test_as_many_as_are_allowed(
        self, http: ClientSession, admin: AdminProcess, played: None
    ) -> None:
        link = {"by": "udp", "state": "up", "rate": 1.5, "bytes": 10, "unconfirmed": 0}
        links = [{"to": f"n{number}", **link} for number in range(MAX_LINKS)]
        figures = {f"f{number}": number for number in range(MAX_FIGURES)}
        body = json.dumps({"figures": figures, "links": links}).encode()
        assert (await self.beat(http, admin, body))[0] == 200
        found = (await cluster(http, admin.base))["links"]
        assert sum(each["from"] == "played" for each in found) == MAX_LINKS
        body = json.dumps({"links": [*links, {"to": "n", **link}]}).encode()
        status, told = await self.beat(http, admin, body)
        assert (status, str(MAX_LINKS) in told["error"]) == (400, True)
        body = json.dumps({"figures": {**figures, "one": 1}}).encode()
        status, told = await self.beat(http, admin, body)
        assert (status, str(MAX_FIGURES) in told["error"]) == (400, True)
        assert (await self.beat(http, admin, b"{}".ljust(MAX_BYTES)))[0] == 200
        status, told = await self.beat(http, admin, b"{}".ljust(MAX_BYTES + 1))
        assert status in (400, 413) and "error" in told

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (b"{", "not JSON"),
            (b"[" * 60_000, "not JSON"),
            (b"[]", "JSON object"),
            (b'{"figures": []}', "figures"),
            (b'{"figures": {"cpu": "high"}}', "cpu"),
            (b'{"figures": {"cpu": NaN}}', "cpu"),
            (b'{"figures": {"cpu": 1e400}}', "cpu"),
            (b'{"links": {}}', "links"),
            (b'{"links": [1]}', "link"),
            (b'{"links": [{"to": "a/b", "by": "udp", "state": "up"}]}', "to"),
            (b'{"links": [{"to": "a", "by": "pigeon", "state": "up"}]}', "pigeon"),
            (b'{"links": [{"to": "a", "by": "udp", "state": "up", "rate": -1}]}', "rate"),
        ],
    )
    async def test_anything_else_is_refused_with_the_reason(
        self, http: ClientSession, admin: AdminProcess, played: None, body: bytes, reason: str
    ) -> None:
        status, told = await self.beat(http, admin, body)
        assert status == 400 and reason in told["error"]
