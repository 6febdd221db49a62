"""A foreign publisher on demand: a NotificationProducer written by hand, which keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from aiohttp import web
from lxml import etree

from tests.patience import patience
from tests.raw_soap import ENV, NAMES, TYPES, WSA, WSNT, envelope, notify, send

BF = "http://docs.oasis-open.org/wsrf/bf-2"


@dataclass
class Upstream:
    """One subscription of a broker at this publisher."""

    topic: str | None
    consumer: str
    paused: bool = False


class Producer:
    """Grants every subscription a lifetime; `pausable`, `terse` and `answer` make it a difficult one."""

    def __init__(
        self, *, pausable: bool = True, lifetime: float = 3600.0, port: int = 0, terse: bool = False
    ) -> None:
        self.pausable = pausable
        self.terse = terse
        self.lifetime = lifetime
        self.port = port
        self.answer: Callable[[str], int] = lambda operation: 200
        self.calls: list[tuple[str, str | None]] = []
        self.envelopes: list[bytes] = []
        self.actions: list[str | None] = []
        """The SOAPAction header of each call."""
        self.subscriptions: dict[str, Upstream] = {}
        self._number = 0
        self._called = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> Self:
        """Listen; on the same port as before, if it was open already."""
        app = web.Application()
        app.router.add_post("/publisher", self._handle)
        app.router.add_post("/publisher/{id}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def close(self) -> None:
        """Be away."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/publisher"

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.calls]

    def active(self) -> list[str | None]:
        """The topics on which somebody wants this publisher's notifications now."""
        return sorted((each.topic for each in self.subscriptions.values() if not each.paused), key=str)

    async def wait(self, condition: Callable[[Producer], bool]) -> None:
        """Wait until the condition holds, looked at after each call."""
        async with patience(), self._called:
            await self._called.wait_for(lambda: condition(self))

    async def publish(self, topic: str, payload: str) -> int:
        """Send a notification to whoever has an unpaused subscription on exactly this topic, or on all."""
        wanted = {
            each.consumer
            for each in self.subscriptions.values()
            if not each.paused and each.topic in (topic, None)
        }
        for consumer in sorted(wanted):
            reply = await send(consumer, envelope(notify(topic, payload)))
            assert reply.status == 202, reply.body
        return len(wanted)

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        root = etree.fromstring(body)
        asked = root.find("{*}Body")[0]
        version = next(v for v, uri in ENV.items() if uri == etree.QName(root).namespace)
        operation, id_ = etree.QName(asked).localname, request.match_info.get("id")
        async with self._called:
            self.envelopes.append(body)
            self.actions.append(request.headers.get("SOAPAction"))
            topic = self._topic(asked, id_)
            status = self.answer(operation)
            answer = self._run(operation, asked, id_) if status == 200 else ""
            self.calls.append((operation, topic))
            self._called.notify_all()
        if status != 200:
            return web.Response(status=status)
        if self.terse and operation in ("PauseSubscription", "ResumeSubscription", "Unsubscribe"):
            return web.Response(status=202)
        return web.Response(
            status=500 if "Fault>" in answer else 200,
            body=envelope(answer, version),
            headers={"Content-Type": TYPES[version]},
        )

    def _topic(self, asked: etree._Element, id_: str | None) -> str | None:
        if id_ is not None:
            known = self.subscriptions.get(id_)
            return None if known is None else known.topic
        return asked.findtext("w:Filter/w:TopicExpression", namespaces=NAMES)

    def _run(self, operation: str, asked: etree._Element, id_: str | None) -> str:
        if operation == "Subscribe":
            return self._subscribe(asked)
        if id_ not in self.subscriptions:
            return _fault("http://docs.oasis-open.org/wsrf/r-2", "ResourceUnknownFault")
        if operation in ("PauseSubscription", "ResumeSubscription"):
            if not self.pausable:
                return _fault(WSNT, "PauseFailedFault")
            self.subscriptions[id_].paused = operation == "PauseSubscription"
        if operation == "Unsubscribe":
            del self.subscriptions[id_]
        return (
            f"<w:{operation}Response>{self._times() if operation == 'Renew' else ''}</w:{operation}Response>"
        )

    def _subscribe(self, asked: etree._Element) -> str:
        self._number += 1
        id_ = f"s{self._number}"
        consumer = asked.findtext("w:ConsumerReference/a:Address", namespaces=NAMES)
        topic = asked.findtext("w:Filter/w:TopicExpression", namespaces=NAMES)
        self.subscriptions[id_] = Upstream(topic, consumer)
        reference = f"<a:Address>{self.url}/{id_}</a:Address>"
        now, end = self._now(), self._now(self.lifetime)
        return (
            f"<w:SubscribeResponse><w:SubscriptionReference>{reference}</w:SubscriptionReference>"
            f"<w:CurrentTime>{now}</w:CurrentTime><w:TerminationTime>{end}</w:TerminationTime>"
            "</w:SubscribeResponse>"
        )

    def _times(self) -> str:
        return f"<w:TerminationTime>{self._now(self.lifetime)}</w:TerminationTime>"

    @staticmethod
    def _now(seconds: float = 0.0) -> str:
        return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def _fault(namespace: str, name: str) -> str:
    """A SOAP 1.1 fault, since the tests in which this publisher refuses speak that version."""
    return (
        f'<s:Fault xmlns:s="{ENV["1.1"]}"><faultcode>s:Server</faultcode><faultstring>no</faultstring>'
        "<detail>"
        f'<f:{name} xmlns:f="{namespace}"><b:Timestamp xmlns:b="{BF}">2030-01-01T00:00:00Z</b:Timestamp>'
        f"</f:{name}></detail></s:Fault>"
    )


def register(
    publisher: str | None = None, *topics: str, demand: bool = False, until: str = "", dialect: str = ""
) -> str:
    """A RegisterPublisher request."""
    given = f' Dialect="{dialect}"' if dialect else ""
    reference = f"<r:PublisherReference><a:Address>{publisher}</a:Address></r:PublisherReference>"
    return (
        f'<r:RegisterPublisher xmlns:r="http://docs.oasis-open.org/wsn/br-2" xmlns:a="{WSA}">'
        f"{reference if publisher else ''}{''.join(f'<r:Topic{given}>{topic}</r:Topic>' for topic in topics)}"
        f"{'<r:Demand>true</r:Demand>' if demand else ''}"
        f"{f'<r:InitialTerminationTime>{until}</r:InitialTerminationTime>' if until else ''}"
        "</r:RegisterPublisher>"
    )
