"""Topics that become internal or public while a node runs; and internal topics that other nodes and
applications on ActiveMQ share.
"""

from __future__ import annotations

import asyncio
import io
import json
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client import SyncClient
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.activemq import ActiveMQ, BackedNode
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess, hpwsn
from tests.internal_topics import (
    PLATE,
    PUBLIC_TREE,
    TREE,
    get,
    internal_node,
    internal_tree,
    on_file,
    post,
    publish_both,
    pulled,
    shows,
)
from tests.patience import eventually, until
from tests.raw_soap import call, notify, send, subscribe
from tests.slapd import ADMIN, Slapd
from tests.stomp_application import StompApplication

__all__ = ["internal_node", "internal_tree"]


# A topic that changes


async def test_subscriptions_get_nothing_from_then_on_and_go_on_when_it_is_public(
    node: NodeProcess, tree: Path
) -> None:
    """Also what waits, in a pull point, in a pause, and behind a consumer that is away."""
    await on_file(node, tree, PUBLIC_TREE, internal=False)
    async with Consumer() as consumer, Consumer() as paused:
        assert (await call(node.url, subscribe(consumer.url, "traffic"))).status == 200
        point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        assert (await call(node.url, subscribe(point, "traffic"))).status == 200
        reply = await call(node.url, subscribe(paused.url, "traffic"))
        manager = reply.text("w:SubscriptionReference/a:Address")
        assert (await call(manager, "<w:PauseSubscription/>")).status == 200
        await post(node, "traffic:anpr", {"vid": "before"})
        await consumer.wait(lambda c: any(b"before" in body for body in c.requests))
        await on_file(node, tree, TREE, internal=True)
        await publish_both(node, "during")
        await consumer.wait(lambda c: any(b"during" in body for body in c.requests))
        assert (await pulled(point))[0] == "during"
        assert (await call(manager, "<w:ResumeSubscription/>")).status == 200
        await paused.wait(lambda c: any(b"during" in body for body in c.requests))
        assert not [body for body in paused.requests if b"before" in body]
        assert (await call(manager, "<w:PauseSubscription/>")).status == 200
        node.terminate()
        node.start()
        await publish_both(node, "restarted")
        await on_file(node, tree, PUBLIC_TREE, internal=False)
        await post(node, "traffic:anpr", {"vid": "after"})
        await consumer.wait(lambda c: any(b"after" in body for body in c.requests))
        # The restart may give what was not acknowledged once more.
        assert (await pulled(point))[-2:] == ["restarted", "after"]
        assert (await call(manager, "<w:ResumeSubscription/>")).status == 200
        await paused.wait(lambda c: any(b"after" in body for body in c.requests))
        for each in (consumer, paused):
            assert not [body for body in each.requests if PLATE.encode() in body]
    _, _, body = await get(node, "/topics/traffic:anpr/events")
    assert [event["data"]["vid"] for event in json.loads(body)] == ["before", "after"]
    _, _, body = await get(node, "/topics/traffic:anpr/events", headers=shows(node))
    assert body.count(PLATE.encode()) == 6


