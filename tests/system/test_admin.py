"""The admin node and its members as real processes: registering, dying, coming back, being refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from tests.cluster import SECRET, AdminProcess, Member
from tests.harness import hpwsn
from tests.patience import PATIENCE

CALM = 3.0
"""A heartbeat so long that what happens within two of them was not noticed by silence, which takes three."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def admin(folder: Path) -> Iterator[AdminProcess]:
    topics = folder / "topics.toml"
    topics.write_text('[topics.plant.alarms]\ndescription = "to be acted on"\nrouting = "tcp"\n')
    with AdminProcess(folder / "admin", "--topics", str(topics)) as running:
        yield running


@pytest.fixture(scope="module")
def members(folder: Path, admin: AdminProcess) -> Iterator[dict[str, Member]]:
    """Two nodes in one cluster and one in another, registered in this order."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Member(folder / name, name, cluster, admin.base))
            for name, cluster in (("p2", "plant"), ("p1", "plant"), ("o1", "office"))
        }


def refusal(request: Request) -> tuple[int, str]:
    with pytest.raises(HTTPError) as raised:
        urlopen(request, timeout=PATIENCE)
    with raised.value as answer:
        return answer.code, json.load(answer)["error"]


class TestRegistered:
    def test_the_topology_has_every_node_where_it_can_be_reached(
        self, admin: AdminProcess, members: dict[str, Member]
    ) -> None:
        topology = admin.topology()
        assert [(one["name"], one["representative"]) for one in topology["clusters"]] == [
            ("office", "o1"),
            ("plant", "p2"),
        ]
        nodes = {node["name"]: node for one in topology["clusters"] for node in one["nodes"]}
        for name, member in members.items():
            assert nodes[name]["url"] == member.base
            assert nodes[name]["state"] == "alive"
            assert nodes[name]["host"] == "127.0.0.1"
            assert 0 < nodes[name]["port"] < 65536

    async def test_every_node_has_the_topology_pushed_to_it(
        self, admin: AdminProcess, members: dict[str, Member]
    ) -> None:
        def all_follow() -> bool:
            version = admin.topology()["version"]
            return all(
                (cluster := member.status()["cluster"])["topology_version"] == version
                and cluster["nodes_alive"] == 3
                for member in members.values()
            )

        await admin.comes_to(all_follow)
        await admin.comes_to(lambda: members["p1"].saved_topology() == admin.topology())

    def test_the_command_draws_a_tree_with_a_star_for_each_representative(
        self, admin: AdminProcess, members: dict[str, Member]
    ) -> None:
        shown = hpwsn("cluster", "--admin", admin.base, PYTHONIOENCODING="utf-8")
        lines = shown.stdout.splitlines()
        assert lines[0].endswith(": 2 clusters, 3 of 3 nodes alive")
        assert [line[:9].rstrip() for line in lines[1:]] == [
            "office",
            "└── * o1",
            "plant",
            "├── * p2",
            "└──   p1",
        ]
        plain = hpwsn("cluster", HPWSN_CLUSTER_ADMIN=admin.base, PYTHONIOENCODING="ascii")
        assert "`--   p1  alive  since 2" in plain.stdout
        found = hpwsn("cluster", "--admin", admin.base, "--json")
        assert json.loads(found.stdout)["clusters"] == admin.topology()["clusters"]

    def test_the_command_says_whom_it_could_not_reach(self, members: dict[str, Member]) -> None:
        away = hpwsn("cluster", "--admin", "http://127.0.0.1:9")
        assert (away.returncode, away.stdout) == (1, "")
        assert "127.0.0.1:9" in away.stderr
        wrong = hpwsn("cluster", "--admin", members["p1"].base)
        assert wrong.returncode == 1
        assert "Traceback" not in wrong.stderr

    def test_whoever_waits_for_another_version_gets_it_when_it_is_there(
        self, admin: AdminProcess, members: dict[str, Member]
    ) -> None:
        version = admin.topology()["version"]
        with urlopen(f"{admin.base}/api/topology?after={version}&wait=0.05", timeout=PATIENCE) as answer:
            assert json.load(answer)["version"] == version
        code, words = refusal(Request(f"{admin.base}/api/topology?after=-1"))
        assert (code, words) == (400, "after is '-1'; give a number of 0 or more")

    def test_the_admin_describes_itself(self, admin: AdminProcess, members: dict[str, Member]) -> None:
        with urlopen(f"{admin.base}/openapi.json", timeout=PATIENCE) as answer:
            paths = json.load(answer)["paths"]
        assert {"/api/topology", "/api/nodes", "/api/nodes/{name}/heartbeat"} <= paths.keys()
        with urlopen(f"{admin.base}/api/status", timeout=PATIENCE) as answer:
            assert json.load(answer)["nodes"] == {"alive": 3, "dead": 0, "left": 0}

    def test_the_admin_tells_the_topics_of_its_directory(self, admin: AdminProcess) -> None:
        with urlopen(f"{admin.base}/api/topics", timeout=PATIENCE) as answer:
            topics = json.load(answer)["topics"]
        assert topics == [
            {"topic": "plant", "description": "", "routing": None},
            {"topic": "plant:alarms", "description": "to be acted on", "routing": "tcp"},
        ]


class TestRefused:
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/api/nodes"),
            ("PUT", "/api/nodes/p1/heartbeat"),
            ("DELETE", "/api/nodes/p1"),
            ("POST", "/api/nodes/p1/suspect"),
            ("GET", "/api/nodes/p1/stream"),
        ],
    )
    def test_a_change_that_is_not_signed_is_refused_and_changes_nothing(
        self, admin: AdminProcess, members: dict[str, Member], method: str, path: str
    ) -> None:
        before = admin.topology()
        code, words = refusal(Request(admin.base + path, data=b"{}", method=method))
        assert code == 401
        assert words.startswith("the request is not signed")
        assert admin.topology() == before

    def test_a_node_with_another_secret_is_told_so_and_so_is_the_admins_operator(
        self, admin: AdminProcess, members: dict[str, Member], folder: Path
    ) -> None:
        with Member(folder / "spy", "spy", "plant", admin.base, secret="a guess") as spy:
            assert "refuses this node: the signature is wrong" in spy.log()
            assert "POST /api/nodes from 127.0.0.1 is rejected: the signature is wrong" in admin.log()
            with pytest.raises(HTTPError) as raised:
                urlopen(f"{spy.base}/readyz", timeout=PATIENCE)
            with raised.value as answer:
                assert "cluster.secret" in json.load(answer)["problems"][0]
            assert spy.terminate() == 0
        assert "spy" not in admin.states()

    def test_a_second_node_of_a_name_does_not_start(
        self, admin: AdminProcess, members: dict[str, Member], folder: Path
    ) -> None:
        joining = ("--cluster", "plant", "--admin", admin.base, "--name", "p1", "--data", str(folder / "p1b"))
        second = hpwsn("serve", "--port", "0", *joining, HPWSN_CLUSTER_SECRET=SECRET)
        assert second.returncode == 1
        assert f"the name 'p1' is taken by a live node of cluster 'plant' at {members['p1'].base}" in (
            second.stderr
        )
        assert "--name" in second.stderr
        assert admin.states()["p1"] == "alive"

    @pytest.mark.parametrize("command", ["serve", "admin"])
    def test_nothing_of_a_cluster_starts_without_a_secret(self, tmp_path: Path, command: str) -> None:
        joining = ("--admin", "http://127.0.0.1:9") if command == "serve" else ()
        ended = hpwsn(command, "--port", "0", "--data", str(tmp_path / "data"), *joining)
        assert ended.returncode == 1
        assert "HPWSN_CLUSTER_SECRET" in ended.stderr


@pytest.fixture
def calm_admin(tmp_path: Path) -> Iterator[AdminProcess]:
    with AdminProcess(tmp_path / "admin", "--set", f"cluster.heartbeat={CALM}") as running:
        yield running


async def test_clusters_go_on_through_kills_of_the_representative_of_the_admin_and_of_both(
    calm_admin: AdminProcess, tmp_path: Path
) -> None:
    admin = calm_admin
    with ExitStack() as stack:
        first, second, third = (
            stack.enter_context(Member(tmp_path / name, name, "plant", admin.base))
            for name in ("n1", "n2", "n3")
        )
        assert admin.representative("plant") == "n1"

        first.kill()
        await admin.comes_to(lambda: admin.representative("plant") == "n2")
        assert admin.states() == {"n1": "dead", "n2": "alive", "n3": "alive"}

        first.start()
        assert admin.states()["n1"] == "alive"
        assert admin.representative("plant") == "n2"

        before = admin.topology()
        await admin.comes_to(lambda: third.saved_topology() == before)
        admin.kill()
        await admin.comes_to(lambda: second.status()["cluster"]["registered"] == 0)
        assert second.status()["cluster"]["topology_version"] == before["version"]
        assert second.status()["problems"] == []

        # A node that starts without the admin has the topology of its data directory.
        third.kill()
        third.start()
        assert third.status()["cluster"]["topology_version"] == before["version"]

        admin.start()
        await admin.comes_to(lambda: second.status()["cluster"]["registered"] == 1)
        await admin.comes_to(lambda: third.status()["cluster"]["registered"] == 1)
        assert admin.representative("plant") == "n2"
        assert admin.topology()["version"] > before["version"]

        admin.kill()
        second.kill()
        admin.start()
        await admin.comes_to(lambda: admin.representative("plant") == "n1")
        assert admin.states()["n2"] == "dead"

        assert first.terminate() == 0
        assert admin.states()["n1"] == "left"
        # The third may not have found the new admin yet.
        await admin.comes_to(lambda: admin.representative("plant") == "n3")
        assert admin.terminate() == 0


async def test_a_node_that_hangs_is_dead_after_three_heartbeats_and_comes_back_when_it_goes_on(
    admin: AdminProcess, tmp_path: Path
) -> None:
    with Member(tmp_path / "slow", "slow", "lab", admin.base) as slow:
        process = psutil.Process(slow.pid)
        process.suspend()
        await admin.comes_to(lambda: admin.states()["slow"] == "dead")
        process.resume()
        await admin.comes_to(lambda: admin.states()["slow"] == "alive")
        assert slow.terminate() == 0
    assert admin.states()["slow"] == "left"


async def test_twenty_nodes_of_four_clusters_on_one_machine_register_and_show_up(tmp_path: Path) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin", "--set", "cluster.heartbeat=2"))
        nodes = [
            Member(tmp_path / f"n{number}", f"n{number}", f"c{number % 4}", admin.base)
            for number in range(20)
        ]
        for node in nodes:
            stack.callback(node.close)
        for at_once in range(0, 20, 4):
            for node in nodes[at_once : at_once + 4]:
                node.launch()
            for node in nodes[at_once : at_once + 4]:
                await asyncio.to_thread(node.wait_ready)

        def all_know_all() -> bool:
            return all(node.status()["cluster"]["nodes_alive"] == 20 for node in nodes)

        await admin.comes_to(all_know_all)
        assert [len(one["nodes"]) for one in admin.topology()["clusters"]] == [5, 5, 5, 5]
        report([psutil.Process(node.pid).memory_full_info() for node in nodes])


def report(memory: list[Any]) -> None:
    """Shown by `pytest -s`: what a node costs."""
    for kind in ("rss", "pss", "uss"):
        figures = [getattr(one, kind) / 2**20 for one in memory]
        print(f"{kind} MiB of a node: {sum(figures) / len(figures):.1f}, of all: {sum(figures):.0f}")
