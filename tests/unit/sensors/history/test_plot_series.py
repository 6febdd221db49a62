"""Lines of pictures: every value without thinning, the extremes with it, and limits on what is drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.history import plot_series
from hpwsn.sensors.history.event_filter import compile_event_filter
from hpwsn.sensors.history.history_query import HistoryBusy, HistoryQuery, Picture, Row, Snapshot
from hpwsn.sensors.history.plot_series import collect, thinned
from hpwsn.sensors.history.reading_plot import draw
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from tests.unit.sensors.history.history_examples import (
    DAY,
    NOON,
    Log,
    commit,
    history_of,
    plainly,
    reading,
    row,
)

POINTS = st.lists(st.tuples(st.integers(0, 200), st.floats(-5, 5)), min_size=1, max_size=60)


def unit_of(sensor, quantity):
    return {"t": "degC"}.get(quantity)


def picture(quantity=None, form="svg", **query):
    return Picture(HistoryQuery(**query), form, quantity, unit_of)


def in_memory(items, folder="."):
    return Snapshot(folder, {}, [row(number, item) for number, item in enumerate(items, 1)])


def points(chart):
    """The points of each line as lists."""
    return {
        key: {
            name: list(zip(times.tolist(), values.tolist(), strict=True))
            for name, (times, values) in lines.items()
        }
        for key, lines in chart.panels.items()
    }


def result(n, value, sensor="v", quantity="t", unit="degC"):
    event = {"sensor": sensor, "time": "", "quantity": quantity, "unit": unit, "value": value}
    return Row(NOON + n, n, event)


async def test_each_quantity_is_a_panel_and_each_sensor_a_line_from_files_and_memory(tmp_path):
    log = Log()
    history = history_of(tmp_path, log)
    await history.open()
    commit(history, log, [reading(2, "b", t=2.0, h=7.0), reading(1, "a"), reading(0, "b")])
    await history._flush()
    commit(history, log, [reading(3, "a", t=-1.0), reading(3, "x", kind="sea")])
    chart = collect(history._snapshot(), picture(kind="weather"))
    assert points(chart) == {
        ("h", ""): {"b": [(NOON + 2, 7.0)]},
        ("t", "degC"): {
            "a": [(NOON + 1, 1.0), (NOON + 3, -1.0)],
            "b": [(NOON, 0.0), (NOON + 2, 2.0)],
        },
    }
    assert (chart.sensors, chart.quantities) == ({("h", ""): 1, ("t", "degC"): 2}, 2)
    only = collect(history._snapshot(), picture("h"))
    assert points(only) == {("h", ""): {"b": [(NOON + 2, 7.0)]}}
    assert collect(history._snapshot(), picture("none")).panels == {}
    svg = (await history.queries.picture(picture(kind="weather"))).decode()
    assert all(f">{text}</text>" in svg for text in ("a", "b", "h", "t (degC)", "weather", "time (UTC)"))
    await history.close()


@pytest.mark.parametrize("in_files", [False, True])
async def test_a_line_has_what_a_plain_selection_finds(in_files, tmp_path):
    log = Log()
    history = history_of(tmp_path, log)
    await history.open()
    commit(history, log, [reading(n, f"s{n % 3}", place=(n, 0.0)) for n in range(60)])
    if in_files:
        await history._flush()
    text = compile_event_filter(ContentFilter(DIALECT_PREDICATES, "t > 10 and t != 30", ()))
    for query in (
        HistoryQuery(start=NOON + 5, end=NOON + 50),
        HistoryQuery(sensors=frozenset(["s1", "none"]), wanted=text),
        HistoryQuery(area=plot_area()),
    ):
        expected = {}
        for each in plainly(log.rows.values(), query):
            expected.setdefault(each.item.sensor, []).append((each.time, each.item.values["t"]))
        found = points(collect(history._snapshot(), Picture(query, "png", None, unit_of)))
        assert found == {("t", "degC"): expected}
    await history.close()


def plot_area():
    from hpwsn.sensors.physical.selection import Area

    return Area(10, -1, 20, 1)


def test_results_are_drawn_by_the_quantity_and_unit_in_them():
    rows = [
        result(0, 1.0),
        result(1, None),
        result(2, 3),
        result(3, 4.0, "w", unit="K"),
        result(4, 5.0, quantity=None),
    ]
    query = HistoryQuery(virtual=True)
    chart = collect(Snapshot(".", {}, rows), Picture(query, "png"))
    assert points(chart) == {
        ("t", "degC"): {"v": [(NOON, 1.0), (NOON + 2, 3.0)]},
        ("t", "K"): {"w": [(NOON + 3, 4.0)]},
        ("", "degC"): {"v": [(NOON + 4, 5.0)]},
    }


@given(POINTS, st.integers(1, 50))
def test_thinning_keeps_the_lowest_and_the_highest_value_of_each_time(line, width):
    times, values = (np.array(each) for each in zip(*line, strict=True))
    kept = list(zip(*(each.tolist() for each in thinned((times, values), width)), strict=True))
    assert set(kept) <= set(line)
    for begin in {time // width for time, _ in line}:
        before = [value for time, value in line if time // width == begin]
        after = [value for time, value in kept if time // width == begin]
        assert (min(after), max(after)) == (min(before), max(before))
        assert len(after) <= 2


def test_a_long_line_is_thinned_while_it_is_read_and_keeps_its_extremes(monkeypatch):
    monkeypatch.setattr(plot_series, "MOST_POINTS", 2000)
    monkeypatch.setattr(plot_series, "BINS", 50)
    chance = np.random.default_rng(3)
    items = [
        reading(1000 * int(n), f"s{n % 3}", t=float(value))
        for n, value in enumerate(chance.normal(size=30_000))
    ]
    items[12_345] = reading(1000 * 12_345, "s0", t=99.0)
    most = 0
    series = plot_series.Series(picture())
    for at in range(0, len(items), 1000):
        for table in plot_series._tables_of(
            row(at + n, each) for n, each in enumerate(items[at : at + 1000])
        ):
            series.take(table)
        most = max(most, series._points)
    assert most <= 2000
    lines = series.chart().panels["t", "degC"]
    for name, (times, values) in lines.items():
        own = [item.values["t"] for item in items if item.sensor == name]
        assert (values.min(), values.max()) == (min(own), max(own))
        assert len(times) <= 2 * 101
        assert (np.diff(times) >= 0).all()


def test_of_many_sensors_and_quantities_the_first_are_drawn_and_all_are_counted(monkeypatch):
    items = [reading(n, f"s{n:03}") for n in range(120)] + [
        reading(200 + n, "s000", **{f"q{n}": 1.0}) for n in range(9)
    ]
    series = plot_series.Series(picture())
    for item in reversed(items):
        for table in plot_series._tables_of([row(1, item)]):
            series.take(table)
    chart = series.chart()
    assert list(chart.panels) == [(f"q{n}", "") for n in range(plot_series.MOST_PANELS)]
    assert chart.quantities == 10
    chart = collect(in_memory(items), picture("t"))
    lines = chart.panels["t", "degC"]
    assert list(lines) == [f"s{n:03}" for n in range(plot_series.MOST_LINES)]
    assert chart.sensors["t", "degC"] == 120
    svg = draw(chart, "svg").decode()
    assert "50 of 120 sensors" in svg
    assert "and 35 more" in svg


async def test_a_picture_of_too_many_readings_says_what_to_ask(tmp_path, monkeypatch):
    log = Log()
    history = history_of(tmp_path, log)
    await history.open()
    commit(history, log, [reading(0)])
    await history._flush()
    monkeypatch.setattr(plot_series, "WORK", -1.0)
    with pytest.raises(HistoryBusy, match="shorter time, or for fewer sensors"):
        await history.queries.picture(picture())
    await history.close()


@pytest.mark.parametrize("form", ["png", "svg"])
@pytest.mark.parametrize(
    "items",
    [
        [],
        [reading(0)],
        [reading(0, t=1.7976931348623157e308), reading(1, t=-1.7976931348623157e308)],
        [reading(time=-62135596800000), reading(time=253402300799999)],
        [reading(0, "_hidden", t=5e-324), reading(0, "京-$x_1$", **{"$y^2": 1.0}), reading(0, "l" * 200)],
        [reading(n * DAY, t=1013.25) for n in range(400)],
    ],
    ids=["nothing", "one", "largest", "all-time", "names", "constant"],
)
def test_every_reading_can_be_drawn(form, items):
    chart = collect(in_memory(items), picture(start=None))
    drawn = draw(chart, form)
    assert drawn.startswith(b"\x89PNG" if form == "png" else b"<?xml")
    if form == "svg":
        assert draw(chart, form) == drawn
        assert all(
            item.sensor[:30] in drawn.decode() for item in items if len({each.sensor for each in items}) > 1
        )
        assert (b"no readings" in drawn) == (not items)


def test_an_empty_picture_shows_the_time_that_was_asked_for():
    svg = draw(collect(in_memory([]), picture(start=NOON, end=NOON + DAY)), "svg").decode()
    assert "2024-Oct" in svg
