"""Translates a definition to DataFrame transformations, for streams and for past data.

Filters, unions, time windows with their watermarks, and joins use Spark's own operators. Row windows and
accumulation are state machines (hpwsn.streams.spark.stateful_operators). User-defined functions get rows as
Arrow batches. Spark itself runs queries in SQL (hpwsn.streams.spark.sql_analysis). A stream outputs a time
window when the watermark has passed its end; past data outputs all windows.

After a shuffle, the rows of a batch have no defined order, except that the rows of a `sort` are in order
within their partition. A replayed batch has the same rows.

If a time window follows another one, the second uses the column `_at`, the last instant of the first window:
Spark would drop rows with the window's start as late.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as fn

from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.operator import StateMachine, StreamType
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.definition.windows import RowWindow, TimeWindow
from hpwsn.streams.operators.aggregate import Aggregate
from hpwsn.streams.operators.extremes import WINDOW_START, Extreme, RunningExtreme
from hpwsn.streams.operators.filter import Filter
from hpwsn.streams.operators.function import BatchFunction, Function
from hpwsn.streams.operators.increment import PARTIALS, Increment
from hpwsn.streams.operators.join import SIDE, Join
from hpwsn.streams.operators.merge import Merge
from hpwsn.streams.operators.project import Project
from hpwsn.streams.operators.sort import Sort
from hpwsn.streams.operators.sql import Sql, lacks_schema
from hpwsn.streams.plan.plan import Plan, build_plan
from hpwsn.streams.spark.columns import column, condition_column, literal, spark_schema, spark_type
from hpwsn.streams.spark.sql_analysis import QueryAnalysis, run_query
from hpwsn.streams.spark.stateful_operators import ARRIVAL, ORDER, run_state_machine
from hpwsn.streams.spark.user_functions import each_batch, each_event, each_window, register_module

CONFIGURATION = {
    "spark.sql.session.timeZone": "UTC",
    # Spark's default, INT96, has no time zone for other readers of the history.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
"""Required Spark settings; transformWithState supports only the RocksDB state store."""

_WINDOW_TIME, _PLACE = ORDER, "_place"
"""Columns that are not published: the last instant of a row's time window, and its place in a sorted one.

