"""The sending side of the relay: `/nodes/NAME/REST` is answered by the node NAME, through this process.

A request is signed with the cluster secret and sent once, with its body; redirects are not followed. The
answer is passed on as it arrives, so that server-sent events are not held up. A node that is dead or cannot
be reached is answered for with an error that says so. The own name is answered here, without a connection.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
import time
from collections.abc import Callable
from urllib.parse import quote

import aiohttp
from aiohttp import web
from yarl import URL

from hpwsn.http_json.responses import answer, read_limited
from hpwsn.routing.membership.credentials import peer_context, shared_secret
from hpwsn.routing.membership.signing import SIGNATURE, InvalidSignature, Signer
from hpwsn.routing.relay.relay_rules import (
    METHODS,
    RELAYED_BY,
    TOO_EARLY,
    answered_headers,
    is_relayed_address,
    passed_headers,
    signed_target,
    split_address,
)
from hpwsn.routing.topology.topology import Member, Topology
from hpwsn.settings import Config
from hpwsn_client.errors import reason_of
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic import shown

CONNECT_TIMEOUT = 3.0
UNTAKEN_TIMEOUT = 60.0
"""Seconds after which a client that takes nothing of an answer is disconnected."""
SILENT_STREAM = 60.0
"""Seconds for which a stream may be silent at least; nodes send a comment every 15 s."""
RETRY_AFTER = "2"
_NAMES_SHOWN = 20
_SKIPPED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that aiohttp would add to what the client has sent."""


