"""A user-defined function as an operator: `function = "module:name"`, and the `schema` of its output.

Without a window, the function is called with each event, a dict. With a window, it is called with the list of
the window's events, sorted by time. It returns one event, several, or None. `arguments` are passed by name.
The returned values are converted to the schema. The job fails with the attribute's name if a value does not
have the attribute's type. The builder accepts a Python function instead of `module:name`.

With `batches`, the function gets a `pyarrow.RecordBatch` with the attributes of its input, and returns a
`RecordBatch`, a `Table`, several of them (any iterable), or None. How events are divided into batches is up
to Spark: a result must not depend on it. The result must have every attribute of the schema, in a type that
converts to the attribute's without loss; other columns are dropped. Only Spark's workers load Arrow
(hpwsn.streams.spark.user_functions).
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
    Findings,
    NeedsSpark,
    OperatorError,
    OperatorKind,
    Step,
    StreamType,
    by_of,
    schema_argument,
    table_argument,
    text_argument,
    window_of,
    without_time_windows,
)
from hpwsn.streams.definition.schema import TIMESTAMP, Event, Schema, event_of
from hpwsn.streams.definition.windows import Window, in_order
from hpwsn.streams.operators.windowed import WindowedStep


@dataclass(frozen=True)
class Function(WindowedStep):
    """Calls a user-defined function for each event or for each window."""

    call: Callable[..., Any]
    arguments: Mapping[str, object]

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The events that all calls return."""
        if self.window is None:
            return [event for one in streams[0] for event in self.results(dict(one))]
        return super().run(streams, until)

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


@dataclass(frozen=True)
class BatchFunction(BaseStep):
    """Calls a user-defined function for each Arrow batch."""

    call: Callable[..., Any]
    arguments: Mapping[str, object]

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """Not possible in plain Python, which has no Arrow batches."""
        raise NeedsSpark("a function of batches")

    def results(self, batch: Any) -> Iterable[Any]:
        """The batches and tables that the call for one batch returns; none for None."""
        found = self.call(batch, **self.arguments)
        if found is None:
            return ()
        # A table and a batch can be iterated too, but by column.
        return found if isinstance(found, Iterable) and not hasattr(found, "schema") else (found,)


def build(op: Op, inputs: Sequence[StreamType]) -> Step:
    """Import the function, and check its arguments, its schema and its window."""
    stream = inputs[0]
    findings = Findings()
    with findings:
        call = _function(op)
        arguments = _arguments(op, call)
    with findings:
        schema = schema_argument(op)
    with findings:
        if op.by and not op.window:
            raise OperatorError(
                "by", "requires a window; without one the function is called with single events"
            )
        by = by_of(op, stream)
    with findings:
        window = window_of(op, stream) if op.window else None
    with findings:
        batches = _batches(op)
    findings.raise_all()
    output = _output(op, stream, function_name(call), schema, window)
    if batches:
        return BatchFunction((stream,), output, call, arguments)
    return Function((stream,), output, by, window, call, arguments)


def function_name(call: object) -> str:
    """The name of a function for errors and drawings."""
    return str(getattr(call, "__name__", type(call).__name__))


def _batches(op: Op) -> bool:
    batches = op.arguments.get("batches", False)
    if not isinstance(batches, bool):
        raise OperatorError("batches", f"must be true or false, not {batches!r}")
    if batches and op.window:
        raise OperatorError("batches", "a function of batches has no window; remove one of the two")
    return batches


def _output(op: Op, stream: StreamType, name: str, schema: Schema, window: Window | None) -> StreamType:
    time = stream.time if stream.time in schema and schema[stream.time] == TIMESTAMP else ""
    output = StreamType(op.output or name, schema, time, 0, stream.no_time_windows, stream.lateness)
    if window is None and not (stream.granularity or stream.merged):
        return output
    return without_time_windows(output, "a function with a window, or a function after a window or a merge")


def _function(op: Op) -> Callable[..., Any]:
    given = op.arguments.get("function")
    return given if callable(given) else _import_function(text_argument(op, "function"))


def _arguments(op: Op, call: Callable[..., Any]) -> dict[str, object]:
    arguments = table_argument(op, "arguments")
    try:
        inspect.signature(call).bind(None, **arguments)
    except TypeError as error:
        raise OperatorError(
            "arguments", f"{function_name(call)} cannot be called with these arguments: {error}"
        ) from None
    except ValueError:
        # Some functions written in C have no signature; a wrong argument fails at the first call.
        pass
    return dict(arguments)


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
    ("arguments", "batches"),
    "may",
    True,
)