async def test_a_dead_letter_of_an_internal_topic_has_no_payload_and_is_not_sent(
    tmp_path: Path, tree: Path
) -> None:
    quick = ("delivery.retry_first=0.01", "delivery.retry_max=0.02", "retry.server_error_attempts=2")
    settings = [part for each in quick for part in ("--set", each)]
    tree.write_text(PUBLIC_TREE)
    with NodeProcess(tmp_path / "data", "--topics", str(tree), *settings) as node:
        async with Consumer(lambda number: 500) as consumer:
            assert (await call(node.url, subscribe(consumer.url, "traffic"))).status == 200
            await post(node, "traffic:anpr", {"vid": PLATE})

            async def letters() -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = json.loads((await get(node, "/deadletters"))[2])["items"]
                return found

            async def one() -> bool:
                return len(await letters()) == 1

            await eventually(one)
            (letter,) = await letters()
            _, _, body = await get(node, f"/deadletters/{letter['id']}")
            assert PLATE in json.loads(body)["payload"]
            await on_file(node, tree, TREE, internal=True)
            _, _, body = await get(node, f"/deadletters/{letter['id']}")
            assert json.loads(body)["payload"] is None
            consumer.answer = lambda number: 202
            seen = len(consumer.requests)
            everything = io.BytesIO(b'{"all": true}').getvalue()
            reply = await send(f"{node.base}/deadletters/replay", everything, "application/json")
            answer = json.loads(reply.body)
            assert (answer["sent"], answer["ended"], answer["internal"]) == (0, 0, 1)
            await post(node, "traffic:flow", {"mark": "mark"})
            await consumer.wait(lambda c: any(b"mark" in body for body in c.requests[seen:]))
            assert not [body for body in consumer.requests[seen:] if PLATE.encode() in body]
            assert len(await letters()) == 1


async def test_a_contradiction_in_the_file_is_refused_and_the_topics_stay(
    node: NodeProcess, tree: Path, tmp_path: Path
) -> None:
    tree.write_text(TREE.replace("[topics.traffic.flow]", "[topics.traffic.anpr.x]\nvisibility = 'public'"))

    async def warned() -> bool:
        return b"cannot be public" in (await get(node, "/status"))[2]

    await eventually(warned)
    await publish_both(node)
    assert (await get(node, "/topics/traffic:anpr/events"))[0] == 401
    refused = await asyncio.to_thread(
        hpwsn, "serve", "--port", "0", "--data", str(tmp_path / "other"), "--topics", str(tree)
    )
    assert refused.returncode == 1
    assert "topic traffic:anpr:x cannot be public, since traffic:anpr above it is internal" in refused.stderr


# Other nodes, and applications on ActiveMQ


async def test_another_node_gets_nothing_internal_whatever_it_announces(tmp_path: Path, tree: Path) -> None:
    """n2 has the topic as public, and subscribes and reads; n3, in another cluster, hears by n1 only."""
    public = tmp_path / "public.toml"
    public.write_text(PUBLIC_TREE)
    with AdminProcess(tmp_path / "admin") as admin, ExitStack() as running:
        places = {"n1": ("one", tree), "n2": ("one", public), "n3": ("two", public)}
        nodes = {
            name: running.enter_context(
                Member(tmp_path / name, name, cluster, admin.base, "--topics", str(file))
            )
            for name, (cluster, file) in places.items()
        }
        async with Consumer() as second, Consumer() as third, Consumer() as first:
            for name, consumer in (("n1", first), ("n2", second), ("n3", third)):
                assert (await call(nodes[name].url, subscribe(consumer.url, "traffic"))).status == 200
            for name, consumer in (("n2", second), ("n3", third)):
                await reached(nodes["n1"], consumer, f"probe-{name}")
            await publish_both(nodes["n1"])
            header = '<hp:Routing xmlns:hp="urn:hpwsn:1" reliable="true"/>'
            body = notify("traffic:anpr", f"<v>{PLATE}</v>")
            assert (await call(nodes["n1"].url, body, headers=header)).status == 202
            await reached(nodes["n1"], second, "end-2")
            await reached(nodes["n1"], third, "end-3")
            # What another node publishes is internal where it arrives, and not passed on to a third node.
            await post(nodes["n2"], "traffic:anpr", {"vid": PLATE})
            await reached(nodes["n2"], first, "end-1")
            await reached(nodes["n2"], third, "end-4")
            for consumer in (first, third):
                assert not [body for body in consumer.requests if PLATE.encode() in body]
            assert len([body for body in second.requests if PLATE.encode() in body]) == 1
        for name in ("n1", "n3"):
            _, _, body = await get(nodes[name], "/topics/traffic/events")
            assert PLATE.encode() not in body
        _, _, body = await get(nodes["n1"], "/topics/traffic:anpr/events", headers=shows(nodes["n1"]))
        assert body.count(PLATE.encode()) == 5


