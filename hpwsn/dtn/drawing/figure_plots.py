"""Draws a sweep: a panel for each measure, a line with standard deviations for each protocol.

The paper prints values only for the default parameters. They are drawn as crosses, in the colour of their
protocol. matplotlib is used without pyplot, so that nothing is kept between pictures.
"""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib.figure import Figure

from hpwsn.dtn.figures.experiments import PAPER
from hpwsn.dtn.figures.figure_tables import Measured, trends_of
from hpwsn.dtn.figures.run_statistics import MEASURES
from hpwsn.dtn.scenario.simulation_parameters import DEFAULTS

COLOURS = {"cet": "#4477aa", "dg": "#ee6677"}
PANEL_WIDTH, HEIGHT = 4.2, 3.4
"""Inches."""


def plot(measured: Measured) -> str:
    """The sweep as SVG; the same results give the same bytes."""
    experiment = measured.experiment
    names = experiment.measures
    figure = Figure(figsize=(PANEL_WIDTH * len(names), HEIGHT), layout="constrained")
    figure.suptitle(experiment.title)
    trends = trends_of(measured)
    default = getattr(DEFAULTS, experiment.axis)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for protocol in measured.protocols():
            points = [
                (float(point.label), one) for point, found in measured.of(protocol) if (one := found[name])
            ]
            colour = COLOURS.get(protocol)
            paper = trends.get(protocol, {}).get(name, {}).get("paper", "")
            axes.errorbar(
                [x for x, _ in points],
                [one.mean for _, one in points],
                [one.deviation for _, one in points],
                label=f"{protocol.upper()} (paper: {paper})",
                color=colour,
                marker="o",
                capsize=3,
            )
            axes.plot([default], [PAPER[protocol][name]], "x", color=colour, markersize=9)
        if experiment.axis == "grid":
            axes.invert_xaxis()
        axes.set_xlabel(experiment.axis)
        axes.set_ylabel(f"{name} ({MEASURES[name]})")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "hpwsn", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()
