"""The HTTP client for the admin node: it signs requests and verifies the answers.

It raises two errors: AdminUnreachable and AdminRefused. An answer that is not signed with this cluster's
secret counts as refused, because its content cannot be trusted. The client connects directly, never through
a proxy of the environment.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from hpwsn.errors import HpwsnError
from hpwsn.routing.membership.signing import SIGNATURE, InvalidSignature, Signer
from hpwsn_client.errors import reason_of

log = logging.getLogger(__name__)

_LONGEST_LINE = 64 * 1024**2
_UNAUTHORIZED = 401
_WARN_CLOCK_BEHIND = 1.0
"""Seconds of lag above which a warning is logged; a request in flight at the admin's start has less."""


class AdminUnreachable(HpwsnError):
    """The admin node cannot be reached, or its answer is malformed."""


class AdminRefused(HpwsnError):
    """The admin node refused the request; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def node_path(name: str, *rest: str, **query: str) -> str:
    """Return the path of a node in the admin API."""
    path = "/".join(("/api/nodes", quote(name, safe=""), *rest))
    return f"{path}?{urlencode(query)}" if query else path


class _ClockBehind(AdminRefused):
    """The request was signed before the start of the admin node, which has sent its own time."""


class AdminClient:
    """The admin node at a URL; `clock_lag` is the lag of this node's clock in seconds."""

    def __init__(self, url: str, secret: bytes, tls: ssl.SSLContext | None) -> None:
        self.url = url.rstrip("/")
        self._tls = tls
        self._signer = Signer(secret)
        self._session: aiohttp.ClientSession | None = None
        self.clock_lag = 0.0

    async def call(
        self, method: str, path: str, body: object = None, *, timeout_seconds: float
    ) -> dict[str, Any]:
        """Send a request, and return the JSON object of the answer."""
        data = b""
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            return await self._send(method, path, data, timeout_seconds)
        except _ClockBehind:
            return await self._send(method, path, data, timeout_seconds)

    async def _send(self, method: str, path: str, data: bytes, timeout_seconds: float) -> dict[str, Any]:
        headers, nonce = self._headers(method, path, data)
        try:
            async with asyncio.timeout(timeout_seconds):
                request = self._open().request(method, self._address(path), data=data, headers=headers)
                async with request as answer:
                    content = await answer.read()
                    return self._check_answer(answer, nonce, content)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error, timeout_seconds) from error

    async def lines(self, path: str, *, timeout_seconds: float) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the lines of a stream; each must arrive within the timeout after the one before."""
        headers, nonce = self._headers("GET", path, b"")
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self._open().get(self._address(path), headers=headers)
            async with answer:
                if answer.status != 200:
                    self._check_answer(answer, nonce, await answer.read())
                number = 0
                async for line in _lines(answer.content, timeout_seconds):
                    yield json.loads(self._signer.verify_line(nonce, number, line))
                    number += 1
        except InvalidSignature as error:
            raise AdminRefused(_UNAUTHORIZED, str(error)) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._unreachable(error, timeout_seconds) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            limits = aiohttp.ClientTimeout(total=None, sock_connect=5)
            connector = aiohttp.TCPConnector(ssl=self._tls or True)
            self._session = aiohttp.ClientSession(timeout=limits, connector=connector, trust_env=False)
        return self._session

    def _address(self, path: str) -> URL:
        return URL(self.url + path, encoded=True)

    def _headers(self, method: str, path: str, data: bytes) -> tuple[dict[str, str], str]:
        nonce = secrets.token_hex(16)
        now = time.time() + self.clock_lag
        headers = self._signer.headers(method, path, data, now=now, nonce=nonce)
        return {**headers, "Content-Type": "application/json"}, nonce

    def _check_answer(self, answer: aiohttp.ClientResponse, nonce: str, content: bytes) -> dict[str, Any]:
        document = _object(content)
        message = str(document.get("error") or f"HTTP {answer.status}")
        signature = answer.headers.get(SIGNATURE, "")
        if answer.status != _UNAUTHORIZED or signature:
            try:
                self._signer.check_answer(nonce, answer.status, content, signature)
            except InvalidSignature as error:
                raise AdminRefused(_UNAUTHORIZED, f"{error}; its message is: {message}") from error
            if answer.status == _UNAUTHORIZED and type(document.get("now")) is float:
                self._set_clock(document["now"])
                raise _ClockBehind(_UNAUTHORIZED, message)
        if answer.status == _UNAUTHORIZED:
            self.clock_lag = 0.0  # the clock may have been set
        if answer.status >= 400:
            raise AdminRefused(answer.status, message)
        return document

    def _set_clock(self, now: float) -> None:
        """Sign with the admin node's time, because it refuses the lagging time of this node."""
        self.clock_lag = now - time.time()
        if self.clock_lag >= _WARN_CLOCK_BEHIND:
            log.warning(
                "the clock of this host lags %.1f s behind that of the admin node %s; set the clock",
                self.clock_lag,
                self.url,
            )

    def _unreachable(self, error: Exception, timeout_seconds: float) -> AdminUnreachable:
        if isinstance(error, aiohttp.ClientConnectorError):
            reason = reason_of(error.os_error)
        else:
            reason = (
                f"no answer within {timeout_seconds:g} s" if isinstance(error, TimeoutError) else str(error)
            )
        return AdminUnreachable(
            f"the admin node {self.url} cannot be reached: {reason or type(error).__name__}"
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _lines(content: aiohttp.StreamReader, timeout_seconds: float) -> AsyncIterator[bytes]:
    buffer = b""
    while True:
        async with asyncio.timeout(timeout_seconds):
            chunk = await content.readany()
        if not chunk:
            raise ConnectionResetError("the admin node closed the stream")
        *whole, buffer = (buffer + chunk).split(b"\n")
        if len(buffer) > _LONGEST_LINE:
            raise ValueError(f"a line of the stream is longer than {_LONGEST_LINE} bytes")
        for line in whole:
            yield line


def _object(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
