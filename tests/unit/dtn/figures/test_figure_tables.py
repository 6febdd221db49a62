"""Experiments are the paper's, and their results stand beside its values and trends."""

from __future__ import annotations

import json

import pytest

from hpwsn.dtn.figures.experiments import EXPERIMENTS, PAPER, Experiment, Point, points_of
from hpwsn.dtn.figures.figure_tables import Measured, document_of, markdown_of, text_of, trend, trends_of
from hpwsn.dtn.figures.run_statistics import (
    COMPARED,
    MEASURES,
    RunTask,
    Statistic,
    as_json,
    perform,
    statistics_of,
)
from hpwsn.dtn.scenario.simulation_parameters import DEFAULTS, Parameters

TINY = Parameters(sensors=8, mobiles=2, duration=60, quiet=10, interval=10.0)
SWEEP = Experiment(
    "sweep",
    "A sweep",
    ("delivery", "delay"),
    tuple(Point(f"{value}", "cet", (("alpha", value),)) for value in (1, 2)),
    "alpha",
    trends={"cet": {"delivery": "up", "delay": "up"}},
)


def measured(*deliveries: float, delay: float = 100.0) -> Measured:
    results = tuple(
        {"delivery": Statistic(one, 1.5), "delay": Statistic(delay, 0), "life": None} for one in deliveries
    )
    return Measured(SWEEP, results)


@pytest.mark.parametrize(
    ("means", "measure", "expected"),
    [
        ([90.0, 91.0], "delivery", "level"),
        ([90.0, 91.1], "delivery", "up"),
        ([91.1, 50.0, 90.0], "delivery", "down"),
        ([100.0, 95.0], "delay", "level"),
        ([100.0, 94.9], "delay", "down"),
        ([95.0, 100.0], "copies", "level"),
        ([94.9, 100.0], "copies", "up"),
        ([0.0, 0.0], "copies", "level"),
    ],
)
def test_a_trend_compares_the_ends_with_a_margin(means: list[float], measure: str, expected: str) -> None:
    assert trend(means, measure) == expected


def test_trends_say_whether_they_agree_with_the_paper() -> None:
    found = trends_of(measured(50, 60))["cet"]
    assert found["delivery"] == {"paper": "up", "ours": "up", "agrees": True}
    assert found["delay"] == {"paper": "up", "ours": "level", "agrees": False}


def test_a_table_has_the_trends_below_the_points() -> None:
    assert markdown_of(measured(50, 60)).splitlines() == [
        "## A sweep",
        "",
        "| protocol | alpha | delivery (%) | delay (s) |",
        "|---|---|---|---|",
        "| cet | 1 | 50.0 ± 1.5 | 100 ± 0 |",
        "| cet | 2 | 60.0 ± 1.5 | 100 ± 0 |",
        "| cet | trend | up | level (paper: up) |",
    ]


def test_a_table_of_the_paper_has_its_values_as_a_row() -> None:
    table = next(one for one in EXPERIMENTS if one.name == "table-3")
    found = {name: Statistic(2.0, 0.5) for name in MEASURES}
    lines = markdown_of(Measured(table, (found, found))).splitlines()
    assert "| cet | paper | 2.57 | 91 |" in lines
    assert "| dg | paper | 6.04 | 47 |" in lines


def test_the_document_is_json_with_points_and_the_papers_values() -> None:
    document = json.loads(json.dumps(document_of(measured(50, 60))))
    assert [point["changes"] for point in document["points"]] == [{"alpha": 1}, {"alpha": 2}]
    assert document["points"][0]["delivery"] == {"mean": 50, "deviation": 1.5}
    assert document["points"][0]["life"] is None
    assert document["trends"]["cet"]["delay"]["agrees"] is False


@pytest.mark.parametrize(
    ("mean", "text"), [(123.4, "123 ± 2"), (12.34, "12.3 ± 1.5"), (1.234, "1.23 ± 1.50")]
)
def test_a_mean_has_three_digits(mean: float, text: str) -> None:
    assert text_of(Statistic(mean, 1.5)) == text
    assert text_of(None) == "-"


def test_every_point_of_every_experiment_can_run() -> None:
    for experiment in EXPERIMENTS:
        assert set(experiment.measures) <= set(MEASURES)
        for point in experiment.points:
            assert point.protocol in COMPARED
            assert point.parameters(DEFAULTS)
    points = points_of(EXPERIMENTS)
    assert len(points) == len(set(points))
    # The base of each protocol is shared by all tables and sweeps.
    assert sum(parameters == DEFAULTS for _, parameters in points) == len(COMPARED)


def test_the_papers_values_are_those_of_its_tables() -> None:
    assert PAPER["cet"] == {"delivery": 91.0, "copies": 5.5, "delay": 193.8, "life": 2.57}
    assert PAPER["dg"] == {"delivery": 47.0, "copies": 75.9, "delay": 615.5, "life": 6.04}


def test_statistics_are_means_and_standard_deviations() -> None:
    outcomes = [perform(RunTask(TINY, "cet", 1, run)) for run in range(3)]
    found = statistics_of(outcomes)["copies"]
    values = [one.copies for one in outcomes if one.copies is not None]
    mean = sum(values) / 3
    assert found is not None
    assert found.mean == pytest.approx(mean)
    assert found.deviation == pytest.approx((sum((value - mean) ** 2 for value in values) / 2) ** 0.5)
    alone = statistics_of(outcomes[:1])["copies"]
    assert alone is not None
    assert alone.deviation == 0
    assert statistics_of([])["copies"] is None
    assert as_json({"copies": Statistic(1 / 3, 0)}) == {"copies": {"mean": 0.333333, "deviation": 0}}


def test_the_honest_dg_delivers_more_with_fewer_copies() -> None:
    dg, honest = (perform(RunTask(Parameters(duration=1200), name, 1, 0)) for name in ("dg", "honest-dg"))
    assert honest.received > dg.received
    assert honest.copies is not None
    assert dg.copies is not None
    assert honest.copies < dg.copies
