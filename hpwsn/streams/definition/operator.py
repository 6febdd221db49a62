"""The interface of operators: how a definition and its input streams become a checked step.

A step is an operator whose arguments were checked. It knows the type of its output stream and computes the
output over lists of events; Spark must produce the same result. An operator with row windows, and one that
accumulates, also provides a state machine, which computes one group incrementally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.problems import suggestion
from hpwsn.streams.definition.schema import Event, Schema, SchemaError, Type, parse_schema
from hpwsn.streams.definition.windows import RowWindow, TimeWindow, Window, WindowError, parse_window


@dataclass(frozen=True)
class StreamType:
    """The type of a stream between two operators: its attributes and its event time.

    `time` is the attribute of the event time; empty if there is none. `granularity` is the length in
    microseconds of the time window that each event summarises; 0 if events are single readings.
    `no_time_windows` is the reason why no time window can follow; empty if one can. `lateness` is how many
    seconds an event may arrive after a later one. `merged` is true for the union of several streams.
    """

    name: str
    schema: Schema
    time: str = ""
    granularity: int = 0
    no_time_windows: str = ""
    lateness: float = 0.0
    merged: bool = False


class OperatorError(Exception):
    """An operator of a definition is invalid: `key` and `attribute` say where, the message what to do."""

    def __init__(self, key: str, message: str, attribute: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.attribute = attribute


class OperatorErrors(OperatorError):
    """The errors of one operator; none if they are reported elsewhere."""

    def __init__(self, errors: Sequence[OperatorError]) -> None:
        super().__init__("", "; ".join(one.message for one in errors))
        self.errors = tuple(errors)


class NeedsSpark(HpwsnError):
    """An operator was to run in plain Python, and only Spark can run it."""

    def __init__(self, operator: str) -> None:
        super().__init__(f"{operator} runs only on Spark; use `hpwsn streams history` on a file of events")


class Findings:
    """Collects the errors of independent checks of one operator, so that all of them are reported.

    Each check is the body of a `with` statement on this object. `raise_all` raises the errors, if any.
    """

    def __init__(self) -> None:
        self._errors: list[OperatorError] = []

    def __enter__(self) -> None:
        """Begin a check."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """End a check; suppress an OperatorError and keep it."""
        if isinstance(error, OperatorError):
            self._errors += error_list(error)
            return True
        return False

    def raise_all(self) -> None:
        """Raise what the checks have found."""
        if self._errors:
            raise OperatorErrors(self._errors)


def error_list(error: OperatorError) -> tuple[OperatorError, ...]:
    """The single errors of an error."""
    return error.errors if isinstance(error, OperatorErrors) else (error,)


class Step(Protocol):
    """An operator with checked arguments."""

    @property
    def output(self) -> StreamType:
        """The type of the output stream."""

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The output for complete input streams; of time windows only those that end by `until`."""


class StateMachine(Protocol):
    """Computes an operator for one group of events incrementally. The state is a list that can be pickled."""

    def start(self) -> list[Any]:
        """The state before the first event."""

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """Add the next events, in order, to the state, and return the output that they cause."""


@dataclass(frozen=True)
class OperatorKind:
    """A kind of operator: its name in definitions, its arguments, and whether it has windows and groups.

    `window` is `no`, `may` or `must`.
    """

    name: str
    build: Builder
    about: str
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    window: str = "no"
    by: bool = False

    def check_keys(self, op: Op) -> None:
        """Raise OperatorErrors for unknown arguments and for missing ones."""
        errors = list(self._key_errors(op))
        if errors:
            raise OperatorErrors(errors)

    def _key_errors(self, op: Op) -> Iterator[OperatorError]:
        known = (*self.needed, *self.optional)
        for key in op.arguments:
            if key not in known:
                yield OperatorError(key, f"{self.name} has no argument {key}; {suggestion(key, known)}")
        for key in self.needed:
            if key not in op.arguments:
                yield OperatorError(key, f"{self.name} requires {key}")
        for key in ("window", "slide") if self.window == "no" else ():
            if getattr(op, key):
                yield OperatorError(key, f"{self.name} has no {key}: it processes single events; remove it")
        if op.by and not self.by:
            yield OperatorError("by", f"{self.name} has no groups; remove it")
        if self.window == "must" and not op.window:
            yield OperatorError("window", f'{self.name} requires a window, such as "60 s" or "100 rows"')


