"""The pipelined publisher against real brokers, and against ones that lose answers, refuse or are busy."""

from __future__ import annotations

import asyncio
import threading

import pytest
from aiohttp import web

from hpwsn_client import Client, Closed, ConnectionFailed, PublishFailed, SyncClient, TimedOut
from hpwsn_client.wsn.soap.faults import Busy, InvalidMessage, TopicNotSupportedFault
from hpwsn_client.wsn.soap.names import hp
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually, patience
from tests.system.scripted_broker import ScriptedBroker

FOREVER = 3600.0


async def received(client: Client, mailbox, count: int) -> list[str]:
    found: list[str] = []

    async def complete() -> bool:
        found.extend(message.text for message in await mailbox.get_messages())
        return len(found) >= count

    await eventually(complete)
    return found


def message_ids(broker: ScriptedBroker) -> list[str]:
    return [asked.envelope.header(hp("MessageId")).text for asked in broker.asked]


async def test_a_stream_arrives_whole_and_in_order(node: NodeProcess):
    async with Client(node.url) as client:
        mailbox = await client.create_pull_point()
        await client.subscribe("stream", mailbox)
        async with client.publisher(batch=20) as publisher:
            for number in range(1000):
                await publisher.put("stream:numbers", str(number))
        assert await received(client, mailbox, 1000) == [str(number) for number in range(1000)]


async def test_several_requests_are_under_way_on_one_connection_and_no_more_than_allowed():
    async with RawBroker() as broker, Client(broker.url) as client:
        publisher = client.publisher(batch=1, in_flight=3)
        for number in range(10):
            await publisher.put("A", str(number))
        await broker.has_read(3)
        assert (broker.connections, broker.requests) == (1, 3)
        broker.answer(1)
        await broker.has_read(4)
        broker.answer_all()
        await publisher.close()
        assert (broker.connections, broker.requests) == (1, 10)


async def test_what_comes_within_the_linger_travels_together():
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        publisher = client.publisher(linger=FOREVER, batch=3)
        futures = [await publisher.put("A", text) for text in "abcde"]
        await futures[2]
        assert broker.notified() == [["a", "b", "c"]]
        await publisher.flush()
        assert broker.notified() == [["a", "b", "c"], ["d", "e"]]
        await publisher.close()


async def test_a_message_that_lingered_long_enough_goes_alone():
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        publisher = client.publisher(linger=0.01, batch=100)
        await (await publisher.put("A", "a"))
        assert broker.notified() == [["a"]]
        await publisher.close()


async def test_put_waits_while_too_many_wait():
    async with RawBroker() as broker, Client(broker.url) as client:
        publisher = client.publisher(batch=1, in_flight=1, max_waiting=2, linger=0)
        await publisher.put("A", "0")
        await broker.has_read(1)
        for text in "12":
            await publisher.put("A", text)
        third = asyncio.create_task(publisher.put("A", "3"))
        done, _ = await asyncio.wait([third], timeout=0.05)
        assert not done
        broker.answer(1)
        await third
        broker.answer_all()
        await publisher.close()
        assert broker.requests == 4


async def test_requests_without_an_answer_are_sent_again_under_the_same_ids_and_published_once(
    node: NodeProcess,
):
    async with Client(node.url) as client, LossyProxy(node.port) as proxy, Client(proxy.url) as lossy:
        mailbox = await client.create_pull_point()
        await client.subscribe("lossy", mailbox)
        async with lossy.publisher(batch=5) as publisher:
            for number in range(300):
                await publisher.put("lossy:numbers", str(number))
        assert proxy.cut >= 3
        assert await received(client, mailbox, 300) == [str(number) for number in range(300)]
        assert await mailbox.get_messages() == []


async def test_a_refused_request_is_reported_with_its_messages_and_the_rest_is_accepted():
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.script[tuple] = lambda messages: (
            TopicNotSupportedFault("not here") if any(m.text == "c" for m in messages) else None
        )
        publisher = client.publisher(batch=2, linger=FOREVER)
        futures = [await publisher.put("A", text) for text in "abcdef"]
        with pytest.raises(PublishFailed, match="2 notifications in 1 requests") as caught:
            await publisher.flush()
        (failed,) = caught.value.failed
        assert [message.text for message in failed.messages] == ["c", "d"]
        assert isinstance(failed.error, TopicNotSupportedFault)
        assert [future.exception() is None for future in futures] == [True, True, False, False, True, True]
        await publisher.close()


async def test_a_failure_nobody_waited_for_is_raised_by_the_next_put_and_then_is_over():
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.script[tuple] = InvalidMessage("no")
        publisher = client.publisher(linger=0)
        await asyncio.wait([await publisher.put("A", "a")])
        with pytest.raises(PublishFailed):
            await publisher.put("A", "b")
        broker.script.clear()
        await publisher.put("A", "c")
        await publisher.close()
        assert broker.notified() == [["a"], ["c"]]


async def test_a_busy_broker_gets_the_same_request_again_after_the_time_it_asks_for():
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        answers = iter([Busy("full", retry_after=0.0), Busy("full", retry_after=0.0), None])
        broker.script[tuple] = lambda messages: _with_retry_after(next(answers))
        async with client.publisher() as publisher:
            await publisher.put("A", "a")
        assert broker.notified() == [["a"]] * 3
        assert len(set(message_ids(broker))) == 1


def _with_retry_after(fault: Busy | None) -> web.Response | None:
    return None if fault is None else web.Response(status=503, headers={"Retry-After": "0"}, text=BUSY)


BUSY = (
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>'
    "<faultcode>s:Server</faultcode><faultstring>full</faultstring></s:Fault></s:Body></s:Envelope>"
)


