"""The attributes of a stream and their types, in a subset of Spark's DDL.

Owns how `cid STRING, flow BIGINT, time TIMESTAMP` is read and written, and how JSON values are converted to
these types. The types are those that an event of the broker can hold: booleans, numbers, texts, dates and
timestamps. Rejects structures, arrays and maps: every event is a flat set of attributes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from math import isfinite

Value = bool | int | float | Decimal | str | date | datetime | None
Event = dict[str, Value]

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
FLOATS = ("FLOAT", "DOUBLE")
SIMPLE = ("BOOLEAN", *INTEGERS, *FLOATS, "STRING", "DATE", "TIMESTAMP")
_ALIASES = {
    "BYTE": "TINYINT", "SHORT": "SMALLINT", "INTEGER": "INT", "LONG": "BIGINT", "REAL": "FLOAT",
    "DEC": "DECIMAL", "NUMERIC": "DECIMAL", "VARCHAR": "STRING", "TIMESTAMP_LTZ": "TIMESTAMP",
}  # fmt: skip

_FIELD = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^\s`,:]+))\s*:?\s*(?P<type>[A-Za-z_]+)"
    r"(?:\s*\(\s*(?P<p>\d+)\s*(?:,\s*(?P<s>\d+)\s*)?\))?(?P<null>\s+NOT\s+NULL)?"
    r"(?:\s+COMMENT\s+(?:'[^']*'|\"[^\"]*\"))?\s*(?:,|$)",
    re.I,
)


class SchemaError(ValueError):
    """A schema cannot be parsed, or uses a type or a name that is not supported."""


class ValueRefused(ValueError):
    """A value does not have the type of its attribute."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type by its name in DDL; precision and scale for DECIMAL."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.precision},{self.scale})" if self.name == "DECIMAL" else self.name

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers."""
        return self.name in INTEGERS

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers, which can be added."""
        return self.name in (*INTEGERS, *FLOATS, "DECIMAL")

    @property
    def has_order(self) -> bool:
        """Whether the values can be compared with < and >."""
        return self.name != "BOOLEAN"


BOOLEAN, INT, BIGINT, DOUBLE = Type("BOOLEAN"), Type("INT"), Type("BIGINT"), Type("DOUBLE")
STRING, DATE, TIMESTAMP = Type("STRING"), Type("DATE"), Type("TIMESTAMP")


@dataclass(frozen=True)
class Schema:
    """Attributes in order, each with its type.

    Spark ignores the case of names and reads a dot as access to a nested field. Names that begin with an
    underscore are reserved for the operators.
    """

    attributes: tuple[tuple[str, Type], ...]

    def __post_init__(self) -> None:
        names = [name.lower() for name, _ in self.attributes]
        for name, _ in self.attributes:
            if names.count(name.lower()) > 1:
                raise SchemaError(f"{name}: is named twice; names that differ only in case are the same")
            if name.startswith("_") or "." in name or "`" in name:
                raise SchemaError(
                    f"{name}: a name must not begin with an underscore or contain a dot or a backquote"
                )

    @cached_property
    def types(self) -> Mapping[str, Type]:
        """The types by attribute."""
        return dict(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(name for name, _ in self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def __getitem__(self, name: str) -> Type:
        return self.types[name]

    def __iter__(self) -> Iterator[tuple[str, Type]]:
        return iter(self.attributes)

    def __str__(self) -> str:
        return ", ".join(f"{_written(name)} {kind}" for name, kind in self.attributes)


def _written(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def parse_schema(text: str) -> Schema:
    """Parse a schema in DDL; SchemaError says what is not supported."""
    if not text.strip():
        raise SchemaError("is empty; write attributes and types, such as `cid STRING, time TIMESTAMP`")
    attributes: list[tuple[str, Type]] = []
    at = 0
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None:
            raise SchemaError(f"cannot be read at {text[at:].strip()[:40]!r}; write `name TYPE, …`")
        name = (field["quoted"] or "").replace("``", "`") or field["plain"]
        attributes.append((name, _type(name, field)))
        at = field.end()
    return Schema(tuple(attributes))


def _type(name: str, field: re.Match[str]) -> Type:
    word = field["type"].upper()
    kind = _ALIASES.get(word, word)
    if kind == "DECIMAL":
        precision, scale = int(field["p"] or 10), int(field["s"] or 0)
        if not scale <= precision <= 38 or not precision:
            raise SchemaError(
                f"{name}: DECIMAL({precision},{scale}) is not valid; use 1 to 38 digits, scale included"
            )
        return Type("DECIMAL", precision, scale)
    if kind not in SIMPLE:
        raise SchemaError(f"{name}: unknown type {word}; use {', '.join(SIMPLE)} or DECIMAL(p,s)")
    return Type(kind)


def type_of(value: object) -> Type | None:
    """The type of a value in a definition; None if no attribute can hold the value."""
    kinds: Sequence[tuple[type, Type]] = (
        (bool, BOOLEAN), (int, BIGINT), (float, DOUBLE), (str, STRING), (datetime, TIMESTAMP), (date, DATE),
    )  # fmt: skip
    return next((kind for python, kind in kinds if isinstance(value, python)), None)


def event_of(given: Mapping[str, object], schema: Schema) -> Event:
    """Convert a JSON object to an event: missing attributes become null, unknown ones are dropped."""
    return {name: value_of(given.get(name), kind, name) for name, kind in schema}


def value_of(value: object, kind: Type, name: str = "") -> Value:
    """Convert a value of JSON or a text to the type; ValueRefused if that is not possible."""
    if value is None:
        return None
    try:
        return _READERS.get(kind.name, _integer)(value, kind)
    except (ValueError, TypeError, InvalidOperation, OverflowError, ArithmeticError):
        raise ValueRefused(f"{name}: {value!r} is not a {kind}") from None


def _boolean(value: object, kind: Type) -> Value:
    words: Mapping[object, bool] = {True: True, False: False, "true": True, "false": False}
    found = words.get(value) if isinstance(value, bool | str) else None
    if found is None:
        raise ValueError
    return found


def _integer(value: object, kind: Type) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    number, bound = int(value), 2 ** (INTEGERS[kind.name] - 1)
    if (isinstance(value, float) and number != value) or not -bound <= number < bound:
        raise ValueError
    return number


def _float(value: object, kind: Type) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError
    number = float(value)
    if not isfinite(number):
        # JSON has no infinity or NaN, so the value could not be published.
        raise ValueError
    return number


def _decimal(value: object, kind: Type) -> Value:
    if isinstance(value, bool):
        raise ValueError
    number = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    if abs(number) >= Decimal(10) ** (kind.precision - kind.scale):
        raise ValueError
    return number


def _string(value: object, kind: Type) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float | Decimal):
        raise ValueError
    return str(value)


def _date(value: object, kind: Type) -> Value:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value))


def _timestamp(value: object, kind: Type) -> Value:
    """A timestamp in UTC from ISO 8601, where a missing zone means UTC, or from seconds since the epoch."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_READERS = {
    "BOOLEAN": _boolean,
    "FLOAT": _float,
    "DOUBLE": _float,
    "DECIMAL": _decimal,
    "STRING": _string,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
}


def json_of(value: Value) -> bool | int | float | str | None:
    """A value for JSON: timestamps as ISO 8601 in UTC, decimals as numbers, infinity and NaN as null."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value
