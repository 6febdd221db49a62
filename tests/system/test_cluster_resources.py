"""Resources of one node used by way of another: any node of a cluster leads to the owner."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from hpwsn_client import Client, SoapVersion
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.faults import Busy, ResourceUnknownFault, SubscribeCreationFailedFault
from tests.certificates import certificate
from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess
from tests.original_messages import UNSUBSCRIBE_BY_HEADER
from tests.patience import PATIENCE, eventually
from tests.raw_soap import TYPES, WSNT, Reply, call, envelope, send, subscribe

CONSUMER = "http://127.0.0.1:9/"
PULL = "<w:GetMessages/>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def admin(folder: Path) -> Iterator[AdminProcess]:
    with AdminProcess(folder / "admin") as running:
        yield running


@pytest.fixture(scope="module")
def nodes(folder: Path, admin: AdminProcess) -> Iterator[dict[str, Member]]:
    """The owner, another of its cluster, and one of another cluster."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Member(folder / name, name, cluster, admin.base))
            for name, cluster in (("owner", "plant"), ("other", "plant"), ("far", "office"))
        }


@pytest.fixture(params=list(SoapVersion))
async def client(request: pytest.FixtureRequest, nodes: dict[str, Member]) -> AsyncIterator[Client]:
    async with Client(nodes["owner"].url, soap=request.param) as one:
        yield one


@pytest.fixture
async def follow(admin: AdminProcess, nodes: dict[str, Member]) -> None:
    """Every node knows every other."""
    await admin.comes_to(
        lambda: all(node.status()["cluster"]["nodes_alive"] == len(nodes) for node in nodes.values())
    )


def by_way_of(node: NodeProcess, epr: EndpointReference) -> EndpointReference:
    """The same resource at another node's address."""
    return EndpointReference(node.base + urlsplit(epr.address).path)


@pytest.mark.usefixtures("follow")
class TestAnyNode:
    @pytest.mark.parametrize("way", ["other", "far", "owner"])
    async def test_leads_to_a_subscription(self, client: Client, nodes: dict[str, Member], way: str) -> None:
        subscription = await client.subscribe("a:b", CONSUMER)
        there = by_way_of(nodes[way], subscription.epr)
        end = await client.renew(there, timedelta(hours=1))
        assert end is not None
        await client.pause(there)
        await client.resume(there)
        (consumer,) = await client.get_resource_property("wsnt:ConsumerReference", there)
        assert consumer.findtext("{*}Address") == CONSUMER
        assert await client.set_termination_time(there) is None
        await client.unsubscribe(there)
        for place in (there, subscription.epr):
            with pytest.raises(ResourceUnknownFault):
                await client.renew(place)

    @pytest.mark.parametrize("way", ["other", "far"])
    async def test_leads_to_a_pull_point_and_its_messages_once_and_in_order(
        self, client: Client, nodes: dict[str, Member], way: str
    ) -> None:
        point = await client.create_pull_point()
        await client.subscribe(f"pulled:{way}", point)
        there = by_way_of(nodes[way], point.epr)
        sent = [f"message {number}" for number in range(5)]
        for text in sent:
            await client.notify(f"pulled:{way}", text)
        found = [one.text for one in await client.get_messages(there, 3)]
        found += [one.text for one in await client.get_messages(there)]
        assert found == sent
        assert await client.get_messages(there) == []
        await client.destroy_pull_point(there)
        with pytest.raises(ResourceUnknownFault):
            await point.get_messages()

    async def test_leads_to_a_registration_whose_publisher_sends_there(
        self, client: Client, nodes: dict[str, Member]
    ) -> None:
        registration = await client.register_publisher("registered:x")
        point = await client.create_pull_point()
        await client.subscribe("registered:x", point)
        registration.consumer = by_way_of(nodes["other"], registration.consumer)
        await registration.notify("registered:x", "by way of another")
        assert [one.text for one in await point.get_messages()] == ["by way of another"]
        await client.destroy_registration(by_way_of(nodes["other"], registration.epr))
        with pytest.raises(ResourceUnknownFault):
            await registration.destroy()

    async def test_takes_the_pull_point_of_another_as_a_consumer(
        self, client: Client, nodes: dict[str, Member]
    ) -> None:
        point = await client.create_pull_point()
        async with Client(nodes["other"].url) as elsewhere:
            await elsewhere.subscribe("across", by_way_of(nodes["other"], point.epr))
            await elsewhere.notify("across", "the long way")

            async def arrived() -> bool:
                return [one.text for one in await point.get_messages()] == ["the long way"]

            await eventually(arrived)

    @pytest.mark.parametrize("path", ["/wsn", "/wsn/process", "/wsn/registrations/x"])
    async def test_refuses_another_as_a_consumer_to_which_notifications_come_anyway(
        self, client: Client, nodes: dict[str, Member], path: str
    ) -> None:
        with pytest.raises(SubscribeCreationFailedFault, match="would loop"):
            await client.subscribe("a", nodes["far"].base + path)

    async def test_ends_a_subscription_at_the_originals_door(self, nodes: dict[str, Member]) -> None:
        door = f"{nodes['other'].base}/wsn/process"
        async with Client(nodes["owner"].url) as client:
            subscription = await client.subscribe("original", CONSUMER)
        ending = UNSUBSCRIBE_BY_HEADER.format(subscription=subscription.epr.address).encode()
        assert (await send(door, ending)).status == 200
        again = await send(door, ending)
        assert (again.status, again.fault) == (500, "ResourceUnknownFault")


