"""A service computed over lists of events: what Spark must give, in plain Python.

Every operator's own `run` is its meaning; here they are joined as the definition says. Of windows of time
only those come out that end by `until`; None is the end of the data, as in a query of past events. What a
running job has given out after some events is `until` their watermark.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from hpwsn.streams.conditions import holds
from hpwsn.streams.definition import Definition
from hpwsn.streams.plan import Plan, plan_of
from hpwsn.streams.schema import Event, event_of

Streams = Mapping[str, Sequence[Mapping[str, object]]]
"""The events of each input, in Python or as JSON has them."""


def compute(definition: Definition, streams: Streams, until: datetime | None = None) -> list[Event]:
    """The events that the service gives for those of its inputs."""
    plan = plan_of(definition)
    found = {
        name: [event_of(one, shape.schema) for one in streams[name]] for name, shape in plan.inputs.items()
    }
    for node in plan.nodes:
        found[node.gives] = node.step.run([found[name] for name in node.takes], until)
    return [event for event in found[plan.last] if all(holds(one, event) for one in plan.conditions)]


def watermark(definition: Definition, streams: Streams) -> datetime | None:
    """How far the event time of all inputs has come, less the lateness of each; None before all have any."""
    plan = plan_of(definition)
    reached = [_reached(plan, name, streams[name]) for name in plan.inputs if plan.inputs[name].time]
    known = [moment for moment in reached if moment is not None]
    return min(known) if known and len(known) == len(reached) else None


def _reached(plan: Plan, name: str, events: Sequence[Mapping[str, object]]) -> datetime | None:
    shape, lateness = plan.inputs[name], plan.definition.inputs[name].lateness
    moments = [event_of(one, shape.schema)[shape.time] for one in events]
    latest = max((one for one in moments if isinstance(one, datetime)), default=None)
    return None if latest is None else latest - timedelta(seconds=lateness)
