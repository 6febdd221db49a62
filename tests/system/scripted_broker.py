"""A broker on a real socket that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from aiohttp import web

from hpwsn_client.wsn.operations.messages import encode_message, parse_message, parse_notify
from hpwsn_client.wsn.soap.envelope import Envelope, encode_envelope, parse_envelope
from hpwsn_client.wsn.soap.faults import SoapFault, encode_fault
from hpwsn_client.wsn.soap.names import wsnt
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    headers: dict[str, str]
    envelope: Envelope
    message: Any
    connection: int


class ScriptedBroker:
    """`script` maps a request's type to a message, a fault, a web.Response, or a function that gives one."""

    def __init__(self) -> None:
        self.script: dict[type, Any] = {}
        self.asked: list[Asked] = []
        self.before_answer: Callable[[], Awaitable[object]] | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.url = f"{self.base}/wsn"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    def notified(self) -> list[list[str]]:
        """The text of each message of each Notify, in the order they came."""
        return [[m.text for m in asked.message] for asked in self.asked if isinstance(asked.message, tuple)]

    async def _serve(self, request: web.Request) -> web.Response:
        envelope = parse_envelope(await request.read(), DEFAULT_LIMITS, request.charset)
        is_notify = envelope.body.tag == wsnt("Notify")
        message = (parse_notify if is_notify else parse_message)(envelope.body, DEFAULT_LIMITS)
        connection = id(request.transport)
        self.asked.append(Asked(request.path, dict(request.headers), envelope, message, connection))
        if self.before_answer is not None:
            await self.before_answer()
        answer = self.script.get(type(message))
        return _response(envelope, answer(message) if callable(answer) else answer)


def _response(envelope: Envelope, answer: Any) -> web.Response:
    if answer is None:
        return web.Response(status=202)
    if isinstance(answer, web.Response):
        return answer
    headers = {"Content-Type": envelope.version.content_type}
    if isinstance(answer, SoapFault):
        data = encode_fault(answer, envelope.version, datetime.now(UTC))
        return web.Response(status=answer.http_status(envelope.version), body=data, headers=headers)
    return web.Response(body=encode_envelope(envelope.version, encode_message(answer)), headers=headers)
