"""Readings as events on `sensors:KIND:ID`: the runs that carry them, and the way back.

A run that this node made from readings keeps them beside its payloads, so that nobody here parses them
again. A run that came by another way (from the log, from another node, over ActiveMQ, or from a publisher
that wrote the event itself) is parsed. An event is a reading if it has the form that `event_of` gives, and
names the sensor and the kind of its topic.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hpwsn.notification import END, Run, split_payloads
from hpwsn.sensors.physical.physical_sensor import RESERVED, ROOT
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_times import parse_time, time_text
from hpwsn_client.wsn.formats.json_events import EVENT_CLOSE, EVENT_OPEN, decode_event, encode_scalar, tags_of
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_content
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

LARGEST = sys.float_info.max
"""The largest value of a quantity."""
Found = Reading | None
"""A member of a run as a reading; None for an event of another form."""

_NUMBER = rb"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?"
_TEXT = rb"(?: hp:type=\"string\")?>([^<>&]++)"
_VALUE = rb"<([^\s<>/&]++)>(%b)</\1>" % _NUMBER
_written_here = re.compile(
    rb"%b<sensor%b</sensor><kind%b</kind><time>([^<>&]++)</time>"
    rb"(?:<longitude>(%b)</longitude><latitude>(%b)</latitude>)?((?:<[^\s<>/&]++>%b</[^<>]++>)++)%b"
    % (EVENT_OPEN.encode(), _TEXT, _TEXT, _NUMBER, _NUMBER, _NUMBER, EVENT_CLOSE.encode())
).fullmatch
_values = re.compile(_VALUE).findall


class ReadingRun(Run):
    """A run whose members are readings."""

    __slots__ = ("readings",)

    def __init__(self, topic: Topic, before: bytes, payloads: bytes, readings: tuple[Found, ...]) -> None:
        super().__init__(topic, before, payloads, len(readings))
        self.readings = readings
        """As many as the run has members."""

    def extend(self, runs: Sequence[Run]) -> None:
        """Add the payloads of runs that continue this one, with their readings."""
        self.readings = (*self.readings, *(each for run in runs for each in readings_of(run)))
        super().extend(runs)


class SensorRuns:
    """Makes the runs of one sensor; what all its events have in common is encoded once."""

    __slots__ = ("_before", "_latitude", "_longitude", "_opening", "_place", "topic")

    def __init__(self, sensor: str, kind: str, topic: Topic) -> None:
        content, start, _ = encode_content(NotificationMessage(TopicExpression.of_message(topic), b""))
        self.topic = topic
        self._before = content[:start]
        self._opening = f"{EVENT_OPEN}{_element('sensor', sensor)}{_element('kind', kind)}<time>"
        self._longitude: float | None = None
        self._latitude: float | None = None
        self._place = ""
        """The place of the last reading, which nearly always is that of the next one, too."""

    @classmethod
    def of(cls, reading: Reading) -> SensorRuns:
        """The runs of the sensor of a reading."""
        topic = Topic.parse(f"{ROOT}:{reading.kind}:{reading.sensor}")
        return cls(reading.sensor, reading.kind, topic)

    def run(self, readings: tuple[Reading, ...]) -> ReadingRun:
        """One run of readings of this sensor, at least one."""
        if len(readings) == 1:
            payloads = self._payload(readings[0]) + END
        else:
            payloads = END.join([*[self._payload(reading) for reading in readings], b""])
        return ReadingRun(self.topic, self._before, payloads, readings)

    def _payload(self, reading: Reading) -> bytes:
        _, _, time, values, longitude, latitude = reading
        if longitude is not self._longitude or latitude is not self._latitude:
            self._longitude, self._latitude = longitude, latitude
            self._place = (
                ""
                if longitude is None
                else f"<longitude>{longitude!r}</longitude><latitude>{latitude!r}</latitude>"
            )
        measured = "".join([f"<{name}>{value!r}</{name}>" for name, value in values.items()])
        return f"{self._opening}{time_text(time)}</time>{self._place}{measured}{EVENT_CLOSE}".encode()


def run_of(reading: Reading, topic: Topic) -> ReadingRun:
    """A single reading as a run; SensorRuns is faster for many of one sensor."""
    return SensorRuns(reading.sensor, reading.kind, topic).run((reading,))


def readings_of(run: Run) -> tuple[Found, ...]:
    """The reading of each member of a run; None for what is not a reading."""
    if isinstance(run, ReadingRun):
        return run.readings
    names = sensor_names(run.topic)
    if names is None or run.large:
        return (None,) * run.size
    return tuple([_parse(payload, *names) for payload in split_payloads(run.payloads)])


def numbered_readings(first: int, runs: Iterable[Run]) -> Iterator[tuple[int, Reading]]:
    """The readings among runs that follow each other in the log from an offset on, each with its offset.

    What was accepted on an internal topic, or posted to a pull point, is passed over.
    """
    for run in runs:
        if run.target is None:
            for offset, reading in enumerate(readings_of(run), first):
                if reading is not None:
                    yield offset, reading
        first += run.size


def sensor_names(topic: Topic | None) -> tuple[str, str] | None:
    """The kind and the id in the topic of a sensor; None for any other topic."""
    if topic is None or len(topic.path) != 3 or topic.path[0] != ROOT or topic.namespace != HPWSN_TOPICS:
        return None
    return topic.path[1], topic.path[2]


def event_of(reading: Reading) -> dict[str, Any]:
    """The event of a reading, as JSON clients get it."""
    found: dict[str, Any] = {
        "sensor": reading.sensor,
        "kind": reading.kind,
        "time": time_text(reading.time),
    }
    if reading.longitude is not None:
        found |= {"longitude": reading.longitude, "latitude": reading.latitude}
    return {**found, **reading.values}


def reading_of(event: Mapping[str, Any]) -> Reading | None:
    """The reading of an event, the inverse of `event_of`; None for an event of another form."""
    rest = dict(event)
    sensor, kind, text = rest.pop("sensor", None), rest.pop("kind", None), rest.pop("time", None)
    time = parse_time(text) if isinstance(text, str) else None
    if not isinstance(sensor, str) or not isinstance(kind, str) or time is None:
        return None
    if not all(type(value) in (int, float) and abs(value) <= LARGEST for value in rest.values()):
        return None
    values = {name: float(value) for name, value in rest.items()}
    longitude, latitude = values.pop("longitude", None), values.pop("latitude", None)
    if not _is_sound(values) or (longitude is None) != (latitude is None):
        return None
    return Reading(sensor, kind, time, values, longitude, latitude)


def _is_sound(values: Mapping[str, float]) -> bool:
    """Whether there is a value, each is finite, and none has the name of another field."""
    return bool(values) and RESERVED.isdisjoint(values) and max(map(abs, values.values())) <= LARGEST


def _element(name: str, text: str) -> str:
    opening, closing = tags_of(name)
    return opening + encode_scalar(text, closing)


def _parse(payload: bytes, kind: str, sensor: str) -> Reading | None:
    found = _parse_written_here(payload) or reading_of(decode_event(payload))
    return found if found is not None and found.sensor == sensor and found.kind == kind else None


def _parse_written_here(payload: bytes) -> Reading | None:
    """A payload as SensorRuns writes it, without a parser of XML; None for another one."""
    parts = _written_here(payload)
    if parts is None:
        return None
    sensor, kind, text, longitude, latitude, measured = parts.groups()
    time, values = parse_time(text.decode()), _values(measured)
    # Each element has its name twice, and five characters around name and value.
    if time is None or sum([2 * len(name) + len(value) + 5 for name, value in values]) != len(measured):
        return None
    numbers = {name.decode(): float(value) for name, value in values}
    if len(numbers) != len(values) or not _is_sound(numbers):
        return None
    place = (None, None) if longitude is None else (float(longitude), float(latitude))
    return Reading(sensor.decode(), kind.decode(), time, numbers, *place)
