"""Templates of MQTT topics: `{sensor}` stands for the id of a sensor, `+` and `#` are as in MQTT.

The template `sensors/{sensor}/readings` is subscribed to as `sensors/+/readings`. `{sensor}` takes a whole
level. Topics of readings may have no `{sensor}`; each reading then names its sensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

SENSOR = "{sensor}"
LONGEST_TOPIC = 65_535
"""Bytes of a topic in MQTT."""


@dataclass(frozen=True, slots=True)
class TopicTemplate:
    """A template of the topics of many sensors; ValueError says what is wrong with it."""

    text: str
    pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        levels = self.text.split("/")
        for number, level in enumerate(levels):
            _check_level(self.text, level, last=number == len(levels) - 1)
        if levels.count(SENSOR) > 1:
            raise ValueError(f"{self.text!r} has {SENSOR} twice; a topic has one sensor")
        if not self.text or len(self.text.encode()) > LONGEST_TOPIC:
            raise ValueError(f"an MQTT topic has 1 to {LONGEST_TOPIC} bytes; give sensors/{SENSOR}")
        object.__setattr__(self, "pattern", re.compile(_pattern(levels), re.DOTALL))

    @property
    def filter(self) -> str:
        """The topic filter to subscribe to."""
        return self.text.replace(SENSOR, "+")

    def matches(self, topic: str) -> bool:
        """Whether the topic is one of the template's."""
        return self.pattern.fullmatch(topic) is not None

    def topic_of(self, sensor: str) -> str:
        """The topic of a sensor."""
        return self.text.replace(SENSOR, sensor)


def parse_templates(text: str) -> tuple[TopicTemplate, ...]:
    """The templates of a list with commas; ValueError says what is wrong."""
    found = tuple(TopicTemplate(part.strip()) for part in text.split(",") if part.strip())
    if not found:
        raise ValueError(f"no MQTT topic is named; give one such as sensors/{SENSOR}/readings")
    return found


def parse_command_template(text: str) -> TopicTemplate | None:
    """The template of topics to publish on, with `{sensor}` and no wildcard; None if the text is empty."""
    if not text:
        return None
    template = TopicTemplate(text)
    levels = text.split("/")
    if "+" in levels or "#" in levels or SENSOR not in levels:
        raise ValueError(f"{text!r} must name one topic of each sensor: with {SENSOR}, without + and #")
    return template


def sensor_of(topic: str, templates: Iterable[TopicTemplate]) -> str | None:
    """The sensor in a topic, by the first template that the topic matches; None if there is none."""
    for template in templates:
        if found := template.pattern.fullmatch(topic):
            return found[1] if SENSOR in template.text else None
    return None


def _check_level(text: str, level: str, last: bool) -> None:
    if "#" in level and (level != "#" or not last):
        raise ValueError(f"{text!r} has a # that is not the whole last level; write a/#")
    if "+" in level and level != "+":
        raise ValueError(f"{text!r} has a + beside other characters; write a/+/b")
    if ("{" in level or "}" in level) and level != SENSOR:
        raise ValueError(f"{text!r} has the level {level!r}; write {SENSOR}, as a whole level")
    if "\0" in level:
        raise ValueError(f"{text!r} has a NUL character; MQTT topics must not")


def _pattern(levels: list[str]) -> str:
    below = levels[-1] == "#"
    named = {SENSOR: "([^/]+)", "+": "[^/]*"}
    above = "/".join(named.get(level) or re.escape(level) for level in levels[: len(levels) - below])
    if not below:
        return above
    return f"{above}(?:/.*)?" if above else ".*"
