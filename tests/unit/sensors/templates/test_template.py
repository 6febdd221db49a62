"""Templates of virtual sensors: their JSON form, its defaults and its limits."""

from __future__ import annotations

from typing import Any

import pytest

from hpwsn.sensors.physical.physical_sensor import LONGEST_NAME, MOST_TAGS, SensorRefused
from hpwsn.sensors.physical.selection import Area, Selection
from hpwsn.sensors.templates.bands import Band
from hpwsn.sensors.templates.result_text import LONGEST_TEXT
from hpwsn.sensors.templates.template import (
    LARGEST_QUORUM,
    LONGEST,
    LONGEST_LATENESS,
    LONGEST_SERVICE,
    parse_template,
)

LEAST = {"quantity": "t", "every": 60}
FULL = {
    "kind": "weather",
    "tags": ["roof"],
    "area": [115, 39, 117, 41],
    "quantity": "t",
    "combine": "median",
    "every": 0.5,
    "lateness": 2,
    "quorum": 3,
    "silence": "hold",
    "outliers": 3.5,
    "bands": [{"name": "high", "low": 30}],
    "hysteresis": 0.5,
    "text": "{name} {value}",
}


def test_the_defaults_are_those_of_the_contract() -> None:
    found = parse_template("north", LEAST)
    assert (found.combine, found.lateness, found.quorum, found.silence) == ("mean", 1000, 1, "skip")
    assert (found.selection, found.bands, found.hysteresis, found.outliers) == (Selection(), (), 0, None)
    assert found.text.pattern == "{name}: {value} {unit}"
    assert str(found.topic) == "virtual:north"


def test_the_default_text_has_states_if_there_are_bands() -> None:
    found = parse_template("north", {**LEAST, "bands": [{"name": "high", "low": 1}]})
    assert found.text.pattern == "{name}: {value} {unit} ({states})"


def test_every_field_is_read() -> None:
    found = parse_template("north", FULL)
    assert found.selection == Selection("weather", ("roof",), Area(115, 39, 117, 41))
    assert (found.quantity, found.combine, found.every, found.lateness) == ("t", "median", 500, 2000)
    assert (found.quorum, found.silence, found.outliers, found.hysteresis) == (3, "hold", 3.5, 0.5)
    assert found.bands == (Band("high", 30.0),)


@pytest.mark.parametrize("document", [LEAST, FULL, {**LEAST, "service": 'uri = "x"'}])
def test_a_template_comes_back_from_its_document(document: dict[str, Any]) -> None:
    found = parse_template("north", document)
    assert parse_template("north", found.document()) == found
    assert found.document().items() >= document.items()


@pytest.mark.parametrize(
    ("every", "milliseconds"),
    [(0.1, 100), (1, 1000), ("60 s", 60_000), ("500 ms", 500), ("PT1H", 3_600_000), ("7 d", 604_800_000)],
)
def test_a_duration_is_a_number_of_seconds_or_has_a_unit(every: object, milliseconds: int) -> None:
    assert parse_template("x", {**LEAST, "every": every}).every == milliseconds


@pytest.mark.parametrize("area", [[1, 2, 3, 4], "1,2,3,4", {"west": 1, "south": 2, "east": 3, "north": 4}])
def test_an_area_is_a_list_a_text_or_an_object(area: object) -> None:
    assert parse_template("x", {**LEAST, "area": area}).selection.area == Area(1, 2, 3, 4)


def test_a_quorum_may_be_written_with_a_fraction_of_zero() -> None:
    assert str(parse_template("x", {**LEAST, "quorum": 2.0}).quorum) == "2"


def test_null_is_as_good_as_absent() -> None:
    nothing = dict.fromkeys(("kind", "tags", "area", "outliers", "bands", "text", "service", "quorum"))
    assert parse_template("x", {**LEAST, **nothing}) == parse_template("x", LEAST)


