"""Answers that another node carries on to a client, and what it says about whether the client took them.

Messages leave a pull point when the client has them. Where the client is another node's, only that one
knows: the answer goes with a name, and the other node reports under it. Without a report in time the client
did not get it, and the messages are handed out again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

TAKEN = "Hpwsn-Taken"
"""The header that names an answer to be reported on."""

_RELAYED = "hpwsn.relayed"

Tell = Callable[[bool], Awaitable[None]]


class Relays:
    """The answers on which no report is here yet."""

    def __init__(self) -> None:
        self.within = 120.0
        self._waiting: dict[str, tuple[Tell, asyncio.TimerHandle]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def mark(self, request: web.Request) -> None:
        """Note that a request comes by way of another node."""
        request[_RELAYED] = True

    def holds(self, request: web.Request) -> bool:
        """Whether it does."""
        return _RELAYED in request

    def keep(self, request: web.Request, response: web.Response, tell: Tell) -> None:
        """Name an answer, and wait for the report on it."""
        name = secrets.token_hex(16)
        timer = asyncio.get_running_loop().call_later(self.within, self._expire, name)
        self._waiting[name] = tell, timer
        response.headers[TAKEN] = name

    async def report(self, name: str, taken: bool) -> bool:
        """Pass a report on; whether there was an answer of this name."""
        found = self._waiting.pop(name, None)
        if found is None:
            return False
        tell, timer = found
        timer.cancel()
        await tell(taken)
        return True

    def _expire(self, name: str) -> None:
        task = asyncio.get_running_loop().create_task(self._not_taken(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _not_taken(self, name: str) -> None:
        await self.report(name, False)