async def reached(node: NodeProcess, consumer: Consumer, mark: str) -> None:
    """Publish a mark until a consumer at another node has it, which knows of the interest from then on."""

    async def there() -> bool:
        await post(node, "traffic:flow", {"mark": mark})
        return any(mark.encode() in body for body in consumer.requests)

    await eventually(there)


def test_applications_on_activemq_get_nothing_internal(activemq: ActiveMQ, tmp_path: Path) -> None:
    root = f"R{uuid.uuid4().hex[:8]}"
    tree = tmp_path / "topics.toml"
    tree.write_text(TREE.replace("traffic", root))
    node = BackedNode(
        tmp_path / "data", activemq.url, "--topics", str(tree), "--set", f"backbone.peers={root}"
    )
    with node, StompApplication(activemq) as application, SyncClient(node.url) as client:
        until(lambda: node.get("/readyz")["ready"], node.log)
        application.subscribe(f"/topic/hpwsn.{root}.>")
        client.notify(f"{root}:anpr", f"<v>{PLATE}</v>")
        client.notify(f"{root}:anpr:lane1", f"<v>{PLATE}</v>")
        client.notify(f"{root}:flow", "<v>mark</v>")
        headers, body = application.get()
        assert (headers["topic"], body) == (f"{root}:flow", b"<v>mark</v>")
        # What an application publishes there is internal at the node.
        application.connection.send(f"/topic/hpwsn.{root}.anpr", f"<v>{PLATE}</v>")
        application.connection.send(f"/topic/hpwsn.{root}.flow", "<v>second</v>")
        until(lambda: len(node.get(f"/topics/{root}/events")) == 2, node.log)
        assert PLATE not in json.dumps(node.get(f"/topics/{root}/events"))
        request = Request(f"{node.base}/topics/{root}:anpr/events", headers=shows(node))
        with urlopen(request) as answer:
            assert answer.read().count(PLATE.encode()) == 3


# LDAP


async def test_a_topic_becomes_internal_in_ldap_while_the_node_runs(slapd: Slapd, tmp_path: Path) -> None:
    slapd.directory.replace(
        [Declaration(Topic.parse(each)) for each in ("traffic:anpr:lane1", "traffic:flow")]
    )
    arguments = ("--topics", slapd.url, "--bind-dn", ADMIN, "--password-file", slapd.password_file)
    with NodeProcess(tmp_path / "data", "--topics", slapd.url) as node:
        await post(node, "traffic:anpr", {"vid": "before"})

        async def is_internal(yes: bool) -> None:
            async def taken() -> bool:
                status, _, _ = await get(node, "/topics/traffic:anpr:lane1/events")
                return (status == 401) is yes

            await eventually(taken)

        async def set_to(visibility: str) -> None:
            ended = await asyncio.to_thread(
                hpwsn, "topics", "add", "traffic:anpr", "--visibility", visibility, *arguments
            )
            assert ended.returncode == 0, ended.stderr

        for _ in range(2):
            await set_to("internal")
            await is_internal(True)
            await publish_both(node)
            await set_to("public")
            await is_internal(False)
        listed = await asyncio.to_thread(hpwsn, "topics", "list", *arguments)
        assert "[internal]" not in listed.stdout
        await set_to("internal")
        await is_internal(True)
        listed = await asyncio.to_thread(hpwsn, "topics", "list", *arguments)
        assert listed.stdout.count("[internal]") == 2
        _, _, body = await get(node, "/topics/traffic/events")
        assert PLATE.encode() not in body
        # Without the server, the saved tree still says what is internal.
        node.terminate()
        slapd.kill()
        node.start()
        assert (await get(node, "/topics/traffic:anpr/events"))[0] == 401
        assert (await get(node, "/topics/traffic:anpr/events", headers=shows(node)))[0] == 200
