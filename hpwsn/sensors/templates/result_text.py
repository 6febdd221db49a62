"""The readable text of a result, from a pattern such as `{name}: {value:.1f} {unit} ({states})`.

A pattern has the fields name, value, unit and states; only value takes a format, of the kind that Python
has for numbers. Two braces stand for one. A field that is unknown is refused when the template is defined.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import Formatter

from hpwsn.sensors.physical.physical_sensor import SensorRefused, is_line, shown

LONGEST_TEXT = 1000
"""Characters of a pattern."""
FIELDS = ("name", "value", "unit", "states")
WITHOUT_VALUE = "no value"
"""What stands for the value of a silent window."""
_PLAIN = ".10g"
"""Digits of a value without a format: enough for any sensor, and none of the noise of sums."""

_is_format = re.compile(r"[-+ ]?0?[0-9]{0,2},?(?:\.[0-9]{1,2})?[eEfFgG%]?").fullmatch


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A checked pattern; `parse_pattern` makes it."""

    pattern: str
    parts: tuple[tuple[str, str | None, str], ...] = field(compare=False)
    """The text before each field, the field, and its format."""

    def format(self, name: str, value: float | None, unit: str, states: Sequence[str]) -> str:
        """The text of a result."""
        found = []
        for before, wanted, form in self.parts:
            found.append(before)
            if wanted == "name":
                found.append(name)
            elif wanted == "unit":
                found.append(unit)
            elif wanted == "states":
                found.append(", ".join(states))
            elif wanted == "value":
                found.append(_value_text(value, form))
        return "".join(found)


def parse_pattern(value: object) -> TextPattern:
    """The pattern of a text; SensorRefused says what is wrong."""
    if not is_line(value, LONGEST_TEXT):
        raise SensorRefused(
            f"text is {shown(value)}; give a text of at most {LONGEST_TEXT} characters in one line"
        )
    try:
        parts = tuple(
            (before, wanted, _format(wanted, form, conversion))
            for before, wanted, form, conversion in Formatter().parse(value)
        )
    except ValueError as error:
        raise SensorRefused(
            f"text is {shown(value)}: {error}; known fields are {{{'}, {'.join(FIELDS)}}}, and {{{{ is a"
            " brace"
        ) from error
    return TextPattern(value, parts)


def _format(wanted: str | None, form: str | None, conversion: str | None) -> str:
    """The format of a field; ValueError if the field or the format is unknown."""
    if wanted is None:
        return ""
    if wanted not in FIELDS:
        raise ValueError(f"the field {{{wanted}}} is unknown")
    if conversion or (form and (wanted != "value" or not _is_format(form))):
        raise ValueError(f"{{{wanted}}} has a format that is unknown; write {{value:.1f}}")
    return form or ""


def _value_text(value: float | None, form: str) -> str:
    if value is None:
        return WITHOUT_VALUE
    if form:
        return format(float(value), form)
    return str(value) if isinstance(value, int) else format(value, _PLAIN)
