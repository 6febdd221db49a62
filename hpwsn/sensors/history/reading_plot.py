"""Draws readings and results over time: a panel for each quantity with its unit, a line for each sensor.

matplotlib is used without pyplot, so that nothing is kept between pictures. A thread of its own draws one
picture at a time. Names are texts, never formulas; a long one is shortened.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hpwsn.sensors.history.history_query import HistoryQuery
from hpwsn.sensors.history.plot_series import Chart, Key, Points

WIDTH, PANEL, MARGIN, LOWEST = 11.0, 2.6, 0.9, 4.5
"""Inches: of a picture, of each panel, above and below the panels, and of a picture with one panel."""
DPI = 100
LEGEND = 15
"""Sensors in the legend; of more, it tells how many there are."""
LONGEST = 40
"""Characters of a name."""
FEW = 120
"""Points up to which each one is marked."""
LARGEST = 1e300
"""What is drawn of a larger value; an axis cannot be longer than the largest number."""
FIRST, LAST = (
    np.datetime64("0001-01-02", "ms").astype(np.int64),
    np.datetime64("9999-12-30", "ms").astype(np.int64),
)
"""The times that an axis can have, with a day to spare."""


def draw(chart: Chart, form: str) -> bytes:
    """The picture in a form, `png` or `svg`."""
    height = max(PANEL * len(chart.panels) + MARGIN, LOWEST)
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    axes = figure.subplots(max(len(chart.panels), 1), 1, sharex=True, squeeze=False)[:, 0]
    names = sorted({sensor for lines in chart.panels.values() for sensor in lines})
    colors = _colors(names)
    for ax, (key, lines) in zip(axes, chart.panels.items(), strict=False):
        _draw_panel(ax, key, lines, colors)
        if chart.sensors[key] > len(lines):
            _tell(ax, f"{len(lines)} of {chart.sensors[key]} sensors")
    if not chart.panels:
        axes[0].set_yticks([])
        axes[0].text(0.5, 0.5, "no readings", transform=axes[0].transAxes, ha="center", va="center")
    _draw_times(axes[-1], chart)
    figure.suptitle(_title(chart), fontsize="medium", parse_math=False)
    if len(names) > 1:
        _draw_legend(figure, names, colors)
    return _saved(figure, form)


def _draw_panel(ax: Axes, key: Key, lines: Mapping[str, Points], colors: Mapping[str, Any]) -> None:
    quantity, unit = map(_shortened, key)
    ax.set_ylabel(f"{quantity} ({unit})" if unit else quantity, parse_math=False)
    ax.grid(alpha=0.3)
    for sensor, (times, values) in lines.items():
        drawn = np.clip(times, FIRST, LAST).astype("datetime64[ms]"), np.clip(values, -LARGEST, LARGEST)
        few = len(times) <= FEW
        ax.plot(*drawn, color=colors[sensor], linewidth=1, marker="." if few else "", markersize=6)
    ax.ticklabel_format(axis="y", useOffset=False)


def _draw_times(ax: Axes, chart: Chart) -> None:
    """The axis of time, from the first to the last point, or what was asked for if there is none."""
    every = [times for lines in chart.panels.values() for times, _ in lines.values()]
    start, end = chart.query.start, chart.query.end
    if every:
        start, end = int(min(map(np.min, every))), int(max(map(np.max, every)))
    if start is None or end is None:
        ax.set_xticks([])
    else:
        margin = max((end - start) // 50, 1000)
        limits = np.clip([start - margin, end + margin], FIRST, LAST).astype("datetime64[ms]")
        ax.set_xlim(*limits)
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_formatter(formatter)
    ax.set_xlabel("time (UTC)")


def _draw_legend(figure: Figure, names: Sequence[str], colors: Mapping[str, Any]) -> None:
    handles = [Line2D([], [], color=colors[name]) for name in names[:LEGEND]]
    labels = [_shortened(name) for name in names[:LEGEND]]
    if len(names) > LEGEND:
        handles.append(Line2D([], [], linestyle="none"))
        labels.append(f"and {len(names) - LEGEND} more")
    legend = figure.legend(handles, labels, loc="outside right upper", fontsize="small", frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _tell(ax: Axes, words: str) -> None:
    ax.set_title(words, loc="right", fontsize="small")


def _title(chart: Chart) -> str:
    """What is drawn, and how much of it."""
    words = _subject(chart.query)
    if chart.quantities > len(chart.panels):
        words += f" \N{EN DASH} {len(chart.panels)} of {chart.quantities} quantities"
    return words


def _subject(query: HistoryQuery) -> str:
    if query.sensors is not None and len(query.sensors) <= 3:
        return ", ".join(map(_shortened, sorted(query.sensors)))
    if query.sensors is not None:
        return f"{len(query.sensors)} sensors"
    if query.kind is not None:
        return _shortened(query.kind)
    return "virtual sensors" if query.virtual else "all sensors"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _colors(names: Sequence[str]) -> dict[str, Any]:
    """A color for each name; neighbours differ as much as they can."""
    if len(names) <= 10:
        return {name: f"C{place}" for place, name in enumerate(names)}
    palette = mpl.colormaps["turbo"]
    return {name: palette(0.05 + 0.9 * place / (len(names) - 1)) for place, name in enumerate(names)}


def _saved(figure: Figure, form: str) -> bytes:
    target = io.BytesIO()
    # Text stays text in SVG. A font without a letter of a name draws a box, and warns each time.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "hpwsn"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
        figure.savefig(target, format=form, metadata={"Date": None} if form == "svg" else None)
    return target.getvalue()
