"""A job's side of the node's JSON door: where a topic ends, pages of its events, publishing, registration.

One connection, kept. A node that is away, starting or too busy is waited for, as long as it takes: a stream
job goes on when it is back. What the node refuses is an error at once. One object is for one thread at a
time.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from hpwsn.errors import HpwsnError
from hpwsn_client.environment import CA
from hpwsn_client.tls import certificate_problem, tls_context

log = logging.getLogger(__name__)

TIMEOUT = 30.0
FIRST_PAUSE, MAX_PAUSE = 0.2, 5.0
PAGE = 1000
"""Most events that a node gives at once."""
TRUST = f"name the PEM file of the authority that signed it in {CA}, where workers of Spark see it too"
_RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


class BrokerRefused(HpwsnError):
    """The node answered, and will not do it."""


class BrokerUnavailable(HpwsnError):
    """No node answers now."""


@dataclass(frozen=True, slots=True)
class Page:
    """Events in the order of the log, and the offset up to which the log was looked at."""

    events: list[dict[str, Any]]
    upto: int


class BrokerLink:
    """Requests to one node, by the address of its broker or of the node itself."""

    def __init__(self, url: str, *, retry: bool = True, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url.rstrip("/").removesuffix("/wsn"))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise HpwsnError(f"{url!r} is no address of a node; give one as http://127.0.0.1:8080/wsn")
        self._connection = _connection(parts.scheme, parts.hostname, parts.port)
        self._prefix = parts.path
        self._retry = retry
        self._sleep = sleep

    def end(self, topic: str) -> int:
        """The offset at which the log ends now."""
        return int(self._request("HEAD", _events(topic))[1]["Hpwsn-After"])

    def waiting(self, topic: str, after: int) -> int:
        """How many events on a topic and below it lie after an offset."""
        headers = self._request("HEAD", f"{_events(topic)}?{urlencode({'after': after})}")[1]
        return int(headers["Hpwsn-Waiting"])

    def read(self, topic: str, after: int, *, limit: int = PAGE, wait: float = 0.0) -> Page:
        """The next events on a topic and below it."""
        query = urlencode({"after": after, "max": limit, "wait": wait})
        body, headers = self._request("GET", f"{_events(topic)}?{query}")
        return Page(json.loads(body), int(headers["Hpwsn-After"]))

    def publish(self, topic: str, lines: bytes, id_: str, registration: str = "") -> int | None:
        """Publish events, one on a line, under an id; the offset of the last, if it is known yet."""
        headers = {"Content-Type": "application/x-ndjson"}
        if registration:
            headers["Hpwsn-Registration"] = registration
        body, _ = self._request("POST", f"{_events(topic)}?{urlencode({'id': id_})}", lines, headers)
        last: int | None = json.loads(body)["last"]
        return last

    def register(self, uri: str, document: Mapping[str, Any]) -> None:
        """Register a service, or say that it is still run."""
        headers = {"Content-Type": "application/json"}
        self._request("PUT", f"/streams/{quote(uri, safe='')}", json.dumps(document).encode(), headers)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[bytes, Mapping[str, str]]:
        pause, told = FIRST_PAUSE, False
        while True:
            try:
                return self._once(method, path, body, headers or {})
            except BrokerUnavailable as error:
                if not self._retry:
                    raise
                if not told:
                    log.warning("waiting: %s", error)
                told = True
            self._sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[bytes, Mapping[str, str]]:
        connection = self._connection
        try:
            # A node ends connections that were not used for a while, which is no trouble.
            kept = connection.sock is not None
            response, answer = self._exchange(method, path, body, headers, again=kept)
        except ssl.SSLCertVerificationError as error:
            why = "the certificate of {}:{} is not accepted ({}); {}"
            named = (connection.host, connection.port, *certificate_problem(error, TRUST))
            raise BrokerRefused(why.format(*named)) from None
        except (OSError, http.client.HTTPException) as error:
            where = f"{connection.host}:{connection.port}"
            raise BrokerUnavailable(f"no node answers at {where}: {error or type(error).__name__}") from error
        if response.status in _RETRY_STATUSES:
            raise BrokerUnavailable(f"the node cannot do it now: {_error_text(answer, response)}")
        if response.status >= 400:
            raise BrokerRefused(
                f"the node refused {method} {path.partition('?')[0]}: {_error_text(answer, response)}"
            )
        return answer, dict(response.getheaders())

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, again: bool
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """One request and its answer; every request here may be repeated."""
        try:
            self._connection.request(method, self._prefix + path, body, dict(headers))
            response = self._connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            if not again:
                raise
        return self._exchange(method, path, body, headers, again=False)


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme != "https":
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    try:
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=tls_context())
    except ValueError as error:
        raise HpwsnError(str(error)) from None


def _events(topic: str) -> str:
    return f"/topics/{quote(topic, safe='')}/events"


def _error_text(answer: bytes, response: http.client.HTTPResponse) -> str:
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, LookupError, TypeError):
        return f"HTTP {response.status} {response.reason}"
