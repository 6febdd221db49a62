"""A link to ActiveMQ: stomp.py connections in their own threads, with automatic reconnection.

Owns connecting, failover between hosts, exponential backoff with jitter, heartbeats, and the grouping of
commands into transactions. Messages sent without a session are dropped: the listener is told of every lost
session and decides what to send again. A link that consumes uses separate connections to send and to receive,
because ActiveMQ stops reading from a connection that sends too much, and acknowledgements must not be
blocked.
"""

from __future__ import annotations

import logging
import random
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from hpwsn.backbone.wire.destinations import Address, place
from hpwsn.errors import SettingError

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 10.0
FIRST_PAUSE, MAX_PAUSE = 0.1, 3.0
HEARTBEAT_TOLERANCE = 2.5
"""Heartbeat intervals without data after which a connection counts as lost."""

SUBSCRIPTION = "hpwsn"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send; JMS clients receive a text message if `text` is true, else a bytes message."""

    destination: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    """A received message; it can be acknowledged only in the session that received it."""

    session: object
    ack: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Subscription:
    """The destinations that a link consumes, with client acknowledgement, and the headers of SUBSCRIBE."""

    destinations: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)


class Listener(Protocol):
    """Receives the events of a link, in the link's threads; its methods must not block."""

    def up(self, host: str) -> None:
        """A session has started."""

    def down(self, reason: str) -> None:
        """The session has ended, or could not be started."""

    def message(self, message: Incoming) -> None:
        """A message was received."""

    def receipt(self, number: str) -> None:
        """ActiveMQ has stored the transaction that was sent with this receipt."""


class SessionLost(Exception):
    """The session has ended; the text is the reason."""


@dataclass(frozen=True, slots=True)
class _SendCommand:
    messages: Sequence[Outgoing]
    receipt: str | None


@dataclass(frozen=True, slots=True)
class _AckCommand:
    ack: str


@dataclass(frozen=True, slots=True)
class _EndCommand:
    reason: str


def load_stomp() -> Any:
    """Import stomp.py; SettingError says how to install it."""
    try:
        import stomp
    except ImportError as error:
        raise SettingError(
            "backbone.url",
            "stomp://…",
            "requires stomp.py, which is not installed; in the checkout, pip install ./client '.[activemq]'",
        ) from error
    # stomp.py logs the same errors again with a traceback, and its debug log contains passwords.
    logging.getLogger("stomp.py").setLevel(logging.CRITICAL)
    return stomp


class Link:
    """Keeps a session with one of several hosts, and starts another when it is lost."""

    def __init__(
        self,
        address: Address,
        listener: Listener,
        *,
        name: str,
        heartbeat: float,
        consume: Subscription | None = None,
        client_id: str | None = None,
    ) -> None:
        self._stomp = load_stomp()
        self._address = address
        self._listener = listener
        self._heartbeat = heartbeat
        self._consume = consume
        self._client_id = client_id
        self._session: _Session | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._attempts = 0

    def start(self) -> None:
        """Start connecting in the background."""
        self._thread.start()

    def send(self, messages: Sequence[Outgoing], receipt: str | None = None) -> None:
        """Send messages in order; several messages are one transaction."""
        self._command(_SendCommand(messages, receipt))

    def ack(self, message: Incoming) -> None:
        """Acknowledge a message and all before it; after its session this has no effect."""
        session = self._session
        if session is message.session and session is not None:
            session.commands.put(_AckCommand(message.ack))

    def stop(self, within: float = 5.0) -> None:
        """Send all queued messages and stop; blocks for up to `within` seconds."""
        self._stopping.set()
        self._command(_EndCommand("stopped"))
        self._thread.join(within)

    def _command(self, command: Any) -> None:
        session = self._session
        if session is not None:
            session.commands.put(command)

    def _run(self) -> None:
        while not self._stopping.is_set():
            host = self._address.hosts[self._attempts % len(self._address.hosts)]
            reason = self._run_session(host)
            self._session = None
            if not self._stopping.is_set():
                self._listener.down(f"{place(host)}: {reason}")
                self._stopping.wait(self._pause())

    def _run_session(self, host: tuple[str, int]) -> str:
        """Run one session to its end and return the reason why it ended."""
        session = _Session(self._stomp, self._address, host, self._heartbeat, self._listener)
        self._attempts += 1
        try:
            session.open(self._consume, self._client_id)
            self._attempts -= 1  # after a loss, try the same host first
            self._failures = 0
            self._session = session
            if self._stopping.is_set():
                # `stop` was called before there was a session to send the command to.
                session.commands.put(_EndCommand("stopped"))
            session.subscribe(self._consume)
            self._listener.up(place(host))
            return session.serve()
        except SessionLost as error:
            return str(error)
        except Exception as error:
            log.debug("the session with %s failed", place(host), exc_info=True)
            return str(error) or type(error).__name__
        finally:
            session.close()

    _failures = 0

    def _pause(self) -> float:
        """Seconds until the next attempt: short until every host has been tried, then growing."""
        self._failures += 1
        rounds = (self._failures - 1) // len(self._address.hosts)
        pause = min(FIRST_PAUSE * 2 ** min(rounds, 16), MAX_PAUSE)
        return float(pause * random.uniform(0.5, 1.0))


