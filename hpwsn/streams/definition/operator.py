"""What every operator is to the rest: built from its definition and the streams before it, or refused.

A step is an operator whose arguments were checked: it knows the shape of what it gives out, and computes it
over lists of events, which is the meaning that Spark must reproduce. An operator whose windows count tuples,
or that accumulates, gives out a machine: the same for one group of events that come bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.problems import nearest
from hpwsn.streams.definition.schema import Event, Schema, Type
from hpwsn.streams.definition.windows import Rows, Span, Window, WindowError, parse_window


@dataclass(frozen=True)
class Shape:
    """A stream at one point of a service.

    `time` is the attribute of the event time, if any. `grain` is the span of time that an event stands for,
    in microseconds. `no_time_windows` says why none can follow, where that is so. `lateness` is by how many
    seconds an event may come behind the latest, `merged` whether it is of several streams.
    """

    name: str
    schema: Schema
    time: str = ""
    grain: int = 0
    no_time_windows: str = ""
    lateness: float = 0.0
    merged: bool = False


class Refused(Exception):
    """An operator that cannot be so: the key it is about, the attribute, and what to do."""

    def __init__(self, key: str, message: str, attribute: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.attribute = attribute


class Step(Protocol):
    """A checked operator."""

    @property
    def output(self) -> Shape:
        """The shape of what it gives out."""

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """What it gives for all of its in-streams; of windows of time those that end by `until`."""


class Machine(Protocol):
    """One group of events that come bit by bit. Its state is a list that pickle takes."""

    def start(self) -> list[Any]:
        """The state before the first event."""

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """Takes the next events, in order, into the state, and returns what they bring about."""


@dataclass(frozen=True)
class Kind:
    """An operator as definitions name it: its arguments, whether it has windows and groups."""

    name: str
    build: Builder
    about: str
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    window: str = "no"
    by: bool = False

    def check_keys(self, op: Op) -> None:
        """Refuse arguments that it does not have, and those that are missing."""
        known = (*self.needed, *self.optional)
        for key in op.arguments:
            if key not in known:
                raise Refused(key, f"{self.name} takes no {key}; {nearest(key, known)}")
        for key in self.needed:
            if key not in op.arguments:
                raise Refused(key, f"{self.name} needs {key}")
        for key in ("window", "slide") if self.window == "no" else ():
            if getattr(op, key):
                raise Refused(key, f"{self.name} has no {key}: it takes events one by one")
        if op.by and not self.by:
            raise Refused("by", f"{self.name} has no groups")
        if self.window == "must" and not op.window:
            raise Refused("window", f'{self.name} needs a window, such as "60 s" or "100 rows"')


class Builder(Protocol):
    """Checks an operator against its in-streams."""

    def __call__(self, op: Op, inputs: Sequence[Shape]) -> Step:
        """The step, or Refused."""


def text_argument(op: Op, key: str, default: str = "") -> str:
    """An argument that is a text."""
    value = op.arguments.get(key, default)
    if not isinstance(value, str) or not (value or key not in op.arguments):
        raise Refused(key, f"must be a text, not {value!r}")
    return value


def texts_argument(op: Op, key: str) -> tuple[str, ...]:
    """An argument that is one text or several."""
    value = op.arguments.get(key, [])
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list | tuple) or not all(isinstance(one, str) and one for one in several):
        raise Refused(key, f"must be one or more texts, not {value!r}")
    return tuple(several)


def table_argument(op: Op, key: str) -> Mapping[str, object]:
    """An argument that is a table."""
    value = op.arguments.get(key, {})
    if not isinstance(value, Mapping):
        raise Refused(key, f"must be a table, such as {{ a = 1 }}, not {value!r}")
    return value


def attribute_of(stream: Shape, name: str, key: str) -> Type:
    """The type of an attribute of the stream, which must have it."""
    if name not in stream.schema:
        raise Refused(key, f"{stream.name} has no such attribute; {nearest(name, stream.schema.names)}", name)
    return stream.schema[name]


def window_of(op: Op, stream: Shape) -> Window:
    """The operator's window, which the stream must be able to have."""
    try:
        window = parse_window(op.window, op.slide)
    except WindowError as error:
        raise Refused(error.key, str(error)) from None
    if isinstance(window, Span):
        check_time(window, stream)
    return window


def check_time(span: Span, stream: Shape, key: str = "window") -> None:
    """A window of time needs an event time that Spark still follows, and whole windows of what is before."""
    if not stream.time:
        raise Refused(
            key, f"{stream.name} has no event time: give its input a TIMESTAMP, and its name as time"
        )
    if stream.no_time_windows:
        raise Refused(key, stream.no_time_windows)
    if stream.grain and (span.length % stream.grain or span.slide % stream.grain):
        raise Refused(key, f"must be a multiple of the {Span(stream.grain, stream.grain)} windows before it")


def by_of(op: Op, stream: Shape) -> tuple[str, ...]:
    """The attributes that make groups; the event time cannot, since windows are of it."""
    for name in op.by:
        attribute_of(stream, name, "by")
        if name == stream.time:
            raise Refused("by", "is the event time, which windows are of", name)
    if len(set(op.by)) < len(op.by):
        raise Refused("by", "names an attribute twice")
    return op.by


def after_window(shape: Shape, window: Window) -> Shape:
    """The shape with what may follow such a window."""
    if isinstance(window, Rows):
        return without_time_windows(shape, "windows of rows")
    if window.slide != window.length:
        return without_time_windows(shape, "windows that overlap")
    return replace(shape, grain=window.length)


def without_time_windows(shape: Shape, what: str) -> Shape:
    """The shape after something that leaves Spark no event time to follow."""
    why = f"windows of time cannot follow {what}: put them into a service that takes this one in"
    return replace(shape, grain=0, no_time_windows=why)


@dataclass(frozen=True)
class Before:
    """What a step was built on; every step has one."""

    inputs: tuple[Shape, ...] = field(repr=False)
    output: Shape
