"""A link to an MQTT broker: paho-mqtt in a thread of its own, with automatic reconnection.

Owns connecting, exponential backoff with jitter, the session, the version of MQTT, and how many messages are
in flight. The session outlives connections and restarts, messages have QoS 1, and the broker has a message
until its acknowledgement. MQTT 5 is tried first, since the client then says how many messages may be in
flight; a broker without it gets MQTT 3.1.1. While too much is in flight the link stops to read. A lost
connection loses no message: the broker sends again what was not acknowledged.
"""

from __future__ import annotations

import logging
import random
import select
import threading
import time
from dataclasses import dataclass
from typing import Any, Protocol

from hpwsn.errors import SettingError
from hpwsn.sensors.gateways.mqtt_address import MqttAddress, reason_of
from hpwsn.sensors.gateways.mqtt_session import MqttSession

log = logging.getLogger(__name__)

IN_FLIGHT = 1000
"""Most messages that were received and are not finished; beyond it the link stops to read."""
IN_FLIGHT_BYTES = 32 << 20
"""Most bytes of these messages; the last of them may exceed it."""
CONNECT_TIMEOUT = 10.0
KEEPALIVE = 30
FIRST_PAUSE, MAX_PAUSE = 0.2, 10.0
STEADY = 5.0
"""Seconds after which a connection counts as good, so that the next pause is short again."""
WAIT = 1.0
"""Seconds after which the thread looks whether it is to end, if nothing wakes it."""
AT_ONCE = 100
"""Messages that are read before acknowledgements are written again."""
LOST = "the connection was lost"
UNSUPPORTED = "Unsupported protocol version"
FOREVER = 0xFFFF_FFFF
"""The expiry of a session that does not expire."""


@dataclass(slots=True, eq=False)
class MqttMessage:
    """A received message; `number` is unique among those of a connection that are not acknowledged."""

    connection: int
    number: int
    topic: str
    payload: bytes
    again: bool
    """Whether the broker may have sent it before."""
    acknowledged: bool
    """Whether no acknowledgement is expected (QoS 0)."""


class MqttListener(Protocol):
    """Receives the events of a link, in the link's thread; its methods must not block."""

    def up(self, session: bool) -> None:
        """Connected; `session` tells whether the broker had the session."""

    def down(self, reason: str) -> None:
        """The connection has ended, or could not be made."""

    def message(self, message: MqttMessage) -> None:
        """A message was received."""

    def published(self, number: int, refused: str | None) -> None:
        """The broker has taken a published message, or refused it."""


def load_paho() -> Any:
    """Import paho-mqtt; SettingError says how to install it."""
    try:
        from paho.mqtt import client
    except ImportError as error:
        raise SettingError(
            "sensors.mqtt_url", "mqtt://…", "requires paho-mqtt; pip install 'hpwsn[sensors]', or unset it"
        ) from error
    # A failed callback is logged here with its traceback.
    logging.getLogger("paho").setLevel(logging.CRITICAL)
    return client


