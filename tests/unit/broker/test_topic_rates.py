"""Rates of topics: a mean over the window that ends in exactly nothing."""

from __future__ import annotations

import asyncio

import pytest

from hpwsn import recent_rates
from hpwsn.broker.topic_rates import TopicRates
from hpwsn.notification import FOREIGN, INTERNAL
from hpwsn.recent_rates import WINDOW
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import holds
from tests.runs import run_of

T = Topic.parse


def test_a_rate_is_the_mean_over_the_window() -> None:
    rates = TopicRates()
    for _ in range(WINDOW):
        rates.committed(1, [run_of("A", b"<x/>", b"<x/>"), run_of("A", b"<x/>"), run_of("A:B", b"<x/>")])
        rates.sample(1.0)
    assert rates.rate(T("A")) == 3.0
    assert rates.rate(T("A:B")) == 1.0
    assert rates.rate_below(T("A")) == 4.0
    assert rates.busiest(1) == [(T("A"), 3.0)]
    assert rates.busiest(5) == [(T("A"), 3.0), (T("A:B"), 1.0)]


def test_after_a_late_sample_the_rate_still_is_that_of_the_clock() -> None:
    rates = TopicRates()
    rates.committed(1, [run_of("A", *[b"<x/>"] * 20)])
    rates.sample(4.0)
    assert rates.rate(T("A")) == 5.0


def test_a_silent_topic_falls_to_exactly_zero_and_is_forgotten() -> None:
    rates = TopicRates()
    rates.committed(1, [run_of(f"A:t{n}", b"<x/>") for n in range(100)])
    rates.sample(1.1)
    seen = []
    for _ in range(WINDOW):
        seen.append(rates.rate(T("A:t7")))
        rates.sample(1.1)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] > 0.0
    assert rates.rate(T("A:t7")) == 0.0
    assert not rates.counts
    assert rates.busiest(3) == []
    assert rates.rate_below(T("A")) == 0.0


def test_what_comes_from_other_nodes_and_internal_events_count_and_what_has_no_topic_does_not() -> None:
    rates = TopicRates()
    runs = [
        run_of("A", b"<x/>", routing=FOREIGN),
        run_of("A", b"<x/>", target=INTERNAL),
        run_of("A", b"<x/>", target="a-pull-point"),
        run_of(None, b"<x/>"),
    ]
    rates.committed(1, runs)
    rates.sample(1.0)
    assert rates.counts == {T("A"): 2}


async def test_the_task_takes_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_rates, "INTERVAL", 0.001)
    rates = TopicRates()
    rates.committed(1, [run_of("A", b"<x/>")])
    rates.start()
    await holds(lambda: rates.version > 1)
    await rates.close()
    assert rates.seconds > 0
    before = rates.version
    await asyncio.sleep(0)
    assert rates.version == before
