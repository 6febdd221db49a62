"""Sensors in TOML: as tables or items, with units that are known, and errors that name the sensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpwsn.sensors.physical.physical_sensor import SensorRefused, parse_sensor
from hpwsn.sensors.registry.sensors_file import SensorsFileRefused, load_sensors, parse_sensors

LEAST = 'kind = "weather"\nquantities.t = {unit = "degC", min = -40}\n'
S1 = parse_sensor({"id": "s1", "kind": "weather", "quantities": {"t": {"unit": "degC", "min": -40}}})


def test_tables_and_items_say_the_same() -> None:
    assert parse_sensors(f"[sensors.s1]\n{LEAST}") == [S1]
    assert parse_sensors(f'[sensors.s1]\nid = "s1"\n{LEAST}') == [S1]
    assert parse_sensors(f'[[sensors]]\nid = "s1"\n{LEAST}') == [S1]


def test_the_order_is_that_of_the_file_and_virtual_sensors_may_be_beside() -> None:
    text = f'[virtual.north]\nkind = "weather"\n[sensors.z]\n{LEAST}[sensors.a]\n{LEAST}'
    assert [each.id for each in parse_sensors(text)] == ["z", "a"]
    assert parse_sensors("") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[sensors.s1", "it is not TOML"),
        (f"[sensor.s1]\n{LEAST}", "the table 'sensor' is unknown"),
        ("sensors = 5", "sensors is 5"),
        ("[sensors]\ns1 = 5", "sensor 's1': it is 5"),
        (f'[sensors.s1]\nid = "s2"\n{LEAST}', "sensor 's1': its id is 's2'"),
        ('[sensors.s1]\nkind = "weather"', "sensor 's1': the field quantities is missing"),
        (f"[[sensors]]\n{LEAST}", "sensor number 1: the field id is missing"),
        (f'[[sensors]]\nid = "s1"\n{LEAST}[[sensors]]\nid = "s1"\n{LEAST}', "the id 's1' is there twice"),
        (f'[sensors."two words"]\n{LEAST}', "sensor 'two words'"),
    ],
)
def test_what_is_wrong_is_told_with_the_sensor(text: str, told: str) -> None:
    with pytest.raises(SensorRefused) as refused:
        parse_sensors(text)
    assert told in str(refused.value)


def test_a_file_is_read_and_its_units_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "sensors.toml"
    file.write_text(f"[sensors.s1]\n{LEAST}")
    assert load_sensors(file) == [S1]
    file.write_text('[sensors.s1]\nkind = "k"\nquantities.t = {unit = "parsnip"}\n')
    with pytest.raises(SensorsFileRefused, match="sensor 's1', quantity 't': the unit 'parsnip'"):
        load_sensors(file)


@pytest.mark.parametrize(("content", "told"), [(b"\xff", "not a text in UTF-8"), (None, "cannot be read")])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None, told: str) -> None:
    file = tmp_path / "sensors.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SensorsFileRefused, match=told):
        load_sensors(file)
