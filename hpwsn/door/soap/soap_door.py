"""The SOAP door: it reads SOAP requests over HTTP, and writes the answer or the fault of an endpoint.

It sets the HTTP status, and enforces the limits of size and time; the operations themselves are in the
endpoints. An answer has the SOAP version of its request, and WS-Addressing headers if the request had them.
SOAP 1.1, section 6; SOAP 1.2 part 2, section 7.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable

from aiohttp import web
from lxml import etree

from hpwsn.background import in_thread
from hpwsn.contracts import broker_wsdl, plain_broker_wsdl
from hpwsn.door.listener.http_exchange import Post, Refusals, Reply, read_body, trace_of
from hpwsn.door.soap.broker_operations import endpoints
from hpwsn.door.soap.dispatch import Answer, Call, Operations
from hpwsn.door.soap.operation import Context
from hpwsn.door.soap.proxied_answers import ProxiedAnswers
from hpwsn.errors import ClientDisconnected, JournalUnavailable
from hpwsn.notification import LARGE, Run
from hpwsn_client.wsn.operations.messages import Message, encode_message
from hpwsn_client.wsn.operations.receipts import RECEIPT_TO
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import Addressing, encode_addressing
from hpwsn_client.wsn.soap.envelope import (
    Envelope,
    SoapVersion,
    check_must_understand,
    encode_envelope,
    parse_envelope,
)
from hpwsn_client.wsn.soap.names import hp, response_action, wsa
from hpwsn_client.wsn.soap.trace_context import TRACEPARENT
from hpwsn_client.wsn.soap.xml import Limits

log = logging.getLogger(__name__)

UNDERSTOOD = frozenset(
    [
        *map(wsa, ("Action", "To", "MessageID", "RelatesTo", "ReplyTo", "FaultTo", "From")),
        hp("MessageId"),
        hp("Routing"),
        RECEIPT_TO,
        TRACEPARENT,
    ]
)
"""The headers that a request may mark with mustUnderstand."""


class SoapDoor(Refusals):
    """The request handlers for the paths under /wsn."""

    def __init__(self, context: Context, request_timeout: float) -> None:
        super().__init__(context.limits, request_timeout, context.broker.now)
        self._context = context
        self._endpoints = endpoints(context)
        self.proxied_answers = ProxiedAnswers()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.post("/wsn", self._broker),
            web.get("/wsn", self._describe),
            web.post("/wsn/subscriptions/{id}", self._subscription),
            web.post("/wsn/pullpoints/{id}", self._pull_point),
            web.post("/wsn/registrations/{id}", self._registration),
        ]

    async def _broker(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, self._endpoints["broker"])

    async def _subscription(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, self._endpoints["subscriptions"])

    async def _pull_point(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, self._endpoints["pullpoints"])

    async def _registration(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, self._endpoints["registrations"])

    async def _describe(self, request: web.Request) -> web.Response:
        contract = plain_broker_wsdl if request.query.get("wsdl") == "plain" else broker_wsdl
        return describe(
            request,
            lambda: contract(f"{self._context.broker.base_url()}/wsn"),
            "This is a WS-Notification broker: POST SOAP 1.1 or 1.2 here; its contract is at ?wsdl",
        )

    async def handle(
        self, request: web.Request, endpoint: Operations, understood: frozenset[str] = UNDERSTOOD
    ) -> web.StreamResponse:
        """Read a request, call the operations of its address, and write the answer or the fault."""
        hint = version_hint(request)
        try:
            data = await self.read(request)
        except faults.SoapFault as fault:
            return response_of(self.refuse(fault, hint, None))
        except ConnectionError:
            raise
        except Exception:
            return response_of(self._failed(request.path, hint, None))
        post = Post(
            data,
            _charset(request),
            hint,
            request.path,
            request.match_info.get("id", ""),
            lambda: request.transport is None,
            trace_of(request),
        )
        reply = await self.answer(post, endpoint, understood)
        response = response_of(reply)
        if reply.tell is not None and self.proxied_answers.is_marked(request):
            self.proxied_answers.expect_report(response, reply.tell)
        elif reply.tell is not None:
            await _write(request, response, reply.tell)
        return response

    async def answer_broker(self, post: Post) -> Reply:
        """Answer a request to the broker's own address."""
        return await self.answer(post, self._endpoints["broker"])

    async def answer(
        self, post: Post, endpoint: Operations, understood: frozenset[str] = UNDERSTOOD
    ) -> Reply:
        """Return the answer of an endpoint; every error becomes a fault."""
        version, relates_to = post.hint, None
        try:
            if len(post.data) >= LARGE:
                stored = endpoint is self._endpoints["broker"] and await self._publish_large(post)
                if stored:
                    return Reply(202)
                envelope = await in_thread(parse_envelope, post.data, self._context.limits, post.charset)
            else:
                envelope = parse_envelope(post.data, self._context.limits, post.charset)
            version, relates_to = envelope.version, envelope.addressing.message_id
            check_must_understand(envelope, understood)
            call = Call(envelope, post.resource, post.gone, len(post.data) >= LARGE, post.trace)
            return _answer(envelope, await endpoint.call(call))
        except faults.SoapFault as fault:
            return self.refuse(fault, fault.version or version, relates_to)
        except JournalUnavailable as error:
            return self.refuse(faults.Busy(f"nothing was changed: {error}"), version, relates_to)
        except ClientDisconnected as left:
            # Clients leave all the time, so that this is not logged.
            return self.refuse(
                faults.SoapFault(str(left), code=faults.FaultCode.RECEIVER), version, relates_to
            )
        except Exception:
            return self._failed(post.path, version, relates_to)

    async def _publish_large(self, post: Post) -> bool:
        """Publish an ordinary Notify with one large message, without a tree; False for any other request."""
        if (post.charset or "utf-8").lower() not in ("utf-8", "utf8"):
            return False
        run = await in_thread(_read_large, post.data, self._context.limits)
        if run is None:
            return False
        run.trace = run.trace or post.trace
        await self._context.broker.admission.publish_runs([run])
        return True

    def _failed(self, path: str, version: SoapVersion, relates_to: str | None) -> Reply:
        log.exception("POST %s failed", path)
        failure = faults.SoapFault(
            "an internal error occurred; the log of the broker has the details",
            code=faults.FaultCode.RECEIVER,
        )
        return self.refuse(failure, version, relates_to)

    async def read(self, request: web.Request) -> bytes:
        """Read the body of a request; raise a fault if it is too large or arrives too slowly."""
        limit = self._context.limits.body
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(self._request_timeout):
                return await read_body(request)
        except web.HTTPRequestEntityTooLarge as error:
            raise _too_large(limit) from error
        except TimeoutError as error:
            raise self.late() from error


