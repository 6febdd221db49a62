"""The HTTP connection pool for POSTs to consumers, with callbacks and keep-alive connections.

It assigns requests to connections: first come, first served for each host, with a limit per host, a limit for
all hosts, and timeouts for connecting, replying and idling. A request needs no task and no coroutine; only
opening a connection does. It does not retry, with one exception: a request on a reused connection that the
consumer has closed is sent once more. If the consumer had read it, it gets a duplicate, which at-least-once
delivery allows.
"""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hpwsn.broker.push.consumer_connection import Connection, Deadlines, explain_refusal
from hpwsn.broker.push.request import HostKey, Outcome, OutcomeKind, Ticket, parse_target

__all__ = ["Outcome", "OutcomeKind", "PushStatistics", "Pusher", "Ticket"]


@dataclass(frozen=True, slots=True)
class PushStatistics:
    """Present connections and requests, and outcomes since the start."""

    open: int
    idle: int
    in_flight: int
    waiting: int
    outcomes: Mapping[OutcomeKind, int]


class _Host:
    """The connections and the queue of one host."""

    __slots__ = ("idle", "key", "open", "waiting")

    def __init__(self, key: HostKey) -> None:
        self.key = key
        self.open = 0
        self.idle: list[Connection] = []
        self.waiting: OrderedDict[Ticket, None] = OrderedDict()