@pytest.mark.usefixtures("follow")
class TestEdges:
    async def test_messages_that_a_client_left_without_are_handed_out_again(
        self, nodes: dict[str, Member]
    ) -> None:
        """A client that does not confirm, and resets its connection before the answer is there."""
        owner, other = nodes["owner"], nodes["other"]
        created = await call(owner.url, "<w:CreatePullPoint/>")
        address = created.text("w:PullPoint/a:Address")
        await call(owner.url, subscribe(address, "left"))
        await call(
            owner.url,
            '<w:Notify><w:NotificationMessage><w:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/'
            'TopicExpression/Simple">left</w:Topic><w:Message><m/></w:Message></w:NotificationMessage></w:Notify>',
        )
        path = urlsplit(address).path
        await asyncio.to_thread(pull_and_vanish, other, path)

        async def handed_out() -> bool:
            answer = await call(other.base + path, PULL)
            return len(answer.content.findall(f"{{{WSNT}}}NotificationMessage")) == 1

        await eventually(handed_out)

    async def test_an_owner_that_is_away_is_a_fault_that_names_it(
        self, admin: AdminProcess, nodes: dict[str, Member], folder: Path
    ) -> None:
        with Member(folder / "gone", "gone", "plant", admin.base) as gone:
            async with Client(gone.url) as client:
                subscription = await client.subscribe("a", CONSUMER)
            there = by_way_of(nodes["other"], subscription.epr)
            await admin.comes_to(lambda: nodes["other"].status()["cluster"]["nodes_alive"] == 4)
            async with Client(nodes["other"].url) as client:
                assert await client.renew(there) is None
                gone.kill()
                with pytest.raises(Busy, match=r"to node gone at .* cannot be reached.*nothing was changed"):
                    await client.renew(there)
                reply = await call(there.address, "<w:Unsubscribe/>", "1.2")
                assert (reply.status, reply.headers["Retry-After"]) == (503, "2")
                # It is back, and so is the subscription.
                gone.start()
                await client.unsubscribe(there)

    async def test_an_id_that_no_node_ever_made_is_unknown_everywhere(self, nodes: dict[str, Member]) -> None:
        for id_ in ("0" * 24, "0" * 24 + "-" + "0" * 10, "x"):
            reply = await call(f"{nodes['other'].base}/wsn/subscriptions/{id_}", "<w:Unsubscribe/>")
            assert reply.fault == "ResourceUnknownFault"

    async def test_a_body_over_the_limit_is_refused_on_the_way(self, nodes: dict[str, Member]) -> None:
        async with Client(nodes["owner"].url) as client:
            epr = (await client.subscribe("large", CONSUMER)).epr
        large = envelope("<w:Unsubscribe>" + " " * (16 * 1024**2) + "</w:Unsubscribe>")
        assert (await send(by_way_of(nodes["far"], epr).address, large)).status == 413

    async def test_a_request_that_pretends_to_be_passed_on_is_refused(self, nodes: dict[str, Member]) -> None:
        owner, other = nodes["owner"], nodes["other"]
        async with Client(owner.url) as client:
            epr = (await client.subscribe("forged", CONSUMER)).epr
        path = urlsplit(epr.address).path
        for node in (owner, other):
            reply = await asyncio.to_thread(forged, node, path)
            assert reply.startswith(b"HTTP/1.1 403 ")
            assert b"forwarded request is refused" in reply

    async def test_a_node_alone_gives_the_addresses_it_always_gave(self, node: NodeProcess) -> None:
        async with Client(node.url) as client:
            subscription = await client.subscribe("a", CONSUMER)
            id_ = subscription.epr.address.removeprefix(f"{node.base}/wsn/subscriptions/")
            assert len(bytes.fromhex(id_)) == 12


