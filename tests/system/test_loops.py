"""No consumer leads a node's pushes back into it: neither by another spelling nor through the network."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.cutting_relay import CuttingRelay
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, notify, subscribe
from tests.webhooks import ask, create, data_of, listed, publish, show

DEAD_AT_ONCE = ("--set", "retry.client_error_attempts=1")
HOSTS = (
    "127.1",
    "0.0.0.0",
    "0",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "１２７.0.0.1",
)
NEVER = b"\0 no request has this"


def _port(node: NodeProcess) -> int:
    return int(node.base.rpartition(":")[2])


@pytest.mark.parametrize("host", HOSTS)
async def test_a_node_is_no_consumer_of_its_own_in_any_spelling(shared_node: NodeProcess, host: str) -> None:
    base = f"http://{host}:{_port(shared_node)}"
    for path in ("/topics/loop/events", "/%74opics/loop/events"):
        wanted = {"callback": base + path, "topic": "loop"}
        status, answer = await ask("POST", f"{shared_node.base}/subscriptions", wanted)
        assert (status, "is a node itself" in answer.get("error", "")) == (400, True), answer
    for path in ("/wsn", "/%77sn", "/wsn/?a=b"):
        reply = await call(shared_node.url, subscribe(base + path, "loop"))
        assert (reply.fault, b"would loop" in reply.body) == ("SubscribeCreationFailedFault", True), path


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "127.5.5.5", "broker.example", "BROKER.example"])
async def test_the_port_is_a_node_also_where_it_has_another_public_address(tmp_path: Path, host: str) -> None:
    arguments = ("--set", "server.public_url=http://broker.example:1234", "--set", "server.host=0.0.0.0")
    with NodeProcess(tmp_path / "data", *arguments) as node:
        port = 1234 if host.lower() == "broker.example" else _port(node)
        wanted = {"callback": f"http://{host}:{port}/topics/loop/events", "topic": "loop"}
        base = f"http://127.0.0.1:{_port(node)}"
        status, answer = await ask("POST", f"{base}/subscriptions", wanted)
        assert (status, "is a node itself" in answer.get("error", "")) == (400, True), answer


async def test_another_port_or_host_is_a_consumer(shared_node: NodeProcess) -> None:
    for callback in ("http://127.1:9/", f"http://192.0.2.1:{_port(shared_node)}/topics/a/events"):
        await ask("DELETE", await create(shared_node, callback, topic="elsewhere"))


async def test_a_webhook_that_leads_back_through_the_network_fails_and_does_not_loop(tmp_path: Path) -> None:
    with (
        NodeProcess(tmp_path / "data", *DEAD_AT_ONCE) as node,
        CuttingRelay(_port(node), NEVER) as relay,
    ):
        url = await create(node, f"http://127.0.0.1:{relay.port}/topics/loop/events", topic="loop")
        await publish(node, "loop", {"n": 1})
        await eventually(lambda: _is_dead(url))
        assert "409" in (await show(url))["last_error"]
        assert await _published(node, "loop") == [{"n": 1}]


async def test_a_soap_consumer_that_leads_back_through_the_network_fails(tmp_path: Path) -> None:
    with (
        NodeProcess(tmp_path / "data", *DEAD_AT_ONCE) as node,
        CuttingRelay(_port(node), NEVER) as relay,
    ):
        assert (await call(node.url, subscribe(f"http://127.0.0.1:{relay.port}/wsn", "loop"))).status == 200
        await call(node.url, notify("loop", "<n>1</n>"))
        (item,) = (await listed(node))["items"]
        await eventually(lambda: _is_dead(f"{node.base}/subscriptions/{item['id']}"))
        assert len(await _published(node, "loop")) == 1


async def test_nodes_without_a_cluster_in_common_may_form_a_chain(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "first") as first, NodeProcess(tmp_path / "second") as second:
        async with Consumer() as consumer:
            assert (await call(first.url, subscribe(second.url, "a"))).status == 200
            await create(second, consumer, topic="a")
            await publish(first, "a", {"n": 1})
            await consumer.wait(lambda c: data_of(c) == [{"n": 1}])


async def test_a_push_that_leads_to_another_node_of_the_cluster_fails(tmp_path: Path) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin"))
        one, other = (
            stack.enter_context(Member(tmp_path / name, name, "plant", admin.base, *DEAD_AT_ONCE))
            for name in ("one", "other")
        )
        await admin.comes_to(lambda: admin.states() == {"one": "alive", "other": "alive"})
        relay = stack.enter_context(CuttingRelay(_port(other), NEVER))

        async def knows() -> bool:
            (cluster,) = (await show(f"{other.base}/cluster"))["clusters"]
            return len(cluster["nodes"]) == 2

        url = await create(one, f"http://127.0.0.1:{relay.port}/topics/loop/events", topic="loop")
        await eventually(knows)
        await publish(one, "loop", {"n": 1})
        await eventually(lambda: _is_dead(url))
        assert await _published(one, "loop") == [{"n": 1}]


async def _is_dead(url: str) -> bool:
    return bool((await show(url))["dead_letters"])


async def _published(node: NodeProcess, topic: str) -> list[object]:
    _, events = await ask("GET", f"{node.base}/topics/{topic}/events")
    return [event["data"] for event in events]  # type: ignore[index]