class Pusher:
    """An HTTP client for POSTs; create, use and close it in one event loop."""

    def __init__(
        self,
        *,
        connections_per_host: int = 32,
        connections: int = 1000,
        connect_timeout: float = 10.0,
        response_timeout: float = 30.0,
        response_limit: int = 64 * 1024,
        idle_timeout: float = 30.0,
        ssl_context: ssl.SSLContext | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._per_host = connections_per_host
        self._most = connections
        self._limit = response_limit
        self._ssl = ssl_context
        self._connect_timeout = connect_timeout
        self._response_timeout = response_timeout
        self._idle_timeout = idle_timeout
        self._hosts: dict[HostKey, _Host] = {}
        # Hosts whose requests wait for the limit of all hosts: _starved have no connection, _cramped too few.
        self._starved: OrderedDict[_Host, None] = OrderedDict()
        self._cramped: OrderedDict[_Host, None] = OrderedDict()
        self._connections: set[Connection] = set()
        self._deadlines = Deadlines(self._loop, self._connections, self._expired)
        self._unsettled = 0
        self._unwritten: list[Connection] = []
        self._outcomes = dict.fromkeys(OutcomeKind, 0)
        self._closing = False
        self._quiet: asyncio.Future[None] | None = None

    def post(
        self, url: str, headers: bytes, body: bytes | Sequence[bytes], done: Callable[[Outcome], None]
    ) -> Ticket:
        """Send the body; `headers` are lines ending in CR LF, without Host and Content-Length.

        `done` is called exactly once with the outcome, from the event loop, after this call has returned.
        """
        ticket = Ticket(self._cancel, url, headers, body, done)
        self._unsettled += 1
        try:
            ticket.target = target = parse_target(url)
        except ValueError as error:
            self._settle_soon(ticket, ticket.outcome(OutcomeKind.REFUSED, str(error)))
            return ticket
        host = self._hosts.get(target.key)
        if host is not None and host.idle:
            self._send(host.idle.pop(), ticket)
        elif self._closing:
            self._settle_soon(ticket, ticket.outcome(OutcomeKind.CANCELLED, "the broker is stopping"))
        else:
            self._queue_or_open(host or self._add_host(target.key), ticket)
        return ticket

    def statistics(self) -> PushStatistics:
        """A snapshot for /status and /metrics."""
        waiting = sum(len(host.waiting) for host in self._hosts.values())
        idle = sum(len(host.idle) for host in self._hosts.values())
        in_flight = self._unsettled - waiting
        return PushStatistics(len(self._connections), idle, in_flight, waiting, dict(self._outcomes))

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109
        """Refuse new requests, cancel queued ones, and after `timeout` seconds also those in flight."""
        self._closing = True
        for host in list(self._hosts.values()):
            for ticket in list(host.waiting):
                ticket.cancel()
            for connection in list(host.idle):
                self.spoiled(connection)
        if not await self._quiet_within(timeout):
            for connection in list(self._connections):
                if connection.ticket is not None:
                    connection.ticket.cancel()
            await self._quiet_within(None)
        self._deadlines.close()

    def opened(self, connection: Connection) -> None:
        """See consumer_connection.Owner."""
        if connection.ticket is None:
            connection.drop()
        else:
            self._deadlines.set(connection, self._response_timeout)
            connection.write()

    def answered(self, connection: Connection, outcome: Outcome, reusable: bool) -> None:
        """See consumer_connection.Owner."""
        ticket = connection.ticket
        assert ticket is not None
        if outcome.status == 408 and connection.reused and not ticket.repeated:
            # The consumer means the idle time before this request, which crossed its 408 on the way.
            connection.disregard()
            return
        connection.ticket = None
        # Free the connection first, so that a request of the callback can use it.
        if reusable and not self._closing:
            self._free(connection)
        else:
            connection.drop()
        self._settle(ticket, outcome)
        # Usually the callback has already used it for another request.
        if connection.idle:
            self._deadlines.set(connection, self._idle_timeout)

    def progressed(self, connection: Connection) -> None:
        """See consumer_connection.Owner."""
        self._deadlines.set(connection, self._response_timeout)

    def spoiled(self, connection: Connection) -> None:
        """See consumer_connection.Owner."""
        self._leave_idle(connection)
        connection.drop()

    def lost(self, connection: Connection, outcome: Outcome | None) -> None:
        """See consumer_connection.Owner."""
        # A connection established just after its cancellation is lost a second time.
        if connection not in self._connections:
            return
        ticket, connection.ticket = connection.ticket, None
        self._leave_idle(connection)
        self._forget(connection)
        if ticket is not None and connection.silent and connection.reused and not ticket.repeated:
            ticket.repeated = True
            self._open(self._hosts.get(connection.host) or self._add_host(connection.host), ticket)
            return
        self._use_room(connection.host)
        if ticket is not None and outcome is not None:
            self._settle(ticket, outcome)
        self._notify_if_quiet()

    def _cancel(self, ticket: Ticket) -> bool:
        if ticket.done is None:
            return False
        outcome = ticket.outcome(OutcomeKind.CANCELLED, "cancelled")
        if ticket.connection is not None:
            self._abandon(ticket.connection)
        elif ticket.target is not None and (host := self._hosts.get(ticket.target.key)):
            host.waiting.pop(ticket, None)
            self._tidy(host)
        self._settle_soon(ticket, outcome)
        return True

    def _queue_or_open(self, host: _Host, ticket: Ticket) -> None:
        if host.open < self._per_host and len(self._connections) < self._most:
            self._open(host, ticket)
        else:
            host.waiting[ticket] = None
            self._make_room(host)

    def _add_host(self, key: HostKey) -> _Host:
        host = self._hosts[key] = _Host(key)
        return host

    def _send(self, connection: Connection, ticket: Ticket) -> None:
        connection.idle = False
        self._deadlines.set(connection, self._response_timeout)
        connection.take(ticket)
        # Write all at the end of this loop iteration: consecutive system calls are far cheaper.
        if not self._unwritten:
            self._loop.call_soon(self._write)
        self._unwritten.append(connection)

    def _write(self) -> None:
        connections, self._unwritten = self._unwritten, []
        for connection in connections:
            connection.write()

    def _free(self, connection: Connection) -> None:
        """Reuse a connection for its host's next request, keep it idle, or close it for a starved host."""
        host = self._hosts[connection.host]
        connection.reused = True
        if self._starved or (self._cramped and not host.waiting):
            connection.drop()
        elif host.waiting:
            ticket, _ = host.waiting.popitem(last=False)
            self._tidy(host)
            self._send(connection, ticket)
        else:
            connection.idle = True
            host.idle.append(connection)

    def _make_room(self, host: _Host) -> None:
        """Queue a host for a connection, if only the limit for all hosts prevents it."""
        if host.open < self._per_host:
            self._queue(host)
            idle = [connection for other in self._hosts.values() for connection in other.idle]
            if idle:
                self.spoiled(min(idle, key=lambda connection: connection.deadline))

    def _queue(self, host: _Host) -> None:
        if host.waiting and host.open == 0:
            self._cramped.pop(host, None)
            self._starved[host] = None
        elif host.waiting and host.open < self._per_host:
            self._cramped[host] = None

    def _use_room(self, key: HostKey) -> None:
        """Open connections after one to this host was closed, for hosts without any connection first."""
        if key in self._hosts:
            self._queue(self._hosts[key])
        while (queue := self._starved or self._cramped) and len(self._connections) < self._most:
            host, _ = queue.popitem(last=False)
            ticket, _ = host.waiting.popitem(last=False)
            self._open(host, ticket)
            self._queue(host)

    def _leave_idle(self, connection: Connection) -> None:
        host = self._hosts.get(connection.host)
        if host is not None and connection.idle:
            host.idle.remove(connection)
            connection.idle = False

    def _open(self, host: _Host, ticket: Ticket) -> None:
        connection = Connection(self, host.key, self._limit)
        connection.take(ticket)
        host.open += 1
        self._connections.add(connection)
        self._deadlines.set(connection, self._connect_timeout)
        connection.opening = self._loop.create_task(self._connect(connection))
        # A task that is cancelled before it runs never enters its coroutine, so use a done callback.
        connection.opening.add_done_callback(lambda task: self._connected(connection, ticket, task))

    async def _connect(self, connection: Connection) -> None:
        scheme, name, port = connection.host
        if scheme == "https" and self._ssl is None:
            self._ssl = ssl.create_default_context()
        context = self._ssl if scheme == "https" else None
        await self._loop.create_connection(lambda: connection, name, port, ssl=context)

    def _connected(self, connection: Connection, ticket: Ticket, task: asyncio.Task[None]) -> None:
        connection.opening = None
        if task.cancelled():
            self.lost(connection, ticket.outcome(OutcomeKind.CANCELLED, "cancelled"))
        elif (error := task.exception()) is not None:
            self.lost(connection, ticket.outcome(OutcomeKind.REFUSED, explain_refusal(error)))

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        host = self._hosts[connection.host]
        host.open -= 1
        self._tidy(host)

    def _tidy(self, host: _Host) -> None:
        if not host.waiting:
            self._starved.pop(host, None)
            self._cramped.pop(host, None)
            if host.open == 0:
                self._hosts.pop(host.key, None)

    def _abandon(self, connection: Connection) -> None:
        connection.ticket = None
        connection.drop()

    def _expired(self, connection: Connection) -> None:
        ticket = connection.ticket
        if ticket is None:
            self.spoiled(connection)
            return
        if connection.connected:
            words = f"no reply within {self._response_timeout:g} s"
        else:
            words = f"no connection within {self._connect_timeout:g} s"
        self._abandon(connection)
        self._settle(ticket, ticket.outcome(OutcomeKind.TIMEOUT, words))

    def _settle(self, ticket: Ticket, outcome: Outcome) -> None:
        done = ticket.take()
        if done is not None:
            self._finish(done, outcome)

    def _settle_soon(self, ticket: Ticket, outcome: Outcome) -> None:
        done = ticket.take()
        if done is not None:
            self._loop.call_soon(self._finish, done, outcome)

    def _finish(self, done: Callable[[Outcome], None], outcome: Outcome) -> None:
        self._unsettled -= 1
        self._outcomes[outcome.kind] += 1
        try:
            done(outcome)
        except Exception as error:
            message = f"a callback failed on this outcome: {outcome}"
            self._loop.call_exception_handler({"message": message, "exception": error})
        if self._closing:
            self._notify_if_quiet()

    def _notify_if_quiet(self) -> None:
        busy = self._unsettled or self._connections
        if self._quiet is not None and not self._quiet.done() and not busy:
            self._quiet.set_result(None)

    async def _quiet_within(self, timeout: float | None) -> bool:  # noqa: ASYNC109
        if self._quiet is None:
            self._quiet = self._loop.create_future()
        self._notify_if_quiet()
        done, _ = await asyncio.wait((self._quiet,), timeout=timeout)
        return bool(done)
