"""Times of readings: RFC 3339 texts, and whole milliseconds since 1970.

RFC 3339 wants a zone, so a time without one is not valid. What is finer than a millisecond is cut off, and a
leap second counts as the second after it. Most readings of a request have the same few seconds, which are
remembered.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_REMEMBERED = 4096
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _SECOND
_LAST = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH) // _SECOND
_parts = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
).fullmatch


def parse_time(text: str) -> int | None:
    """The milliseconds of an RFC 3339 time; None for any other text."""
    # Most times are `2026-11-19T08:00:00.123Z`; the second before the fraction is remembered.
    if len(text) == 24 and text[19] == "." and text[23] == "Z" and text.isascii():
        fraction = text[20:23]
        if fraction.isdigit():
            start = _start_of(text[:19])
            return None if start is None else start + int(fraction)
    return parse_any_time(text)


def parse_any_time(text: str) -> int | None:
    """The same answer as `parse_time`, without its fast way."""
    found = _parts(text)
    if found is None:
        return None
    second, fraction, zone = found.groups()
    seconds = _seconds(second, zone)
    if seconds is None or not fraction:
        return None if seconds is None else seconds * 1000
    return seconds * 1000 + int(f"{fraction[:3]:0<3}")


def time_text(time: int) -> str:
    """The RFC 3339 text, in UTC and with milliseconds, of a time from the year 1 to 9999."""
    return f"{_second_text(time // 1000)}.{time % 1000:03d}Z"


@lru_cache(_REMEMBERED)
def _start_of(second: str) -> int | None:
    """The milliseconds at which a second in UTC begins, given as a text without a zone."""
    return parse_any_time(f"{second}Z")


@lru_cache(_REMEMBERED)
def _seconds(second: str, zone: str) -> int | None:
    leap = second.endswith(":60")
    try:
        moment = datetime.fromisoformat(
            f"{second[:-2]}59{zone}".upper() if leap else f"{second}{zone}".upper()
        )
    except ValueError:
        return None
    found = (moment - _EPOCH) // _SECOND + leap
    return found if _FIRST <= found <= _LAST else None


@lru_cache(_REMEMBERED)
def _second_text(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
