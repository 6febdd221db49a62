"""The proxy for resources of other nodes: it forwards a request to the owner and returns its answer.

An id contains a mark of its owner node (hpwsn.broker.subscriptions.resource_addresses), and the topology
contains the URL of that node. A forwarded request is signed with the cluster secret. The owner treats it
like a request of its own client, and never forwards it again. Request bodies have the usual size limit;
answers are streamed. If the owner cannot be reached, the client gets the fault Busy with a Retry-After. If
only the answer was lost, it is unknown whether the owner ran the operation. A client can thus send
Unsubscribe, Renew, GetMessages and the other operations to any node of the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp
from aiohttp import web
from yarl import URL

from hpwsn.broker.subscriptions.resource_addresses import mark_of
from hpwsn.door.soap.proxied_answers import TOKEN_HEADER
from hpwsn.door.soap.soap_door import SoapDoor, response_of, version_hint
from hpwsn.routing.membership.credentials import peer_context, shared_secret
from hpwsn.routing.membership.signing import SIGNATURE, InvalidSignature, Signer, Verifier
from hpwsn.routing.topology.topology import Member, Topology
from hpwsn.settings import Config
from hpwsn_client.wsn.operations.messages import Unsubscribe, encode_message
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope, parse_envelope
from hpwsn_client.wsn.soap.faults import parse_fault
from hpwsn_client.wsn.soap.names import request_action
from hpwsn_client.wsn.soap.version import request_headers
from hpwsn_client.wsn.soap.xml import Limits

log = logging.getLogger(__name__)

VIA_HEADER = "Hpwsn-By-Way-Of"
"""The header with the name of the node that forwarded a request."""
CONNECT_TIMEOUT = 3.0
RETRY_AFTER = 2.0
_RESOURCE_PATH = re.compile(
    r"/(?:wsn/(?:subscriptions|pullpoints|registrations)|onvif/subscriptions)/[0-9a-f]{24}-([0-9a-f]{10})"
)
_REQUEST_HEADERS = ("Content-Type", "SOAPAction", "traceparent", "tracestate")
_ANSWER_HEADERS = ("Content-Type", "Retry-After")
_CHUNK = 64 * 1024
_UNSUBSCRIBE = request_action("Unsubscribe")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OwnerProxy:
    """Finds the owner node of a resource, and forwards requests to it."""

    def __init__(self, name: str, config: Config, soap: SoapDoor, limits: Limits) -> None:
        settings, secret = config.cluster, shared_secret(config.cluster)
        self._tls = peer_context(config)
        self._name = name
        self._mark = mark_of(name)
        self._owners: dict[str, Member] | None = None
        self._signer = Signer(secret)
        # Any client may send the same request unsigned, so that an attacker gains nothing by a replay.
        self._verifier = Verifier(secret, window=settings.clock_window, reject_replays=False)
        self._soap = soap
        self._limits = limits
        self._timeout = settings.forward_timeout
        self._session: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.forwarded = 0
        soap.proxied_answers.report_timeout = settings.forward_timeout

    def follow(self, topology: Topology) -> None:
        """Use the URLs of the nodes in a new topology."""
        self._owners = {mark_of(member.name): member for member in topology}

    def figures(self) -> dict[str, int]:
        """Return the counters for /status and /metrics."""
        return {"passed_on": self.forwarded}

    def join(self, app: web.Application) -> None:
        """Add the middleware and the route for reports; the proxy closes together with the application."""
        app.middlewares.append(self.middleware)
        app.add_routes([web.post("/cluster/taken/{token}", self._receive_report)])
        app.on_cleanup.append(self._close)

    async def _close(self, app: web.Application) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CONNECT_TIMEOUT)
        if self._session is not None:
            await self._session.close()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Forward a request for a resource of another node; let all other requests pass."""
        found = _RESOURCE_PATH.fullmatch(request.path) if request.method == "POST" else None
        if found is None:
            return await handler(request)
        try:
            if SIGNATURE in request.headers:
                return await self._accept(request, handler, found[1])
            if found[1] == self._mark:
                return await handler(request)
            return await self._forward(request, handler, found[1])
        except faults.SoapFault as fault:
            return await self._refuse(request, fault)

    async def _accept(self, request: web.Request, handler: Handler, mark: str) -> web.StreamResponse:
        """Handle a request that another node forwarded; it is never forwarded again."""
        self._check(request, await self._soap.read(request))
        if mark != self._mark:
            raise faults.Busy(
                f"node {request.headers.get(VIA_HEADER, '?')} forwarded this request to node {self._name},"
                " which does not own the resource; correct its owner's URL (cluster.url, server.public_url)",
                retry_after=RETRY_AFTER,
            )
        self._soap.proxied_answers.mark(request)
        return await handler(request)

    def _check(self, request: web.Request, data: bytes) -> None:
        try:
            self._verifier.check(request.method, request.raw_path, request.headers, data, now=time.time())
        except InvalidSignature as error:
            log.warning(
                "refused the request for %s that %s forwarded: %s", request.path, request.remote, error
            )
            raise faults.SoapFault(f"the forwarded request is refused: {error}", status=403) from error

    async def _forward(self, request: web.Request, handler: Handler, mark: str) -> web.StreamResponse:
        if self._owners is None:
            raise faults.Busy(
                "the resource belongs to another node, and this node has no topology yet; try again later",
                retry_after=RETRY_AFTER,
            )
        owner = self._owners.get(mark)
        if owner is None:
            # The owner has left the cluster; the handler answers with the fault for an unknown resource.
            return await handler(request)
        data = await self._soap.read(request)
        self.forwarded += 1
        try:
            async with await self._send(
                owner, request.raw_path, data, self._forwarded_headers(request)
            ) as answer:
                return await self._return_answer(request, answer, owner)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(owner, error) from error

    async def unsubscribe(self, address: str) -> bool:
        """Unsubscribe at the owner for a client of another door; False if this node must do it itself."""
        found = _RESOURCE_PATH.search(address)
        owner = (self._owners or {}).get(found[1]) if found and found[1] != self._mark else None
        if found is None or owner is None:
            return False
        self.forwarded += 1
        data = encode_envelope(SoapVersion.SOAP11, encode_message(Unsubscribe()))
        headers = {**request_headers(SoapVersion.SOAP11, _UNSUBSCRIBE), **self._via()}
        try:
            async with await self._send(owner, found[0], data, headers) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(owner, error) from error
        envelope = parse_envelope(body, self._limits)
        if answer.status != 200 and envelope.body is not None:
            raise parse_fault(envelope.body, envelope.version)
        return True

    def _forwarded_headers(self, request: web.Request) -> dict[str, str]:
        headers = {name: request.headers[name] for name in _REQUEST_HEADERS if name in request.headers}
        return {**headers, **self._via()}

    def _via(self) -> dict[str, str]:
        return {VIA_HEADER: self._name.encode("ascii", "backslashreplace").decode()}

    async def _send(
        self, owner: Member, path: str, data: bytes, headers: dict[str, str]
    ) -> aiohttp.ClientResponse:
        signed = self._signer.headers("POST", path, data, now=time.time(), nonce=secrets.token_hex(16))
        address = URL(owner.url.rstrip("/") + path, encoded=True)
        return await self._open().post(
            address, data=data, headers={**headers, **signed}, allow_redirects=False
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            limits = aiohttp.ClientTimeout(total=self._timeout, sock_connect=CONNECT_TIMEOUT)
            # The owner may close a reused connection while a request is sent, and requests are not repeated.
            connector = aiohttp.TCPConnector(limit=0, force_close=True, ssl=self._tls)
            self._session = aiohttp.ClientSession(timeout=limits, connector=connector, trust_env=False)
        return self._session

    async def _return_answer(
        self, request: web.Request, answer: aiohttp.ClientResponse, owner: Member
    ) -> web.StreamResponse:
        headers = {name: answer.headers[name] for name in _ANSWER_HEADERS if name in answer.headers}
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.content_length = answer.content_length
        received = False
        try:
            first = await answer.content.read(_CHUNK)
            await response.prepare(request)
            try:
                await self._copy(first, answer, response)
                received = True
            except (aiohttp.ClientError, OSError):
                # The answer is half written, so that only a closed connection can signal the error.
                _abort(request)
        finally:
            if TOKEN_HEADER in answer.headers:
                self._report(owner, answer.headers[TOKEN_HEADER], received)
        return response

    async def _copy(self, chunk: bytes, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        while chunk:
            await response.write(chunk)
            chunk = await answer.content.read(_CHUNK)
        await response.write_eof()

    def _report(self, owner: Member, token: str, received: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._send_report(owner, token, received))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_report(self, owner: Member, token: str, received: bool) -> None:
        # If the report is lost, the owner returns the messages again: delivery is at least once.
        with suppress(aiohttp.ClientError, OSError):
            async with await self._send(owner, f"/cluster/taken/{token}", b"1" if received else b"0", {}):
                pass

    async def _receive_report(self, request: web.Request) -> web.Response:
        """Handle another node's report on whether its client received an answer."""
        data = await request.read()
        try:
            self._check(request, data)
        except faults.SoapFault as fault:
            return web.json_response({"error": fault.reason}, status=403)
        known = await self._soap.proxied_answers.report(request.match_info["token"], data == b"1")
        return web.json_response({}, status=200 if known else 404)

    def _unreachable(self, owner: Member, error: Exception) -> faults.SoapFault:
        reason = f"no answer within {self._timeout:g} s" if isinstance(error, TimeoutError) else str(error)
        refused = isinstance(error, aiohttp.ClientConnectorError)
        outcome = "nothing was changed" if refused else "it is unknown whether the node ran the operation"
        return faults.Busy(
            f"the resource belongs to node {owner.name} at {owner.url}, which cannot be reached: {reason};"
            f" {outcome}",
            retry_after=RETRY_AFTER,
        )

    async def _refuse(self, request: web.Request, fault: faults.SoapFault) -> web.StreamResponse:
        version, relates_to = version_hint(request), None
        with suppress(faults.SoapFault):
            envelope = parse_envelope(await self._soap.read(request), self._limits)
            version, relates_to = envelope.version, envelope.addressing.message_id
        return response_of(self._soap.refuse(fault, fault.version or version, relates_to))


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
