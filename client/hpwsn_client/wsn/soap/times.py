"""xsd:dateTime and xsd:duration, and the type that allows both (b-2, AbsoluteOrRelativeTimeType).

The module does not read a clock. It rejects years outside 1 to 9999, durations over 9999 years, and formats
that XML Schema part 2 (sections 3.2.6 and 3.2.7) does not allow. Fractions below a microsecond are cut off.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

_LONGEST_TEXT = 64
_LONGEST_MONTHS = 9999 * 12
_LONGEST_SECONDS = 9999 * 366 * 86400


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration in calendar months and seconds, both with the same sign."""

    months: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.months * self.seconds < 0:
            raise ValueError(
                f"duration of {self.months} months and {self.seconds} s: both must have the same sign"
            )
        if not (abs(self.months) <= _LONGEST_MONTHS and abs(self.seconds) <= _LONGEST_SECONDS):
            raise ValueError(
                f"duration of {self.months} months and {self.seconds} s: must be under 9999 years"
            )

    def after(self, now: datetime) -> datetime:
        """The time this much after `now`; a day that the month lacks becomes its last day."""
        years, month = divmod(now.month - 1 + self.months, 12)
        year = now.year + years
        if not 1 <= year <= 9999:
            raise ValueError(f"{format_time(self)} after {format_time(now)} is outside the years 1 to 9999")
        day = min(now.day, _days(year, month + 1))
        try:
            return now.replace(year=year, month=month + 1, day=day) + timedelta(seconds=self.seconds)
        except OverflowError:
            raise ValueError(
                f"{format_time(self)} after {format_time(now)} is outside the years 1 to 9999"
            ) from None


Termination = datetime | Duration | None
"""A termination time: absolute, after a duration, or None for no expiry."""


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))?"
)
_DURATION = re.compile(
    r"(-?)P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?"
)


def parse_time(text: str) -> datetime | Duration:
    """Parse an absolute time, which is in UTC unless it has a zone, or a duration."""
    trimmed = text.strip(" \t\r\n")
    if len(trimmed) > _LONGEST_TEXT:
        raise ValueError(
            f"{trimmed[:_LONGEST_TEXT]!r}… is too long for a time; write at most {_LONGEST_TEXT} characters"
        )
    if match := _DATE_TIME.fullmatch(trimmed):
        return _date_time(match)
    if match := _DURATION.fullmatch(trimmed):
        return _duration(match)
    raise ValueError(f"{trimmed!r} is not a time; write it as 2030-01-31T12:00:00Z, or a duration as PT1H")


def _date_time(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction = match[7] or ""
    midnight = hour == 24 and minute == second == 0 and not fraction.strip("0")
    try:
        local = datetime(
            year, month, day, 0 if midnight else hour, minute, second, _micros(fraction), _zone(match)
        )
        return (local + timedelta(days=1) if midnight else local).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{match[0]!r} is not a time: {error}") from None


def _zone(match: re.Match[str]) -> timezone:
    if match[8] is None:
        return UTC
    hours, minutes = int(match[9]), int(match[10])
    offset = timedelta(hours=hours, minutes=minutes)
    if minutes > 59 or offset > timedelta(hours=14):
        raise ValueError("the offset from UTC must be within 14:00")
    return timezone(-offset if match[8] == "-" else offset)


def _micros(fraction: str) -> int:
    return int(fraction[:6].ljust(6, "0"))


def _duration(match: re.Match[str]) -> Duration:
    years, months, days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:7])
    micros = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000 + _micros(match[8] or "")
    sign = -1 if match[1] else 1
    try:
        return Duration(sign * (years * 12 + months), sign * micros / 1_000_000)
    except ValueError as error:
        raise ValueError(f"{match[0]!r} is not a time: {error}") from None


def format_time(value: datetime | Duration) -> str:
    """Encode a time in UTC, or a duration; a fraction has 3 digits if that is exact, else 6."""
    if isinstance(value, Duration):
        return _format_duration(value)
    utc = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return utc.replace(microsecond=0, tzinfo=None).isoformat() + _fraction(utc.microsecond) + "Z"


def _fraction(micros: int) -> str:
    if micros == 0:
        return ""
    return f".{micros // 1000:03}" if micros % 1000 == 0 else f".{micros:06}"


def _format_duration(value: Duration) -> str:
    micros = abs(round(Fraction(value.seconds) * 1_000_000))
    minutes, micros = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    years, months = divmod(abs(value.months), 12)
    seconds = f"{micros // 1_000_000}{_fraction(micros % 1_000_000)}" if micros else ""
    date = _parts((years, "Y"), (months, "M"), (days, "D"))
    time = _parts((hours, "H"), (minutes, "M"), (seconds, "S"))
    sign = "-" if value.months < 0 or value.seconds < 0 else ""
    return f"{sign}P{date}{'T' if time else ''}{time}" if date or time else "PT0S"


def _parts(*parts: tuple[int | str, str]) -> str:
    return "".join(f"{number}{unit}" for number, unit in parts if number)
