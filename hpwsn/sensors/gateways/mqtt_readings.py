"""The readings of one MQTT message: its payload is as a request over HTTP, and its topic may name the sensor.

A reading that names another sensor than the topic is malformed. So is a message that is not readable, as one
reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpwsn.background import in_thread
from hpwsn.sensors.gateways.mqtt_link import MqttMessage
from hpwsn.sensors.gateways.mqtt_topics import TopicTemplate, sensor_of
from hpwsn.sensors.intake.rejected_readings import beginning
from hpwsn.sensors.physical.physical_sensor import shown
from hpwsn.sensors.readings.formats import (
    RawReading,
    ReadingsTooMany,
    ReadingsUnreadable,
    Unparsed,
    parse_readings,
)

PARSED_HERE = 1 << 16
"""Bytes of the largest message that is parsed in the event loop; larger ones have a thread."""


class MessageReadings(NamedTuple):
    """A message with its raw readings, each with the sensor that the topic names."""

    message: MqttMessage
    readings: list[RawReading]
    readable: bool


async def read_message(
    message: MqttMessage, templates: Sequence[TopicTemplate], readings_limit: int
) -> MessageReadings:
    """The raw readings of a message, of which there may be so many."""
    sensor = sensor_of(message.topic, templates)
    try:
        if len(message.payload) <= PARSED_HERE:
            found = parse_readings(message.payload, None, readings_limit)
        else:
            found = await in_thread(parse_readings, message.payload, None, readings_limit)
    except (ReadingsUnreadable, ReadingsTooMany) as error:
        return MessageReadings(message, [unreadable(message, sensor, str(error))], False)
    if sensor is not None:
        found = [_named(raw, sensor, message) for raw in found]
    return MessageReadings(message, found, True)


def unreadable(message: MqttMessage, sensor: str | None, problem: str) -> Unparsed:
    """A message as one reading that is not valid."""
    return Unparsed(beginning(message.payload), f"{message.topic}: {problem}", sensor)


def _named(raw: RawReading, sensor: str, message: MqttMessage) -> RawReading:
    if isinstance(raw, Unparsed):
        return raw._replace(sensor=sensor)
    if not isinstance(raw, dict):
        return raw
    named = raw.setdefault("sensor", sensor)
    if named == sensor:
        return raw
    problem = f"the reading is of the sensor {shown(named)}, and the topic of {shown(sensor)}"
    return unreadable(message, sensor, problem)
