"""What reviewers did to the node: it must stay whole, and so must what it accepted."""

import asyncio
from pathlib import Path

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.producer import register
from tests.raw_soap import TYPES, call, envelope, notify, send, subscribe

XPATH = f'<w:MessageContent Dialect="{raw_soap.XPATH}">%s</w:MessageContent>'


async def test_content_that_grows_past_the_limit_when_written_is_refused_whole(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "A", filters=XPATH % "/m/x = 1"))
        grows = f"<m><x>1</x><y>{'>' * 6_000_000}</y></m>"
        refused = await send(node.url, envelope(notify("A", grows, "<m><x>1</x></m>")), TYPES["1.1"])
        assert refused.status == 413
        assert (await call(node.url, notify("A", "<m><x>1</x><z/></m>"))).status == 202
        await consumer.wait(lambda c: bool(c.requests))
        assert len(consumer.messages()) == 1


async def test_a_costly_filter_does_not_stop_the_node(node: NodeProcess) -> None:
    cube = "count(//*[count(//*[count(//*) &gt; 0]) &gt; 0]) &gt; 0"
    async with Consumer() as costly, Consumer() as plain:
        assert (await call(node.url, subscribe(costly.url, "A", filters=XPATH % cube))).status == 200
        await call(node.url, subscribe(plain.url, "A"))
        assert (await call(node.url, notify("A", f"<m>{'<e/>' * 3000}</m>"))).status == 202
        await plain.wait(lambda c: bool(c.requests))
        assert (await call(node.url, notify("A", "<m><e/></m>"))).status == 202
        await costly.wait(lambda c: bool(c.requests))
        assert len(costly.messages()) == 1


async def test_clients_that_never_finish_a_head_do_not_keep_others_out(tmp_path: Path) -> None:
    settings = ("--set", "server.connections=20", "--set", "server.request_timeout=0.5")
    with NodeProcess(tmp_path / "data", *settings) as node:
        half = [await asyncio.open_connection("127.0.0.1", node.port) for _ in range(30)]
        for _, writer in half:
            writer.write(b"POST /wsn HTTP/1.1\r\nHost: x\r\n")

        async def served() -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            try:
                return b" 200 " in await reader.read()
            except ConnectionResetError:
                return False
            finally:
                writer.close()

        await eventually(served)
        for _, writer in half:
            writer.close()
        assert "server.connections" in node.log()


async def test_a_notification_that_a_consumer_refuses_does_not_take_others_along(tmp_path: Path) -> None:
    settings = ("--set", "delivery.retry_first=0.01", "--set", "delivery.retry_max=0.02")
    with NodeProcess(tmp_path / "data", *settings, "--set", "retry.server_error_attempts=2") as node:
        async with Consumer() as consumer:
            consumer.answer = lambda number: 500 if b"<n>3</n>" in consumer.requests[number - 1] else 202
            await call(node.url, subscribe(consumer.url, "A"))
            await call(node.url, notify("A", *(f"<n>{n}</n>" for n in range(10))))
            await consumer.wait(lambda c: any(b"<n>9</n>" in r and b"<n>3</n>" not in r for r in c.requests))
            letters = (await send(f"{node.base}/deadletters", b"", method="GET")).body
            taken = [p for r, p in _answered(consumer) if b"<n>3</n>" not in r]
        assert list(dict.fromkeys(taken)) == ["0", "1", "2", "4", "5", "6", "7", "8", "9"]
        assert letters.count(b'"id"') == 1


def _answered(consumer: Consumer) -> list[tuple[bytes, str]]:
    return [
        (request, "".join(message.find("w:Message", raw_soap.NAMES)[0].itertext()))
        for request in consumer.requests
        for message in raw_soap.Reply(200, {}, request).envelope.iterfind(
            ".//w:NotificationMessage", raw_soap.NAMES
        )
    ]


async def test_the_broker_does_not_subscribe_to_itself(node: NodeProcess) -> None:
    assert (await call(node.url, subscribe(node.url, "A"))).fault == "SubscribeCreationFailedFault"
    for nowhere in ("anonymous", "none"):
        reply = await call(node.url, subscribe(f"{raw_soap.WSA}/{nowhere}"))
        assert reply.fault == "SubscribeCreationFailedFault"


async def test_the_broker_knows_itself_by_every_name_of_the_loopback(node: NodeProcess) -> None:
    for host in ("localhost", "LocalHost", "[::1]"):
        alias = f"http://{host}:{node.port}"
        for path in ("/wsn", "/wsn/", "/wsn?x=1", "/wsn/process", "/onvif/events", "/wsn/registrations/x"):
            reply = await call(node.url, subscribe(f"{alias}{path}", "A"))
            assert (reply.status, reply.fault) == (500, "SubscribeCreationFailedFault")
        reply = await call(node.url, register(f"{alias}/wsn", "A", demand=True))
        assert reply.fault == "PublisherRegistrationFailedFault"
    other = f"http://localhost:{node.port + 1 if node.port < 65535 else 1}/wsn"
    assert (await call(node.url, subscribe(other, "A"))).status == 200


async def test_a_drain_takes_no_longer_than_its_time(tmp_path: Path) -> None:
    # Without a limit the consumer and the half request would keep the node for longer than a test waits.
    endless = ("--set", "delivery.response_timeout=1d", "--set", "server.request_timeout=1d")
    with NodeProcess(tmp_path / "data", *endless, "--set", "server.drain_timeout=0.5") as node:
        async with Consumer(lambda number: 0) as hanging:
            await call(node.url, subscribe(hanging.url, "A"))
            await call(node.url, notify("A", "<n/>"))
            await hanging.wait(lambda c: bool(c.requests))
            _, writer = await asyncio.open_connection("127.0.0.1", node.port)
            writer.write(b"POST /wsn HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
            await writer.drain()
            assert await asyncio.to_thread(node.terminate) == 0
            writer.close()
        assert "Traceback" not in node.log()


async def test_after_a_restart_on_another_port_a_repeated_subscription_is_the_same(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        await call(node.url, subscribe(point, "A"))
    node.port = 0
    with node:
        moved = f"{node.base}/wsn/pullpoints/{point.rsplit('/', 1)[1]}"
        await call(node.url, subscribe(moved, "A"))
        await call(node.url, notify("A", "<n>1</n>"))
        got = await call(moved, "<w:GetMessages/>")
        assert len(got.content) == 1


async def test_faults_for_missing_parts_are_in_plain_words(shared_node: NodeProcess) -> None:
    for body, word in (
        ("<w:Notify/>", "empty"),
        ("<w:Subscribe/>", "ConsumerReference"),
        ("<w:GetCurrentMessage/>", "Topic"),
    ):
        reply = await call(shared_node.url, body)
        text = "".join(reply.content.itertext())
        assert word in text
        assert "frequency" not in text
