"""Inputs that are read in several partitions: which settings are accepted, and what Spark's source gets."""

import pytest

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition_toml import parse_document
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.plan.plan import build_plan
from hpwsn.streams.spark.inputs import partition_options

HEAD = """\
uri = "urn:x"
topic = "x"
{order}
[inputs.i]
source = "topic"
topic = "t"
schema = "cid STRING, n INT"
"""


def problems_of(settings: str, order: str = "") -> list[str]:
    try:
        for one in parse_document(HEAD.format(order=order) + settings):
            build_plan(one)
    except DefinitionError as error:
        return [str(one).removeprefix("definition:") for one in error.problems]
    return []


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ('key = "cid"', ""),
        ('key = "cid"\npartitions = 64', 'order = "key"'),
        ("partitions = 1", ""),
        ("partitions = 8", 'order = "any"'),
    ],
)
def test_partitions_keep_the_order_of_a_key_or_there_is_none(settings: str, order: str) -> None:
    assert problems_of(settings, order) == []


@pytest.mark.parametrize(
    ("settings", "order", "problem"),
    [
        ('key = "cdi"', "", "4: input i: key: cdi is not an attribute of the schema; known: cid, n"),
        ("key = 5", "", "8: input i: key: must be a text, not 5"),
        ("partitions = 2", "", "4: input i: partitions: several partitions lose the order; name a key, or"),
        ("partitions = 65", 'order = "any"', "8: input i: partitions: must be a number from 1 to 64, not 65"),
        ("partitions = true", 'order = "any"', "8: input i: partitions: must be a number from 1 to 64"),
        ("", 'order = "some"', "3: service: order: must be key or any, not 'some'"),
    ],
)
def test_a_wrong_setting_is_named(settings: str, order: str, problem: str) -> None:
    (found,) = problems_of(settings, order)
    assert found.startswith(problem)


def test_other_sources_say_that_they_have_no_partitions() -> None:
    service = Service("urn:x", topic="x", order="any")
    service.input("k", source="kafka", servers="h:1", topic="t", schema="n INT", key="n")
    service.input("r", source="rate", partitions=2)
    with pytest.raises(DefinitionError) as caught:
        service.definition()
    assert [one.message for one in caught.value.problems] == [
        "is not a setting of source kafka; remove it, or use a source of topic, service",
        "is not a setting of source rate; remove it, or use a source of topic, service",
    ]


def test_spark_gets_the_settings_as_options_of_the_source() -> None:
    service = Service("urn:x", topic="x", order="any").input(
        "i", source="topic", topic="t", schema="cid STRING", key="cid", partitions=4
    )
    definition = service.definition()
    assert definition.order == "any"
    assert partition_options(definition.inputs["i"]) == {"key": "cid", "minPartitions": "4"}
    plain = Service("urn:x", topic="x").input("i", source="topic", topic="t", schema="cid STRING")
    assert partition_options(plain.definition().inputs["i"]) == {}
