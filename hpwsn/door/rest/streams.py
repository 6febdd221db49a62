"""Stream services over HTTP: jobs register them and say how they run, operators list and remove them.

Owns the addresses under /streams and their statuses. What is kept is on disk before the answer goes out, one
write at a time; a heartbeat that changes nothing but figures is not written. A refusal is JSON with `error`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.errors import JournalUnavailable
from hpwsn.streams.registry.known_services import AlreadyRunning, Services
from hpwsn.streams.registry.service import ServiceRefused
from hpwsn.streams.registry.service_file import ServiceStore

LARGEST = 1 << 20
"""Bytes of a registration."""
_ONE = "/streams/{uri:[^/]+}"


class StreamsDoor:
    """The addresses under /streams."""

    def __init__(self, services: Services, store: ServiceStore) -> None:
        self._services = services
        self._store = store
        self._writing = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """What to add to the node's web application."""
        return [
            web.get("/streams", self._list),
            web.get(_ONE, self._show),
            web.put(_ONE, self._register),
            web.delete(_ONE, self._remove),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"streams": list(self._services)})

    async def _show(self, request: web.Request) -> web.Response:
        found = self._services.describe(request.match_info["uri"])
        return _unknown(request) if found is None else web.json_response(found)

    async def _register(self, request: web.Request) -> web.Response:
        uri = request.match_info["uri"]
        if (request.content_length or 0) > LARGEST:
            return _refuse(f"a service is described in at most {LARGEST} bytes", 413)
        try:
            changed = self._services.register(uri, json.loads(await request.read()))
        except AlreadyRunning as error:
            return _refuse(str(error), 409)
        except ServiceRefused as error:
            return _refuse(str(error), 400)
        except (ValueError, RecursionError) as error:
            return _refuse(f"the service is no JSON: {error}", 400)
        if changed:
            await self._save()
        return web.json_response(self._services.describe(uri))

    async def _remove(self, request: web.Request) -> web.Response:
        if not self._services.remove(request.match_info["uri"]):
            return _unknown(request)
        await self._save()
        return web.Response(status=204)

    async def _save(self) -> None:
        async with self._writing:
            try:
                await in_thread(self._store.save, self._services.saved())
            except OSError as error:
                raise JournalUnavailable(f"{self._store.path} cannot be written: {error.strerror}") from error


def _unknown(request: web.Request) -> web.Response:
    return _refuse(f"this node knows no service {request.match_info['uri']!r}", 404)


def _refuse(words: str, status: int) -> web.Response:
    told: dict[str, Any] = {"error": words}
    return web.json_response(told, status=status)