def test_the_name_in_the_document_must_be_that_of_the_address() -> None:
    assert parse_template("x", {**LEAST, "name": "x"}).name == "x"
    with pytest.raises(SensorRefused, match="the field 'name' is unknown"):
        parse_template("x", {**LEAST, "name": "y"})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"quantity": None}, "the field quantity is missing"),
        ({"every": None}, "the field every is missing"),
        ({"interval": 3}, "the field 'interval' is unknown"),
        ({"quantity": "a b"}, "quantity is 'a b'"),
        ({"quantity": ["t"]}, "quantity is"),
        ({"combine": "average"}, "combine is 'average'; give one of mean, median"),
        ({"combine": ["mean"]}, "combine is"),
        ({"silence": "zero"}, "silence is 'zero'; give one of skip, null, hold"),
        ({"every": 0}, "every is 0; give a duration from 100 ms to 7 d"),
        ({"every": 0.099}, "every is 0.099"),
        ({"every": "8 d"}, "every is '8 d'"),
        ({"every": 0.1005}, "whole milliseconds"),
        ({"every": True}, "every is True"),
        ({"every": float("nan")}, "every is nan"),
        ({"lateness": -1}, "lateness is -1"),
        ({"lateness": "2 h"}, "lateness is '2 h'; give a duration from 0 s to 60 min"),
        ({"quorum": 0}, "quorum is 0"),
        ({"quorum": 1.5}, "quorum is 1.5"),
        ({"quorum": "2"}, "quorum is '2'"),
        ({"quorum": True}, "quorum is True"),
        ({"quorum": float("nan")}, "quorum is nan"),
        ({"quorum": LARGEST_QUORUM + 1}, "from 1 to 1000000"),
        ({"outliers": -1}, "outliers is -1"),
        ({"hysteresis": "1"}, "hysteresis is '1'"),
        ({"hysteresis": -0.1}, "hysteresis is -0.1"),
        ({"kind": "a:b"}, "kind is 'a:b'"),
        ({"tags": [1]}, "tags is"),
        ({"tags": ["x"] * 101}, "at most 100 texts"),
        ({"area": [1, 2, 3]}, "area is"),
        ({"bands": "high"}, "bands is 'high'"),
        ({"text": "{nothing}"}, "the field {nothing} is unknown"),
        ({"service": 3}, "service is not a text"),
        ({"service": "x" * 200_001}, "at most 200000 characters"),
        ({"service": "\ud800"}, "service is not a text"),
        ({"every": 10**400}, "every is 1000"),
        ({"hysteresis": 10**400}, "hysteresis is 1000"),
        ({"bands": [{"name": "x", "low": 10**400}]}, "low of the band 'x' is 1000"),
        ({"kind": "x" * 201}, "kind is 'xxx"),
        ({"tags": ["x" * 201]}, "tags is ["),
        ({"tags": ["\ud800"]}, "texts in one line"),
        ({"text": "\ud800"}, "text is '\\ud800'"),
        ({"text": "\uffff"}, "in one line"),
        ({"text": "x" * 1001}, "at most 1000 characters"),
    ],
)
def test_a_template_that_is_not_valid_is_refused_with_its_value(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SensorRefused) as refused:
        parse_template("north", {**LEAST, **fields})
    assert words in str(refused.value)


def test_each_text_and_number_may_be_as_long_or_large_as_its_limit() -> None:
    longest = "x" * LONGEST_NAME
    found = parse_template(
        longest,
        {
            "kind": longest,
            "quantity": longest,
            "every": LONGEST,
            "lateness": LONGEST_LATENESS,
            "tags": [longest] * MOST_TAGS,
            "quorum": LARGEST_QUORUM,
            "bands": [{"name": longest, "low": 0}],
            "text": "x" * LONGEST_TEXT,
            "service": "x" * LONGEST_SERVICE,
        },
    )
    assert parse_template(longest, found.document()) == found


def test_a_wrong_value_is_cut_in_the_error() -> None:
    for fields in (
        {"text": "x" * 10**6},
        {"tags": "x" * 10**6},
        {"area": "1" * 10**6},
        {"kind": "x" * 10**6},
    ):
        with pytest.raises(SensorRefused) as refused:
            parse_template("north", {**LEAST, **fields})
        assert len(str(refused.value)) < 500


@pytest.mark.parametrize("name", ["", "a b", "a:b", "1st", "a/b", "x" * 201])
def test_a_name_is_one_name_of_a_topic(name: str) -> None:
    with pytest.raises(SensorRefused, match="is not valid"):
        parse_template(name, LEAST)


@pytest.mark.parametrize("document", [None, [], "x", 3])
def test_what_is_not_an_object_is_refused(document: object) -> None:
    with pytest.raises(SensorRefused, match="is an object such as"):
        parse_template("x", document)