class MqttLink:
    """Keeps a connection to a broker, and makes another when it is lost."""

    def __init__(
        self, address: MqttAddress, session: MqttSession, filters: tuple[str, ...], listener: MqttListener
    ) -> None:
        self._mqtt = load_paho()
        self._address = address
        self._session = session
        self._filters = filters
        self._listener = listener
        self._version = self._mqtt.MQTTv5
        self._connection = 0
        self._client: Any = None
        self._connected = False
        self._answered = False
        self._ended: str | None = None
        self._subscribing: int | None = None
        self._failures = 0
        self._in_flight = self._in_flight_bytes = self._received = 0
        self._counting = threading.Lock()
        self._room = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)

    # For the event loop

    def start(self) -> None:
        """Start to connect in the background."""
        self._thread.start()

    def close(self) -> None:
        """Disconnect, and wait for the thread's end; call it in a thread."""
        self._closing.set()
        self._room.set()
        if (client := self._client) is not None:
            client.disconnect()
        if self._thread.is_alive():
            self._thread.join()

    def finish(self, message: MqttMessage) -> None:
        """Acknowledge a message, unless its connection is lost, and give its place to another."""
        client = self._client
        if not message.acknowledged and client is not None and message.connection == self._connection:
            client.ack(message.number, 1)
        with self._counting:
            self._in_flight -= 1
            self._in_flight_bytes -= len(message.payload)
        self._room.set()

    def publish(self, topic: str, payload: bytes) -> int | None:
        """Send a retained message with QoS 1; the number that `published` gets, None without a connection."""
        client = self._client
        if client is None or not self._connected:
            return None
        sent = client.publish(topic, payload, qos=1, retain=True)
        return self._unique(sent.mid) if sent.rc == self._mqtt.MQTT_ERR_SUCCESS else None

    @property
    def in_flight(self) -> int:
        """Messages that were received and are not finished."""
        return self._in_flight

    # The thread

    def _run(self) -> None:
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                reason = self._connect()
            except Exception as error:
                log.exception("the link to %s failed", self._address.words)
                reason = str(error)
            if self._closing.is_set():
                return
            self._listener.down(reason)
            self._failures = 0 if time.monotonic() - began > STEADY else self._failures + 1
            pause = min(MAX_PAUSE, FIRST_PAUSE * 2.0 ** min(self._failures, 20))
            self._closing.wait(pause * (0.5 + random.random() / 2))

    def _connect(self) -> str:
        """Keep one connection until it ends; the reason of its end."""
        self._ended, self._subscribing, self._answered = None, None, False
        try:
            client = self._open()
        except (OSError, ValueError) as error:
            return reason_of(error)
        self._connection += 1
        self._client = client
        try:
            self._loop(client)
        finally:
            self._client, self._connected = None, False
            if (connection := client.socket()) is not None:
                connection.close()
        if not self._answered and not self._closing.is_set():
            # Brokers that do not know MQTT 5 refuse it, or just hang up.
            five, older = self._mqtt.MQTTv5, self._mqtt.MQTTv311
            self._version = older if self._version == five else five
        return str(self._ended)

    def _loop(self, client: Any) -> None:
        while self._ended is None and (self._connected or not self._closing.is_set()):
            full = self._connected and self._is_full()
            code = self._pause(client) if full else self._read(client)
            if code != self._mqtt.MQTT_ERR_SUCCESS and self._ended is None:
                self._ended = self._mqtt.error_string(code)

    def _read(self, client: Any) -> Any:
        """Wait for the broker, and read with this one wait what it has sent, up to AT_ONCE messages."""
        before = first = self._received
        code = client.loop(WAIT)
        while not code and before < self._received < first + AT_ONCE and not self._is_full():
            before = self._received
            code = client.loop_read()
        return code

    def _open(self) -> Any:
        mqtt, address = self._mqtt, self._address
        five = self._version == mqtt.MQTTv5
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=self._session.client_id,
            clean_session=None if five else False,
            protocol=self._version,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.connect_timeout = CONNECT_TIMEOUT
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_message, client.on_publish = self._on_message, self._on_publish
        client.on_subscribe = self._on_subscribe
        # Without it paho-mqtt writes to the socket in whichever thread acknowledges or publishes.
        client.on_socket_register_write = lambda *_: None
        if address.user:
            client.username_pw_set(address.user, address.password())
        if address.secure:
            client.tls_set_context(address.tls_context())
        host, port = address.place
        if five:
            client.connect(host, port, KEEPALIVE, clean_start=False, properties=self._properties())
        else:
            client.connect(host, port, KEEPALIVE)
        return client

    def _properties(self) -> Any:
        from paho.mqtt import packettypes, properties

        make: Any = properties.Properties
        found = make(packettypes.PacketTypes.CONNECT)
        found.SessionExpiryInterval = FOREVER
        found.ReceiveMaximum = IN_FLIGHT
        return found

    def _is_full(self) -> bool:
        with self._counting:
            return self._in_flight > IN_FLIGHT or self._in_flight_bytes > IN_FLIGHT_BYTES

    def _pause(self, client: Any) -> Any:
        """Write, but do not read, until there is room or a moment has passed."""
        self._room.wait(WAIT)
        self._room.clear()
        hung_up = select.poll()
        hung_up.register(client.socket(), select.POLLRDHUP)
        if hung_up.poll(0):
            self._ended = LOST
        code = client.loop_write() if client.want_write() else self._mqtt.MQTT_ERR_SUCCESS
        return code or client.loop_misc()

    # Callbacks of paho-mqtt

    def _on_connect(self, client: Any, _: object, flags: Any, reason: Any, properties: Any) -> None:
        self._answered = reason != UNSUPPORTED
        if reason.is_failure:
            self._ended = f"the broker refused the connection: {_words(reason, properties)}"
            return
        if not flags.session_present:
            self._session.began()
        self._connected = True
        missing, surplus = self._session.differs(self._filters)
        if surplus:
            client.unsubscribe(sorted(surplus))
        if missing:
            _, self._subscribing = client.subscribe([(each, 1) for each in sorted(missing)])
        elif surplus:
            self._session.subscribed(self._filters)
        self._listener.up(bool(flags.session_present))

    def _on_subscribe(self, _: Any, __: object, number: int, reasons: Any, properties: Any) -> None:
        refused = [reason for reason in reasons if reason.is_failure]
        if refused:
            self._ended = f"the broker refused the subscription: {_words(refused[0], properties)}"
        elif number == self._subscribing:
            self._subscribing = None
            self._session.subscribed(self._filters)

    def _on_disconnect(self, _: Any, __: object, flags: Any, reason: Any, properties: Any) -> None:
        if self._ended is None:
            by_broker = flags.is_disconnect_packet_from_server
            self._ended = (
                f"the broker ended the connection: {_words(reason, properties)}" if by_broker else LOST
            )

    def _on_message(self, _: Any, __: object, received: Any) -> None:
        try:
            topic = received.topic
        except UnicodeDecodeError:
            topic = ""
        message = MqttMessage(
            self._connection, received.mid, topic, bytes(received.payload), received.dup, received.qos == 0
        )
        self._received += 1
        with self._counting:
            self._in_flight += 1
            self._in_flight_bytes += len(message.payload)
        self._listener.message(message)

    def _on_publish(self, _: Any, __: object, number: int, reason: Any, properties: Any) -> None:
        refused = _words(reason, properties) if reason is not None and reason.is_failure else None
        self._listener.published(self._unique(number), refused)

    def _unique(self, number: int) -> int:
        """A number of a message of this connection that no message of another connection has."""
        return self._connection << 16 | number


def _words(reason: Any, properties: Any) -> str:
    """The reason code's name, with the broker's own words if it gives any."""
    more = getattr(properties, "ReasonString", "")
    return f"{reason.getName()} ({more})" if more else str(reason.getName())
