"""The admin node's HTTP API in JSON, as docs/cluster.md and /openapi.json describe it.

Read requests need no authentication. Requests that change state, and the stream to a node, must be signed
with the cluster secret, and their responses are signed too (hpwsn.routing.membership.signing). An error
response is a JSON object with `error`, a message for the operator. The topic tree is read-only here: `hpwsn
topics` edits it, and nodes read the topic directory themselves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aiohttp import web

from hpwsn.routing.membership.signing import SIGNATURE, InvalidSignature, TooEarly, Verifier
from hpwsn.routing.topology.topology import MalformedTopology, check_name
from hpwsn.settings import TopicsSettings
from hpwsn.topics.directory.directory import Directory, TopicDirectoryError
from hpwsn.topics.opening import access_from, open_directory
from hpwsn_admin.members import Members
from hpwsn_admin.openapi import document
from hpwsn_admin.registry import Announcement, NameTaken, NotRegistered, Record, RegistryError, RegistryFull
from hpwsn_client import __version__

TOPICS_CACHE_SECONDS = 1.0


log = logging.getLogger(__name__)

LONGEST_WAIT = 60.0
_TEXT_LIMIT = 2048
_KEY_LIMIT = 64
_LOG_INTERVAL = 60.0
"""Seconds in which the same error of the same host is logged once."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_STATUS: dict[type[Exception], int] = {
    NameTaken: 409,
    NotRegistered: 404,
    RegistryFull: 503,
    RegistryError: 409,
    MalformedTopology: 400,
}
_Value = TypeVar("_Value")


