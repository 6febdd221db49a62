"""Sensors: the map and the list of physical sensors, their filters and states, and rejected readings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from page_pictures.browser import DESKTOP, PHONE, Scheme, Size
from playwright.async_api import Locator, Page, Route, expect

from tests.cluster import AdminProcess, Member
from tests.patience import eventually
from tests.sensor_node import SensorNode, ago, sensor
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, create

AWAY = (r"^net::ERR_", r"^50[234] ")
"""Requests to or about a node that ends before its page fail."""
MOST_ELEMENTS = 3000
HOSTILE = '<img src=x onerror="globalThis.pwned=1">'
OVERRIDE = "safe\u202egnp.exe"
CLUSTERS = {"one": "plant", "two": "plant"}
LOOKS = pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")]
)


@pytest.fixture
def field(tmp_path: Path) -> Iterator[SensorNode]:
    """A node that tells sensors on demand to stop as soon as nobody uses them."""
    with SensorNode(tmp_path / "data", sensors={"linger": "0.2s"}) as running:
        yield running


@pytest.fixture(scope="module")
def busy_field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SensorNode]:
    """A node with a sensor in each state and rejected readings, which tests only look at."""
    with SensorNode(tmp_path_factory.mktemp("field") / "data", sensors={"linger": "0.2s"}) as running:
        fill(running)
        yield running


def placed(name: str, longitude: float, latitude: float, **more: Any) -> dict[str, Any]:
    """A sensor at a place."""
    return sensor(name, place={"longitude": longitude, "latitude": latitude}, **more)


def fill(node: SensorNode) -> None:
    """A sensor in each state at the corners of a square, one without a place, and rejected readings."""
    node.register(
        placed("north-west", 10.0, 51.0, tags=["roof", "city"], owner="City of Example", gateway="gw-1"),
        placed("north-east", 11.0, 51.0, tags=["roof"], kind="river", interval=0.2),
        placed("south-west", 10.0, 50.0, kind="river"),
        placed("south-east", 11.0, 50.0, on_demand=True),
        sensor("nowhere", tags=["city"]),
    )
    node.post({"sensor": "north-west", "t": 21.5}, {"sensor": "north-east", "t": 7})
    node.post({"sensor": "north-west", "t": 99}, {"sensor": "ghost", "t": 1})
    node.post({"sensor": "north-west", "x": 1}, {"sensor": "ghost", "t": 2})
    node.ask("POST", "/readings", HOSTILE.encode())


def rows(page: Page) -> Locator:
    return page.get_by_test_id("sensor")


def row(page: Page, name: str) -> Locator:
    return page.locator(f'[data-testid="sensor"][data-id="{name}"]')


def mark(page: Page, name: str) -> Locator:
    return page.locator(f'[data-testid="mark"][data-id="{name}"]')


def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Sensor", exact=True)


async def centre(found: Locator) -> tuple[float, float]:
    """The middle of an element in the window."""
    box = await found.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def test_a_new_node_says_what_fills_the_list(open_page: OpenedPages, field: SensorNode) -> None:
    page = await open_page(field, "sensors")
    command = page.get_by_text(re.compile("hpwsn sensors simulate weather"))
    await expect(command).to_contain_text(f"--url {field.url}")
    await expect(page.get_by_text(re.compile("hpwsn sensors register"))).to_be_visible()
    field.register(sensor("first"))
    await expect(rows(page)).to_have_count(1)
    await expect(page.get_by_text("No sensor has a place")).to_be_visible()


async def test_the_map_shows_the_place_and_the_state_of_each_sensor(
    open_page: OpenedPages, busy_field: SensorNode
) -> None:
    page = await open_page(busy_field, "sensors")
    states = {
        "north-west": "reporting",
        "north-east": "silent",
        "south-west": "never",
        "south-east": "stopped",
    }
    for name, state in states.items():
        await expect(mark(page, name)).to_have_attribute("data-state", state)
        await expect(row(page, name)).to_have_attribute("data-state", state)
    await expect(row(page, "nowhere")).to_have_attribute("data-state", "never")
    await expect(mark(page, "nowhere")).to_have_count(0)
    await expect(page.get_by_text("1 sensor without a place is only in the list")).to_be_visible()
    (west, north), (east, south) = (
        await centre(mark(page, "north-west")),
        await centre(mark(page, "south-east")),
    )
    assert west < east
    assert north < south
    other = await centre(mark(page, "south-west"))
    assert abs(other[0] - west) < 1
    assert abs(other[1] - south) < 1
    # At 50.5° N, a degree of longitude has 0.636 of the length of one of latitude.
    assert (east - west) / (south - north) == pytest.approx(0.636, abs=0.02)
    words = ["Silent", "Never reported", "Never reported", "Told to stop", "Reporting"]
    await expect(rows(page).locator(".state")).to_have_text(words)


async def test_a_state_changes_while_somebody_looks(open_page: OpenedPages, field: SensorNode) -> None:
    field.register(placed("one", 10, 50, interval=0.2), placed("two", 11, 51))
    page = await open_page(field, "sensors")
    await expect(mark(page, "two")).to_have_attribute("data-state", "never")
    field.post({"sensor": "two", "t": 1})
    await expect(mark(page, "two")).to_have_attribute("data-state", "reporting")
    field.post({"sensor": "one", "t": 1})
    await expect(mark(page, "one")).to_have_attribute("data-state", "silent")
    await expect(row(page, "one")).to_contain_text("Silent")


async def test_filters_are_in_the_address_and_hold_for_map_and_list(
    open_page: OpenedPages, busy_field: SensorNode
) -> None:
    page = await open_page(busy_field, "sensors")
    await page.get_by_test_id("kind-filter").select_option("river")
    await expect(rows(page)).to_have_count(2)
    await expect(page.get_by_test_id("mark")).to_have_count(2)
    await page.get_by_test_id("state-silent").click()
    await expect(rows(page)).to_have_count(1)
    assert "kind=river" in page.url
    assert "state=silent" in page.url
    await page.reload()
    await open_page.ready(page)
    await expect(rows(page)).to_have_count(1)
    await expect(page.get_by_test_id("kind-filter")).to_have_value("river")
    await page.get_by_test_id("tag-filter").select_option("city")
    await expect(page.get_by_text("Nothing matches.")).to_be_visible()
    await page.get_by_role("button", name="Clear filters").click()
    await expect(rows(page)).to_have_count(5)
    await page.get_by_test_id("sensor-search").fill("gw-1")
    await expect(rows(page)).to_have_count(1)
    assert "q=gw-1" in page.url
    await page.goto(f"{busy_field.base}/ui/sensors?tag=city")
    await expect(rows(page)).to_have_count(2)


async def test_the_panel_shows_what_a_sensor_measures_and_how_it_reports(
    open_page: OpenedPages, busy_field: SensorNode
) -> None:
    page = await open_page(busy_field, "sensors")
    await mark(page, "north-west").click()
    assert "id=north-west" in page.url
    quantity = panel(page).get_by_test_id("quantities").locator('[data-quantity="t"]')
    await expect(quantity).to_have_text(re.compile(r"t\s*21\.5\s*degC\s*-40 to 60"))
    details = panel(page).get_by_test_id("sensor-details")
    for text in ("City of Example", "gw-1", "10° E, 51° N", "weather", "sensors:weather:north-west"):
        await expect(details).to_contain_text(text)
    await expect(panel(page).get_by_test_id("wanted")).to_contain_text("it always sends")
    await expect(row(page, "north-west")).to_have_attribute("aria-selected", "true")
    await page.reload()
    await expect(quantity).to_contain_text("21.5")
    await row(page, "north-east").click()
    await expect(details).to_contain_text("200 ms as registered")
    await expect(panel(page)).to_contain_text("No report for more than three intervals")
    await row(page, "north-west").click()
    await details.get_by_role("button", name="city").click()
    await expect(rows(page)).to_have_count(2)
    assert "tag=city" in page.url


async def test_the_panel_tells_whether_a_sensor_on_demand_is_wanted(
    open_page: OpenedPages, field: SensorNode
) -> None:
    field.register(sensor("pump", on_demand=True))
    page = await open_page(field, "sensors?id=pump")
    wanted = panel(page).get_by_test_id("wanted")
    await expect(wanted).to_contain_text("told to stop")
    url = await create(field, "http://127.0.0.1:9/x", topic="sensors:weather:pump")
    await expect(wanted).to_contain_text("yes")
    assert (await ask("DELETE", url))[0] == 204
    await expect(wanted).to_contain_text("told to stop")


async def test_the_list_opens_a_sensor_by_keys_and_gets_the_focus_back(
    open_page: OpenedPages, busy_field: SensorNode
) -> None:
    page = await open_page(busy_field, "sensors")
    await rows(page).first.focus()
    await page.keyboard.press("ArrowDown")
    await expect(rows(page).nth(1)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(panel(page).get_by_role("heading", level=2)).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(panel(page)).to_have_count(0)
    await expect(rows(page).nth(1)).to_be_focused()


async def test_a_smaller_area_of_the_map_narrows_the_list(open_page: OpenedPages, field: SensorNode) -> None:
    field.register(*(placed(f"s{n}", 10 + n / 10, 50 + n / 10) for n in range(11)))
    page = await open_page(field, "sensors")
    await expect(rows(page)).to_have_count(11)
    await page.get_by_test_id("zoom-in").click()
    await expect(page.get_by_text(re.compile("sensors in the chosen area"))).to_be_visible()
    shown = await rows(page).evaluate_all("rows => rows.map((row) => row.dataset.id)")
    assert "s5" in shown
    assert 0 < len(shown) < 11
    assert "area=" in page.url
    west, south, east, north = (float(side) for side in unquote(page.url).split("area=")[1].split(","))
    inside = field.get("/sensors", area=f"{west},{south},{east},{north}")
    assert sorted(shown) == sorted(item["id"] for item in inside["items"])
    await page.reload()
    await expect(rows(page)).to_have_count(len(shown))
    before = page.url
    x, y = await centre(mark(page, "s5"))
    await page.get_by_test_id("zoom-in").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page).not_to_have_url(before)
    moved = await centre(mark(page, "s5"))
    assert moved[0] < x
    assert moved[1] == pytest.approx(y, abs=1)
    await page.get_by_test_id("zoom-all").click()
    await expect(rows(page)).to_have_count(11)
    assert "area=" not in page.url


async def test_the_wheel_zooms_and_the_mouse_moves_the_map(open_page: OpenedPages, field: SensorNode) -> None:
    field.register(placed("west", 10, 50), placed("east", 12, 51))
    page = await open_page(field, "sensors")
    x, y = await centre(mark(page, "west"))
    await page.mouse.move(x, y)
    await page.mouse.wheel(0, -500)
    # What is under the mouse stays there.
    await expect(page).to_have_url(re.compile("area="))
    found = await centre(mark(page, "west"))
    assert found == pytest.approx((x, y), abs=2)
    before = page.url
    await page.mouse.down()
    await page.mouse.move(x + 60, y - 40, steps=4)
    await page.mouse.up()
    await expect(page).not_to_have_url(before)
    assert await centre(mark(page, "west")) == pytest.approx((x + 60, y - 40), abs=3)
    # Who drags opens nothing.
    await expect(panel(page)).to_have_count(0)
    await mark(page, "west").click()
    await expect(panel(page)).to_contain_text("west")


async def test_many_sensors_are_drawn_together_and_stay_below_the_budget(
    open_page: OpenedPages, field: SensorNode
) -> None:
    field.register(*(placed(f"s{n:04}", 10 + n % 60 / 30, 50 + n // 60 / 30) for n in range(3000)))
    page = await open_page(field, "sensors")
    groups = page.get_by_test_id("mark-group")
    await expect(groups.first).to_be_visible()

    async def all_drawn() -> bool:
        counts = await groups.evaluate_all("groups => groups.map((group) => Number(group.dataset.count))")
        drawn: int = sum(counts) + await page.get_by_test_id("mark").count()
        return drawn == 3000

    await eventually(all_drawn)
    assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
    inside = int(await groups.first.get_attribute("data-count") or 0)
    await groups.first.click()
    await expect(rows(page).nth(min(inside, 8) - 1)).to_be_visible()
    await expect(groups).to_have_count(0)
    await expect(page.get_by_test_id("mark").first).to_be_visible()


async def test_removing_a_sensor_names_its_effect_first(open_page: OpenedPages, field: SensorNode) -> None:
    field.register(sensor("old"), sensor("other"))
    page = await open_page(field, "sensors?id=old")
    await page.get_by_test_id("remove-sensor").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("rejected as unknown-sensor")
    await dialog.get_by_test_id("cancel").click()
    await expect(rows(page)).to_have_count(2)
    await page.get_by_test_id("remove-sensor").click()
    await expect(dialog.get_by_test_id("ok")).to_have_text("Remove sensor")
    await dialog.get_by_test_id("ok").click()
    await expect(rows(page)).to_have_count(1)
    await expect(panel(page)).to_have_count(0)
    assert [item["id"] for item in field.get("/sensors")["items"]] == ["other"]


async def test_a_sensor_that_another_removes_stays_in_the_panel_as_gone(
    open_page: OpenedPages, field: SensorNode
) -> None:
    field.register(sensor("old"))
    page = await open_page(field, "sensors?id=old", expected=(r"^404 GET .*/sensors/old",))
    await expect(panel(page)).to_contain_text("degC")
    assert field.ask("DELETE", "/sensors/old").status == 204
    await expect(panel(page)).to_contain_text("Not registered any more")
    await expect(page.get_by_test_id("remove-sensor")).to_be_disabled()


async def test_who_may_not_manage_cannot_remove(open_page: OpenedPages, busy_field: SensorNode) -> None:
    async def prepare(page: Page) -> None:
        async def rights(route: Route) -> None:
            await route.fulfill(json=busy_field.get("/session") | {"may": ["read"]})

        await page.route("**/session", rights)

    page = await open_page(busy_field, "sensors?id=north-west", prepare=prepare)
    await expect(page.get_by_test_id("remove-sensor")).to_be_disabled()


async def test_who_may_not_read_sensors_is_told_so(open_page: OpenedPages, busy_field: SensorNode) -> None:
    async def prepare(page: Page) -> None:
        async def refuse(route: Route) -> None:
            await route.fulfill(status=403, json={"error": "reading sensors needs the right read"})

        await page.route("**/sensors?limit=*", refuse)

    page = await open_page(busy_field, "sensors", prepare=prepare, expected=(r"^403 GET",))
    await expect(page.locator(".notice-not-allowed")).to_have_text("reading sensors needs the right read")
    await expect(rows(page)).to_have_count(0)


async def test_a_list_that_cannot_be_read_anew_says_how_old_it_is(
    open_page: OpenedPages, tmp_path: Path
) -> None:
    with SensorNode(tmp_path / "ending") as node:
        node.register(placed("one", 10, 50))
        page = await open_page(node, "sensors", expected=AWAY)
        await expect(rows(page)).to_have_count(1)
        await asyncio.to_thread(node.kill)
        await expect(page.get_by_role("alert")).to_contain_text("Not updated since")
        await expect(page.get_by_role("button", name="Try again")).to_be_visible()
        await expect(rows(page)).to_have_count(1)


async def test_texts_of_owners_are_text(open_page: OpenedPages, field: SensorNode) -> None:
    field.register(
        placed("s", 10, 50, tags=[HOSTILE, OVERRIDE], owner=HOSTILE, gateway=OVERRIDE, interval=0.1)
    )
    field.ask("POST", "/readings", f"{HOSTILE}{OVERRIDE}".encode())
    page = await open_page(field, "sensors?id=s")
    details = panel(page).get_by_test_id("sensor-details")
    await expect(details).to_contain_text(HOSTILE)
    await expect(details).to_contain_text(r"safe\u202egnp.exe")
    await expect(panel(page)).to_contain_text(r"gateway (safe\u202egnp.exe)")
    await page.get_by_test_id("tag-filter").select_option(HOSTILE)
    await expect(rows(page)).to_have_count(1)
    await page.goto(f"{field.base}/ui/sensors?tab=rejected")
    await page.get_by_test_id("rejected").click()
    await expect(page.get_by_test_id("payload")).to_have_text(HOSTILE + r"safe\u202egnp.exe")
    assert await page.locator("img").count() == 0
    assert await page.evaluate("globalThis.pwned") is None


async def test_rejected_readings_are_counted_and_filtered_by_reason(
    open_page: OpenedPages, busy_field: SensorNode
) -> None:
    page = await open_page(busy_field, "sensors")
    await page.get_by_role("button", name="Rejected 5").click()
    found = page.get_by_test_id("rejected")
    await expect(found).to_have_count(5)
    counts = {"unknown-sensor": 2, "range": 1, "unknown-quantity": 1, "malformed": 1}
    for reason, number in counts.items():
        await expect(page.get_by_test_id(f"reason-{reason}")).to_have_attribute("data-count", str(number))
    await expect(page.get_by_test_id("reason-duplicate")).to_have_count(0)
    # The newest is the first.
    await expect(found.first).to_have_attribute("data-reason", "malformed")
    await page.get_by_test_id("reason-unknown-sensor").click()
    await expect(found).to_have_count(2)
    assert "reason=unknown-sensor" in page.url
    await found.last.click()
    shown = page.get_by_role("region", name="Rejected reading", exact=True)
    await expect(shown).to_contain_text("Register it, or set sensors.auto_register = true")
    await expect(shown.get_by_test_id("payload")).to_have_text(re.compile(r'"sensor": "ghost",\s*"t": 1\b'))
    await page.reload()
    await open_page.ready(page)
    await expect(shown.get_by_test_id("payload")).to_contain_text('"ghost"')
    await expect(found).to_have_count(2)
    await page.goto(f"{busy_field.base}/ui/sensors?tab=rejected&sensor=north-west")
    await expect(found).to_have_count(2)
    await page.get_by_test_id("sensor-filter").click()
    await expect(found).to_have_count(5)


async def test_a_rejected_reading_appears_and_keeps_its_digits(
    open_page: OpenedPages, field: SensorNode
) -> None:
    field.register(sensor("s"))
    page = await open_page(field, "sensors?tab=rejected")
    await expect(page.get_by_text("No rejected readings.")).to_be_visible()
    reading = f'{{"sensor": "s", "time": "{ago()}", "t": 12345678901234567890, "reading": 1}}'
    field.ask("POST", "/readings", reading.encode())
    await expect(page.get_by_test_id("rejected")).to_have_count(1)
    await page.get_by_test_id("rejected").click()
    await expect(page.get_by_test_id("payload")).to_contain_text("12345678901234567890")
    await expect(page.get_by_role("button", name="Rejected 1")).to_be_visible()


async def test_sensors_of_all_nodes_are_listed_and_shown_through_the_relay(
    open_page: OpenedPages, members: dict[str, Member], admin: AdminProcess
) -> None:
    for number, (name, member) in enumerate(members.items()):
        body = [placed("both", 10 + number, 50), placed(f"of-{name}", 10 + number, 51)]
        assert (await ask("POST", f"{member.base}/sensors", body))[0] == 201
    posted = [{"sensor": "both", "t": 17.25}, {"sensor": "ghost", "t": 1}]
    assert (await ask("POST", f"{members['two'].base}/readings", posted))[0] == 202
    for place in (members["one"], admin):
        page = await open_page(place, "sensors")
        await expect(rows(page)).to_have_count(4)
        await expect(page.get_by_test_id("mark")).to_have_count(4)
        await rows(page).filter(has_text="both").filter(has_text="two").click()
        await expect(panel(page).get_by_test_id("quantities")).to_contain_text("17.25")
        assert "node=two" in page.url
        await page.get_by_role("button", name="Rejected 1").click()
        await expect(page.get_by_test_id("rejected")).to_contain_text("ghost")
        await page.goto(f"{place.base}/ui/sensors?scope=node:one")
        await expect(rows(page)).to_have_count(2)
    page = await open_page(admin, "sensors?id=of-two")
    await page.get_by_test_id("remove-sensor").click()
    await page.get_by_role("dialog").get_by_test_id("ok").click()
    await expect(rows(page)).to_have_count(3)
    left = (await ask("GET", f"{members['two'].base}/sensors"))[1]
    assert [item["id"] for item in left["items"]] == ["both"]


@LOOKS
@pytest.mark.parametrize("view", ["sensors", "sensors?id=north-west", "sensors?tab=rejected"])
async def test_each_part_is_accessible_and_fits(
    open_page: OpenedPages, busy_field: SensorNode, view: str, size: Size, scheme: Scheme
) -> None:
    page = await open_page(busy_field, view, size=size, scheme=scheme)
    if "id=" in view:
        await expect(panel(page).get_by_test_id("quantities")).to_contain_text("21.5")
    await assert_accessible(page)
    assert await page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS


async def test_on_a_phone_the_panel_fills_the_screen(open_page: OpenedPages, busy_field: SensorNode) -> None:
    page = await open_page(busy_field, "sensors", size=PHONE)
    await expect(page.get_by_test_id("mark")).to_have_count(4)
    await expect(row(page, "north-west").get_by_text("t degC")).to_be_visible()
    await row(page, "north-west").click()
    box = await panel(page).bounding_box()
    assert box is not None
    assert box["width"] == PHONE[0]
    await panel(page).get_by_role("button", name="Sensors").click()
    await expect(panel(page)).to_have_count(0)
