"""A definition as transformations of DataFrames, the same for streams and for past data.

What Spark can do itself it does (filters, unions, windows of time with their watermarks, joins); windows of
tuples and accumulation are machines with a state (hpwsn.streams.spark.stateful_operators); a user's
function gets rows by Arrow. Windows of time come out when the watermark has passed them, and on past data
all of them.

Rows of a batch come out in no certain order after a shuffle, save that those of a `sort` are in order within
their partition; a replayed batch has the same rows.

Where windows of time follow each other, the second goes by `_at`, the last instant of a window of the first,
since Spark holds rows with the start of a closed window for late.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as fn

from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.operator import Machine, Shape
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.definition.windows import Rows, Span
from hpwsn.streams.operators.aggregate import Aggregate
from hpwsn.streams.operators.filter import Filter
from hpwsn.streams.operators.function import Function
from hpwsn.streams.operators.increment import PARTIALS, Increment
from hpwsn.streams.operators.join import SIDE, Join
from hpwsn.streams.operators.merge import Merge
from hpwsn.streams.operators.project import Project
from hpwsn.streams.operators.sort import Sort
from hpwsn.streams.plan.plan import Plan, plan_of
from hpwsn.streams.spark.columns import column, condition_column, literal, spark_schema, spark_type
from hpwsn.streams.spark.stateful_operators import run_machine
from hpwsn.streams.spark.user_functions import each_event, each_window, ship

CONFIGURATION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
"""What a session must be set to: states in RocksDB, the only store that machines can be kept in."""

_AT = "_at"


def apply(definition: Definition, frames: Mapping[str, DataFrame]) -> DataFrame:
    """What comes out of a service for the frames of its inputs, which have the inputs' schemas."""
    plan = plan_of(definition)
    found = {name: frames[name].select(*_columns(shape)) for name, shape in plan.inputs.items()}
    for node in plan.nodes:
        takes = [found[name] for name in node.takes]
        if _has_spans(plan):
            takes = _followed(node.step, takes)
        found[node.gives] = _TRANSLATIONS[type(node.step)](node.step, takes)
    result = found[plan.last]
    for condition in plan.conditions:
        result = result.where(condition_column(condition, plan.output.schema))
    return result.select(*_columns(plan.output))


def _followed(step: Any, takes: Sequence[DataFrame]) -> list[DataFrame]:
    """The frames with watermarks, where the step is the first that needs them.

    Spark takes one watermark on a row's way, and loses it where a function takes the row over, so it comes as
    late as can be: before windows of time, and before a merge, where each stream has one of its own.
    """
    needed = isinstance(step, Merge) or isinstance(getattr(step, "window", None), Span)
    return [
        frame.withWatermark(shape.time, _microseconds(shape.lateness * 1e6))
        if needed and shape.time and not (shape.merged or shape.grain or shape.no_time_windows)
        else frame
        for frame, shape in zip(takes, step.inputs, strict=True)
    ]


def _has_spans(plan: Plan) -> bool:
    return any(isinstance(getattr(node.step, "window", None), Span) for node in plan.nodes)


def _columns(shape: Shape) -> list[Column]:
    return [column(name) for name in shape.schema.names]


def _microseconds(amount: float) -> str:
    return f"{round(amount)} microseconds"


def _filter(step: Filter, takes: Sequence[DataFrame]) -> DataFrame:
    return takes[0].where(condition_column(step.condition, step.inputs[0].schema))


def _project(step: Project, takes: Sequence[DataFrame]) -> DataFrame:
    kept = [column(old).alias(new) for old, new in step.kept.items()]
    added = [literal(value, step.output.schema[name]).alias(name) for name, value in step.added.items()]
    return takes[0].select(*kept, *added, *_at(takes[0]))


def _at(frame: DataFrame) -> list[Column]:
    return [column(_AT)] if _AT in frame.columns else []


def _merge(step: Merge, takes: Sequence[DataFrame]) -> DataFrame:
    # Where only some have `_at` no windows follow, so it is of no use.
    common = all(_AT in one.columns for one in takes)
    frames = takes if common else [one.drop(_AT) for one in takes]
    return reduce(DataFrame.unionByName, frames)


def _windows(step: Any, frame: DataFrame, window: Span) -> GroupedData:
    """The frame in groups of a window each."""
    time = column(_AT) if _AT in frame.columns else column(step.inputs[0].time)
    span = fn.window(time, _microseconds(window.length), _microseconds(window.slide))
    return frame.groupBy(span.alias("_window"), *map(column, step.by))


def _aggregate(step: Aggregate, takes: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, Span):
        return _machine(step, takes[0])
    found = _windows(step, takes[0], step.window).agg(_function(step).alias(step.result))
    return found.select(*_of_window(step), *[fn.window_time("_window").alias(_AT)])


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


def _machine(step: Any, frame: DataFrame) -> DataFrame:
    shape = step.inputs[0]
    order = ([shape.time] if shape.time else []) + list(shape.schema.names)
    return run_machine(frame.drop(_AT), step.machine(), step.by, order, step.output)


