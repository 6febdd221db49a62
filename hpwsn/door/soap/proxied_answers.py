"""Answers that another node forwards to a client, and the reports on whether the client received them.

Messages leave a pull point only after the client has received them. If the request came through another
node, only that node knows this. The answer therefore carries a token, and the other node reports on the
token. Without a report within `report_timeout` the answer counts as lost, and the messages stay in the pull
point.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

TOKEN_HEADER = "Hpwsn-Taken"
"""The header with the token of an answer that must be reported on."""

_PROXIED = "hpwsn.proxied"

ReportDelivery = Callable[[bool], Awaitable[None]]


class ProxiedAnswers:
    """The answers to requests of other nodes whose report has not arrived yet."""

    def __init__(self) -> None:
        self.report_timeout = 120.0
        self._unreported: dict[str, tuple[ReportDelivery, asyncio.TimerHandle]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def mark(self, request: web.Request) -> None:
        """Mark a request as forwarded by another node."""
        request[_PROXIED] = True

    def is_marked(self, request: web.Request) -> bool:
        """Whether another node forwarded the request."""
        return _PROXIED in request

    def expect_report(self, response: web.Response, report_delivery: ReportDelivery) -> None:
        """Give an answer a token, and start the timeout of its report."""
        token = secrets.token_hex(16)
        timer = asyncio.get_running_loop().call_later(self.report_timeout, self._expire, token)
        self._unreported[token] = report_delivery, timer
        response.headers[TOKEN_HEADER] = token

    async def report(self, token: str, received: bool) -> bool:
        """Handle a report; return whether an answer with this token was waiting for it."""
        found = self._unreported.pop(token, None)
        if found is None:
            return False
        report_delivery, timer = found
        timer.cancel()
        await report_delivery(received)
        return True

    def _expire(self, token: str) -> None:
        task = asyncio.get_running_loop().create_task(self._report_lost(token))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report_lost(self, token: str) -> None:
        await self.report(token, False)
