"""The pure modules of the view of sensors, run in the browser: the map, results, spans, rejected readings."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.harness import NodeProcess
from tests.system.page.opened_page import OpenedPages

CALL = """async ([module, name, values]) => {
  const found = await import(`./app/sensors/${module}.js`);
  return found[name](...values);
}"""
FRAMES_ROUND_TRIP = """async () => {
  const { frameOf, frameText, holds, parseFrame, viewOf, zoomed } = await import("./app/sensors/map_view.js");
  let seed = 7;
  const random = () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };
  const wrong = [];
  for (let turn = 0; turn < 2000; turn += 1) {
    const [longitude, latitude] = [random() * 360 - 180, random() * 170 - 85];
    const width = 10 ** (random() * 4 - 3);
    const wrap = (value) => (value > 180 ? value - 360 : value < -180 ? value + 360 : value);
    const places = Array.from({ length: 1 + Math.floor(random() * 8) }, () => ({
      longitude: wrap(longitude + (random() - 0.5) * width),
      latitude: latitude + (random() - 0.5) * Math.min(width, 8),
    }));
    const frame = frameOf(places);
    const shown = parseFrame(frameText(frame));
    const view = viewOf(frame, 800, 300);
    const inView = places.every((place) => {
      const [x, y] = [view.x(place.longitude), view.y(place.latitude)];
      const back = Math.abs(view.latitudeAt(y) - place.latitude) < 1e-6
        && Math.abs(wrap(view.longitudeAt(x)) - place.longitude) % 360 < 1e-6;
      return x >= 0 && x <= 800 && y >= 0 && y <= 300 && back;
    });
    const narrow = zoomed(view.frame, 0.5);
    const kept = places.every((place) => holds(frame, place) && shown && holds(shown, place));
    if (!kept || !inView || !(narrow.east - narrow.west <= view.frame.east - view.frame.west)) {
      wrong.push({ places, frame, shown });
    }
  }
  return wrong.slice(0, 3);
}"""
EVERY_MARK_ONCE = """async (number) => {
  const { marksOf, viewOf } = await import("./app/sensors/map_view.js");
  const items = Array.from({ length: number }, (_, index) => ({
    key: String(index), place: { longitude: (index * 37 % 1000) / 100, latitude: (index * 91 % 1000) / 200 },
  }));
  const { singles, groups } = marksOf(items, viewOf({ west: 0, south: 0, east: 10, north: 5 }, 900, 450));
  const drawn = [...singles.map(({ item }) => item), ...groups.flatMap((group) => group.items)];
  const keys = drawn.map((item) => item.key);
  return { all: keys.length, different: new Set(keys).size, drawn: singles.length + groups.length };
}"""
BUFFER = """async (events) => {
  const { lastChange, resultBuffer, seriesOf } = await import("./app/sensors/result_values.js");
  const buffer = resultBuffer(60);
  for (const event of events) buffer.add(event);
  const before = buffer.results().map((each) => each.value);
  const { times, values } = seriesOf(buffer.results(), 10);
  const change = lastChange(buffer.results());
  buffer.prune(100);
  return { before, times, values, change, after: buffer.results().map((each) => each.value) };
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def page(open_page: OpenedPages, shared_node: NodeProcess) -> Page:
    """A page whose modules can be imported."""
    return await open_page(shared_node, ready=False)


async def call(page: Page, module: str, name: str, *values: Any) -> Any:
    """What a function of a module returns."""
    return await page.evaluate(CALL, [module, name, list(values)])


async def test_a_frame_holds_its_places_also_across_the_180th_meridian(page: Page) -> None:
    assert await page.evaluate(FRAMES_ROUND_TRIP) == []


async def test_islands_on_both_sides_of_the_180th_meridian_are_near_each_other(page: Page) -> None:
    places = [{"longitude": 178.5, "latitude": -18}, {"longitude": -178.5, "latitude": -17}]
    frame = await call(page, "map_view", "frameOf", places)
    assert frame["west"] > 170
    assert frame["east"] - frame["west"] < 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1,2,3",
        "1,2,3,4,5",
        "a,b,c,d",
        "10,50,10,51",
        "1,2,3,2",
        "0,-91,1,0",
        "181,0,2,1",
        "1e9,0,2,1",
        "1,,2,3",
    ],
)
async def test_what_is_no_area_is_left_out(page: Page, text: str) -> None:
    assert await call(page, "map_view", "parseFrame", text) is None


async def test_one_place_has_a_frame_with_room_around_it(page: Page) -> None:
    frame = await call(page, "map_view", "frameOf", [{"longitude": 10, "latitude": 50}])
    assert frame["west"] < 10 < frame["east"]
    assert frame["south"] < 50 < frame["north"]
    assert await call(page, "map_view", "frameOf", []) is None