class _Session:
    """The connections to one host; the session ends when the first of them is lost."""

    def __init__(
        self, stomp: Any, address: Address, host: tuple[str, int], heartbeat: float, listener: Listener
    ) -> None:
        self.commands: SimpleQueue[Any] = SimpleQueue()
        self._stomp = stomp
        self._address = address
        self._host = host
        self._heartbeat = heartbeat
        self._listener = listener
        self._connections: list[Any] = []
        self._transactions = 0

    def open(self, consume: Subscription | None, client_id: str | None) -> None:
        """Open the connections; `client_id` is for the receiving one."""
        if consume is not None:
            self._connections.append(self._connect(client_id))
        self._connections.append(self._connect(None))

    def _connect(self, client_id: str | None) -> Any:
        beat = round(self._heartbeat * 1000)
        connection = self._stomp.Connection12(
            [self._host],
            heartbeats=(beat, beat),
            timeout=CONNECT_TIMEOUT,
            reconnect_attempts_max=1,
            reconnect_sleep_initial=0,
            reconnect_sleep_max=0,
            auto_decode=False,
            auto_content_length=False,
            heart_beat_receive_scale=HEARTBEAT_TOLERANCE,
        )
        answer = _ConnectionListener(self)
        connection.set_listener("hpwsn", answer)
        try:
            headers = {"client-id": client_id} if client_id else {}
            connection.connect(self._address.user, self._address.password, headers=headers)
        except self._stomp.exception.ConnectFailedException:
            raise SessionLost(_unreachable(self._host)) from None
        if not answer.connected.wait(CONNECT_TIMEOUT) or answer.refusal is not None:
            connection.transport.disconnect_socket()
            raise SessionLost(answer.refusal or "it accepted the connection but did not answer")
        _configure_socket(connection, self._heartbeat * HEARTBEAT_TOLERANCE)
        return connection

    def subscribe(self, consume: Subscription | None) -> None:
        """Subscribe, and return when ActiveMQ has confirmed all subscriptions."""
        if consume is None:
            return
        events = self._connections[0].get_listener("hpwsn")
        events.unconfirmed = len(consume.destinations)
        for number, destination in enumerate(consume.destinations):
            self._connections[0].subscribe(
                destination,
                id=f"{SUBSCRIPTION}-{number}",
                ack="client",
                headers=_numbered(consume.headers, number),
            )
        if not events.subscribed.wait(CONNECT_TIMEOUT) or events.refusal is not None:
            raise SessionLost(events.refusal or "it did not confirm the subscription")

    def serve(self) -> str:
        """Execute commands until the session ends, and return the reason."""
        while True:
            commands = [self.commands.get()]
            try:
                while len(commands) < 1000:
                    commands.append(self.commands.get_nowait())
            except Empty:
                pass
            ends = [number for number, command in enumerate(commands) if isinstance(command, _EndCommand)]
            self._carry_out(commands[: ends[0]] if ends else commands)
            if ends:
                return str(commands[ends[0]].reason)

    def _carry_out(self, commands: Sequence[Any]) -> None:
        acks = [command.ack for command in commands if isinstance(command, _AckCommand)]
        sendings = [command for command in commands if isinstance(command, _SendCommand)]
        messages = [message for sending in sendings for message in sending.messages]
        receipts = [sending.receipt for sending in sendings if sending.receipt]
        if messages:
            self._send(messages, ",".join(receipts))
        for ack in acks:
            self._connections[0].ack(ack)

    def _send(self, messages: Sequence[Outgoing], receipt: str) -> None:
        connection = self._connections[-1]
        asked = {"receipt": receipt} if receipt else {}
        if len(messages) == 1:
            _send_one(connection, messages[0], asked)
            return
        self._transactions += 1
        transaction = {"transaction": f"t{self._transactions}"}
        connection.begin(**transaction)
        for message in messages:
            _send_one(connection, message, transaction)
        connection.commit(**transaction, headers=asked)

    def close(self) -> None:
        """Close all connections, in any state."""
        for connection in self._connections:
            events = connection.get_listener("hpwsn")
            events.over = True
            try:
                connection.transport.disconnect_socket()
            except Exception:
                log.debug("a connection could not be closed", exc_info=True)

    def deliver(self, frame: Any) -> None:
        """Pass a received message to the listener."""
        self._listener.message(Incoming(self, frame.headers.get("ack", ""), frame.headers, frame.body or b""))

    def confirmed(self, receipt: str) -> None:
        """Pass the receipts of one transaction to the listener."""
        for number in receipt.split(","):
            self._listener.receipt(number)


