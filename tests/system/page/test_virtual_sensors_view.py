"""Virtual sensors on the page: state, definition in words, members, and the live plot with bands."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from page_pictures.browser import DESKTOP, PHONE, Scheme, Size
from playwright.async_api import Locator, Page, Route, expect

from tests.cluster import AdminProcess, Member
from tests.patience import eventually
from tests.sensor_node import SensorNode, ago, sensor
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, create

HOSTILE = '<img src=x onerror="globalThis.pwned=1">'
MOST_ELEMENTS = 3000
CLUSTERS = {"one": "plant", "two": "plant"}
SETTINGS = ("--set", "sensors.linger=0.2s")
BANDS = [{"name": "cold", "high": 10}, {"name": "mild", "low": 8, "high": 25}, {"name": "hot", "low": 25}]
WARMTH = {
    "kind": "weather",
    "tags": ["roof"],
    "quantity": "t",
    "combine": "mean",
    "every": 0.2,
    "lateness": 0.1,
    "bands": BANDS,
}
"""The mean of t of two of three sensors."""


@pytest.fixture
def field(tmp_path: Path) -> Iterator[SensorNode]:
    """A node with three sensors and a virtual one, which runs hardly longer than its users stay."""
    with SensorNode(tmp_path / "data", *SETTINGS) as running:
        fill(running)
        yield running


@pytest.fixture(scope="module")
def shared_field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SensorNode]:
    """The same for tests that only look."""
    with SensorNode(tmp_path_factory.mktemp("field") / "data", *SETTINGS) as running:
        fill(running)
        yield running


def fill(node: SensorNode) -> None:
    """Register the sensors, and define the virtual one."""
    places = ({"longitude": 10 + n, "latitude": 50} for n in range(2))
    node.register(
        *(sensor(f"roof-{n}", tags=["roof"], place=place) for n, place in enumerate(places)),
        sensor("cellar", tags=["cellar"]),
        {"id": "gauge", "kind": "weather", "quantities": {"p": {"unit": "hPa"}}, "tags": ["roof"]},
    )
    define(node, "warmth")


def define(node: SensorNode, name: str, **changes: Any) -> None:
    """Define a virtual sensor."""
    found = node.ask("PUT", f"/virtual/{name}", WARMTH | changes)
    assert found.status in (200, 201), found


@asynccontextmanager
async def reporting(base: str, *values: float) -> AsyncIterator[None]:
    """The sensors of the roof send these values, again and again, while the block runs."""

    async def send() -> None:
        while True:
            for value in values:
                readings = [{"sensor": f"roof-{n}", "t": value + n} for n in range(2)]
                status, answer = await ask("POST", f"{base}/readings", readings)
                assert status in (202, 422), answer
                await asyncio.sleep(0.05)

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def row(page: Page, name: str = "warmth") -> Locator:
    return page.locator(f'[data-testid="virtual"][data-name="{name}"]')


def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Virtual sensor", exact=True)


def plot(page: Page) -> Locator:
    return page.get_by_test_id("virtual-plot")


async def values_of(page: Page) -> int:
    """How many results the plot has."""
    return int(await plot(page).get_attribute("data-values") or 0)


async def has_values(page: Page, number: int) -> None:
    async def grown() -> bool:
        return await values_of(page) >= number

    await eventually(grown)


async def test_a_new_node_says_how_to_define_one(open_page: OpenedPages, tmp_path: Path) -> None:
    with SensorNode(tmp_path / "new") as node:
        page = await open_page(node, "sensors?tab=virtual")
        await expect(page.get_by_text(re.compile("hpwsn sensors virtual define warmth"))).to_be_visible()
        define(node, "warmth")
        await expect(row(page)).to_be_visible()
        await open_page.finish()


async def test_a_row_has_the_definition_in_words_and_the_state(
    open_page: OpenedPages, field: SensorNode
) -> None:
    define(field, "peak", combine="max", area=[9, 49, 10.5, 51], tags=[], every="5 min")
    page = await open_page(field, "sensors?tab=virtual")
    await expect(row(page)).to_contain_text(
        "Mean of t of sensors of kind weather with the tag roof, every 200 ms"
    )
    await expect(row(page, "peak")).to_contain_text(
        "Greatest value of t of sensors of kind weather from 9° E to 10.5° E and 49° N to 51° N, every 5 min"
    )
    await expect(row(page)).to_have_attribute("data-state", "idle")
    url = await create(field, "http://127.0.0.1:9/x", topic="virtual:warmth")
    await expect(row(page)).to_have_attribute("data-state", "running")
    await expect(row(page).locator('[data-label="members"]')).to_have_text("2")
    await page.get_by_test_id("state-running").click()
    await expect(page.get_by_test_id("virtual")).to_have_count(1)
    assert "state=running" in page.url
    await page.reload()
    await expect(page.get_by_test_id("virtual")).to_have_count(1)
    assert (await ask("DELETE", url))[0] == 204
    await expect(page.get_by_text("Nothing matches.")).to_be_visible()
    await page.get_by_role("button", name="Clear filters").click()
    await expect(page.get_by_test_id("virtual")).to_have_count(2)
    await page.get_by_test_id("virtual-search").fill("greatest")
    await expect(page.get_by_test_id("virtual")).to_have_count(1)


async def test_the_plot_grows_and_the_sensor_runs_while_it_is_open(
    open_page: OpenedPages, field: SensorNode
) -> None:
    page = await open_page(field, "sensors?tab=virtual")
    await expect(row(page)).to_have_attribute("data-state", "idle")
    async with reporting(field.base, 15.0):
        await row(page).click()
        await has_values(page, 3)
        before = await values_of(page)
        await has_values(page, before + 3)
        await expect(row(page)).to_have_attribute("data-state", "running")
        await expect(plot(page)).to_have_attribute("data-last", "15.5")
        await expect(page.get_by_test_id("last-text")).to_have_text("warmth: 15.5 degC (mild)")
        await expect(page.get_by_test_id("last-result")).to_contain_text(re.compile(r"of 2 sensors"))
        await expect(plot(page).locator("canvas")).to_be_visible()
        await expect(page.get_by_test_id("late")).to_have_text("0")
        await expect(page.get_by_test_id("refused")).to_have_text("0")
        await page.keyboard.press("Escape")
        await expect(row(page)).to_have_attribute("data-state", "idle")
    assert field.figures["running"] == 0


async def test_the_bands_of_the_last_value_are_marked(open_page: OpenedPages, field: SensorNode) -> None:
    page = await open_page(field, "sensors?tab=virtual&id=warmth")
    bands = page.get_by_test_id("band")
    await expect(bands).to_have_text(
        [re.compile("cold.*10 or less"), re.compile("mild.*8 to 25"), re.compile("hot.*25 or more")]
    )
    for value, active in ((8.5, ["true", "true", "false"]), (40.0, ["false", "false", "true"])):
        async with reporting(field.base, value):
            for index, each in enumerate(active):
                await expect(bands.nth(index)).to_have_attribute("data-active", each)
            await expect(page.get_by_test_id("last-result")).to_contain_text("since")


async def test_late_readings_are_counted(open_page: OpenedPages, field: SensorNode) -> None:
    define(field, "strict", every=0.1, lateness=0)
    page = await open_page(field, "sensors?tab=virtual&id=strict")
    async with reporting(field.base, 15.0):
        await has_values(page, 1)
    assert field.post({"sensor": "roof-0", "t": 1, "time": ago(5)}).status == 202
    late = field.get("/virtual/strict")["late"]
    assert late >= 1
    await expect(page.get_by_test_id("late")).to_have_text(str(late))
    await expect(row(page, "strict").locator(".warn")).to_have_text(str(late))


async def test_earlier_results_are_in_the_plot_at_once(open_page: OpenedPages, field: SensorNode) -> None:
    url = await create(field, "http://127.0.0.1:9/x", topic="virtual:warmth")
    async with reporting(field.base, 12.0):

        async def has_results() -> bool:
            return len(field.events("virtual:warmth")) >= 5

        await eventually(has_results)
    assert (await ask("DELETE", url))[0] == 204
    page = await open_page(field, "sensors?tab=virtual&id=warmth")
    await has_values(page, 5)
    await expect(plot(page)).to_have_attribute("data-last", "12.5")


async def test_members_are_listed_and_drawn_and_lead_to_their_sensors(
    open_page: OpenedPages, field: SensorNode
) -> None:
    page = await open_page(field, "sensors?tab=virtual&id=warmth")
    await panel(page).get_by_role("tab", name="Members").click()
    assert "as=members" in page.url
    members = panel(page).get_by_test_id("member")
    await expect(members).to_have_count(2)
    await expect(panel(page).get_by_test_id("mark")).to_have_count(2)
    await expect(panel(page).get_by_test_id("member-count")).to_contain_text("2 members")
    field.register(sensor("roof-9", tags=["roof"]))
    await expect(members).to_have_count(3)
    field.post({"sensor": "roof-9", "t": 1})
    await expect(panel(page).locator('[data-testid="member"][data-id="roof-9"]')).to_have_attribute(
        "data-state", "reporting"
    )
    await page.reload()
    await expect(members).to_have_count(3)
    await members.filter(has_text="roof-1").get_by_role("link").click()
    await expect(page.get_by_role("region", name="Sensor", exact=True)).to_contain_text("roof-1")


async def test_the_definition_says_what_is_done_with_silence_and_outliers(
    open_page: OpenedPages, field: SensorNode
) -> None:
    define(field, "careful", quorum=3, silence="hold", outliers=2.5, hysteresis=0.5, text="now {value}")
    page = await open_page(field, "sensors?tab=virtual&id=careful&as=definition")
    found = page.get_by_test_id("definition")
    for text in (
        "taken until 100 ms after the end of a window",
        "readings of fewer than 3 sensors give the value of the result before",
        "dropped beyond 2.5 median absolute deviations",
        "a state ends 0.5 beyond its band",
        "now {value}",
    ):
        await expect(found).to_contain_text(text)
    assert field.figures["running"] == 0


async def test_removing_a_virtual_sensor_names_its_effect_first(
    open_page: OpenedPages, field: SensorNode
) -> None:
    define(field, "other")
    page = await open_page(field, "sensors?tab=virtual&id=warmth&as=definition")
    await page.get_by_test_id("remove-virtual").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("virtual:warmth")
    await dialog.get_by_test_id("cancel").click()
    await expect(page.get_by_test_id("virtual")).to_have_count(2)
    await page.get_by_test_id("remove-virtual").click()
    await dialog.get_by_test_id("ok").click()
    await expect(page.get_by_test_id("virtual")).to_have_count(1)
    await expect(panel(page)).to_have_count(0)
    assert [item["name"] for item in field.get("/virtual")["items"]] == ["other"]


async def test_one_that_another_removes_stays_in_the_panel_as_gone(
    open_page: OpenedPages, field: SensorNode
) -> None:
    page = await open_page(field, "sensors?tab=virtual&id=warmth&as=definition")
    await expect(page.get_by_test_id("definition")).to_be_visible()
    assert field.ask("DELETE", "/virtual/warmth").status == 204
    await expect(panel(page)).to_contain_text("Not defined any more")
    await expect(page.get_by_test_id("remove-virtual")).to_be_disabled()


async def test_the_job_of_a_service_is_started_by_a_click_alone(
    open_page: OpenedPages, field: SensorNode
) -> None:
    async def prepare(page: Page) -> None:
        async def with_service(route: Route) -> None:
            found = field.get("/virtual")
            items = [item | {"service": 'uri = "urn:x"'} for item in found["items"]]
            await route.fulfill(json=found | {"items": items})

        await page.route("**/virtual?limit=*", with_service)

    page = await open_page(field, "sensors?tab=virtual&id=warmth", prepare=prepare)
    start = page.get_by_test_id("start-plot")
    await expect(start).to_be_visible()
    await expect(panel(page)).to_contain_text("by a stream service of its own")
    assert field.figures["running"] == 0
    await start.click()
    await expect(plot(page)).to_be_visible()

    async def runs() -> bool:
        return bool(field.figures["running"])

    await eventually(runs)
    await panel(page).get_by_role("tab", name="Definition").click()
    await expect(panel(page)).to_contain_text('uri = "urn:x"')


async def test_texts_of_a_definition_are_text(open_page: OpenedPages, field: SensorNode) -> None:
    field.register(sensor("s", tags=[HOSTILE]))
    text = HOSTILE.replace("{", "").replace("}", "") + " {value}\u202e"
    define(field, "bad", tags=[HOSTILE], bands=[{"name": HOSTILE, "low": 0}], text=text)
    page = await open_page(field, "sensors?tab=virtual&id=bad")
    posted = asyncio.create_task(_post_until(field, page))
    await expect(page.get_by_test_id("last-text")).to_have_text(HOSTILE + r" 5\u202e")
    await posted
    await expect(page.get_by_test_id("band")).to_contain_text(HOSTILE)
    for tab in ("Members", "Definition"):
        await panel(page).get_by_role("tab", name=tab).click()
        await expect(panel(page)).to_contain_text(HOSTILE)
    assert await page.locator("img").count() == 0
    assert await page.evaluate("globalThis.pwned") is None


async def _post_until(node: SensorNode, page: Page) -> None:
    """Post readings until a result is plotted."""

    async def plotted() -> bool:
        await ask("POST", f"{node.base}/readings", [{"sensor": "s", "t": 5}])
        return await values_of(page) > 0

    await eventually(plotted)


async def test_virtual_sensors_of_other_nodes_are_plotted_through_the_relay(
    open_page: OpenedPages, members: dict[str, Member], admin: AdminProcess
) -> None:
    two = members["two"]
    sensors = [sensor(f"roof-{n}", tags=["roof"]) for n in range(2)]
    assert (await ask("POST", f"{two.base}/sensors", sensors))[0] == 201
    assert (await ask("PUT", f"{two.base}/virtual/warmth", WARMTH))[0] == 201
    async with reporting(two.base, 20.0):
        for place in (members["one"], admin):
            page = await open_page(place, "sensors?tab=virtual")
            await row(page).click()
            await has_values(page, 2)
            await expect(plot(page)).to_have_attribute("data-last", "20.5")
            await panel(page).get_by_role("tab", name="Members").click()
            await expect(panel(page).get_by_test_id("member")).to_have_count(2)


@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")]
)
@pytest.mark.parametrize("tab", ["", "plot", "members", "definition"])
async def test_each_part_is_accessible_and_fits(
    open_page: OpenedPages, shared_field: SensorNode, tab: str, size: Size, scheme: Scheme
) -> None:
    view = f"sensors?tab=virtual&id=warmth&as={tab}" if tab else "sensors?tab=virtual"
    async with reporting(shared_field.base, 15.0):
        page = await open_page(shared_field, view, size=size, scheme=scheme)
        if tab == "plot":
            await has_values(page, 2)
        elif tab == "members":
            await expect(panel(page).get_by_test_id("member")).to_have_count(2)
        await assert_accessible(page)
        assert await page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
