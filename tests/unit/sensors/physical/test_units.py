"""Units: which are known, exact conversions, and texts that would make pint compute for ever."""

import math
import sys

import pytest

from hpwsn.sensors.physical import units
from hpwsn.sensors.physical.units import (
    LONGEST_UNIT,
    PintMissing,
    UnitRefused,
    check_unit,
    conversion,
    exact_conversion,
    is_known,
)


@pytest.mark.parametrize(
    ("source", "target", "factor", "offset"),
    [
        ("degC", "K", 1.0, 273.15),
        ("degF", "degC", 5 / 9, -160 / 9),
        ("°C", "degF", 1.8, 32.0),
        ("℃", "K", 1.0, 273.15),
        ("km/h", "m/s", 1000 / 3600, 0.0),
        ("percent", "", 0.01, 0.0),
        ("%", "1", 0.01, 0.0),
        ("ug/m**3", "g/m³", 1e-6, 0.0),
        ("m s⁻¹", "km/h", 3.6, 0.0),
        ("W/m ^ 2", "W/cm^2", 1e-4, 0.0),
        ("1/s", "Hz", 1.0, 0.0),
        ("m^(-1)", "1/km", 1000.0, 0.0),
    ],
)
def test_values_convert_by_a_factor_and_an_offset(
    source: str, target: str, factor: float, offset: float
) -> None:
    assert conversion(source, target) == (factor, offset)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (140, "degF", "degC", 60.0),
        (293.15, "K", "degC", 20.0),
        (0.1, "m", "mm", 100.0),
        (1e308, "GPa", "hPa", math.inf),
        (-1e308, "GPa", "hPa", -math.inf),
        (5e-324, "mm", "m", 0.0),
    ],
)
def test_an_exact_conversion_gives_the_float_next_to_the_right_value(
    value: float, source: str, target: str, expected: float
) -> None:
    assert exact_conversion(source, target).of(float(value)) == expected


def test_units_further_apart_than_any_float_do_not_convert() -> None:
    with pytest.raises(UnitRefused, match="does not convert"):
        conversion("Ym^19", "ym^19")


@pytest.mark.parametrize("unit", ["degC", "hPa", "m/s", "", "dBm", "pH", "count", "µS/cm", "kg * m / s^2"])
def test_a_unit_of_the_field_is_known(unit: str) -> None:
    check_unit(unit)
    assert is_known(unit)


@pytest.mark.parametrize(
    "unit", ["parsnips", "m/", "10 m", "2", "m^s", "m^2.5", "1.5 m", "m\x00", "__class__"]
)
def test_an_unknown_unit_is_refused_with_its_text(unit: str) -> None:
    with pytest.raises(UnitRefused) as refusal:
        check_unit(unit)
    assert f"the unit {unit!r} is unknown" in str(refusal.value)
    assert not is_known(unit)


@pytest.mark.parametrize(
    "unit",
    [
        "9^9^9^9^9",
        "m^9^9^9^9",
        "((m^99)^99)^99",
        "m⁹⁹⁹⁹⁹⁹⁹⁹⁹",
        "9⁹⁹⁹⁹⁹⁹⁹",
        "a" * 59 + "!",
        "(" * 60,
        "m^(9^9^9)",
    ],
)
def test_a_unit_that_would_take_for_ever_is_refused_at_once(unit: str) -> None:
    assert not is_known(unit)
    with pytest.raises(UnitRefused):
        conversion(unit, "km")


def test_a_unit_of_the_greatest_length_is_known_and_a_longer_one_is_not() -> None:
    longest = "m" + " * 1" * ((LONGEST_UNIT - 1) // 4) + " " * ((LONGEST_UNIT - 1) % 4)
    assert len(longest) == LONGEST_UNIT
    assert is_known(longest)
    assert not is_known(longest + " ")


@pytest.mark.parametrize(("source", "target"), [("degC", "m"), ("dBm", "mW"), ("C", "K"), ("m^99", "km^-99")])
def test_units_that_do_not_convert_are_refused_with_what_to_give(source: str, target: str) -> None:
    with pytest.raises(UnitRefused, match="does not convert into") as refusal:
        conversion(source, target)
    assert f"give values in {target!r}" in str(refusal.value)


def test_a_unit_converts_into_itself_even_if_it_is_unknown() -> None:
    assert conversion("parsnips", "parsnips") == (1.0, 0.0)


def test_a_known_pair_is_answered_without_pint(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = conversion("mm", "m")
    monkeypatch.setattr(units, "_registry", lambda: pytest.fail("pint was asked again"))
    assert conversion("mm", "m") == expected


def test_without_pint_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pint", None)
    monkeypatch.setattr(units, "_registry", units._registry.__wrapped__)
    with pytest.raises(PintMissing, match=r"pip install 'hpwsn\[sensors\]'"):
        check_unit("km/week")