class Builder(Protocol):
    """Checks an operator against its input streams."""

    def __call__(self, op: Op, inputs: Sequence[StreamType]) -> Step:
        """Return the step, or raise OperatorError."""


def text_argument(op: Op, key: str, default: str = "") -> str:
    """The value of a text argument, or `default` if it is missing."""
    value = op.arguments.get(key, default)
    if not isinstance(value, str) or not (value or key not in op.arguments):
        raise OperatorError(key, f"must be a text, not {value!r}")
    return value


def texts_argument(op: Op, key: str) -> tuple[str, ...]:
    """The value of an argument that is one text or a list of texts."""
    value = op.arguments.get(key, [])
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list | tuple) or not all(isinstance(one, str) and one for one in several):
        raise OperatorError(key, f"must be one or more texts, not {value!r}")
    return tuple(several)


def table_argument(op: Op, key: str) -> Mapping[str, object]:
    """The value of a table argument; empty if it is missing."""
    value = op.arguments.get(key, {})
    if not isinstance(value, Mapping):
        raise OperatorError(key, f"must be a table, such as {{ a = 1 }}, not {value!r}")
    return value


def schema_argument(op: Op) -> Schema:
    """The schema that the operator writes down for its output."""
    try:
        return parse_schema(text_argument(op, "schema"))
    except SchemaError as error:
        raise OperatorError("schema", str(error)) from None


def attribute_of(stream: StreamType, name: str, key: str) -> Type:
    """The type of an attribute; OperatorError if the stream does not have the attribute."""
    if name not in stream.schema:
        raise OperatorError(
            key, f"{stream.name} has no such attribute; {suggestion(name, stream.schema.names)}", name
        )
    return stream.schema[name]


def window_of(op: Op, stream: StreamType) -> Window:
    """The operator's window; OperatorError if it is invalid or not possible on this stream."""
    window = window_text(op)
    if isinstance(window, TimeWindow):
        check_time_window(window, stream)
    return window


def window_text(op: Op) -> Window:
    """The operator's window; OperatorError if its text is invalid."""
    try:
        return parse_window(op.window, op.slide)
    except WindowError as error:
        raise OperatorError(error.key, str(error)) from None


def check_time_window(window: TimeWindow, stream: StreamType, key: str = "window") -> None:
    """Raise OperatorError if the stream cannot have this time window.

    The stream needs an event time with a watermark, and the window must be a multiple of earlier windows.
    """
    if not stream.time:
        raise OperatorError(
            key, f"{stream.name} has no event time; add a TIMESTAMP to its input and name it with time"
        )
    if stream.no_time_windows:
        raise OperatorError(key, stream.no_time_windows)
    if stream.granularity and (window.length % stream.granularity or window.slide % stream.granularity):
        earlier = TimeWindow(stream.granularity, stream.granularity)
        raise OperatorError(key, f"must be a multiple of the {earlier} windows before it")


def by_of(op: Op, stream: StreamType) -> tuple[str, ...]:
    """The attributes that events are grouped by; never the event time, which windows group by."""
    findings = Findings()
    for name in op.by:
        with findings:
            attribute_of(stream, name, "by")
            if name == stream.time:
                raise OperatorError(
                    "by", "is the event time, which windows already group by; remove it", name
                )
    findings.raise_all()
    if len(set(op.by)) < len(op.by):
        raise OperatorError("by", "names an attribute twice; name it once")
    return op.by


def after_window(stream_type: StreamType, window: Window) -> StreamType:
    """The stream type after this window, with the limits on later windows."""
    if isinstance(window, RowWindow):
        return without_time_windows(stream_type, "row windows")
    if window.slide != window.length:
        return without_time_windows(stream_type, "overlapping windows")
    return replace(stream_type, granularity=window.length)


def without_time_windows(stream_type: StreamType, what: str) -> StreamType:
    """The stream type after an operator behind which Spark has no watermark; `what` names that operator."""
    why = f"time windows cannot follow {what}; put them into another service that has this one as its input"
    return replace(stream_type, granularity=0, no_time_windows=why)


@dataclass(frozen=True)
class BaseStep:
    """The fields that every step has: the types of its input streams and of its output stream."""

    inputs: tuple[StreamType, ...] = field(repr=False)
    output: StreamType
