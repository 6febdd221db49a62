"""Posts over real sockets on the loopback interface."""

import asyncio
import contextlib
import random
import socket
import ssl
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from hpwsn.broker.push.pool import Outcome, OutcomeKind, Pusher
from tests.needs import need

HEADERS = b"Content-Type: text/xml\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


Script = Callable[["Consumer", asyncio.StreamWriter, bytes], Awaitable[None]]


async def accept(consumer: "Consumer", writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(ACCEPTED)


def reply(data: bytes, close: bool = False) -> Script:
    async def script(consumer: "Consumer", writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.write(data)
        if close:
            writer.close()

    return script


class Consumer:
    """A web server that answers each request by a script; `release` lets held ones go."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.url = ""
        self.requests: list[bytes] = []
        self.accepted = 0
        self.writers: set[asyncio.StreamWriter] = set()
        self.release = asyncio.Event()
        self._changed = asyncio.Condition()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.writers.add(writer)
        await self._tell()
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                request = await read_request(reader)
                self.requests.append(request)
                await self._tell()
                await self.script(self, writer, request)
        self.writers.discard(writer)
        writer.close()
        await self._tell()

    async def until(self, condition: Callable[["Consumer"], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self))

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


async def hold(consumer: Consumer, writer: asyncio.StreamWriter, request: bytes) -> None:
    await consumer.release.wait()
    writer.write(ACCEPTED)


@contextlib.asynccontextmanager
async def consumer(
    script: Script = accept, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Consumer]:
    made = Consumer(script)
    server = await asyncio.start_server(made.serve, host, 0, ssl=tls)
    name = f"[{host}]" if ":" in host else host
    made.url = f"{'https' if tls else 'http'}://{name}:{server.sockets[0].getsockname()[1]}/in?box=1"
    try:
        yield made
    finally:
        server.close()
        made.release.set()
        for writer in list(made.writers):
            writer.close()
        await made.until(lambda made: not made.writers)
        await server.wait_closed()


@contextlib.asynccontextmanager
async def pushing(**settings: object) -> AsyncIterator[Pusher]:
    pusher = Pusher(**settings)
    try:
        yield pusher
    finally:
        await pusher.close(0.0)
        statistics = pusher.statistics()
        assert (statistics.open, statistics.idle, statistics.in_flight, statistics.waiting) == (0, 0, 0, 0)
        assert not pusher._hosts
        assert not pusher._starved
        assert not pusher._cramped


def post(pusher: Pusher, url: str, body: bytes = b"<a/>") -> asyncio.Future[Outcome]:
    """The outcome as a future, which refuses to be told twice."""
    future = asyncio.get_running_loop().create_future()
    pusher.post(url, HEADERS, body, future.set_result)
    assert not future.done()
    return future


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def test_a_post_arrives_as_it_was_prepared():
    async with consumer() as there, pushing() as pusher:
        outcome = await post(pusher, there.url, b"<a>b</a>")
        assert (outcome.kind, outcome.status) == (OutcomeKind.DELIVERED, 202)
        authority = there.url.removeprefix("http://").removesuffix("/in?box=1")
        head = f"POST /in?box=1 HTTP/1.1\r\nHost: {authority}\r\nContent-Type: text/xml\r\nContent-Length: 8"
        assert there.requests == [head.encode() + b"\r\n\r\n<a>b</a>"]


async def test_a_large_body_in_parts_arrives_whole():
    parts = [b"<a>", b"b" * 5_000_000, b"</a>"]
    async with consumer() as there, pushing() as pusher:
        future = asyncio.get_running_loop().create_future()
        pusher.post(there.url, HEADERS, parts, future.set_result)
        assert (await future).kind is OutcomeKind.DELIVERED
        assert there.requests[0].endswith(b"\r\n\r\n" + b"".join(parts))


@pytest.mark.parametrize(
    ("data", "close", "kind", "status"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", False,
         OutcomeKind.DELIVERED, 200),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + ACCEPTED, False, OutcomeKind.DELIVERED, 202),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", True, OutcomeKind.DELIVERED, 200),
        (b"HTTP/1.0 200 OK\r\n\r\n", True, OutcomeKind.DELIVERED, 200),
        (b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", False, OutcomeKind.CLIENT_ERROR, 410),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", False, OutcomeKind.SERVER_ERROR, 500),
        (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", False, OutcomeKind.GARBAGE, 302),
        (b"HTTP/1.1 100 Continue\r\n\r\n", True, OutcomeKind.GARBAGE, 100),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False, OutcomeKind.GARBAGE, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", True, OutcomeKind.LOST, 200),
        (b"", True, OutcomeKind.LOST, None),
    ],
)  # fmt: skip
async def test_each_reply_has_its_outcome(data: bytes, close: bool, kind: OutcomeKind, status: int | None):
    async with consumer(reply(data, close)) as there, pushing() as pusher:
        outcome = await post(pusher, there.url)
        assert (outcome.kind, outcome.status) == (kind, status)
        assert kind is OutcomeKind.DELIVERED or there.url in outcome.reason
        assert pusher.statistics().outcomes[kind] == 1


async def test_a_reply_without_end_counts_by_its_status():
    async def flood(there: Consumer, writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.write(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"a" * 65536)
            await writer.drain()

    async with consumer(flood) as there, pushing() as pusher:
        outcome = await post(pusher, there.url)
        assert (outcome.kind, outcome.status, outcome.retry_after) == (OutcomeKind.SERVER_ERROR, 503, 7.0)
        assert outcome.body == b"a" * 2048
        await there.until(lambda there: not there.writers)


async def test_a_reply_before_the_body_was_sent_counts_and_the_connection_is_not_used_again():
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            await gone.wait()
            while await reader.read(2**20):
                pass
        writer.close()
        closed.set_result(None)

    gone = asyncio.Event()
    closed = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with pushing() as pusher:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        outcome = await post(pusher, url, b"a" * 30_000_000)
        assert (outcome.kind, outcome.status) == (OutcomeKind.CLIENT_ERROR, 413)
        assert pusher.statistics().idle == 0
        gone.set()
        await closed
    server.close()
    await server.wait_closed()


async def test_nobody_listening_is_refused_in_words():
    url = f"http://127.0.0.1:{unused_port()}/"
    async with pushing() as pusher:
        assert await post(pusher, url) == Outcome(
            OutcomeKind.REFUSED, reason=f"POST {url}: connection refused"
        )


async def test_an_unknown_host_is_refused():
    async with pushing() as pusher:
        outcome = await post(pusher, "http://nobody.invalid/")
        assert outcome.kind is OutcomeKind.REFUSED
        assert "the host name is not known" in outcome.reason


@pytest.mark.parametrize("url", ["", "mailto:a@b", "http://user:secret@127.0.0.1/", "http://a/\r\nb: c"])
async def test_a_bad_address_is_refused_in_words(url: str):
    async with pushing() as pusher:
        outcome = await post(pusher, url)
        assert outcome.kind is OutcomeKind.REFUSED
        assert "address" in outcome.reason
        assert "secret" not in outcome.reason
        assert "\n" not in outcome.reason


async def test_a_consumer_that_does_not_answer_has_a_limited_time():
    async with consumer(hold) as there, pushing(response_timeout=0.05) as pusher:
        outcome = await post(pusher, there.url)
        assert outcome.kind is OutcomeKind.TIMEOUT
        assert outcome.reason.endswith("no reply within 0.05 s")
        there.release.set()
        await there.until(lambda there: not there.writers)


async def test_each_post_has_its_own_time():
    async with consumer(hold) as there, pushing(response_timeout=0.05) as pusher:
        again: list[asyncio.Future[Outcome]] = []
        first = asyncio.get_running_loop().create_future()
        pusher.post(
            there.url, HEADERS, b"",
            lambda outcome: (again.append(post(pusher, there.url)), first.set_result(outcome)),
        )  # fmt: skip
        assert (await first).kind is OutcomeKind.TIMEOUT
        assert (await again[0]).kind is OutcomeKind.TIMEOUT


async def test_a_connection_that_does_not_come_about_has_a_limited_time():
    # A server that never shakes hands leaves the client in the middle of connecting.
    async with consumer() as there, pushing(connect_timeout=0.05) as pusher:
        outcome = await post(pusher, there.url.replace("http:", "https:"))
        assert outcome.kind is OutcomeKind.TIMEOUT
        assert outcome.reason.endswith("no connection within 0.05 s")


async def test_posts_one_after_another_share_one_connection():
    async with consumer() as there, pushing() as pusher:
        for _ in range(20):
            assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert there.accepted == 1
        assert pusher.statistics().idle == 1


async def test_a_callback_that_posts_finds_the_connection_free():
    async with consumer() as there, pushing() as pusher:
        finished = asyncio.get_running_loop().create_future()

        def again(outcome: Outcome) -> None:
            if len(there.requests) == 20:
                finished.set_result(outcome)
            else:
                pusher.post(there.url, HEADERS, b"", again)

        pusher.post(there.url, HEADERS, b"", again)
        assert (await finished).kind is OutcomeKind.DELIVERED
        assert there.accepted == 1


async def test_a_callback_that_fails_is_reported_and_harms_no_other():
    reports: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
    async with consumer() as there, pushing() as pusher:
        pusher.post(there.url, HEADERS, b"", lambda outcome: 1 / 0)
        await there.until(lambda there: len(there.requests) == 1)
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert [type(report["exception"]) for report in reports] == [ZeroDivisionError]


async def test_posts_to_one_host_start_and_end_in_order_on_one_connection():
    async with consumer() as there, pushing(connections_per_host=1) as pusher:
        ended: list[int] = []
        futures = [post(pusher, there.url, b"%d" % number) for number in range(50)]
        for number, future in enumerate(futures):
            future.add_done_callback(lambda _, number=number: ended.append(number))
        assert pusher.statistics().waiting == 49
        await asyncio.gather(*futures)
        assert ended == list(range(50))
        assert [int(request.rpartition(b"\r\n")[2]) for request in there.requests] == ended
        assert there.accepted == 1


async def test_a_host_gets_no_more_connections_than_its_limit():
    async with consumer(hold) as there, pushing(connections_per_host=3) as pusher:
        futures = [post(pusher, there.url) for _ in range(10)]
        await there.until(lambda there: len(there.requests) == 3)
        statistics = pusher.statistics()
        assert (statistics.open, statistics.in_flight, statistics.waiting) == (3, 3, 7)
        there.release.set()
        outcomes = await asyncio.gather(*futures)
        assert {outcome.kind for outcome in outcomes} == {OutcomeKind.DELIVERED}
        assert there.accepted == 3
        assert pusher.statistics().outcomes[OutcomeKind.DELIVERED] == 10


async def test_those_that_wait_for_a_hanging_consumer_follow_when_its_time_is_over():
    async with consumer(hold) as there, pushing(connections_per_host=1, response_timeout=0.05) as pusher:
        outcomes = await asyncio.gather(*(post(pusher, there.url) for _ in range(3)))
        assert [outcome.kind for outcome in outcomes] == [OutcomeKind.TIMEOUT] * 3
        await there.until(lambda there: there.accepted == 3)


async def test_those_that_wait_for_a_dead_consumer_are_each_refused():
    url = f"http://127.0.0.1:{unused_port()}/"
    async with pushing(connections_per_host=2) as pusher:
        outcomes = await asyncio.gather(*(post(pusher, url) for _ in range(7)))
        assert [outcome.kind for outcome in outcomes] == [OutcomeKind.REFUSED] * 7


async def test_a_hanging_consumer_does_not_delay_another_host():
    async with consumer(hold) as hanging, consumer() as healthy, pushing(connections_per_host=2) as pusher:
        held = [post(pusher, hanging.url) for _ in range(5)]
        await hanging.until(lambda hanging: len(hanging.requests) == 2)
        for _ in range(20):
            assert (await post(pusher, healthy.url)).kind is OutcomeKind.DELIVERED
        assert not any(future.done() for future in held)
        hanging.release.set()
        await asyncio.gather(*held)


async def test_with_all_connections_taken_the_oldest_idle_one_makes_room():
    async with consumer() as one, consumer() as two, consumer() as three, pushing(connections=2) as pusher:
        await post(pusher, one.url)
        await post(pusher, two.url)
        assert (await post(pusher, three.url)).kind is OutcomeKind.DELIVERED
        await one.until(lambda one: not one.writers)
        assert pusher.statistics().open == 2
        await post(pusher, two.url)
        assert (one.accepted, two.accepted, three.accepted) == (1, 1, 1)


async def test_a_busy_host_gives_way_to_one_without_a_connection():
    async with consumer(hold) as busy, consumer() as other, pushing(connections=2) as pusher:
        many = [post(pusher, busy.url) for _ in range(10)]
        await busy.until(lambda busy: len(busy.requests) == 2)
        order: list[str] = []
        late = post(pusher, other.url)
        late.add_done_callback(lambda _: order.append("late"))
        for future in many:
            future.add_done_callback(lambda _: order.append("busy"))
        busy.release.set()
        outcomes = await asyncio.gather(*many, late)
        assert {outcome.kind for outcome in outcomes} == {OutcomeKind.DELIVERED}
        assert order.index("late") <= 5


async def test_a_connection_closed_while_idle_is_not_a_failure():
    async with consumer() as there, pushing() as pusher:
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        for writer in list(there.writers):
            writer.close()
        # The client has not yet seen the end of the connection, and posts on it.
        assert pusher.statistics().idle == 1
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert there.accepted == 2


async def test_a_connection_closed_by_the_next_request_is_tried_once_more_on_a_fresh_one():
    async def once(there: Consumer, writer: asyncio.StreamWriter, request: bytes) -> None:
        if len(there.requests) in (1, 3):
            writer.write(ACCEPTED)
        else:
            writer.transport.abort()

    async with consumer(once) as there, pushing() as pusher:
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert (there.accepted, len(there.requests)) == (2, 3)


async def test_a_consumer_that_closes_every_time_is_tried_once_more_only():
    async def once(there: Consumer, writer: asyncio.StreamWriter, request: bytes) -> None:
        if len(there.requests) == 1:
            writer.write(ACCEPTED)
        else:
            writer.transport.abort()

    async with consumer(once) as there, pushing() as pusher:
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert (await post(pusher, there.url)).kind is OutcomeKind.LOST
        assert len(there.requests) == 3


async def test_a_request_timeout_that_crossed_a_request_is_tried_once_more():
    async def once(there: Consumer, writer: asyncio.StreamWriter, request: bytes) -> None:
        late = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        writer.write(late if len(there.requests) == 2 else ACCEPTED)

    async with consumer(once) as there, pushing() as pusher:
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert (there.accepted, len(there.requests)) == (2, 3)


async def test_bytes_that_nobody_asked_for_end_an_idle_connection():
    async with consumer() as there, pushing() as pusher:
        await post(pusher, there.url)
        next(iter(there.writers)).write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        await there.until(lambda there: not there.writers)
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert there.accepted == 2


async def test_an_idle_connection_is_closed_when_its_time_is_over():
    async with consumer() as there, pushing(idle_timeout=0.05) as pusher:
        await post(pusher, there.url)
        await there.until(lambda there: not there.writers)
        assert pusher.statistics().idle == 0


async def test_a_cancelled_post_ends_once_and_its_connection_with_it():
    async with consumer(hold) as there, pushing(connections_per_host=1) as pusher:
        outcomes: list[Outcome] = []
        sent = pusher.post(there.url, HEADERS, b"", outcomes.append)
        waiting = pusher.post(there.url, HEADERS, b"", outcomes.append)
        last = post(pusher, there.url)
        await there.until(lambda there: len(there.requests) == 1)
        assert waiting.cancel()
        assert sent.cancel()
        assert not sent.cancel()
        assert outcomes == []
        there.release.set()
        assert (await last).kind is OutcomeKind.DELIVERED
        assert [outcome.kind for outcome in outcomes] == [OutcomeKind.CANCELLED] * 2
        assert there.accepted == 2


async def test_a_post_cancelled_while_it_connects_ends_once():
    async with consumer() as there, pushing() as pusher:
        future = asyncio.get_running_loop().create_future()
        assert pusher.post(there.url, HEADERS, b"", future.set_result).cancel()
        assert (await future).kind is OutcomeKind.CANCELLED


async def test_a_post_that_has_ended_cannot_be_cancelled():
    async with consumer() as there, pushing() as pusher:
        future = asyncio.get_running_loop().create_future()
        ticket = pusher.post(there.url, HEADERS, b"", future.set_result)
        await future
        assert not ticket.cancel()


async def test_closing_lets_those_under_way_end_and_cancels_the_waiting():
    async with consumer(hold) as there:
        pusher = Pusher(connections_per_host=1)
        sent, waiting = post(pusher, there.url), post(pusher, there.url)
        await there.until(lambda there: len(there.requests) == 1)
        closing = asyncio.ensure_future(pusher.close(30.0))
        assert (await waiting).kind is OutcomeKind.CANCELLED
        late = await post(pusher, there.url)
        assert (late.kind, late.reason) == (
            OutcomeKind.CANCELLED, f"POST {there.url}: the broker is stopping",
        )  # fmt: skip
        assert not closing.done()
        there.release.set()
        assert (await sent).kind is OutcomeKind.DELIVERED
        await closing
        await there.until(lambda there: not there.writers)


async def test_closing_cancels_those_that_take_too_long():
    async with consumer(hold) as there:
        pusher = Pusher()
        sent = post(pusher, there.url)
        await there.until(lambda there: len(there.requests) == 1)
        await pusher.close(0.05)
        assert sent.done()
        assert sent.result().kind is OutcomeKind.CANCELLED
        assert pusher.statistics().open == 0


async def test_whatever_the_consumers_do_every_post_ends_once():
    chance = random.Random(1)

    async def whim(there: Consumer, writer: asyncio.StreamWriter, request: bytes) -> None:
        what = chance.randrange(6)
        if what == 0:
            writer.transport.abort()
        elif what == 1:
            writer.write(b"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n")
            writer.close()
        else:
            writer.write(b"rubbish" if what == 2 else ACCEPTED)

    async with contextlib.AsyncExitStack() as stack:
        urls = [(await stack.enter_async_context(consumer(whim))).url for _ in range(4)]
        urls.append(f"http://127.0.0.1:{unused_port()}/")
        pusher = await stack.enter_async_context(pushing(connections=3, connections_per_host=2))
        futures = [asyncio.get_running_loop().create_future() for _ in range(200)]
        tickets = [pusher.post(chance.choice(urls), HEADERS, b"", each.set_result) for each in futures]
        for ticket in chance.sample(tickets, 20):
            ticket.cancel()
        counts = Counter(outcome.kind for outcome in await asyncio.gather(*futures))
        assert set(counts) == set(OutcomeKind) - {
            OutcomeKind.TIMEOUT,
            OutcomeKind.CLIENT_ERROR,
            OutcomeKind.UNAVAILABLE,
        }
        assert counts == Counter({kind: n for kind, n in pusher.statistics().outcomes.items() if n})


async def test_closing_an_unused_pusher_twice_does_nothing():
    pusher = Pusher()
    await pusher.close(1.0)
    await pusher.close(1.0)


async def test_an_ipv6_address_is_reached():
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    async with consumer(host="::1") as there, pushing() as pusher:
        assert (await post(pusher, there.url)).kind is OutcomeKind.DELIVERED
        assert b"\r\nHost: [::1]:" in there.requests[0]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A certificate for localhost that only its own authority, itself, vouches for."""
    need("openssl")
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    command = "openssl req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:P-256"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command.split(), *names, "-keyout", path, "-out", path.with_suffix(".crt")],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    yield path


def server_side(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_posts_over_tls_share_one_connection(certificate: Path):
    trusting = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    async with (
        consumer(tls=server_side(certificate)) as there,
        pushing(ssl_context=trusting) as pusher,
    ):
        url = there.url.replace("127.0.0.1", "localhost")
        for _ in range(3):
            assert (await post(pusher, url)).kind is OutcomeKind.DELIVERED
        assert there.accepted == 1


async def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path):
    async with consumer(tls=server_side(certificate)) as there, pushing() as pusher:
        outcome = await post(pusher, there.url.replace("127.0.0.1", "localhost"))
        assert outcome.kind is OutcomeKind.REFUSED
        assert "the certificate is not accepted: self-signed certificate" in outcome.reason


async def test_a_certificate_for_another_host_is_refused(certificate: Path):
    trusting = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    async with (
        consumer(tls=server_side(certificate)) as there,
        pushing(ssl_context=trusting) as pusher,
    ):
        outcome = await post(pusher, there.url)
        assert outcome.kind is OutcomeKind.REFUSED
        assert "the certificate is not accepted" in outcome.reason
