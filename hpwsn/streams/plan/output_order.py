"""The order in which a service publishes: what Spark keeps, and what has to be put in order again.

Events of one key leave in the order in which they came, and windows of one key in the order of their time. An
operator that regroups its input (windows, joins, accumulation) decides how: behind a state machine, the rows
of a group keep the order of its output; behind time windows, Spark keeps no order, and the rows of one key
may be in several partitions.
"""

from dataclasses import dataclass
from enum import Enum

from hpwsn.streams.definition.windows import TimeWindow
from hpwsn.streams.operators.aggregate import Aggregate
from hpwsn.streams.operators.extremes import Extreme, RunningExtreme
from hpwsn.streams.operators.filter import Filter
from hpwsn.streams.operators.function import Function
from hpwsn.streams.operators.increment import Increment
from hpwsn.streams.operators.join import Join
from hpwsn.streams.operators.merge import Merge
from hpwsn.streams.operators.project import Project
from hpwsn.streams.operators.sort import Sort
from hpwsn.streams.operators.sql import Sql, keeps_order
from hpwsn.streams.plan.plan import Plan, PlanNode

_REGROUPING = (Aggregate, Increment, Extreme, Sort, Join)


class Order(Enum):
    """How the rows of a batch are ordered when they leave Spark."""

    INPUT = "input"
    """As they were read."""
    GROUPS = "groups"
    """The rows of a group are in one partition, in order; groups follow each other."""
    NONE = "none"
    """In no order; the rows of a key may be in several partitions."""


@dataclass(frozen=True, slots=True)
class OutputOrder:
    """The order, and the output attributes by which events belong together; none if these are unknown."""

    order: Order
    keys: tuple[str, ...] = ()


def output_order(plan: Plan) -> OutputOrder:
    """The order of a plan's output, as its last regrouping operator leaves it."""
    found = OutputOrder(Order.INPUT)
    for node in plan.nodes:
        step = node.step
        if _regroups(node):
            found = OutputOrder(
                _order_behind(step), tuple(getattr(step, "by", ()) or getattr(step, "on", ()))
            )
        elif isinstance(step, Project):
            kept = [step.kept.get(name, "") for name in found.keys]
            found = OutputOrder(found.order, tuple(kept) if all(kept) else ())
        elif not isinstance(step, Filter | Merge):
            found = OutputOrder(found.order)
    return found


def _regroups(node: PlanNode) -> bool:
    step = node.step
    if isinstance(step, Sql):
        return not keeps_order(step.query)
    return isinstance(step, _REGROUPING) or (isinstance(step, Function) and step.window is not None)


def _order_behind(step: object) -> Order:
    if isinstance(step, Increment | RunningExtreme):
        # Windows are computed first, and the state machine of a group gets them in the order of time.
        return Order.GROUPS
    shuffled = isinstance(step, Sql) or isinstance(getattr(step, "window", None), TimeWindow)
    return Order.NONE if shuffled else Order.GROUPS
