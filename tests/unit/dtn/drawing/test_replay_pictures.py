"""A recorded run becomes pictures that any viewer shows, and a page that needs nothing else."""

from __future__ import annotations

import json
import re

import pytest
from lxml import etree

from hpwsn.dtn.drawing.figure_plots import plot
from hpwsn.dtn.drawing.replay_frames import MOST_FRAMES, MOST_LINES, record
from hpwsn.dtn.drawing.replay_page import replay_page
from hpwsn.dtn.drawing.replay_pictures import picture
from hpwsn.dtn.figures.experiments import EXPERIMENTS
from hpwsn.dtn.figures.figure_tables import Measured
from hpwsn.dtn.figures.run_statistics import MEASURES, Statistic
from hpwsn.dtn.scenario.simulation_parameters import Parameters
from hpwsn.dtn.simulation.simulation import simulate

SMALL = Parameters(sensors=15, mobiles=3, duration=500, quiet=50, interval=20.0)
SVG = "{http://www.w3.org/2000/svg}"


def test_a_replay_shows_the_run_of_its_seed() -> None:
    replay = record(SMALL, "cet", 3)
    outcome = simulate(SMALL, "cet", 3)
    last = replay.frames[-1]
    assert (last.time, last.received, last.created) == (500, outcome.received, outcome.events)
    assert last.wanted == outcome.wanted
    assert len(replay.frames) <= MOST_FRAMES
    assert all(len(frame.lines) <= MOST_LINES for frame in replay.frames)
    assert [frame.time for frame in replay.frames] == list(range(2, 501, 2))


def test_a_picture_has_every_sensor_and_subscriber_and_the_transmissions() -> None:
    replay = record(SMALL, "cet", 3)
    frame = max(replay.frames, key=lambda one: len(one.lines))
    drawn = etree.fromstring(picture(replay, frame))
    assert len(drawn.findall(SVG + "circle")) == SMALL.sensors
    assert len(drawn.findall(SVG + "line")) == len(frame.lines) > 0
    assert len([one for one in drawn.findall(SVG + "path") if one.get("fill") == "black"]) == SMALL.mobiles
    ringed = [one for one in drawn.findall(SVG + "circle") if one.get("stroke")]
    assert len(ringed) == len(frame.heads)
    text = drawn.findtext(SVG + "text")
    assert text is not None
    assert f"second {frame.time}" in text


def test_the_page_holds_all_frames_and_loads_nothing() -> None:
    replay = record(SMALL, "dg", 3)
    page = replay_page(replay)
    found = re.search(r"const replay = (\{.*\});", page)
    assert found
    data = json.loads(found[1])
    assert len(data["frames"]) == len(replay.frames)
    assert len(data["sensors"]) == len(data["colours"]) == SMALL.sensors
    assert data["frames"][-1]["caption"].startswith("dg, second 500: ")
    assert "://" not in page
    assert "src=" not in page


@pytest.mark.parametrize("name", ["figure-7", "figure-8", "figure-9", "figure-10"])
def test_a_plot_is_the_same_for_the_same_results(name: str) -> None:
    experiment = next(one for one in EXPERIMENTS if one.name == name)
    found = {measure: Statistic(7.0, 1.0) for measure in MEASURES}
    measured = Measured(experiment, (found,) * len(experiment.points))
    drawn = plot(measured)
    assert drawn == plot(measured)
    assert etree.fromstring(drawn.encode()).tag == SVG + "svg"
    assert experiment.title in drawn


def test_a_plot_leaves_out_what_was_not_measured() -> None:
    experiment = next(one for one in EXPERIMENTS if one.name == "figure-7")
    found: dict[str, Statistic | None] = dict.fromkeys(MEASURES)
    assert plot(Measured(experiment, (found,) * len(experiment.points)))
