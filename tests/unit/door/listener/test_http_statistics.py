"""Requests are counted by door, and accepted ones are timed."""

import pytest

from hpwsn.door.listener.http_statistics import HttpStatistics
from hpwsn.histogram import Timings


@pytest.mark.parametrize(
    ("path", "door"),
    [
        ("/wsn", "soap"),
        ("/wsn/subscriptions/1", "soap"),
        ("/wsn/process", "original"),
        ("/onvif/events", "onvif"),
        ("/topics/A:B/events", "json"),
        ("/streams/urn:a/events", "json"),
        ("/topics/changes", "operator"),
        ("/cluster/taken/1", "peer"),
        ("/nodes/a/status", "operator"),
        ("/metrics", "operator"),
        ("/", "operator"),
        ("/no/such/path", "operator"),
    ],
)
def test_a_path_belongs_to_a_door(path: str, door: str) -> None:
    statistics = HttpStatistics(Timings())
    statistics.answered(path, 404, 0.1)
    assert [name for name, codes in statistics.requests.items() if codes.get("4xx") == 1] == [door]


def test_only_publications_that_are_accepted_are_timed() -> None:
    timings = Timings()
    statistics = HttpStatistics(timings)
    statistics.answered("/topics/A/events", 202, 0.1)
    statistics.answered("/topics/A/events", 400, 0.1)
    statistics.answered("/subscriptions/1/retry", 202, 7.0)
    statistics.accepted(0.2, 5)
    assert sum(timings.accept.counts) == 6
    assert timings.accept.total == pytest.approx(1.1)


def test_the_figures_are_those_of_status() -> None:
    statistics = HttpStatistics(Timings())
    statistics.fast, statistics.full = lambda: 2, lambda: 3
    statistics.refused = 1
    statistics.accepted(0.1, 4)
    assert statistics.figures() == {
        "connections": {"fast": 2, "full": 3, "refused": 1},
        "requests": {"soap": {"2xx": 4}},
    }