class _ConnectionListener:
    """The stomp.py listener of one connection; stomp.py calls it in its threads."""

    def __init__(self, session: _Session) -> None:
        self._session = session
        self.connected = threading.Event()
        self.subscribed = threading.Event()
        self.unconfirmed = 0
        self.refusal: str | None = None
        self.over = False

    def on_connected(self, frame: Any) -> None:
        self.connected.set()

    def on_message(self, frame: Any) -> None:
        if not self.over:
            self._session.deliver(frame)

    def on_receipt(self, frame: Any) -> None:
        receipt = frame.headers.get("receipt-id", "")
        if receipt.startswith(SUBSCRIPTION):
            self.unconfirmed -= 1
            if not self.unconfirmed:
                self.subscribed.set()
        elif not self.over:
            self._session.confirmed(receipt)

    def on_error(self, frame: Any) -> None:
        text = frame.headers.get("message") or (frame.body or b"").decode("utf-8", "replace")
        self._end(f"ActiveMQ says: {text.strip().splitlines()[0][:300] if text.strip() else 'error'}")

    def on_disconnected(self) -> None:
        self._end("the connection was lost")

    def on_heartbeat_timeout(self) -> None:
        self._end("the heartbeat timed out")

    def on_send(self, frame: Any) -> None:
        pass

    def on_connecting(self, host_and_port: Any) -> None:
        pass

    def _end(self, reason: str) -> None:
        if self.refusal is None:
            self.refusal = reason
        if not self.over:
            self._session.commands.put(_EndCommand(self.refusal))
        self.connected.set()
        self.subscribed.set()


def _send_one(connection: Any, message: Outgoing, headers: Mapping[str, str]) -> None:
    length = {} if message.text else {"content-length": str(len(message.body))}
    connection.send(message.destination, message.body, headers={**message.headers, **length, **headers})


def _numbered(headers: Mapping[str, str], number: int) -> dict[str, str]:
    """The headers of one of several subscriptions; each durable subscription needs its own name."""
    named = {**headers, "receipt": f"{SUBSCRIPTION}-{number}"}
    if "activemq.subscriptionName" in named:
        named["activemq.subscriptionName"] += f"-{number}"
    return named


def _configure_socket(connection: Any, within: float) -> None:
    """Send small packets without delay, and set a timeout for reading and writing.

    stomp.py also checks heartbeats, but not while a write is blocked.
    """
    transport = connection.transport
    if transport.socket is not None:
        transport.socket.settimeout(within)
        transport.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _unreachable(host: tuple[str, int]) -> str:
    return f"there is no answer from {place(host)}; start ActiveMQ there, or correct backbone.url"
