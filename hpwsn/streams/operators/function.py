"""A user-defined function as an operator: `function = "module:name"`, and the `schema` of its output.

Without a window, the function is called with each event, a dict. With a window, it is called with the list of
the window's events, sorted by time. It returns one event, several, or None. `arguments` are passed by name.
The returned values are converted to the schema. The job fails with the attribute's name if a value does not
have the attribute's type.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    BaseStep,
    OperatorError,
    OperatorKind,
    StreamType,
    by_of,
    table_argument,
    text_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import TIMESTAMP, Event, SchemaError, event_of, parse_schema
from hpwsn.streams.definition.windows import RowWindow, TimeWindow, Window, grouped, in_order, time_windows
from hpwsn.streams.operators.aggregate import RowWindowMachine


@dataclass(frozen=True)
class Function(BaseStep):
    """Calls a user-defined function for each event or for each window."""

    call: Callable[..., Any]
    arguments: Mapping[str, object]
    by: tuple[str, ...]
    window: Window | None

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The events that all calls return."""
        stream, stream_type = streams[0], self.inputs[0]
        if self.window is None:
            return [event for one in stream for event in self.results(dict(one))]
        if isinstance(self.window, TimeWindow):
            windows = time_windows(stream, self.window, stream_type.time, self.by, until)
            return [event for _, _, events in windows for event in self.of_window(events)]
        state_machine = self.state_machine()
        groups = grouped(in_order(stream, stream_type.schema, stream_type.time), self.by)
        return [
            event for group in groups.values() for event in state_machine.step(state_machine.start(), group)
        ]

    def state_machine(self) -> RowWindowMachine:
        """The state machine for the row windows of one group."""
        assert isinstance(self.window, RowWindow)
        return RowWindowMachine(self.window, self.of_window)

    def of_window(self, events: list[Event]) -> list[Event]:
        """The events that the call for one window returns."""
        stream_type = self.inputs[0]
        return self.results([dict(one) for one in in_order(events, stream_type.schema, stream_type.time)])

    def results(self, given: object) -> list[Event]:
        """The events that one call returns, converted to the schema."""
        found = self.call(given, **self.arguments)
        several: Iterable[Mapping[str, object]]
        several = () if found is None else (found,) if isinstance(found, Mapping) else found
        return [event_of(one, self.output.schema) for one in several]


def build(op: Op, inputs: Sequence[StreamType]) -> Function:
    """Import the function, and check its arguments, its schema and its window."""
    stream = inputs[0]
    call, arguments = _import_function(text_argument(op, "function")), table_argument(op, "arguments")
    try:
        inspect.signature(call).bind(None, **arguments)
    except TypeError as error:
        raise OperatorError(
            "arguments", f"{call.__name__} cannot be called with these arguments: {error}"
        ) from None
    try:
        schema = parse_schema(text_argument(op, "schema"))
    except SchemaError as error:
        raise OperatorError("schema", str(error)) from None
    time = stream.time if stream.time in schema and schema[stream.time] == TIMESTAMP else ""
    if op.by and not op.window:
        raise OperatorError("by", "requires a window; without one the function is called with single events")
    window = window_of(op, stream) if op.window else None
    stream_type = StreamType(
        op.output or call.__name__, schema, time, 0, stream.no_time_windows, stream.lateness
    )
    if window is not None or stream.granularity or stream.merged:
        stream_type = without_time_windows(
            stream_type, "a function with a window, or a function after a window or a merge"
        )
    return Function((stream,), stream_type, call, dict(arguments), by_of(op, stream), window)


def _import_function(path: str) -> Callable[..., Any]:
    module, separator, name = path.partition(":")
    if not (module and separator and name.isidentifier()):
        raise OperatorError("function", f"must be module:name, not {path!r}")
    try:
        found = getattr(import_module(module), name, None)
    except Exception as error:
        raise OperatorError(
            "function", f"{module} cannot be imported: {type(error).__name__}: {error}"
        ) from None
    if not callable(found):
        raise OperatorError("function", f"{module} has no function {name}")
    return found  # type: ignore[no-any-return]


KIND = OperatorKind(
    "function",
    build,
    "a function of your own",
    ("function", "schema"),
    ("arguments",),
    "may",
    True,
    preserves_order=True,
)