Behind a state machine, the first gives only the order, because no time window can follow.
"""


def apply(definition: Definition, frames: Mapping[str, DataFrame], *, with_order: bool = False) -> DataFrame:
    """The output of a service for the frames of its inputs; each frame has the schema of its input.

    With `with_order`, columns that give the order of rows behind time windows, where there are any, follow.
    """
    plan = _plan(definition, frames)
    found = {
        name: frames[name].select(*_columns(stream_type), *_carried(frames[name]))
        for name, stream_type in plan.inputs.items()
    }
    for node in plan.nodes:
        taken = [found[name] for name in node.input_names]
        if any(_needs_watermark(one.step) for one in plan.nodes):
            taken = _with_watermarks(node.step, taken)
        found[node.output_name] = _TRANSLATIONS[type(node.step)](node.step, taken)
    result = found[plan.output_name]
    for condition in plan.conditions:
        result = result.where(condition_column(condition, plan.output.schema))
    return result.select(*_columns(plan.output), *(_hidden(result) if with_order else ()))


def _plan(definition: Definition, frames: Mapping[str, DataFrame]) -> Plan:
    if not lacks_schema(definition.ops):
        return build_plan(definition)
    session = next(iter(frames.values())).sparkSession
    return build_plan(definition, QueryAnalysis(lambda: session, streams=False))


def _with_watermarks(step: Any, frames: Sequence[DataFrame]) -> list[DataFrame]:
    """The frames with watermarks, if the step is the first that needs them.

    Spark allows one watermark on the path of a row, and a function removes it. So the watermark is added as
    late as possible: before time windows and stateful queries, and before a merge, where each stream needs
    its own.
    """
    needed = isinstance(step, Merge) or _needs_watermark(step)
    return [
        frame.withWatermark(stream_type.time, _microseconds(stream_type.lateness * 1e6))
        if needed
        and stream_type.time
        and not (stream_type.merged or stream_type.granularity or stream_type.no_time_windows)
        else frame
        for frame, stream_type in zip(frames, step.inputs, strict=True)
    ]


def _needs_watermark(step: Any) -> bool:
    if isinstance(step, Sql):
        return step.stateful
    return isinstance(getattr(step, "window", None), TimeWindow)


def _columns(stream_type: StreamType) -> list[Column]:
    return [column(name) for name in stream_type.schema.names]


def _microseconds(amount: float) -> str:
    return f"{round(amount)} microseconds"


def _filter(step: Filter, frames: Sequence[DataFrame]) -> DataFrame:
    return frames[0].where(condition_column(step.condition, step.inputs[0].schema))


def _project(step: Project, frames: Sequence[DataFrame]) -> DataFrame:
    kept = [column(old).alias(new) for old, new in step.kept.items()]
    added = [literal(value, step.output.schema[name]).alias(name) for name, value in step.added.items()]
    return frames[0].select(*kept, *added, *_carried(frames[0]))


def _hidden(frame: DataFrame) -> list[Column]:
    return [column(name) for name in (_WINDOW_TIME, _PLACE) if name in frame.columns]


def _carried(frame: DataFrame) -> list[Column]:
    """The columns that operators need and that are not attributes."""
    return [*_hidden(frame), *([column(ARRIVAL)] if ARRIVAL in frame.columns else [])]


def _merge(step: Merge, frames: Sequence[DataFrame]) -> DataFrame:
    # If only some frames have `_at`, no time window can follow, so the column is not needed.
    common = all(_WINDOW_TIME in one.columns for one in frames)
    kept = [one.drop(_PLACE) if common else one.drop(_PLACE, _WINDOW_TIME) for one in frames]
    if not all(ARRIVAL in one.columns for one in frames):
        kept = [one.drop(ARRIVAL) for one in kept]
    return reduce(DataFrame.unionByName, kept)


def _windows(step: Any, frame: DataFrame, window: TimeWindow) -> GroupedData:
    """The frame grouped by window and by the attributes of `by`."""
    time = column(_WINDOW_TIME) if _WINDOW_TIME in frame.columns else column(step.inputs[0].time)
    span = fn.window(time, _microseconds(window.length), _microseconds(window.slide))
    return frame.groupBy(span.alias("_window"), *map(column, step.by))


def _aggregate(step: Aggregate, frames: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, TimeWindow):
        return _run_state_machine(step, frames[0])
    found = _windows(step, frames[0], step.window).agg(_function(step).alias(step.result))
    return found.select(*_of_window(step), *[fn.window_time("_window").alias(_WINDOW_TIME)])


def _of_window(step: Aggregate) -> list[Column]:
    start = column("_window").getField("start")
    return [
        start.alias(name) if name == step.output.time else column(name) for name in step.output.schema.names
    ]


def _function(step: Aggregate) -> Column:
    if not step.attribute:
        return fn.count(fn.lit(1))
    value = column(step.attribute)
    functions: Mapping[str, Callable[[Column], Column]] = {
        "sum": fn.sum,
        "count": fn.count,
        "min": fn.min,
        "max": fn.max,
        "avg": lambda one: fn.avg(one.cast("double")),
    }
    return functions[step.function](value).cast(spark_type(step.kind))


def _run_state_machine(step: Any, frame: DataFrame) -> DataFrame:
    stream_type = step.inputs[0]
    arrival = [ARRIVAL] if ARRIVAL in frame.columns else []
    order = ([stream_type.time] if stream_type.time else arrival) + list(stream_type.schema.names)
    return run_state_machine(
        frame.drop(_WINDOW_TIME, _PLACE), step.state_machine(), step.by, order, step.output
    )


def _increment(step: Increment, frames: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, TimeWindow):
        return _run_state_machine(step, frames[0])
    value = column(step.attribute) if step.attribute else fn.lit(0)
    total = fn.sum(value) if step.adds else fn.lit(None).cast("bigint")
    parts = (total, fn.count(value), fn.min(value), fn.max(value))
    named = [part.alias(name) for part, name in zip(parts, PARTIALS, strict=True)]
    time = step.inputs[0].time
    partials = (
        _windows(step, frames[0], step.window)
        .agg(*named)
        .select(*map(column, step.by), fn.col("_window.start").alias(time), *PARTIALS)
    )
    return run_state_machine(partials, step.state_machine(), step.by, [time], step.output)


def _extreme(step: Extreme, frames: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, TimeWindow):
        return _run_state_machine(step, frames[0])
    found = _extremes(step, frames[0], step.window).where(column("_extreme").isNotNull())
    event = column("_extreme").getField("event")
    names = [event.getField(name).alias(name) for name in step.output.schema.names]
    return found.select(*names, fn.window_time("_window").alias(_WINDOW_TIME))


def _running_extreme(step: RunningExtreme, frames: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, TimeWindow):
        return _run_state_machine(step, frames[0])
    event = column("_extreme").getField("event")
    windows = _extremes(step, frames[0], step.window).select(
        *map(column, step.by),
        *[event.getField(name).alias(name) for name in step.output.schema.names if name not in step.by],
        fn.col("_window.start").alias(WINDOW_START),
    )
    return run_state_machine(windows, step.state_machine(), step.by, [WINDOW_START], step.output)


def _extremes(step: Extreme, frame: DataFrame, window: TimeWindow) -> DataFrame:
    """The event with the extreme value of each window, null if no event of the window has a value.

    Spark compares structures field by field: by the value, by the time, of which the earliest counts, and by
    all attributes.
    """
    value, time = column(step.attribute), fn.unix_micros(column(step.inputs[0].time))
    chosen = fn.struct(
        value.alias("value"),
        (time if step.function == "min" else -time).alias("time"),
        fn.struct(*_columns(step.inputs[0])).alias("event"),
    )
    function = fn.min if step.function == "min" else fn.max
    extreme = function(fn.when(value.isNotNull(), chosen)).alias("_extreme")
    return _windows(step, frame, window).agg(extreme)


def _sort(step: Sort, frames: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, TimeWindow):
        return _run_state_machine(step, frames[0])
    whole = fn.collect_list(fn.struct(*map(column, step.order)))
    windows = _windows(step, frames[0], step.window).agg(
        fn.sort_array(whole, not step.descending).alias("_events")
    )
    placed = windows.select(
        fn.window_time("_window").alias(_WINDOW_TIME), fn.posexplode("_events").alias(_PLACE, "_event")
    )
    rank = [(fn.col(_PLACE) + 1).alias(step.rank)] if step.rank else []
    names = step.inputs[0].schema.names
    return placed.select(
        *[fn.col("_event").getField(name).alias(name) for name in names], *rank, _WINDOW_TIME, _PLACE
    )


def _join(step: Join, frames: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, TimeWindow):
        return _paired(step, frames)
    left, right = (
        _windowed(frame, stream_type, step.window, f"_{side}_")
        for side, (frame, stream_type) in enumerate(zip(frames, step.inputs, strict=True))
    )
    equal = [column(f"_0_{name}") == column(f"_1_{name}") for name in ("_window", *step.on)]
    names = [column(f"_0_{name}").alias(name) for name in step.inputs[0].schema.names]
    names += [column(f"_1_{old}").alias(new) for old, new in step.renamed.items()]
    return left.join(right, reduce(Column.__and__, equal)).select(*names)


def _windowed(frame: DataFrame, stream_type: StreamType, span: TimeWindow, prefix: str) -> DataFrame:
    """The rows with their window; names have the prefix of one side, and only the window is an event time."""
    time = column(_WINDOW_TIME) if _WINDOW_TIME in frame.columns else column(stream_type.time)
    window = fn.window(time, _microseconds(span.length), _microseconds(span.slide))
    plain = [
        (
            fn.timestamp_micros(fn.unix_micros(column(name))) if name == stream_type.time else column(name)
        ).alias(prefix + name)
        for name in stream_type.schema.names
    ]
    return frame.select(window.alias(f"{prefix}_window"), *plain)


def _paired(step: Join, frames: Sequence[DataFrame]) -> DataFrame:
    """Join row windows in a state machine, over the union of both streams with prefixed names."""
    groups = [column(name) for name in step.by]
    sides = [
        frame.select(
            *groups,
            fn.lit(side).alias(SIDE),
            *[column(one).alias(f"_{side}_{one}") for one in stream_type.schema.names],
        )
        for side, (frame, stream_type) in enumerate(zip(frames, step.inputs, strict=True))
    ]
    tagged = sides[0].unionByName(sides[1], allowMissingColumns=True)
    order = [SIDE, *(name for side in (0, 1) for name in _side_order(step.inputs[side], side))]
    return run_state_machine(
        tagged, _PrefixedJoinMachine(step.state_machine(), step.inputs), step.by, order, step.output
    )


def _side_order(stream_type: StreamType, side: int) -> list[str]:
    names = [stream_type.time, *stream_type.schema.names] if stream_type.time else stream_type.schema.names
    return [f"_{side}_{name}" for name in names]


class _PrefixedJoinMachine:
    """The state machine of a join, for rows whose attribute names have the prefix of their side."""

    def __init__(self, state_machine: StateMachine, stream_types: tuple[StreamType, ...]) -> None:
        self._machine = state_machine
        self._names = [stream_type.schema.names for stream_type in stream_types]

    def start(self) -> list[Any]:
        return self._machine.start()

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        return self._machine.step(state, [self._plain(event) for event in events])

    def _plain(self, event: Event) -> Event:
        side = int(str(event[SIDE]))
        return {name: event[f"_{side}_{name}"] for name in self._names[side]} | {SIDE: side}


def _function_of(step: Function, frames: Sequence[DataFrame]) -> DataFrame:
    register_module(step.call)
    if isinstance(step.window, RowWindow):
        return _run_state_machine(step, frames[0])
    if step.window is None:
        rows = frames[0].select(*_columns(step.inputs[0]))
        return rows.mapInArrow(each_event(step), spark_schema(step.output.schema))
    whole = fn.collect_list(fn.struct(*_columns(step.inputs[0]))).alias("_events")
    windows = _windows(step, frames[0], step.window).agg(whole).select("_events")
    return windows.mapInArrow(each_window(step), spark_schema(step.output.schema))


def _batch_function(step: BatchFunction, frames: Sequence[DataFrame]) -> DataFrame:
    register_module(step.call)
    rows = frames[0].select(*_columns(step.inputs[0]))
    return rows.mapInArrow(each_batch(step), spark_schema(step.output.schema))


def _sql(step: Sql, frames: Sequence[DataFrame]) -> DataFrame:
    plain = [frame.select(*_columns(one)) for frame, one in zip(frames, step.inputs, strict=True)]
    return run_query(step.query, {name: plain[number] for name, number in step.tables.items()})


_TRANSLATIONS: Mapping[type, Callable[[Any, Sequence[DataFrame]], DataFrame]] = {
    Filter: _filter,
    Project: _project,
    Merge: _merge,
    Aggregate: _aggregate,
    Increment: _increment,
    Extreme: _extreme,
    RunningExtreme: _running_extreme,
    Sort: _sort,
    Join: _join,
    Function: _function_of,
    BatchFunction: _batch_function,
    Sql: _sql,
}
