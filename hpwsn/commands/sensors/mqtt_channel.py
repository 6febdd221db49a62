"""Sends readings to an MQTT broker, one message for each with QoS 1, as a gateway in the field does.

At most 1000 messages wait for the broker's acknowledgement; then `send` waits. The connection is made again
when it is lost, and what was not acknowledged is sent again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from hpwsn.errors import BadArguments, HpwsnError
from hpwsn.logs import counted
from hpwsn_client.tls import tls_context

if TYPE_CHECKING:
    from hpwsn.sensors.readings.reading import Reading

PORTS = {"mqtt": 1883, "mqtts": 8883}
IN_FLIGHT = 1000
WAIT = 30.0
"""Seconds to wait for the connection, and for an acknowledgement."""


class MqttChannel:
    """A connection to an MQTT broker, as a context; `payload_of` encodes a reading."""

    def __init__(
        self,
        url: str,
        topic: str,
        user: str | None,
        password_file: str | None,
        ca: str | None,
        payload_of: Callable[[Reading], str],
    ) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        from hpwsn.sensors.gateways.mqtt_topics import parse_command_template

        self._host, self._port, secure = _parts(url)
        try:
            template = parse_command_template(topic)
        except ValueError as error:
            raise BadArguments(f"--mqtt-topic: {error}") from None
        if template is None:
            raise BadArguments("--mqtt-topic is empty; give a topic such as sensors/{sensor}/readings")
        self._topic_of = template.topic_of
        self._url = url
        self._payload_of = payload_of
        self._client = Client(CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(IN_FLIGHT)
        if user is not None:
            self._client.username_pw_set(user, _password(password_file))
        if secure:
            try:
                self._client.tls_set_context(tls_context(ca))
            except ValueError as error:
                raise BadArguments(str(error)) from None
        self._answered = threading.Event()
        self._refused = ""
        self._free = threading.BoundedSemaphore(IN_FLIGHT)
        self._sent = self._acknowledged = 0
        self._client.on_connect = self._connected
        self._client.on_publish = self._published

    def __enter__(self) -> Self:
        try:
            self._client.connect(self._host, self._port)
        except OSError as error:
            raise HpwsnError(
                f"no MQTT broker answers at {self._url} ({error.strerror or error});"
                " give its address by --mqtt"
            ) from None
        self._client.loop_start()
        if not self._answered.wait(WAIT):
            self._refused = "no answer"
        if self._refused:
            self._stop()
            raise HpwsnError(
                f"the MQTT broker at {self._url} refuses the connection ({self._refused});"
                " give --mqtt-user and --mqtt-password-file"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def send(self, readings: list[Reading]) -> None:
        """Publish a message for each reading."""
        for reading in readings:
            self._take_place()
            self._client.publish(self._topic_of(reading.sensor), self._payload_of(reading), qos=1)
            self._sent += 1

    def finish(self) -> int:
        """Wait until everything is acknowledged, and return the exit status; send nothing afterwards."""
        # Every place in flight is free only when nothing is in flight.
        for _ in range(IN_FLIGHT):
            self._take_place()
        return 0

    def summary(self) -> str:
        """What became of the readings, in one line."""
        return f"{counted(self._sent, 'reading')} by MQTT: {self._acknowledged:,} acknowledged by the broker"

    def hint(self) -> None:
        """The broker does not say what becomes of readings."""

    def _take_place(self) -> None:
        if not self._free.acquire(timeout=WAIT):
            open_ = self._sent - self._acknowledged
            raise HpwsnError(
                f"the MQTT broker at {self._url} has acknowledged nothing for {WAIT:g} s,"
                f" and {open_} readings wait for it; look at the broker, and try again"
            )

    def _stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _connected(self, client: Any, data: Any, flags: Any, code: Any, properties: Any) -> None:
        self._refused = str(code) if code.is_failure else ""
        self._answered.set()

    def _published(self, client: Any, data: Any, number: int, code: Any, properties: Any) -> None:
        self._acknowledged += 1
        self._free.release()


def _parts(url: str) -> tuple[str, int, bool]:
    """Host, port and whether TLS is used."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in PORTS or not host or parts.path.strip("/") or parts.username:
        raise BadArguments(f"{url!r} is not the address of an MQTT broker; write mqtt://HOST:PORT")
    return host, port or PORTS[parts.scheme], parts.scheme == "mqtts"


def _password(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        return Path(file).read_text("utf-8").rstrip("\n")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadArguments(f"--mqtt-password-file {file}: {reason}; name a file with the password") from None
