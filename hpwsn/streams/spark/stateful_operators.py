"""Runs the state machines of operators (hpwsn.streams.definition.operator) as stateful operators of Spark.

Each group of events has its own state, which Spark keeps with the checkpoint. The events of a group in a
batch are first sorted by time, or by their place in the log if they have no time, because a shuffle does not
keep their order. The state is a pickle of lists, tuples and dicts of values, so the checkpoint must be as
trusted as the code of the job. The operator works on streams, where a group continues from batch to batch,
and on past data, which is one batch.
"""

import pickle
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from hpwsn.streams.definition.operator import StateMachine, StreamType
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.definition.windows import order_of
from hpwsn.streams.spark.columns import column, spark_schema

_STATE = "state BINARY"
ORDER = "_at"
"""The column that sorts the output of all groups: the latest time of the group's rows in this batch so far.

An output may be earlier than the one before it, such as an extreme event that an older one replaces. A stable
sort by this column keeps the order within a group.
"""
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
ARRIVAL = "_offset"
"""The column with the place of an event in the log, which gives the order of events without a time."""
_ALL = "_group"
"""The grouping column if an operator has no `by`."""


def run_state_machine(
    frame: DataFrame, state_machine: StateMachine, by: Sequence[str], order: Sequence[str], output: StreamType
) -> DataFrame:
    """Group the rows by `by`, sort them by `order`, and run the state machine on each group.

    The output has the column ORDER if it has an event time.
    """
    schema = spark_schema(output.schema)
    if output.time:
        schema = schema.add(ORDER, "timestamp")
    if not by:
        frame = frame.withColumn(_ALL, fn.lit(0))
    return frame.groupBy(*map(column, by or (_ALL,))).transformWithState(
        _Processor(state_machine, tuple(order), output.schema.names, output.time),
        schema,
        "append",
        "None",
    )


class _Processor(StatefulProcessor):
    """One state machine for all groups; each group has its own state."""

    def __init__(
        self, state_machine: StateMachine, order: tuple[str, ...], names: tuple[str, ...], time: str
    ) -> None:
        self._machine = state_machine
        self._order = order
        self._row = Row(*names, ORDER) if time else Row(*names)
        self._names = names
        self._time = time

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the stored state of the group."""
        self._kept = handle.getValueState("machine", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Pass the rows of one batch to the state machine and return its output."""
        events = sorted(map(event_of_row, rows), key=lambda one: order_of(one, self._order))
        for event in events:
            event.pop(ARRIVAL, None)
        kept = self._kept.get()
        state = self._machine.start() if kept is None else pickle.loads(kept[0])
        found = self._machine.step(state, events)
        self._kept.update((pickle.dumps(state),))
        return self._rows(found)

    def _rows(self, events: Sequence[Event]) -> Iterator[Row]:
        latest = _NO_TIME
        for event in events:
            values = [event[name] for name in self._names]
            if self._time:
                time = event[self._time]
                latest = max(latest, time) if isinstance(time, datetime) else latest
                values.append(latest)
            yield self._row(*values)

    def close(self) -> None:
        """Nothing to release."""


def event_of_row(row: Row) -> Event:
    """A row as an event in UTC; PySpark's datetimes are naive, in the time zone of the worker."""
    return {name: _value(value) for name, value in row.asDict().items() if name != _ALL}


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value
