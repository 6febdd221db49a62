"""Templates of MQTT topics: what is subscribed to, and which sensor a topic names."""

from __future__ import annotations

import pytest

from hpwsn.sensors.gateways.mqtt_topics import (
    LONGEST_TOPIC,
    TopicTemplate,
    parse_command_template,
    parse_templates,
    sensor_of,
)


def test_a_template_is_subscribed_to_with_a_wildcard_for_the_sensor() -> None:
    templates = parse_templates(" sensors/{sensor}/readings, tele/+/{sensor}/#,plain ")
    assert [each.filter for each in templates] == ["sensors/+/readings", "tele/+/+/#", "plain"]
    assert templates[0].topic_of("s1") == "sensors/s1/readings"


@pytest.mark.parametrize(
    ("template", "topic", "sensor"),
    [
        ("sensors/{sensor}/readings", "sensors/s1/readings", "s1"),
        ("sensors/{sensor}/readings", "sensors/s1/s2/readings", None),
        ("sensors/{sensor}/readings", "sensors//readings", None),
        ("tele/+/{sensor}/#", "tele/hall/s1", "s1"),
        ("tele/+/{sensor}/#", "tele//s1/a/b\nc", "s1"),
        ("{sensor}", "s1", "s1"),
        ("a.b/{sensor}", "axb/s1", None),
        ("#", "a/b", None),
        ("a/b", "a/b", None),
    ],
)
def test_a_topic_names_its_sensor(template: str, topic: str, sensor: str | None) -> None:
    assert sensor_of(topic, parse_templates(template)) == sensor


def test_the_first_template_that_a_topic_matches_counts() -> None:
    templates = parse_templates("a/fixed,a/{sensor}")
    assert sensor_of("a/fixed", templates) is None
    assert sensor_of("a/s1", templates) == "s1"
    assert templates[1].matches("a/fixed")
    assert not templates[0].matches("a/s1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no MQTT topic is named"),
        (" , ", "no MQTT topic is named"),
        ("a/#/b", "not the whole last level"),
        ("a/b#", "not the whole last level"),
        ("a/b+/c", "beside other characters"),
        ("a/x-{sensor}", "as a whole level"),
        ("a/{id}", "as a whole level"),
        ("a/sensor}", "as a whole level"),
        ("{sensor}/{sensor}", "twice"),
        ("a/\0", "NUL"),
        ("a" * (LONGEST_TOPIC + 1), "1 to 65535 bytes"),
    ],
)
def test_a_template_that_is_not_valid_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_templates(text)


def test_the_longest_topic_is_taken() -> None:
    assert len(TopicTemplate("a" * LONGEST_TOPIC).filter) == LONGEST_TOPIC


@pytest.mark.parametrize("text", ["a/+/{sensor}", "{sensor}/#", "a/b"])
def test_commands_need_one_topic_for_each_sensor(text: str) -> None:
    with pytest.raises(ValueError, match="one topic of each sensor"):
        parse_command_template(text)


def test_without_a_template_there_are_no_commands() -> None:
    assert parse_command_template("") is None
    template = parse_command_template("s/{sensor}/wanted")
    assert template is not None
    assert template.topic_of("s1") == "s/s1/wanted"