def _increment(step: Increment, takes: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, Span):
        return _machine(step, takes[0])
    value = column(step.attribute) if step.attribute else fn.lit(0)
    total = fn.sum(value) if step.adds else fn.lit(None).cast("bigint")
    parts = (total, fn.count(value), fn.min(value), fn.max(value))
    named = [part.alias(name) for part, name in zip(parts, PARTIALS, strict=True)]
    time = step.inputs[0].time
    partials = (
        _windows(step, takes[0], step.window)
        .agg(*named)
        .select(*map(column, step.by), fn.col("_window.start").alias(time), *PARTIALS)
    )
    return run_machine(partials, step.machine(), step.by, [time], step.output)


def _sort(step: Sort, takes: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, Span):
        return _machine(step, takes[0])
    whole = fn.collect_list(fn.struct(*map(column, step.order)))
    windows = _windows(step, takes[0], step.window).agg(
        fn.sort_array(whole, not step.descending).alias("_events")
    )
    placed = windows.select(
        fn.window_time("_window").alias(_AT), fn.posexplode("_events").alias("_place", "_event")
    )
    rank = [(fn.col("_place") + 1).alias(step.rank)] if step.rank else []
    names = step.inputs[0].schema.names
    return placed.select(*[fn.col("_event").getField(name).alias(name) for name in names], *rank, _AT)


def _join(step: Join, takes: Sequence[DataFrame]) -> DataFrame:
    if not isinstance(step.window, Span):
        return _paired(step, takes)
    left, right = (
        _windowed(frame, shape, step.window, f"_{side}_")
        for side, (frame, shape) in enumerate(zip(takes, step.inputs, strict=True))
    )
    equal = [column(f"_0_{name}") == column(f"_1_{name}") for name in ("_window", *step.on)]
    names = [column(f"_0_{name}").alias(name) for name in step.inputs[0].schema.names]
    names += [column(f"_1_{old}").alias(new) for old, new in step.renamed.items()]
    return left.join(right, reduce(Column.__and__, equal)).select(*names)


def _windowed(frame: DataFrame, shape: Shape, span: Span, prefix: str) -> DataFrame:
    """Rows with their window, under names of one side; only the window is of event time to Spark."""
    time = column(_AT) if _AT in frame.columns else column(shape.time)
    window = fn.window(time, _microseconds(span.length), _microseconds(span.slide))
    plain = [
        (fn.timestamp_micros(fn.unix_micros(column(name))) if name == shape.time else column(name)).alias(
            prefix + name
        )
        for name in shape.schema.names
    ]
    return frame.select(window.alias(f"{prefix}_window"), *plain)


def _paired(step: Join, takes: Sequence[DataFrame]) -> DataFrame:
    """Both streams as one, each row with its side and under names of that side, joined by a machine."""
    groups = [column(name) for name in step.by]
    sides = [
        frame.select(
            *groups,
            fn.lit(side).alias(SIDE),
            *[column(one).alias(f"_{side}_{one}") for one in shape.schema.names],
        )
        for side, (frame, shape) in enumerate(zip(takes, step.inputs, strict=True))
    ]
    tagged = sides[0].unionByName(sides[1], allowMissingColumns=True)
    order = [SIDE, *(name for side in (0, 1) for name in _side_order(step.inputs[side], side))]
    return run_machine(tagged, _Sides(step.machine(), step.inputs), step.by, order, step.output)


def _side_order(shape: Shape, side: int) -> list[str]:
    names = [shape.time, *shape.schema.names] if shape.time else shape.schema.names
    return [f"_{side}_{name}" for name in names]


class _Sides:
    """A machine of two streams, for rows whose attributes are under names of their side."""

    def __init__(self, machine: Machine, shapes: tuple[Shape, ...]) -> None:
        self._machine = machine
        self._names = [shape.schema.names for shape in shapes]

    def start(self) -> list[Any]:
        return self._machine.start()

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        return self._machine.step(state, [self._plain(event) for event in events])

    def _plain(self, event: Event) -> Event:
        side = int(str(event[SIDE]))
        return {name: event[f"_{side}_{name}"] for name in self._names[side]} | {SIDE: side}


def _function_of(step: Function, takes: Sequence[DataFrame]) -> DataFrame:
    ship(step)
    if isinstance(step.window, Rows):
        return _machine(step, takes[0])
    if step.window is None:
        rows = takes[0].select(*_columns(step.inputs[0]))
        return rows.mapInArrow(each_event(step), spark_schema(step.output.schema))
    whole = fn.collect_list(fn.struct(*_columns(step.inputs[0]))).alias("_events")
    windows = _windows(step, takes[0], step.window).agg(whole).select("_events")
    return windows.mapInArrow(each_window(step), spark_schema(step.output.schema))


_TRANSLATIONS: Mapping[type, Callable[[Any, Sequence[DataFrame]], DataFrame]] = {
    Filter: _filter,
    Project: _project,
    Merge: _merge,
    Aggregate: _aggregate,
    Increment: _increment,
    Sort: _sort,
    Join: _join,
    Function: _function_of,
}