@pytest.mark.parametrize("number", [0, 1, 400, 401, 5000])
async def test_every_sensor_is_drawn_once_alone_or_in_a_group(page: Page, number: int) -> None:
    found = await page.evaluate(EVERY_MARK_ONCE, number)
    assert found["all"] == found["different"] == number
    assert found["drawn"] <= 400


async def test_values_of_a_grid_are_round(page: Page) -> None:
    assert await call(page, "map_view", "roundValues", 115.2, 117.4, 5) == [115.5, 116, 116.5, 117]
    assert await call(page, "map_view", "roundValues", -0.3, 0.3, 6) == [-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3]
    assert await call(page, "map_view", "scaleBar", {"kilometres": 2}) == {"metres": 50000, "pixels": 100}


def result(offset: int, second: int, value: Any, changed: bool = False) -> dict[str, Any]:
    """An event of a virtual sensor."""
    time = f"1970-01-01T00:{second // 60:02}:{second % 60:02}.000Z"
    return {"offset": offset, "data": {"time": time, "value": value, "states": ["a", 1], "changed": changed}}


async def test_results_are_kept_once_in_their_order_with_gaps(page: Page) -> None:
    events = [
        result(5, 60, 6.0, changed=True),
        result(2, 30, 3.0),
        result(2, 30, 3.0),
        result(3, 40, None),
        {"offset": 9, "data": {"time": "never", "value": 1}},
        {"offset": 10, "data": "text"},
        result(6, 70, "7"),
    ]
    found = await page.evaluate(BUFFER, events)
    assert found["before"] == [3, None, 6, None]
    # The result of 50 s is missing, so that there is a gap.
    assert found["times"] == [30, 40, 50, 60, 70]
    assert found["values"] == [3, None, None, 6, None]
    assert found["change"] == 60
    assert found["after"] == [None, 6, None]


async def test_the_axis_has_the_values_and_the_bounds_of_near_bands(page: Page) -> None:
    bands = [{"high": 10}, {"low": 8, "high": 18}, {"low": 1000}]
    found = await call(page, "result_values", "axisOf", [8.8, 9.1], bands)
    assert found["low"] < 8
    assert 10 < found["high"] < 18
    assert all(found["low"] <= tick <= found["high"] for tick in found["ticks"])
    same = await call(page, "result_values", "axisOf", [0, 0], [])
    assert same["low"] < 0 < same["high"]
    assert (await call(page, "result_values", "axisOf", [], bands))["ticks"] == [0, 0.5, 1]


@pytest.mark.parametrize(("every", "span"), [(0.1, 300), (5, 300), (10, 600), (86_400, 604_800)])
async def test_the_plot_shows_sixty_results_but_at_most_a_week(page: Page, every: float, span: float) -> None:
    assert await call(page, "result_values", "spanOf", every) == span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.1, "100 ms"),
        (1, "1 s"),
        (90, "90 s"),
        (300, "5 min"),
        (7200, "2 h"),
        (86_400, "1 d"),
        (1.5, "1.5 s"),
    ],
)
async def test_spans_of_definitions_are_exact(page: Page, seconds: float, text: str) -> None:
    assert await call(page, "sensor_words", "exactSpan", seconds) == text


async def test_the_texts_of_readings_are_those_of_the_answer(page: Page) -> None:
    readings: list[Any] = [
        {"sensor": "a", "t": 12345678901234567890, "reading": {"reading": [1, {"reading": 2}]}},
        'text with "quotes", {braces} and "reading": 1',
        [1.0, None, {"items": []}],
        None,
        -0.5e-7,
    ]
    for indent in (None, 1):
        answer = {"items": [{"sensor": "s", "reading": each, "detail": '"reading": 0'} for each in readings]}
        text = json.dumps(answer | {"next": None, "total": 5}, indent=indent)
        found = await call(page, "rejected_pages", "fieldTexts", text, "reading")
        assert [json.loads(each) for each in found] == readings
    assert await call(page, "rejected_pages", "fieldTexts", '{"items": [], "next": null}', "reading") == []


async def test_rejected_readings_of_one_moment_have_keys_of_their_own(page: Page) -> None:
    items = [{"rejected": "t1", "sensor": "s", "reason": "range"}] * 3 + [
        {"rejected": "t1", "sensor": None, "reason": "malformed"}
    ]
    keys = [item["key"] for item in await call(page, "rejected_pages", "keyed", items)]
    assert len(set(keys)) == 4


async def test_figures_of_nodes_are_summed(page: Page) -> None:
    one = {"physical": 2, "virtual": 1, "running": 1, "readings": 5, "rejected": {"range": 1, "unit": 2}}
    two = {"physical": 3, "virtual": 0, "running": 0, "readings": 1, "rejected": {"range": 4}}
    found = await call(page, "sensor_figures", "summed", [one, two])
    assert (found["physical"], found["readings"], found["rejections"]) == (5, 6, 7)
    assert found["rejected"] == {"range": 5, "unit": 2}
