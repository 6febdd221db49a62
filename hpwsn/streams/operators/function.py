"""A user's own operator: `function = "module:name"`, and the `schema` of what it gives.

Without a window it is called with each event, a dict, and returns one event, several, or None; with a window,
with the list of a window's events, in the order of their time. `arguments` are handed on by name. What it
returns is brought to the schema; a value that does not fit fails the job, which names the attribute.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Before,
    Kind,
    Refused,
    Shape,
    by_of,
    table_argument,
    text_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import TIMESTAMP, Event, SchemaError, event_of, parse_schema
from hpwsn.streams.definition.windows import Rows, Span, Window, grouped, in_order, spans
from hpwsn.streams.operators.aggregate import TupleWindows


@dataclass(frozen=True)
class Function(Before):
    """A call for each event, or for each window."""

    call: Callable[..., Any]
    arguments: Mapping[str, object]
    by: tuple[str, ...]
    window: Window | None

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """What all calls return."""
        stream, shape = streams[0], self.inputs[0]
        if self.window is None:
            return [event for one in stream for event in self.results(dict(one))]
        if isinstance(self.window, Span):
            windows = spans(stream, self.window, shape.time, self.by, until)
            return [event for _, _, events in windows for event in self.of_window(events)]
        machine = self.machine()
        groups = grouped(in_order(stream, shape.schema, shape.time), self.by)
        return [event for group in groups.values() for event in machine.step(machine.start(), group)]

    def machine(self) -> TupleWindows:
        """One group of tuple windows."""
        assert isinstance(self.window, Rows)
        return TupleWindows(self.window, self.of_window)

    def of_window(self, events: list[Event]) -> list[Event]:
        """What the call for one window returns."""
        shape = self.inputs[0]
        return self.results([dict(one) for one in in_order(events, shape.schema, shape.time)])

    def results(self, given: object) -> list[Event]:
        """What one call returns, as events of the schema."""
        found = self.call(given, **self.arguments)
        several: Iterable[Mapping[str, object]]
        several = () if found is None else (found,) if isinstance(found, Mapping) else found
        return [event_of(one, self.output.schema) for one in several]


def build(op: Op, inputs: Sequence[Shape]) -> Function:
    """The function itself, its schema, the window."""
    stream = inputs[0]
    call, arguments = _found(text_argument(op, "function")), table_argument(op, "arguments")
    try:
        inspect.signature(call).bind(None, **arguments)
    except TypeError as error:
        raise Refused("arguments", f"{call.__name__} cannot be called so: {error}") from None
    try:
        schema = parse_schema(text_argument(op, "schema"))
    except SchemaError as error:
        raise Refused("schema", str(error)) from None
    time = stream.time if stream.time in schema and schema[stream.time] == TIMESTAMP else ""
    if op.by and not op.window:
        raise Refused("by", "without a window events are taken one by one, in no groups")
    window = window_of(op, stream) if op.window else None
    shape = Shape(op.output or call.__name__, schema, time, 0, stream.no_time_windows, stream.lateness)
    if window is not None or stream.grain or stream.merged:
        shape = without_time_windows(shape, "a function that has a window, or comes after one or a merge")
    return Function((stream,), shape, call, dict(arguments), by_of(op, stream), window)


def _found(path: str) -> Callable[..., Any]:
    module, separator, name = path.partition(":")
    if not (module and separator and name.isidentifier()):
        raise Refused("function", f"must be module:name, not {path!r}")
    try:
        found = getattr(import_module(module), name, None)
    except Exception as error:
        raise Refused("function", f"{module} cannot be imported: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise Refused("function", f"{module} has no function {name}")
    return found  # type: ignore[no-any-return]


KIND = Kind(
    "function",
    build,
    "a function of your own",
    ("function", "schema"),
    ("arguments",),
    "may",
    True,
)
