"""The kinds of value that a setting can have: how each is parsed, checked, described and formatted.

A kind parses a value from TOML, an environment variable or a flag, which is a native value or a text. It
returns the value that the node uses, or raises ValueError with the allowed values. Pure: it does not depend
on any setting.
"""

import re
from dataclasses import dataclass
from typing import Protocol

SIZE_UNITS = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
    "tib": 1024**4,
}
DURATION_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_WHOLE = re.compile(r"\s*[+-]?\d{1,18}\s*")
_is_origin = re.compile(r"https?://[^\s/?#@]+").fullmatch
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class ValueKind(Protocol):
    """The operations of a kind of value."""

    def parse(self, value: object) -> object:
        """The value that the node uses; the ValueError names the allowed values."""

    def describe(self) -> str:
        """The allowed values, for messages and the reference."""

    def format(self, value: object) -> str:
        """The value in TOML, as a user would write it."""


@dataclass(frozen=True, slots=True)
class Text:
    """Any text without control characters; `meaning` describes it, `empty` allows the empty text."""

    meaning: str = "text"
    empty: bool = True

    def parse(self, value: object) -> str:
        """The text itself."""
        if not isinstance(value, str) or not (value or self.empty) or any(ord(char) < 32 for char in value):
            raise ValueError(self.describe())
        return value

    def describe(self) -> str:
        """The description given as `meaning`."""
        return self.meaning

    def format(self, value: object) -> str:
        """The text in TOML quotes."""
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True, slots=True)
class Url(Text):
    """A URL with one of the schemes, or an empty text; `meaning` describes both."""

    schemes: tuple[str, ...] = ("http", "https")

    def parse(self, value: object) -> str:
        """The URL, which must have an allowed scheme and a host."""
        text = Text.parse(self, value)
        scheme, separator, rest = text.partition("://")
        if text and not (separator and scheme in self.schemes and rest.strip("/")):
            raise ValueError(self.describe())
        return text


@dataclass(frozen=True, slots=True)
class Choice(Text):
    """One of a fixed set of words."""

    choices: tuple[str, ...] = ()

    def parse(self, value: object) -> str:
        """The word, in lower case."""
        if not isinstance(value, str) or value.strip().lower() not in self.choices:
            raise ValueError(self.describe())
        return value.strip().lower()

    def describe(self) -> str:
        """The words, as a list in a sentence."""
        return " or ".join(", ".join(self.choices).rsplit(", ", 1))


@dataclass(frozen=True, slots=True)
class TextList:
    """Several texts, as a list or separated by commas; `meaning` describes them to the user."""

    meaning: str

    def parse(self, value: object) -> tuple[str, ...]:
        """The texts without surrounding spaces; empty ones are dropped."""
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise ValueError(self.describe())
        return tuple(part.strip() for part in parts if part.strip())

    def describe(self) -> str:
        """The description given as `meaning`."""
        return self.meaning

    def format(self, value: object) -> str:
        """The texts as a TOML list."""
        texts = value if isinstance(value, list | tuple) else ()
        return "[" + ", ".join(map(Text().format, texts)) + "]"


