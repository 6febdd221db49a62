"""Results of virtual sensors among committed runs: the events on `virtual:NAME` that have the form of one.

Others may publish on these topics too. An event without a time, or that does not name the sensor of its
topic, is no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpwsn.notification import Run, split_payloads
from hpwsn.sensors.history.history_query import Row
from hpwsn.sensors.readings.reading_run import numbered_readings
from hpwsn.sensors.readings.reading_times import parse_time
from hpwsn_client.wsn.formats.json_events import decode_event
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

ROOT = "virtual"
"""The root of the topics of virtual sensors."""


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
            found.append(Row(time, offset, event))
    return found
