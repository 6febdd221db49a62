"""The job's client for the JSON API of a node: reading and publishing events, and registering services.

It keeps one connection. If the node is unavailable, starting or overloaded, requests are retried, without a
limit unless the caller sets one, so that a job continues when the node is back. A request that the node
rejects fails at once. The bearer token of the environment goes with every request. Spark's options carry it
to workers on other machines, pickled and never as text, because Spark shows settings and command lines. An
object must not be used by two threads at the same time. `kept_link` lends the connections of this process,
which Spark uses for many tasks.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from hpwsn.errors import HpwsnError
from hpwsn_client.environment import CA, authorization, bearer_token
from hpwsn_client.tls import certificate_problem, tls_context

log = logging.getLogger(__name__)

TIMEOUT = 30.0
FIRST_PAUSE, MAX_PAUSE = 0.2, 5.0
PAGE = 1000
"""Maximum events per response in JSON."""
ROWS_TYPE = "application/vnd.hpwsn.rows"
Query = Sequence[tuple[str, str | int | float]]
TRUST = f"set {CA} to the PEM file of the authority that signed it, for the Spark workers too"
_RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


class BrokerRefused(HpwsnError):
    """The node rejected the request."""


class BrokerUnavailable(HpwsnError):
    """The node does not answer, or cannot process the request now."""


@dataclass(frozen=True, slots=True)
class Page:
    """Events in the order of the log, and the offset up to which the node searched the log."""

    events: list[dict[str, Any]]
    upto: int


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of the log for some topics.

    `end` is the last offset, `oldest` the first from which on retention has removed nothing. `waiting` is the
    number of events after the offset of the request, `upto` the offset with which the next batch ends.
    `before` is the last offset before the time of the request. A field that was not requested is 0.
    """

    end: int
    oldest: int = 0
    waiting: int = 0
    upto: int = 0
    before: int = 0


@dataclass(frozen=True, slots=True)
class RowsPage:
    """Rows as lines of text, in the order of the log, and the offset up to which the node searched the log.

    A run is the first offset, the number of rows, the topic, the time in microseconds, and the message id.
    `oldest` is that of LogState after the page was read, 0 if the node does not say it.
    """

    rows: int
    runs: list[tuple[int, int, str, int, str | None]]
    lines: memoryview
    upto: int
    oldest: int = 0