async def test_nodes_that_speak_tls_pass_on_by_tls_and_show_their_certificates(
    admin: AdminProcess, tmp_path: Path
) -> None:
    shown, key = certificate(tmp_path, "node")
    settings = {
        "server.tls_certificate": shown,
        "server.tls_key": key,
        "server.tls_client_ca": shown,
        "cluster.ca_file": shown,
    }
    given = [part for name, file in settings.items() for part in ("--set", f"{name}={file}")]
    context = ssl.create_default_context(cafile=str(shown))
    context.load_cert_chain(shown, key)
    with (
        Member(tmp_path / "s1", "s1", "secure", admin.base, *given) as owner,
        Member(tmp_path / "s2", "s2", "secure", admin.base, *given) as other,
    ):
        assert owner.url.startswith("https://")
        created = await post(owner.url, "<w:CreatePullPoint/>", context)
        address = created.text("w:PullPoint/a:Address")
        there = other.base + urlsplit(address).path
        assert (await post(there, "<w:DestroyPullPoint/>", context)).status == 200
        assert (await post(address, "<w:DestroyPullPoint/>", context)).fault == "ResourceUnknownFault"


async def post(url: str, body: str, context: ssl.SSLContext) -> Reply:
    headers = {"Content-Type": TYPES["1.1"]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=envelope(body), headers=headers, ssl=context) as answer,
    ):
        return Reply(answer.status, dict(answer.headers), await answer.read())


def request_of(node: NodeProcess, path: str, body: str, headers: str = "") -> bytes:
    data = envelope(body)
    return (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(node.base).netloc}\r\nContent-Type: text/xml\r\n{headers}"
        f"Content-Length: {len(data)}\r\n\r\n"
    ).encode() + data


def pull_and_vanish(node: NodeProcess, path: str) -> None:
    with socket.create_connection(("127.0.0.1", node.port)) as connection:
        connection.sendall(request_of(node, path, PULL))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def forged(node: NodeProcess, path: str) -> bytes:
    headers = "Hpwsn-Time: 1.0\r\nHpwsn-Nonce: 1\r\nHpwsn-Signature: 00\r\n"
    with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as connection:
        connection.sendall(request_of(node, path, "<w:Unsubscribe/>", headers + "Connection: close\r\n"))
        return b"".join(iter(lambda: connection.recv(65536), b""))