class AdminApi:
    """The request handlers of an admin node."""

    def __init__(
        self, members: Members, topics: Topics, verifier: Verifier, base_url: Callable[[], str]
    ) -> None:
        self._members = members
        self._topics = topics
        self._verifier = verifier
        self._base_url = base_url
        self._started = time.time()
        self._last_logged: dict[tuple[str, str], float] = {}
        self.closing = False

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the web application."""
        return [
            web.get("/", self._welcome),
            web.get("/healthz", self._health),
            web.get("/openapi.json", self._describe),
            web.get("/api/status", self._status),
            web.get("/api/topology", self._topology),
            web.get("/api/topics", self._tree),
            web.post("/api/nodes", self._signed(self._register)),
            web.put("/api/nodes/{name}/heartbeat", self._signed(self._heartbeat)),
            web.post("/api/nodes/{name}/suspect", self._signed(self._suspect)),
            web.delete("/api/nodes/{name}", self._signed(self._leave)),
            web.get("/api/nodes/{name}/stream", self._stream),
        ]

    async def _welcome(self, request: web.Request) -> web.Response:
        base = self._base_url()
        return web.Response(
            text=f"HPwsn {__version__}: the admin node of a cluster.\n"
            f"topology {base}/api/topology\nstatus   {base}/api/status\ncontract {base}/openapi.json\n"
        )

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _describe(self, request: web.Request) -> web.Response:
        return web.json_response(document(self._base_url()))

    async def _status(self, request: web.Request) -> web.Response:
        topology = self._members.topology
        states = [member.state for member in topology]
        return web.json_response(
            {
                "version": __version__,
                "uptime": round(time.time() - self._started, 3),
                "topology": topology.version,
                "heartbeat": self._members.registry.heartbeat,
                "clusters": len(topology.clusters),
                "nodes": {state: states.count(state) for state in ("alive", "dead", "left")},
            }
        )

    async def _topology(self, request: web.Request) -> web.Response:
        """The topology; with `after`, wait up to `wait` seconds for another version."""
        try:
            after = _number(request, "after", int)
            wait = min(_number(request, "wait", float) or 0.0, LONGEST_WAIT)
        except ValueError as error:
            return _error_response(400, str(error))
        if after is not None:
            await self._members.wait_for_change(after, wait)
        return web.Response(body=self._members.text, content_type="application/json")

    async def _tree(self, request: web.Request) -> web.Response:
        if not self._topics.known:
            return _error_response(404, "this admin node has no topic directory; start it with --topics")
        try:
            return web.json_response({"topics": await self._topics.tree()})
        except TopicDirectoryError as error:
            return _error_response(503, str(error))

    def _signed(self, handler: Callable[[web.Request, bytes], Awaitable[dict[str, Any]]]) -> Handler:
        """Wrap a handler so that it verifies the request's signature and signs the response."""

        async def handle(request: web.Request) -> web.Response:
            body = await request.read()
            try:
                nonce = self._check(request, body)
            except InvalidSignature as error:
                return self._unsigned_response(request, error)
            return self._sign(nonce, await _json_response(handler, request, body))

        return handle

    def _check(self, request: web.Request, body: bytes) -> str:
        return self._verifier.check(request.method, request.raw_path, request.headers, body, now=time.time())

    def _unsigned_response(self, request: web.Request, error: InvalidSignature) -> web.Response:
        now, key = time.monotonic(), (request.remote or "?", str(error)[:40])
        if now - self._last_logged.get(key, -_LOG_INTERVAL) >= _LOG_INTERVAL:
            if len(self._last_logged) > 1000:
                self._last_logged.clear()
            self._last_logged[key] = now
            log.warning("%s %s from %s is rejected: %s", request.method, request.path, key[0], error)
        if not isinstance(error, TooEarly):
            return _error_response(401, str(error))
        return self._sign(error.nonce, _error_response(401, str(error), now=time.time()))

    def _sign(self, nonce: str, response: web.Response) -> web.Response:
        assert isinstance(response.body, bytes)
        response.headers[SIGNATURE] = self._verifier.sign_answer(nonce, response.status, response.body)
        return response

    async def _register(self, request: web.Request, body: bytes) -> dict[str, Any]:
        announcement = _parse_announcement(body, request.remote or "")
        record = await self._members.register(announcement)
        log.info("node %s of cluster %s registered at %s", record.name, record.cluster, record.url)
        registry = self._members.registry
        return {
            "heartbeat": registry.heartbeat,
            "missed": registry.missed,
            "topology": self._members.topology.encode(),
        }

    async def _heartbeat(self, request: web.Request, body: bytes) -> dict[str, Any]:
        self._members.heartbeat(request.match_info["name"], request.query.get("session", ""))
        return {"topology": self._members.topology.version}

    async def _leave(self, request: web.Request, body: bytes) -> dict[str, Any]:
        self._members.leave(request.match_info["name"], request.query.get("session", ""))
        return {}

    async def _suspect(self, request: web.Request, body: bytes) -> dict[str, Any]:
        record = self._members.registry.find(request.match_info["name"])
        if record is None:
            raise NotRegistered(request.match_info["name"])
        if record.alive:
            self._members.probe(record)
        return {}

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Send the topology now and at each change, and a beat after each heartbeat interval without one."""
        try:
            nonce = self._check(request, b"")
            record = self._members.live(request.match_info["name"], request.query.get("session", ""))
        except InvalidSignature as error:
            return self._unsigned_response(request, error)
        except NotRegistered as error:
            response = _error_response(404, str(error))
            assert isinstance(response.body, bytes)
            response.headers[SIGNATURE] = self._verifier.sign_answer(nonce, 404, response.body)
            return response
        stream = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await stream.prepare(request)
        try:
            await self._push(stream, record, nonce, _known_version(request))
        finally:
            # A stream that ends is a hint that the node has died, unless this process is stopping.
            if not self.closing:
                self._members.probe(record)
        return stream

    async def _push(self, stream: web.StreamResponse, record: Record, nonce: str, sent: int | None) -> None:
        number, members = 0, self._members
        while members.registry.find(record.name) is record:
            version = members.topology.version
            await stream.write(self._verifier.sign_line(nonce, number, members.update_since(sent)))
            sent, number = version, number + 1
            await members.wait_for_change(sent, members.registry.heartbeat)


class Topics:
    """The topic tree of a topic directory, cached for a second; settings without a URL give no directory."""

    def __init__(self, settings: TopicsSettings) -> None:
        self._directory: Directory | None = None
        if settings.url:
            self._directory = open_directory(settings.url, access_from(settings))
        self._load_lock = asyncio.Lock()
        self._cached: tuple[float, list[dict[str, Any]]] | None = None

    @property
    def known(self) -> bool:
        """Whether a topic directory is configured."""
        return self._directory is not None

    async def tree(self) -> list[dict[str, Any]]:
        """All topics, each after its parent; TopicDirectoryError if the directory is unreachable."""
        async with self._load_lock:
            if self._cached is None or time.monotonic() - self._cached[0] > TOPICS_CACHE_SECONDS:
                self._cached = time.monotonic(), await asyncio.to_thread(self._load)
            return self._cached[1]

    def _load(self) -> list[dict[str, Any]]:
        assert self._directory is not None
        return [
            {"topic": str(entry.topic), "description": entry.description, "routing": entry.routing}
            for entry in self._directory.load()
        ]


async def _json_response(
    handler: Callable[[web.Request, bytes], Awaitable[dict[str, Any]]], request: web.Request, body: bytes
) -> web.Response:
    try:
        return web.json_response(await handler(request, body))
    except (RegistryError, MalformedTopology) as error:
        return _error_response(_STATUS[type(error)], str(error))


def _known_version(request: web.Request) -> int | None:
    """The topology version that the node already has; None if it gives none."""
    text = request.query.get("after", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _error_response(status: int, message: str, **fields: float) -> web.Response:
    return web.json_response({"error": message, **fields}, status=status)


def _parse_announcement(body: bytes, remote: str) -> Announcement:
    try:
        fields = json.loads(body)
    except ValueError as error:
        raise MalformedTopology(f"the body is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise MalformedTopology("the body must be a JSON object")
    port = fields.get("port")
    if type(port) is not int or not 0 < port < 65536:
        raise MalformedTopology(f"'port' is {str(port)[:80]!r}; give a number from 1 to 65535")
    return Announcement(
        name=check_name(_text(fields, "name")),
        cluster=check_name(_text(fields, "cluster")),
        url=_text(fields, "url"),
        host=_text(fields, "host") or remote,
        port=port,
        version=_text(fields, "version"),
        identity=_text(fields, "identity", _KEY_LIMIT),
        session=_text(fields, "session", _KEY_LIMIT),
    )


def _text(fields: dict[str, Any], key: str, limit: int = _TEXT_LIMIT) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or len(value) > limit:
        raise MalformedTopology(f"{key!r} must be a text of at most {limit} characters")
    return value


def _number(request: web.Request, name: str, kind: Callable[[str], _Value]) -> _Value | None:
    text = request.query.get(name)
    if text is None:
        return None
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not 0 <= value < 2**63:  # type: ignore[operator]
        raise ValueError(f"{name} is {text[:40]!r}; give a number of 0 or more")
    return value
