"""Results of virtual sensors among committed runs: the events on `virtual:NAME` that have the form of one.

Others may publish on these topics too. An event without a time, or that does not name the sensor of its
topic, is no result. A result is kept with its known fields that have the right type, in memory as in files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hpwsn.notification import Run, split_payloads
from hpwsn.sensors.history.history_query import Row
from hpwsn.sensors.readings.reading_run import LARGEST, numbered_readings
from hpwsn.sensors.readings.reading_times import parse_time, time_text
from hpwsn_client.wsn.formats.json_events import decode_event
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

ROOT = "virtual"
"""The root of the topics of virtual sensors."""
_WHOLE = 1e15
"""Below this, a whole number is exact, and results have it without a fraction."""


def results_of(first: int, runs: Iterable[Run]) -> list[Row]:
    """The results among runs that follow each other in the log from an offset on."""
    found: list[Row] = []
    for run in runs:
        topic = run.topic
        if topic is not None and topic.path[0] == ROOT and _is_of_virtual(topic) and run.target is None:
            found += _results(topic.path[1], first, run)
        first += run.size
    return found


def logged_rows(first: int, run: Run) -> list[Row]:
    """The readings and results of a run in the log."""
    readings = numbered_readings(first, (run,))
    return [Row(each.time, offset, each) for offset, each in readings] or results_of(first, (run,))


def _is_of_virtual(topic: Topic) -> bool:
    return len(topic.path) == 2 and topic.namespace == HPWSN_TOPICS


def _results(name: str, first: int, run: Run) -> Sequence[Row]:
    if run.large:
        return ()
    found = []
    for offset, payload in enumerate(split_payloads(run.payloads), first):
        try:
            event = decode_event(payload)
        except SoapFault:
            continue
        text = event.get("time")
        time = parse_time(text) if isinstance(text, str) else None
        if time is not None and event.get("sensor") == name:
            found.append(Row(time, offset, result_item(name, time, event)))
    return found


def result_item(name: str, time: int, event: Mapping[str, Any]) -> dict[str, Any]:
    """The known fields of a result, in the order of its event; only `value` may be null."""
    fields: dict[str, Any] = {
        "sensor": name,
        "time": time_text(time),
        "quantity": _text(event.get("quantity")),
        "unit": _text(event.get("unit")),
        "value": whole(_number(event.get("value"))),
        "count": _count(event.get("count")),
        "sensors": _count(event.get("sensors")),
        "states": _texts(event.get("states")),
        "changed": event["changed"] if isinstance(event.get("changed"), bool) else None,
        "text": _text(event.get("text")),
    }
    return without_nulls(fields)


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a result that it has; one without a value has it as null."""
    return {name: value for name, value in fields.items() if value is not None or name == "value"}


def whole(value: float | None) -> float | int | None:
    """The value as results have it: a whole number has no fraction."""
    return value if value is None or not (abs(value) < _WHOLE and value == int(value)) else int(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value)


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None or abs(number) >= _WHOLE else int(number)


def _texts(value: object) -> list[str] | None:
    if value is None:
        return None
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
