"""Units of quantities: which ones are known, and how values are converted between two of them.

pint has the units, and is loaded with the first question. It takes about a second, so that callers in an
event loop ask in a thread first. Every conversion is a factor and an offset, which are computed as fractions,
so that °C and °F convert exactly: 140 °F are 60 °C, and no more. Where this costs too much, floats stand for
them. Answers are kept: a hot path does not call pint again for the same pair.
pint evaluates powers, so that texts which would make it compute huge numbers are refused before.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hpwsn.errors import HpwsnError
from hpwsn.sensors.physical.physical_sensor import SensorRefused

if TYPE_CHECKING:
    import pint

LONGEST_UNIT = 60
"""Characters of a unit."""
REMEMBERED = 4096
"""Units, and pairs of units, whose answers are kept."""

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_superscript = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_power_sign = re.compile(r"\s*(?:\*\*|\^)\s*")
# Powers are those of a name, of one or two digits, and any other number is 1.
_POWER = r"(?<=\w)\^(?:\([+-]?\d{1,2}\)|[+-]?\d{1,2}+(?!\.))(?!\^)"
_is_harmless = re.compile(rf"(?:{_POWER}|[^\W\d]\w*+|1(?![\d.])|[°%\s*/·⋅().-])*+").fullmatch


class PintMissing(HpwsnError):
    """pint is not installed."""

    def __init__(self) -> None:
        super().__init__("units of sensors require pint; pip install 'hpwsn[sensors]'")


class UnitRefused(SensorRefused):
    """A unit that is not known, or units that do not convert into each other."""


class Conversion(NamedTuple):
    """A value in the first unit, times the factor, plus the offset, is the value in the second."""

    factor: float
    offset: float


class ExactConversion(NamedTuple):
    """The same without rounding."""

    factor: Fraction
    offset: Fraction

    def of(self, value: float) -> float:
        """The float next to the value that the shortest decimal number for `value` converts into."""
        try:
            return float(Fraction(repr(value)) * self.factor + self.offset)
        except OverflowError:
            return math.copysign(math.inf, value * self.factor)


SAME = ExactConversion(Fraction(1), Fraction(0))


def check_unit(unit: str) -> None:
    """Raise UnitRefused for an unknown unit, PintMissing without pint; the empty text is a pure number."""
    if problem := _problem(unit):
        raise UnitRefused(problem)


@lru_cache(REMEMBERED)
def is_known(unit: str) -> bool:
    """Whether check_unit accepts a unit; PintMissing without pint."""
    return not _problem(unit)


def conversion(source: str, target: str) -> Conversion:
    """How values are converted; UnitRefused if they cannot be, PintMissing without pint.

    A unit converts into itself without pint, whether it is known or not.
    """
    factor, offset = exact_conversion(source, target)
    return Conversion(float(factor), float(offset))


def exact_conversion(source: str, target: str) -> ExactConversion:
    """Like `conversion`."""
    if source == target:
        return SAME
    found = _conversion(source, target)
    if isinstance(found, str):
        raise UnitRefused(found)
    return found


def load() -> None:
    """Load pint, so that later questions are answered quickly; PintMissing without it."""
    _registry()


@lru_cache(REMEMBERED)
def _problem(unit: str) -> str:
    try:
        _parse(unit)
    except UnitRefused as error:
        return str(error)
    return ""


@lru_cache(REMEMBERED)
def _conversion(source: str, target: str) -> ExactConversion | str:
    try:
        parsed = _parse(source), _parse(target)
    except UnitRefused as error:
        return str(error)
    try:
        zero, one, two = (_registry().convert(Fraction(value), *parsed) for value in range(3))
        found = ExactConversion(Fraction(one - zero), Fraction(zero))
        # One that no float approximates fails here.
        if one - zero == two - one and all(math.isfinite(each) for each in map(float, found)):
            return found
    except Exception:  # pint has many, and some of them fail when they are put into words
        pass
    return f"{source!r} does not convert into {target!r}; give values in {target!r}"


def _parse(unit: str) -> pint.Unit:
    plain = _superscript.sub(lambda found: "^" + found[0].translate(_SUPERSCRIPTS), unit)
    plain = _power_sign.sub("^", plain).replace("℃", "°C").replace("℉", "°F")
    if len(unit) <= LONGEST_UNIT and _is_harmless(plain):
        try:
            return _registry().parse_units(plain)
        except PintMissing:
            raise
        except Exception:  # as above
            pass
    shown = repr(unit if len(unit) <= LONGEST_UNIT else unit[:LONGEST_UNIT] + "…")
    raise UnitRefused(f"the unit {shown} is unknown; give one that pint knows, such as 'degC' or 'm/s'")


@cache
def _registry() -> pint.UnitRegistry[Fraction]:
    try:
        import pint
    except ImportError as error:
        raise PintMissing from error
    return pint.UnitRegistry(non_int_type=Fraction)
