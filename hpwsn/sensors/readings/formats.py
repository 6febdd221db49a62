"""Readings in requests and messages: a JSON object, an array, NDJSON or CSV, as raw readings.

A raw reading is a JSON value that nobody has checked. What is wrong with one item, line or row concerns that
one: it becomes Unparsed, which the checks reject as malformed. ReadingsUnreadable is for data in which no
items can be told apart, and ReadingsTooMany for more items than allowed.

CSV has a header with the names of the fields. A column `temperature [degF]` has values in that unit. An empty
cell means that the row does not have the field. The columns `sensor`, `kind` and `time` are texts, and all
others numbers.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

OBJECTS, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
"""The forms, by their content types: an object or an array, NDJSON, and CSV."""
MARK = "\ufeff"
"""The byte order mark that some programs write first."""
SHOWN = 60
"""Characters of a wrong text that an error repeats."""

RawReading = Any
_TEXTS = frozenset({"sensor", "kind", "time"})
_BLANKS = " \t\r"
_is_number = re.compile(r"[ \t]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*").fullmatch
_column = re.compile(r"\s*([^\[\]]*?)\s*(?:\[([^\[\]]*)\]\s*)?").fullmatch


class ReadingsUnreadable(ValueError):
    """Data in which no readings can be told apart; the text says why."""


class ReadingsTooMany(ValueError):
    """More readings than allowed at once."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"there are more than the {limit} readings accepted at once (sensors.readings_limit);"
            " send several requests"
        )


class Unparsed(NamedTuple):
    """A line or row that is not a reading, what is wrong with it, and the sensor that its address names."""

    text: str
    problem: str
    sensor: str | None = None


def _object(fields: list[tuple[str, Any]]) -> RawReading:
    """A JSON object; one with a field twice has a value that would be lost, and is Unparsed."""
    found = dict(fields)
    if len(found) == len(fields):
        return found
    twice = next(name for name, times in Counter(name for name, _ in fields).items() if times > 1)
    text = ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields)
    return Unparsed(f"{{{text}}}", f"the field {_shown(twice)!r} is given twice; give each field once")


_json = json.JSONDecoder(object_pairs_hook=_object)


def parse_readings(data: bytes, form: str | None, limit: int) -> list[RawReading]:
    """The raw readings of data in a form, at least one; None is for any form, told from the data."""
    try:
        text = data.decode().removeprefix(MARK)
    except UnicodeDecodeError as error:
        raise ReadingsUnreadable(
            f"byte {error.start} is not UTF-8; send JSON, NDJSON or CSV in UTF-8"
        ) from None
    found: list[RawReading] = []
    for raw in _PARSERS[form](text):
        if len(found) >= limit:
            raise ReadingsTooMany(limit)
        found.append(raw)
    if not found:
        raise ReadingsUnreadable("there is no reading; send at least one")
    return found


def _parse_untold(text: str) -> Iterable[RawReading]:
    """The readings in whatever form the text has."""
    start = text.lstrip()
    if start and start[0] not in "[{":
        return _parse_csv(text)
    try:
        return _parse_json(text)
    except ReadingsUnreadable:
        if not start.startswith("{"):
            raise
        return _parse_lines(text)


def _parse_json(text: str) -> list[RawReading]:
    try:
        value = _json.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ReadingsUnreadable(f"this is not JSON: {error.msg} ({place})") from None
    except (ValueError, RecursionError) as error:
        raise ReadingsUnreadable(f"this JSON cannot be read: {_shown(str(error))}") from None
    return value if isinstance(value, list) else [value]


def _parse_lines(text: str) -> Iterator[RawReading]:
    for line in text.split("\n"):
        line = line.strip(_BLANKS)
        if line:
            yield _parse_line(line)


def _parse_line(line: str) -> RawReading:
    try:
        value, end = _json.raw_decode(line)
    except (ValueError, RecursionError) as error:
        return Unparsed(line, f"the line is not JSON: {_shown(str(error))}")
    return value if end == len(line) else Unparsed(line, "the line goes on after its JSON value")


def _parse_csv(text: str) -> Iterator[RawReading]:
    rows = _rows(text)
    header = next(rows, None)
    if header is None:
        raise ReadingsUnreadable("there is no header; the first row of CSV has the names of the fields")
    columns = _columns(header)
    for row in rows:
        if isinstance(row, Unparsed):
            yield row
        elif len(row) != len(columns):
            yield Unparsed(",".join(row), f"the row has {len(row)} cells, and the header {len(columns)}")
        else:
            yield {name: _cell(name, unit, text) for (name, unit), text in zip(columns, row) if text.strip()}  # noqa: B905


def _rows(text: str) -> Iterator[list[str] | Unparsed]:
    """The rows that are not blank."""
    lines: list[str] = []
    """Those of the row that is being read."""

    def read() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines.append(line)
            yield line

    reader = csv.reader(read(), strict=True)
    while True:
        lines.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"the row that ends in line {reader.line_num} is not CSV: {error}"
            yield Unparsed("".join(lines).rstrip(), problem)
            continue
        if row:
            yield row


def _columns(header: list[str] | Unparsed) -> list[tuple[str, str | None]]:
    """The name of each column, and the unit of its values if the header gives one."""
    if isinstance(header, Unparsed):
        raise ReadingsUnreadable(header.problem)
    columns: list[tuple[str, str | None]] = []
    for text in header:
        found = _column(text)
        if found is None or not found[1]:
            raise ReadingsUnreadable(
                f"the header has {_shown(text)!r}; give the name of a field, such as time or"
                " 'temperature [degC]'"
            )
        if any(found[1] == name for name, _ in columns):
            raise ReadingsUnreadable(f"the header has {_shown(found[1])!r} twice; give each field once")
        columns.append((found[1], found[2]))
    return columns


def _cell(name: str, unit: str | None, text: str) -> object:
    if name in _TEXTS:
        return text.strip()
    number = _is_number(text)
    value = text if number is None else float(number[1])
    return value if unit is None else {"value": value, "unit": unit.strip()}


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


_PARSERS: Mapping[str | None, Callable[[str], Iterable[RawReading]]] = {
    None: _parse_untold,
    OBJECTS: _parse_json,
    LINES: _parse_lines,
    CSV: _parse_csv,
}
