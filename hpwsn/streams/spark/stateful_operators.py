"""The machines of operators (hpwsn.streams.definition.operator) as stateful operators of Spark.

Each group of events has a machine's state, which Spark keeps with the checkpoint. What arrives together in a
group is put in the order of its time first, since a shuffle leaves none. The state is a pickle of lists,
tuples and dicts of values: a checkpoint is as trusted as the job's own code. Works alike on streams, where a
group goes on from batch to batch, and on past data, where it has one.
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
_ALL = "_group"
"""The key of the only group, where there are none."""


def run_state_machine(
    frame: DataFrame, state_machine: StateMachine, by: Sequence[str], order: Sequence[str], output: StreamType
) -> DataFrame:
    """The frame's rows, in groups and in order, through a machine each."""
    if not by:
        frame = frame.withColumn(_ALL, fn.lit(0))
    return frame.groupBy(*map(column, by or (_ALL,))).transformWithState(
        _Processor(state_machine, tuple(order), output.schema.names),
        spark_schema(output.schema),
        "append",
        "None",
    )


class _Processor(StatefulProcessor):
    """One machine for every group, each with a state of its own."""

    def __init__(self, state_machine: StateMachine, order: tuple[str, ...], names: tuple[str, ...]) -> None:
        self._machine = state_machine
        self._order = order
        self._row = Row(*names)
        self._names = names

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Where the group's state is kept."""
        self._kept = handle.getValueState("machine", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """What the machine makes of the rows that came together."""
        events = sorted(map(event_of_row, rows), key=lambda one: order_of(one, self._order))
        kept = self._kept.get()
        state = self._machine.start() if kept is None else pickle.loads(kept[0])
        found = self._machine.step(state, events)
        self._kept.update((pickle.dumps(state),))
        return (self._row(*(event[name] for name in self._names)) for event in found)

    def close(self) -> None:
        """Nothing is held."""


def event_of_row(row: Row) -> Event:
    """A row as an event; PySpark's datetimes are naive, in the worker's zone."""
    return {name: _value(value) for name, value in row.asDict().items() if name != _ALL}


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value