class BrokerLink:
    """Requests to one node; `url` is the address of its broker or its base address.

    With `retry`, a request waits until the node is available, at most `patience` seconds if that is given.
    Then, or without `retry`, it raises BrokerUnavailable. `token` is by default that of the environment.
    """

    def __init__(
        self,
        url: str,
        *,
        retry: bool = True,
        patience: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
        token: str | None = None,
    ) -> None:
        parts = urlsplit(url.rstrip("/").removesuffix("/wsn"))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise HpwsnError(f"{url!r} is not the address of a node; write it as http://127.0.0.1:8080/wsn")
        self._connection = _connection(parts.scheme, parts.hostname, parts.port)
        self._authorization = authorization(node_token() if token is None else token)
        self._prefix = parts.path
        self._retry = retry
        self._patience = patience
        self._sleep = sleep

    def end(self, topic: str) -> int:
        """The current end offset of the log."""
        return int(self._request("HEAD", _events(topic))[1]["Hpwsn-After"])

    def waiting(self, topic: str, after: int) -> int:
        """The number of events after an offset, on a topic and the topics below it."""
        headers = self._request("HEAD", f"{_events(topic)}?{urlencode({'after': after})}")[1]
        return int(headers["Hpwsn-Waiting"])

    def read(self, topic: str, after: int, *, limit: int = PAGE, wait: float = 0.0) -> Page:
        """The next events after an offset, on a topic and the topics below it; `wait` in seconds."""
        query = urlencode({"after": after, "max": limit, "wait": wait})
        body, headers = self._request("GET", f"{_events(topic)}?{query}")
        return Page(json.loads(body), int(headers["Hpwsn-After"]))

    def sample(self, topics: Sequence[str], limit: int) -> list[dict[str, Any]]:
        """The content of the oldest events, at most PAGE."""
        body, _ = self._request("GET", _path(topics, [("max", min(limit, PAGE))]))
        return [event["data"] for event in json.loads(body)]

    def look(
        self,
        topics: Sequence[str],
        *,
        after: int | None = None,
        upto: int | None = None,
        limit: int | None = None,
        wait: float = 0.0,
        since: int | None = None,
    ) -> LogState:
        """The state of the log: events after an offset, at most `limit`; `since` in milliseconds since 1970.

        With `upto`, the events after this offset are not counted, and `upto` of the result is not beyond it.
        With `wait`, the node answers when there is an event after the offset, or after so many seconds.
        """
        given = {"after": after, "upto": upto, "max": limit, "wait": wait or None, "since": since}
        query = [(name, value) for name, value in given.items() if value is not None]
        headers = self._request("HEAD", _path(topics, query))[1]
        names = ("After", "Oldest", "Waiting", "Upto", "Since")
        return LogState(*(int(headers.get(f"Hpwsn-{name}", 0)) for name in names))

    def rows(
        self,
        topics: Sequence[str],
        after: int,
        upto: int,
        columns: Sequence[str] = (),
        *,
        limit: int,
        condition: str = "",
    ) -> RowsPage:
        """The next rows in a range of offsets, at most `limit`; `condition` is a filter in predicates."""
        query: list[tuple[str, str | int | float]] = [("after", after), ("upto", upto), ("max", limit)]
        query += [("column", name) for name in columns]
        query += [("filter", condition), ("dialect", "predicates")] if condition else []
        body, headers = self._request("GET", _path(topics, query), None, {"Accept": ROWS_TYPE})
        head, _, _ = body.partition(b"\n")
        found = json.loads(head)
        upto, oldest = int(headers["Hpwsn-After"]), int(headers.get("Hpwsn-Oldest", 0))
        return RowsPage(found["rows"], found["runs"], memoryview(body)[len(head) + 1 :], upto, oldest)

    def publish(self, topic: str, lines: bytes, id_: str, registration: str = "") -> int | None:
        """Publish events, one per line, with a message id; return the last offset, None if not yet known."""
        headers = {"Content-Type": "application/x-ndjson"}
        if registration:
            headers["Hpwsn-Registration"] = registration
        body, _ = self._request("POST", f"{_events(topic)}?{urlencode({'id': id_})}", lines, headers)
        last: int | None = json.loads(body)["last"]
        return last

    def register(self, uri: str, document: Mapping[str, Any]) -> None:
        """Register a service, or send its heartbeat."""
        headers = {"Content-Type": "application/json"}
        self._request("PUT", f"/streams/{quote(uri, safe='')}", json.dumps(document).encode(), headers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[bytes, Mapping[str, str]]:
        pause, logged = FIRST_PAUSE, False
        end = None if self._patience is None else time.monotonic() + self._patience
        while True:
            try:
                return self._once(method, path, body, headers or {})
            except BrokerUnavailable as error:
                if not self._retry:
                    raise
                if end is not None and time.monotonic() >= end:
                    raise BrokerUnavailable(f"{error}; gave up after {self._patience:g} s") from error
                if not logged:
                    log.warning("waiting for the node: %s", error)
                logged = True
            self._sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[bytes, Mapping[str, str]]:
        connection = self._connection
        try:
            # The node closes idle connections, so a request on a kept connection may need a second attempt.
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
            raise BrokerUnavailable(
                f"the node cannot process the request now: {_error_text(answer, response)}"
            )
        if response.status >= 400:
            if method == "HEAD":
                # The response to HEAD has no text; that to GET has the reason.
                self._once("GET", _readable(path), None, {})
            raise BrokerRefused(
                f"the node rejected {method} {path.partition('?')[0]}: {_error_text(answer, response)}"
            )
        return answer, dict(response.getheaders())

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, again: bool
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Send one request and read the response; all requests of this class are idempotent."""
        try:
            self._connection.request(method, self._prefix + path, body, {**headers, **self._authorization})
            response = self._connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            if not again:
                raise
        return self._exchange(method, path, body, headers, again=False)


def node_token() -> str:
    """The bearer token of the environment; empty without one. HpwsnError, without the token, if not valid."""
    try:
        return bearer_token()
    except ValueError as error:
        raise HpwsnError(str(error)) from None


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme != "https":
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    try:
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=tls_context())
    except ValueError as error:
        raise HpwsnError(str(error)) from None


def _events(topic: str) -> str:
    return f"/topics/{quote(topic, safe='')}/events"


def _path(topics: Sequence[str], query: Query) -> str:
    """The events of some topics; each topic stands for itself and the topics below it."""
    first, *others = topics
    return f"{_events(first)}?{urlencode([*query, *(('also', topic) for topic in others)])}"


def _readable(path: str) -> str:
    """A GET for the topics of a HEAD."""
    place, _, query = path.partition("?")
    also = [(name, value) for name, value in parse_qsl(query) if name == "also"]
    return f"{place}?{urlencode([*also, ('max', 1)])}"


_kept: dict[tuple[str, float | None, str | None], list[BrokerLink]] = {}
_lock = threading.Lock()


@contextmanager
def kept_link(url: str, patience: float | None = None, token: str | None = None) -> Iterator[BrokerLink]:
    """Lend a connection of this process; it is kept for the next task unless its user fails."""
    place = (url, patience, token)
    with _lock:
        free = _kept.setdefault(place, [])
        link = free.pop() if free else None
    link = link or BrokerLink(url, patience=patience, token=token)
    try:
        yield link
    except BaseException:
        link.close()
        raise
    with _lock:
        free.append(link)


def _error_text(answer: bytes, response: http.client.HTTPResponse) -> str:
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, LookupError, TypeError):
        return f"HTTP {response.status} {response.reason}"
