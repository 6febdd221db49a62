"""The HTTP API for stream services, under /streams.

A job registers its service and reports its figures; operators list and remove services. A registration is
on disk before the answer is sent, and only one write runs at a time. A heartbeat that changes only figures
is not written. An error is a JSON object with `error`.
"""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.errors import JournalUnavailable
from hpwsn.streams.registry.known_services import AlreadyRunning, Services
from hpwsn.streams.registry.service import ServiceRefused
from hpwsn.streams.registry.service_file import ServiceStore

LARGEST_REGISTRATION = 1 << 20
"""The most bytes of a registration."""
_ONE = "/streams/{uri:[^/]+}"


class StreamsDoor:
    """The request handlers for the paths under /streams."""

    def __init__(self, services: Services, store: ServiceStore) -> None:
        self._services = services
        self._store = store
        self._writing = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
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
        if (request.content_length or 0) > LARGEST_REGISTRATION:
            size = request.content_length
            return _error(
                f"the registration has {size} bytes; at most {LARGEST_REGISTRATION} are accepted", 413
            )
        try:
            changed = self._services.register(uri, json.loads(await request.read()))
        except AlreadyRunning as error:
            return _error(str(error), 409)
        except ServiceRefused as error:
            return _error(str(error), 400)
        except (ValueError, RecursionError) as error:
            return _error(f"the registration is not JSON: {error}; send a JSON object", 400)
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
                raise JournalUnavailable(
                    f"the file {self._store.path} cannot be written: {error.strerror}"
                ) from error


def _unknown(request: web.Request) -> web.Response:
    return _error(f"there is no service {request.match_info['uri']!r}; GET /streams lists them", 404)


def _error(message: str, status: int) -> web.Response:
    return web.json_response({"error": message}, status=status)