def _answer(envelope: Envelope, result: Message | Answer | None) -> Reply:
    if result is None:
        return Reply(202)
    answer = result if isinstance(result, Answer) else Answer(encode_message(result))
    headers = (*_reply_headers(envelope, answer.action), *answer.headers)
    body = encode_envelope(envelope.version, answer.body, headers)
    return Reply(200, body, {"Content-Type": envelope.version.content_type}, answer.report_delivery)


def response_of(reply: Reply) -> web.Response:
    """Convert a reply to a response of aiohttp."""
    return web.Response(status=reply.status, body=reply.body or None, headers=reply.headers)


async def _write(
    request: web.Request, response: web.Response, report_delivery: Callable[[bool], Awaitable[None]]
) -> None:
    try:
        await response.prepare(request)
        await response.write_eof()
    except BaseException:
        await report_delivery(False)
        raise
    await report_delivery(True)


def _too_large(limit: int) -> faults.TooLarge:
    return faults.TooLarge(
        f"the request is larger than {limit} bytes (server.body_limit); send fewer or smaller messages"
    )


def _charset(request: web.Request) -> str | None:
    try:
        return request.charset
    except (LookupError, ValueError):
        return None


def describe(request: web.Request, wsdl: Callable[[], bytes], purpose: str) -> web.Response:
    """Answer a GET at an address for SOAP: the WSDL if the query asks for it, else 405 with the purpose."""
    if "wsdl" in {name.lower() for name in request.query}:
        return web.Response(body=wsdl(), content_type="text/xml", charset="utf-8")
    return web.Response(status=405, headers={"Allow": "POST"}, text=f"{purpose}\n")


def version_hint(request: web.Request) -> SoapVersion:
    """Return the SOAP version that the Content-Type indicates."""
    soap12 = request.content_type == "application/soap+xml"
    return SoapVersion.SOAP12 if soap12 else SoapVersion.SOAP11


def _reply_headers(envelope: Envelope, action: str | None) -> tuple[bytes, ...]:
    request = envelope.addressing
    if request.action is None and request.message_id is None:
        return ()
    assert envelope.body is not None
    return encode_addressing(
        Addressing(
            action=action or response_action(etree.QName(envelope.body).localname),
            message_id=f"urn:uuid:{uuid.uuid4()}",
            relates_to=request.message_id,
        )
    )


def _read_large(data: bytes, limits: Limits) -> Run | None:
    # It needs numpy, which takes 12 MB of memory, and most nodes never see a large message.
    from hpwsn.door.notify.large_scan import read_large

    return read_large(data, limits)