class Relay:
    """Answers `/nodes/NAME/REST`; `by` is who relays, `own` the name that is answered here, if any."""

    def __init__(
        self,
        by: str,
        config: Config,
        topology: Callable[[], Topology],
        *,
        own: str | None = None,
    ) -> None:
        self._by = by
        self._own = own
        self._config = config
        self._topology = topology
        self._signer = Signer(shared_secret(config.cluster)) if _has_cluster(config, own) else None
        self._limit = config.server.body_limit
        self._timeout = config.cluster.forward_timeout
        self._tls: ssl.SSLContext | None = None
        self._session: aiohttp.ClientSession | None = None

    def join(self, app: web.Application) -> None:
        """Add the routes; open answers end when the application does."""
        for method in sorted(METHODS):
            app.router.add_route(method, "/nodes/{name}/{rest:.*}", self._handle)
        app.on_shutdown.append(self._close)

    async def _close(self, app: web.Application) -> None:
        if self._session is not None:
            await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        name, path = split_address(request.rel_url.raw_path)
        try:
            self._check(request, path)
        except SoapFault as fault:
            return _error(fault.status or 400, fault.reason)
        query = request.rel_url.raw_query_string
        target = f"{path}?{query}" if query else path
        if name == self._own:
            return await answer_here(request, target)
        member = self._topology().member(name)
        if member is None:
            return self._unknown(name)
        if not member.alive:
            return _error(
                503,
                f"node {name} is {member.state} since {_moment(member.since)}; start it again, or ask another"
                " node of its cluster",
            )
        try:
            body = await read_limited(request, self._limit)
            return await self._relay(request, member, target, body)
        except _Unreachable as error:
            return _error(error.status, str(error))

    def _check(self, request: web.Request, path: str) -> None:
        if not is_relayed_address(path):
            raise SoapFault(f"{shown(path)} is not relayed to other nodes; ask that node itself", status=404)
        if request.headers.get("Upgrade", "").strip().lower() == "websocket":
            raise SoapFault(
                "WebSockets are not relayed; use server-sent events, or ask that node itself", status=400
            )

    def _unknown(self, name: str) -> web.Response:
        known = sorted({member.name for member in self._topology()} | ({self._own} if self._own else set()))
        listed = ", ".join(known[:_NAMES_SHOWN]) + (", …" if len(known) > _NAMES_SHOWN else "")
        return _error(404, f"no node is named {shown(name)}; the nodes are: {listed or 'none'}")

    async def _relay(
        self, request: web.Request, member: Member, target: str, body: bytes
    ) -> web.StreamResponse:
        nonce = secrets.token_hex(16)
        try:
            answer = await self._send(request, member, target, body, time.time(), nonce)
            now = await self._time_of(answer, nonce) if answer.status == TOO_EARLY else None
            if now is not None:
                answer = await self._send(request, member, target, body, now, secrets.token_hex(16))
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(member, error) from error
        async with answer:
            return await self._pass_on(request, answer, member)

    async def _time_of(self, answer: aiohttp.ClientResponse, nonce: str) -> float | None:
        """The time of a node that has just started with its clock ahead; None if its signature is wrong."""
        assert self._signer is not None
        body = await answer.read()
        try:
            self._signer.check_answer(nonce, answer.status, body, answer.headers.get(SIGNATURE, ""))
            return float(json.loads(body)["now"])
        except (InvalidSignature, ValueError, KeyError, TypeError):
            return None

    async def _send(
        self, request: web.Request, member: Member, target: str, body: bytes, now: float, nonce: str
    ) -> aiohttp.ClientResponse:
        assert self._signer is not None
        signed = self._signer.headers(
            request.method, signed_target(self._by, target), body, now=now, nonce=nonce
        )
        by = {RELAYED_BY: quote(self._by, safe="")}
        return await self._open().request(
            request.method,
            URL(member.url.rstrip("/") + target, encoded=True),
            data=body or None,
            headers={**passed_headers(request.headers), **signed, **by},
            skip_auto_headers=_SKIPPED,
            allow_redirects=False,
            timeout=self._limits(request),
            ssl=self._context(member),
        )

    def _limits(self, request: web.Request) -> aiohttp.ClientTimeout:
        streams = "text/event-stream" in request.headers.get("Accept", "") or request.path.endswith("/live")
        silent = max(self._timeout, SILENT_STREAM) if streams else self._timeout
        return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=silent)

    def _context(self, member: Member) -> ssl.SSLContext | bool:
        if not member.url.lower().startswith("https:"):
            return True
        if self._tls is None:
            self._tls = peer_context(self._config)
        return self._tls

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # A node may close a reused connection while a request is sent, and requests are not repeated.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            self._session = aiohttp.ClientSession(
                connector=connector,
                trust_env=False,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _pass_on(
        self, request: web.Request, answer: aiohttp.ClientResponse, member: Member
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for key, value in answered_headers(answer.headers.items(), member.name):
            response.headers.add(key, value)
        if "Content-Length" in answer.headers:
            response.content_length = answer.content_length
        await response.prepare(request)
        try:
            while chunk := await answer.content.readany():
                async with asyncio.timeout(UNTAKEN_TIMEOUT):
                    await response.write(chunk)
            await response.write_eof()
        except (aiohttp.ClientError, OSError):
            # The answer is half written, so that only a closed connection can signal the error.
            if request.transport is not None:
                request.transport.abort()
        return response

    def _unreachable(self, member: Member, error: Exception) -> _Unreachable:
        connecting = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        if isinstance(error, aiohttp.ClientConnectorError):
            reason = reason_of(error.os_error)
        elif isinstance(error, TimeoutError):
            reason = f"no answer within {CONNECT_TIMEOUT if connecting else self._timeout:g} s"
        else:
            reason = str(error) or type(error).__name__
        outcome = "nothing was changed" if connecting else "it is unknown whether the node ran the request"
        return _Unreachable(
            504 if isinstance(error, TimeoutError) and not connecting else 502,
            f"node {member.name} at {member.url} cannot be reached: {reason}; {outcome}. Check that it runs,"
            " and that this node reaches its address (cluster.url, server.public_url)",
        )


class _Unreachable(Exception):
    """A node does not answer; `status` is that of the relay's own answer."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


async def answer_here(request: web.Request, target: str) -> web.StreamResponse:
    """Answer a request as if it had come for another address of the same application."""
    inner = request.clone(rel_url=URL(target, encoded=True))
    match = await request.app.router.resolve(inner)
    match.add_app(request.app)
    # As aiohttp's own normalize_path_middleware does; a request has no other way to another handler.
    inner._match_info = match
    return await match.handler(inner)


def _has_cluster(config: Config, own: str | None) -> bool:
    """Whether there are other nodes: at the admin node always, at a node with an admin node."""
    return own is None or bool(config.cluster.admin)


def _error(status: int, words: str) -> web.Response:
    response = answer({"error": words}, status)
    if status in (502, 503, 504):
        response.headers["Retry-After"] = RETRY_AFTER
    return response


def _moment(since: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