async def test_a_broker_that_stays_away_fails_the_batch_after_the_time_for_retries(unused_tcp_port: int):
    async with Client(f"http://127.0.0.1:{unused_tcp_port}/wsn") as client:
        publisher = client.publisher(retry_for=0.0)
        await publisher.put("A", "a")
        with pytest.raises(PublishFailed) as caught:
            await publisher.close()
        assert isinstance(caught.value.failed[0].error, ConnectionFailed)


async def test_all_that_waits_for_a_broker_that_stays_away_has_the_same_time(unused_tcp_port: int):
    async with Client(f"http://127.0.0.1:{unused_tcp_port}/wsn") as client:
        publisher = client.publisher(retry_for=0.5, batch=1, in_flight=1)
        count = int(4 * PATIENCE)
        for number in range(count):
            await publisher.put("A", str(number))
        with pytest.raises(PublishFailed) as caught:
            # One after the other they would take twice as long as this waits.
            async with patience():
                await publisher.close()
        failed = [message.text for batch in caught.value.failed for message in batch.messages]
        assert failed == [str(number) for number in range(count)]


async def test_a_host_name_that_cannot_be_one_fails_every_batch_and_leaves_nobody_waiting():
    async with Client("http://a..b/wsn") as client:
        publisher = client.publisher(retry_for=0.0)
        for _ in range(2):
            await publisher.put("A", "a")
            with pytest.raises(PublishFailed) as caught:
                async with patience():
                    await publisher.flush()
            assert isinstance(caught.value.failed[0].error, ConnectionFailed)
        await publisher.close()


async def test_a_broker_that_never_answers_fails_the_batch():
    async with RawBroker() as broker, Client(broker.url, timeout=0.05) as client:
        publisher = client.publisher(retry_for=0.0)
        await publisher.put("A", "a")
        with pytest.raises(PublishFailed) as caught:
            await publisher.flush()
        assert isinstance(caught.value.failed[0].error, TimedOut)
        await publisher.close()


async def test_close_sends_what_lingers_and_takes_no_more():
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        publisher = client.publisher(linger=FOREVER)
        await publisher.put("A", "a")
        await publisher.close()
        assert broker.notified() == [["a"]]
        with pytest.raises(Closed):
            await publisher.put("A", "b")
        await publisher.close()


@pytest.mark.parametrize("options", [{"batch": 0}, {"in_flight": 0}, {"max_waiting": 0}, {"linger": -1}])
async def test_options_that_make_no_sense_are_refused(options):
    async with Client() as client:
        with pytest.raises(ValueError, match=str(next(iter(options)))):
            client.publisher(**options)


def test_code_without_asyncio_publishes_from_several_threads_and_nothing_is_lost(node: NodeProcess):
    with SyncClient(node.url) as client:
        mailbox = client.create_pull_point()
        client.subscribe("threads", mailbox)
        with client.publisher(batch=10, linger=0.01) as publisher:

            def publish(name: str) -> None:
                for number in range(105):
                    publisher.put("threads", f"{name}-{number}")

            threads = [threading.Thread(target=publish, args=(name,)) for name in "abc"]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            publisher.flush()
        found: list[str] = []
        while len(found) < 315:
            found += [message.text for message in mailbox.get_messages()]
        for name in "abc":
            assert [text for text in found if text[0] == name] == [f"{name}-{n}" for n in range(105)]
        with pytest.raises(Closed):
            publisher.put("threads", "late")


def test_code_without_asyncio_hears_of_what_failed(unused_tcp_port: int):
    with SyncClient(f"http://127.0.0.1:{unused_tcp_port}/wsn") as client:
        publisher = client.publisher(retry_for=0.0)
        publisher.put("A", "a")
        with pytest.raises(PublishFailed):
            publisher.flush()
        publisher.close()


class RawBroker:
    """Reads requests, and answers when it is told."""

    async def __aenter__(self):
        self.connections = self.requests = self._answered = 0
        self._all = False
        self._more = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/wsn"
        return self

    async def __aexit__(self, *exc):
        for writer in self._writers:
            writer.close()
        self._server.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
                await reader.readexactly(length)
                self.requests += 1
                self._more.set()
                if self._all:
                    self.answer(1)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def has_read(self, count: int) -> None:
        while self.requests < count:
            self._more.clear()
            await self._more.wait()

    def answer(self, count: int) -> None:
        self._answered += count
        self._writers[-1].write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n" * count)

    def answer_all(self) -> None:
        self._all = True
        self.answer(self.requests - self._answered)


class LossyProxy:
    """Hands bytes on to a node, and cuts the connection on the way back, again and again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._serving: set[asyncio.Task[None]] = set()
        self.cut = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/wsn"
        return self

    async def __aexit__(self, *exc):
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._serving.add(asyncio.current_task())
        upstream, downstream = await asyncio.open_connection("127.0.0.1", self._port)
        passing = asyncio.create_task(self._pass_on(reader, downstream))
        try:
            await self._pass_answers(upstream, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            # The publisher, or the test, has come to its end.
            pass
        finally:
            passing.cancel()
            for each in (downstream, writer):
                each.transport.abort()
                each.close()

    async def _pass_on(self, reader, downstream):
        while data := await reader.read(65536):
            downstream.write(data)

    async def _pass_answers(self, upstream, writer):
        """Five answers reach the publisher; those after them were given, and are lost."""
        for _ in range(5):
            head = await upstream.readuntil(b"\r\n\r\n")
            writer.write(head)
        await writer.drain()
        await upstream.readuntil(b"\r\n\r\n")
        self.cut += 1
