"""Windows over streams: row windows count events, time windows cover an interval of event time.

Row window k covers the events k·slide to k·slide + length of its group; it is complete when it has all of
them. Time window k covers [k·slide, k·slide + length) since the epoch, as in Spark. Operators decide how
events are grouped and what is computed from a window.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hpwsn.settings.quantities import format_duration, parse_duration
from hpwsn.streams.definition.schema import Event, Schema, Value

MAX_ROWS = 1_000_000
MAX_OVERLAP = 1000
"""Maximum time windows that one event may be in: Spark copies the event for each."""

_ROWS = re.compile(r"\s*(\d{1,9})\s*(?:rows?|tuples?|events?)\s*", re.I)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Windows of `length` events; a window starts `slide` events after the preceding one."""

    length: int
    slide: int

    def __str__(self) -> str:
        every = "" if self.slide == self.length else f" every {self.slide}"
        return f"{self.length} rows{every}"


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Windows of `length` microseconds of event time; a window starts `slide` after the preceding one."""

    length: int
    slide: int

    def __str__(self) -> str:
        every = "" if self.slide == self.length else f" every {format_duration(self.slide / 1e6)}"
        return f"{format_duration(self.length / 1e6)}{every}"

    def starts(self, moment: datetime) -> list[datetime]:
        """The starts of all windows that contain the moment."""
        at = (moment - _EPOCH) // _MICROSECOND
        last = at - at % self.slide
        return [_EPOCH + start * _MICROSECOND for start in range(last, at - self.length, -self.slide)]

    def end(self, start: datetime) -> datetime:
        """The end of the window that begins at `start`; the end is exclusive."""
        return start + self.length * _MICROSECOND


Window = RowWindow | TimeWindow


class WindowError(ValueError):
    """A window is not valid; `key` is `window` or `slide`."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def parse_window(window: str, slide: str = "") -> Window:
    """Parse `"100 rows"` or `"60 s"` and a slide of the same kind; the default slide is the window."""
    length, counts = _amount("window", window)
    step, step_counts = _amount("slide", slide) if slide else (length, counts)
    if counts != step_counts:
        raise WindowError("slide", f"{slide!r} and the window {window!r} must both be rows or both be time")
    if step > length:
        raise WindowError(
            "slide",
            f"{slide!r} is longer than the window {window!r} and would skip events; shorten it",
        )
    if not counts and length > step * MAX_OVERLAP:
        raise WindowError(
            "slide", f"{slide!r} puts an event into more than {MAX_OVERLAP} windows; use a longer slide"
        )
    return RowWindow(length, step) if counts else TimeWindow(length, step)


def _amount(key: str, text: str) -> tuple[int, bool]:
    rows = _ROWS.fullmatch(text)
    if rows:
        if not 1 <= int(rows[1]) <= MAX_ROWS:
            raise WindowError(key, f"{text!r} must be from 1 to {MAX_ROWS} rows")
        return int(rows[1]), True
    seconds = parse_duration(text)
    if seconds is None or not 0.001 <= seconds <= 366 * 86400:
        raise WindowError(key, f'must be a window such as "100 rows" or "60 s", not {text!r}')
    return round(seconds * 1_000_000), False


Key = tuple[Value, ...]


def grouped(events: Iterable[Event], by: tuple[str, ...]) -> dict[Key, list[Event]]:
    """The events grouped by the values of the attributes `by`; one group if `by` is empty."""
    groups: defaultdict[Key, list[Event]] = defaultdict(list)
    for event in events:
        groups[tuple(event[name] for name in by)].append(event)
    return dict(groups)


def in_order(events: Iterable[Event], schema: Schema, time: str) -> list[Event]:
    """Events sorted by time, and events of the same time by their attributes; without a time as they came.

    Spark gives the events of a batch in no defined order, so row windows need an order of their own.
    """
    if not time:
        return list(events)
    return sorted(events, key=lambda event: order_of(event, (time, *schema.names)))


def order_of(event: Event, names: Iterable[str]) -> tuple[tuple[bool, Value], ...]:
    """The sort key of an event: the values of the attributes `names`; null sorts first."""
    return tuple((event[name] is not None, event[name]) for name in names)


def time_windows(
    events: Iterable[Event], span: TimeWindow, time: str, by: tuple[str, ...], until: datetime | None
) -> list[tuple[datetime, Key, list[Event]]]:
    """Each time window that ends by `until`, with its start, group and events; sorted by start."""
    found: defaultdict[tuple[datetime, Key], list[Event]] = defaultdict(list)
    for event in events:
        moment = event[time]
        if isinstance(moment, datetime):
            for start in span.starts(moment):
                found[start, tuple(event[name] for name in by)].append(event)
    closed = [(start, key) for start, key in found if until is None or span.end(start) <= until]
    return [(start, key, found[start, key]) for start, key in sorted(closed, key=lambda one: one[0])]
