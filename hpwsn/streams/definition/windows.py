"""Windows over streams: of so many tuples, or of a span of event time, each sliding by its own step.

A window of tuples covers events k·slide to k·slide + length of its group, and is complete when it has them
all. A window of time covers [k·slide, k·slide + length) of the epoch, as Spark's do. Which events are of one
group, and what becomes of a window, is the operators' business.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hpwsn.settings.quantities import format_duration, parse_duration
from hpwsn.streams.definition.schema import Event, Schema, Value

MOST_ROWS = 1_000_000
MOST_OVERLAP = 1000
"""Windows of time that one event may be in: each costs Spark a copy of it."""

_ROWS = re.compile(r"\s*(\d{1,9})\s*(?:rows?|tuples?|events?)\s*", re.I)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Rows:
    """Windows of `length` events, each `slide` events after the one before."""

    length: int
    slide: int

    def __str__(self) -> str:
        every = "" if self.slide == self.length else f" every {self.slide}"
        return f"{self.length} rows{every}"


@dataclass(frozen=True, slots=True)
class Span:
    """Windows of `length` microseconds of event time, each `slide` after the one before."""

    length: int
    slide: int

    def __str__(self) -> str:
        every = "" if self.slide == self.length else f" every {format_duration(self.slide / 1e6)}"
        return f"{format_duration(self.length / 1e6)}{every}"

    def starts(self, moment: datetime) -> list[datetime]:
        """The starts of all windows that a moment is in."""
        at = (moment - _EPOCH) // _MICROSECOND
        last = at - at % self.slide
        return [_EPOCH + start * _MICROSECOND for start in range(last, at - self.length, -self.slide)]

    def end(self, start: datetime) -> datetime:
        """The end of the window that begins then; it is not in the window itself."""
        return start + self.length * _MICROSECOND


Window = Rows | Span


class WindowError(ValueError):
    """A window that cannot be; `key` is window or slide."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def parse_window(window: str, slide: str = "") -> Window:
    """`"100 rows"` or `"60 s"`, with a slide of the same kind; without one, windows do not overlap."""
    length, counts = _amount("window", window)
    step, step_counts = _amount("slide", slide) if slide else (length, counts)
    if counts != step_counts:
        raise WindowError("slide", f"{slide!r} and the window {window!r} must both be rows or both be time")
    if step > length:
        raise WindowError(
            "slide", f"{slide!r} is longer than the window {window!r}: events would be left out"
        )
    if not counts and length > step * MOST_OVERLAP:
        raise WindowError("slide", f"{slide!r} puts an event into more than {MOST_OVERLAP} windows")
    return Rows(length, step) if counts else Span(length, step)


def _amount(key: str, text: str) -> tuple[int, bool]:
    rows = _ROWS.fullmatch(text)
    if rows:
        if not 1 <= int(rows[1]) <= MOST_ROWS:
            raise WindowError(key, f"{text!r} must be from 1 to {MOST_ROWS} rows")
        return int(rows[1]), True
    seconds = parse_duration(text)
    if seconds is None or not 0.001 <= seconds <= 366 * 86400:
        raise WindowError(key, f'must be such as "100 rows" or "60 s", not {text!r}')
    return round(seconds * 1_000_000), False


Key = tuple[Value, ...]


def grouped(events: Iterable[Event], by: tuple[str, ...]) -> dict[Key, list[Event]]:
    """The events by the values of some attributes; without any, all in one group."""
    groups: defaultdict[Key, list[Event]] = defaultdict(list)
    for event in events:
        groups[tuple(event[name] for name in by)].append(event)
    return dict(groups)


def in_order(events: Iterable[Event], schema: Schema, time: str) -> list[Event]:
    """Events in the order of their time, those of one time by their attributes.

    Spark hands over what arrived together in no order at all, so tuple windows need one of their own.
    """
    names = (time, *schema.names) if time else schema.names
    return sorted(events, key=lambda event: order_of(event, names))


def order_of(event: Event, names: Iterable[str]) -> tuple[tuple[bool, Value], ...]:
    """What an event is sorted by: the attributes in turn, those that are missing first."""
    return tuple((event[name] is not None, event[name]) for name in names)


def spans(
    events: Iterable[Event], span: Span, time: str, by: tuple[str, ...], until: datetime | None
) -> list[tuple[datetime, Key, list[Event]]]:
    """Each window of time with its group and events, by start; only those that end by `until`."""
    found: defaultdict[tuple[datetime, Key], list[Event]] = defaultdict(list)
    for event in events:
        moment = event[time]
        if isinstance(moment, datetime):
            for start in span.starts(moment):
                found[start, tuple(event[name] for name in by)].append(event)
    closed = [(start, key) for start, key in found if until is None or span.end(start) <= until]
    return [(start, key, found[start, key]) for start, key in sorted(closed, key=lambda one: one[0])]
