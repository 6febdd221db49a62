"""Commands for sensors on demand: a retained `true` or `false` on the MQTT topic of each.

Only the latest command of a sensor counts. A command is repeated until the broker has confirmed it, and after
the broker has lost its session all are sent again. The retained message of a sensor that is no longer on
demand is cleared. No more than SENT are unconfirmed at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from hpwsn.sensors.gateways.mqtt_topics import TopicTemplate

SENT = 20
"""Most commands that the broker has not confirmed; the rest waits."""

_PAYLOADS = {True: b"true", False: b"false", None: b""}


class MqttCommands:
    """What each sensor on demand was told, and what it is still to be told."""

    def __init__(self, template: TopicTemplate, publish: Callable[[str, bytes], int | None]) -> None:
        """`publish` returns the number of a message, or None without a connection."""
        self.template = template
        self._publish = publish
        self._payloads: dict[str, bytes] = {}
        self._waiting: dict[str, None] = {}
        self._sent: dict[int, tuple[str, bytes]] = {}
        self._refused: dict[str, None] = {}
        self.refused: str | None = None
        """Why the broker refused a command, until it takes one."""

    def tell(self, sensor: str, wanted: bool | None) -> None:
        """A sensor is to start or to stop; None for one that is no longer on demand."""
        self._payloads[sensor] = _PAYLOADS[wanted]
        self._waiting[sensor] = None
        self._refused.pop(sensor, None)
        self._send()

    def up(self, session: bool) -> None:
        """Connected; without a session the broker has lost what it was told."""
        unconfirmed = [*(sensor for sensor, _ in self._sent.values()), *self._refused]
        self._waiting.update(dict.fromkeys(unconfirmed if session else self._payloads))
        self._sent.clear()
        self._refused.clear()
        self.refused = None
        self._send()

    def published(self, number: int, refused: str | None) -> None:
        """The broker has confirmed a command, or refused it; a refused one waits for the next connection."""
        sensor, payload = self._sent.pop(number, (None, b""))
        if sensor is None:
            return
        self.refused = refused
        if refused is not None:
            self._refused[sensor] = None
        elif not payload and not self._payloads.get(sensor):
            self._payloads.pop(sensor, None)
        self._send()

    @property
    def unconfirmed(self) -> int:
        """How many commands the broker has not confirmed."""
        return len(self._waiting) + len(self._sent) + len(self._refused)

    def _send(self) -> None:
        while self._waiting and len(self._sent) < SENT:
            sensor = next(iter(self._waiting))
            payload = self._payloads.get(sensor, _PAYLOADS[None])
            number = self._publish(self.template.topic_of(sensor), payload)
            if number is None:
                return
            del self._waiting[sensor]
            self._sent[number] = (sensor, payload)
