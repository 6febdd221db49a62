"""Virtual sensors from a TOML file: their tables, and what is wrong with one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.templates.bands import Band
from hpwsn.sensors.virtual.templates_file import TemplatesFileRefused, load_templates, parse_templates

TEXT = """\
[virtual.hall]
kind = "weather"
tags = ["hall"]
quantity = "t"
every = "10 s"
[[virtual.hall.bands]]
name = "warm"
low = 24

[virtual."roof.north"]
quantity = "t"
every = 0.5
area = [115, 39, 117, 41]

[sensors.s1]
kind = "weather"
"""


def test_every_table_is_a_virtual_sensor_in_the_order_of_the_file() -> None:
    hall, roof = parse_templates(TEXT)
    assert (hall.name, hall.every, hall.bands, hall.selection.tags) == (
        "hall",
        10_000,
        (Band("warm", 24.0),),
        ("hall",),
    )
    assert (roof.name, roof.every) == ("roof.north", 500)


def test_an_empty_file_has_none() -> None:
    assert parse_templates("") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("virtual = 3", "virtual is 3; write tables [virtual.NAME]"),
        ("virtual = ['hall']", "write tables [virtual.NAME]"),
        ("[virtual]\nhall = 3", "virtual sensor 'hall': a virtual sensor is an object"),
        ("[sensor.s1]", "the table 'sensor' is unknown; write [virtual.NAME]"),
        ("[virtual.hall]\nquantity = 't'", "virtual sensor 'hall': the field every is missing"),
        ("[virtual.'a b']\nquantity = 't'\nevery = 1", "the name 'a b' is not valid"),
        ("[virtual.hall]\nquantity = 't'\nevery = 2026-11-19", "every is datetime.date"),
        ("[virtual.hall", "it is not TOML"),
        ("a = " + "[" * 5000, "it is not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_the_name(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SensorRefused, match=re.escape(words)):
        parse_templates(text)
    file = tmp_path / "virtual.toml"
    file.write_text(text)
    with pytest.raises(TemplatesFileRefused, match=f"cannot be used: .*{re.escape(words)}"):
        load_templates(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TemplatesFileRefused, match="cannot be read: No such file"):
        load_templates(tmp_path / "nothing.toml")
    file = tmp_path / "virtual.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(TemplatesFileRefused, match="is not a text in UTF-8"):
        load_templates(file)


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "virtual.toml"
    file.write_text(TEXT)
    assert load_templates(file) == parse_templates(TEXT)