@dataclass(frozen=True, slots=True)
class OriginList(TextList):
    """Origins of web pages, as browsers write them: scheme, host and port, without a path; or `*` for all."""

    def parse(self, value: object) -> tuple[str, ...]:
        """The origins in lower case."""
        found = tuple(text.lower() for text in TextList.parse(self, value))
        if not all(text == "*" or _is_origin(text) for text in found):
            raise ValueError(self.describe())
        return found


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    def parse(self, value: object) -> bool:
        """A boolean, or one of the words true, yes, on, 1, false, no, off, 0."""
        if isinstance(value, bool):
            return value
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in _TRUE | _FALSE:
            raise ValueError(self.describe())
        return word in _TRUE

    def describe(self) -> str:
        """The two TOML booleans."""
        return "true or false"

    def format(self, value: object) -> str:
        """The TOML boolean."""
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number between two bounds, both included."""

    minimum: int
    maximum: int

    def parse(self, value: object) -> int:
        """The number; a text of digits is accepted, a boolean is not."""
        if isinstance(value, str) and _WHOLE.fullmatch(value.replace("_", "")):
            value = int(value.replace("_", ""))
        if isinstance(value, bool) or not isinstance(value, int) or not self.minimum <= value <= self.maximum:
            raise ValueError(self.describe())
        return value

    def describe(self) -> str:
        """The allowed range."""
        return f"a whole number from {self.minimum} to {self.maximum}"

    def format(self, value: object) -> str:
        """The number in digits."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Share:
    """A share of all, from 0 (none) to 1 (all)."""

    def parse(self, value: object) -> float:
        """The number; a text of digits is accepted, a boolean is not."""
        try:
            share = float(value) if isinstance(value, int | float | str) else -1.0
        except ValueError:
            share = -1.0
        if isinstance(value, bool) or not 0 <= share <= 1:
            raise ValueError(self.describe())
        return share

    def describe(self) -> str:
        """The allowed range."""
        return "a number from 0 to 1"

    def format(self, value: object) -> str:
        """The number in digits."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes, written with or without a unit."""

    minimum: int
    maximum: int = 2**50

    def parse(self, value: object) -> int:
        """The number of bytes."""
        size = value if isinstance(value, int) and not isinstance(value, bool) else parse_size(value)
        if size is None or not self.minimum <= size <= self.maximum:
            raise ValueError(f'{self.describe()}, such as "16 MiB" or 65536')
        return size

    def describe(self) -> str:
        """The allowed range."""
        return f"a size from {format_size(self.minimum)} to {format_size(self.maximum)}"

    def format(self, value: object) -> str:
        """The value with the largest unit that divides it."""
        return f'"{format_size(int(str(value)))}"'


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration in seconds, written as a number or with a unit."""

    minimum: float
    maximum: float = 10 * 365 * 86400.0

    def parse(self, value: object) -> float:
        """The number of seconds."""
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            seconds = float(value) if plain else parse_duration(value)  # type: ignore[arg-type]
        except OverflowError:
            seconds = None
        if seconds is None or not self.minimum <= seconds <= self.maximum:
            raise ValueError(f'{self.describe()}, such as 10, "500 ms", "10 min", "24 h" or "PT1H"')
        return seconds

    def describe(self) -> str:
        """The allowed range."""
        return f"a duration from {format_duration(self.minimum)} to {format_duration(self.maximum)}"

    def format(self, value: object) -> str:
        """The value with the largest unit that divides it."""
        return f'"{format_duration(float(str(value)))}"'


def parse_size(value: object) -> int | None:
    """Parse a size such as `16 MiB` or `64KB` to bytes; None if it is not a size."""
    match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    unit = SIZE_UNITS.get(match[2].lower()) if match else None
    return None if match is None or unit is None else round(float(match[1]) * unit)


def parse_duration(value: object) -> float | None:
    """Parse a duration such as `10 min`, `500 ms` or `PT1H` to seconds; None if it is not a duration."""
    if not isinstance(value, str):
        return None
    if match := _ISO_DURATION.fullmatch(value.strip()):
        parts = [float(part or 0) for part in match.groups()]
        days, hours, minutes, seconds = parts
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds if any(match.groups()) else None
    match = _AMOUNT.fullmatch(value)
    unit = DURATION_UNITS.get(match[2].lower()) if match else None
    return None if match is None or unit is None else float(match[1]) * unit


def format_size(size: int) -> str:
    """The size with the largest binary unit that divides it."""
    for unit, factor in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def format_duration(seconds: float) -> str:
    """The duration with the largest unit that divides it."""
    for unit, factor in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds > factor and seconds % factor == 0:
            return f"{seconds / factor:.0f} {unit}"
    if 0 < seconds < 1 and (seconds * 1000) % 1 == 0:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.12g} s"
