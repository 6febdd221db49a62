"""Requests to resources of other nodes: passed on to the owner, whose answer is handed back.

An id tells its owner by a mark (hpwsn.broker.subscriptions.resource_addresses), and the topology where that
node is. What is passed on is signed with the cluster secret: the owner takes it as if its client had sent
it there, and never passes it on again. Bodies are bounded as in any other request, answers flow through. An
owner that is away is a fault that says so, with a time to come back; whether the owner acted on a request
whose answer was lost, nobody knows. The spec's part 6 of clusters: Unsubscribe, Renew, GetMessages and the
rest at any node.
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
from hpwsn.door.soap.proxied_answers import TAKEN
from hpwsn.door.soap.soap_door import SoapDoor, response_of, version_hint
from hpwsn.routing.membership.credentials import peer_context, shared_secret
from hpwsn.routing.membership.signing import SIGNATURE, Signer, Unsigned, Verifier
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

BY_WAY_OF = "Hpwsn-By-Way-Of"
CONNECT_WITHIN = 3.0
RETRY_AFTER = 2.0
_ADDRESS = re.compile(
    r"/(?:wsn/(?:subscriptions|pullpoints|registrations)|onvif/subscriptions)/[0-9a-f]{24}-([0-9a-f]{10})"
)
_PASSED_ON = ("Content-Type", "SOAPAction")
_HANDED_BACK = ("Content-Type", "Retry-After")
_CHUNK = 64 * 1024
_UNSUBSCRIBE = request_action("Unsubscribe")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Elsewhere:
    """Knows the owners of resources, and carries requests to them."""

    def __init__(self, name: str, config: Config, soap: SoapDoor, limits: Limits) -> None:
        settings, secret = config.cluster, shared_secret(config.cluster)
        self._tls = peer_context(config)
        self._name = name
        self._mark = mark_of(name)
        self._owners: dict[str, Member] | None = None
        self._signer = Signer(secret)
        # What is passed on may be sent without a signature by any client: to repeat it gains nothing.
        self._verifier = Verifier(secret, window=settings.clock_window, once=False)
        self._soap = soap
        self._limits = limits
        self._within = settings.forward_timeout
        self._session: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.passed_on = 0
        soap.relays.within = settings.forward_timeout

    def follow(self, topology: Topology) -> None:
        """Learn where the nodes are."""
        self._owners = {mark_of(member.name): member for member in topology}

    def figures(self) -> dict[str, int]:
        """For the status and the metrics."""
        return {"passed_on": self.passed_on}

    def join(self, app: web.Application) -> None:
        """Stand before the other handlers of the application, and end with it."""
        app.middlewares.append(self.middleware)
        app.add_routes([web.post("/cluster/taken/{name}", self._taken)])
        app.on_cleanup.append(self._close)

    async def _close(self, app: web.Application) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CONNECT_WITHIN)
        if self._session is not None:
            await self._session.close()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let requests to this node's own resources pass, and carry others to their owners."""
        found = _ADDRESS.fullmatch(request.path) if request.method == "POST" else None
        if found is None:
            return await handler(request)
        try:
            if SIGNATURE in request.headers:
                return await self._arrived(request, handler, found[1])
            if found[1] == self._mark:
                return await handler(request)
            return await self._depart(request, handler, found[1])
        except faults.SoapFault as fault:
            return await self._refuse(request, fault)

    async def _arrived(self, request: web.Request, handler: Handler, mark: str) -> web.StreamResponse:
        """A request that another node passed on: it ends here."""
        self._check(request, await self._soap.read(request))
        if mark != self._mark:
            raise faults.Busy(
                f"node {request.headers.get(BY_WAY_OF, '?')} passed this on to node {self._name}, which does"
                " not own it: the owner's address is wrong (cluster.url, or server.public_url)",
                retry_after=RETRY_AFTER,
            )
        self._soap.relays.mark(request)
        return await handler(request)

    def _check(self, request: web.Request, data: bytes) -> None:
        try:
            self._verifier.check(request.method, request.raw_path, request.headers, data, now=time.time())
        except Unsigned as error:
            log.warning("%s passed on by %s is refused: %s", request.path, request.remote, error)
            raise faults.SoapFault(f"this request was passed on, and {error}", status=403) from error

    async def _depart(self, request: web.Request, handler: Handler, mark: str) -> web.StreamResponse:
        if self._owners is None:
            raise faults.Busy(
                "this is of another node, and this one knows no topology yet: try again",
                retry_after=RETRY_AFTER,
            )
        owner = self._owners.get(mark)
        if owner is None:
            # Nobody has such an id any more: the usual fault tells it.
            return await handler(request)
        data = await self._soap.read(request)
        self.passed_on += 1
        try:
            async with await self._send(owner, request.raw_path, data, self._kept(request)) as answer:
                return await self._hand_back(request, answer, owner)
        except (aiohttp.ClientError, OSError) as error:
            raise self._away(owner, error) from error

    async def unsubscribe(self, address: str) -> bool:
        """End a subscription by its address for a client of another door; False where it is of this node."""
        found = _ADDRESS.search(address)
        owner = (self._owners or {}).get(found[1]) if found and found[1] != self._mark else None
        if found is None or owner is None:
            return False
        self.passed_on += 1
        data = encode_envelope(SoapVersion.SOAP11, encode_message(Unsubscribe()))
        headers = {**request_headers(SoapVersion.SOAP11, _UNSUBSCRIBE), **self._by_way()}
        try:
            async with await self._send(owner, found[0], data, headers) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise self._away(owner, error) from error
        envelope = parse_envelope(body, self._limits)
        if answer.status != 200 and envelope.body is not None:
            raise parse_fault(envelope.body, envelope.version)
        return True

    def _kept(self, request: web.Request) -> dict[str, str]:
        kept = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        return {**kept, **self._by_way()}

    def _by_way(self) -> dict[str, str]:
        return {BY_WAY_OF: self._name.encode("ascii", "backslashreplace").decode()}

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
            limits = aiohttp.ClientTimeout(total=self._within, sock_connect=CONNECT_WITHIN)
            # A kept connection may be closed just as a request is sent that must not be repeated.
            connector = aiohttp.TCPConnector(limit=0, force_close=True, ssl=self._tls)
            self._session = aiohttp.ClientSession(timeout=limits, connector=connector, trust_env=False)
        return self._session

    async def _hand_back(
        self, request: web.Request, answer: aiohttp.ClientResponse, owner: Member
    ) -> web.StreamResponse:
        headers = {name: answer.headers[name] for name in _HANDED_BACK if name in answer.headers}
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.content_length = answer.content_length
        taken = False
        try:
            first = await answer.content.read(_CHUNK)
            await response.prepare(request)
            try:
                await self._copy(first, answer, response)
                taken = True
            except (aiohttp.ClientError, OSError):
                # It is half written: only the connection's end can tell the client.
                _abort(request)
        finally:
            if TAKEN in answer.headers:
                self._report(owner, answer.headers[TAKEN], taken)
        return response

    async def _copy(self, chunk: bytes, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        while chunk:
            await response.write(chunk)
            chunk = await answer.content.read(_CHUNK)
        await response.write_eof()

    def _report(self, owner: Member, name: str, taken: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._tell(owner, name, taken))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, owner: Member, name: str, taken: bool) -> None:
        # Unheard, the owner hands the messages out again: twice, and not never.
        with suppress(aiohttp.ClientError, OSError):
            async with await self._send(owner, f"/cluster/taken/{name}", b"1" if taken else b"0", {}):
                pass

    async def _taken(self, request: web.Request) -> web.Response:
        """Another node tells whether its client took an answer."""
        data = await request.read()
        try:
            self._check(request, data)
        except faults.SoapFault as fault:
            return web.json_response({"error": fault.reason}, status=403)
        known = await self._soap.relays.report(request.match_info["name"], data == b"1")
        return web.json_response({}, status=200 if known else 404)

    def _away(self, owner: Member, error: Exception) -> faults.SoapFault:
        reason = f"no answer within {self._within:g} s" if isinstance(error, TimeoutError) else str(error)
        refused = isinstance(error, aiohttp.ClientConnectorError)
        outcome = "nothing was changed" if refused else "whether it acted is not known"
        return faults.Busy(
            f"this is owned by node {owner.name} at {owner.url}, which is away: {reason}; {outcome}",
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
