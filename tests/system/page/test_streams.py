"""Streams: services in a list, their plan, rates, requests and live values; services that a node runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from page_pictures.browser import DESKTOP, PHONE, Scheme, Size
from playwright.async_api import Locator, Page, Route, expect

from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.spark import cheap_environment
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, create, publish

AWAY = (r"^net::ERR_", r"^50[234] ")
"""Requests to or about a node that ends before its page fail."""
FLOW = "urn:example:flow"
TOPIC = "traffic:flow"
PLAN = [
    {"op": "filter", "inputs": ["anpr"], "text": "filter speed > 60"},
    {"op": "merge", "inputs": [0, "fleet"], "text": "merge with fleet"},
    {"op": "count", "inputs": [1], "text": "count by cid over 60 s"},
]
BATCH = {
    "batch": 7,
    "batch_seconds": 0.5,
    "rows_in": 200,
    "rows_out": 50,
    "rows_per_second": 400.0,
    "lag": 12,
}
REGISTRATION: dict[str, Any] = {
    "topic": TOPIC,
    "instance": "run-1",
    "description": "Vehicles a minute at each camera",
    "attributes": {"cid": "string", "n": "bigint", "flow": "double"},
    "constraints": {"flow": "> 0"},
    "inputs": {"anpr": "topic roads:anpr", "fleet": "topic fleet:buses"},
    "plan": PLAN,
    "figures": BATCH,
}
MOST_ELEMENTS = 3000
HOSTILE = '<img src=x onerror="globalThis.pwned=1">'
RATE = """\
uri = "urn:example:ticks"
topic = "test:ticks"

[inputs.ticks]
source = "rate"
rate = 5

[[ops]]
op = "filter"
where = "value >= 0"

[constraints]
value = ">= 0"
"""

CLUSTERS = {"one": "plant", "two": "plant"}


async def register(node: NodeProcess, uri: str = FLOW, **changes: Any) -> None:
    """Register or repeat a registration, as a job does."""
    figures = BATCH | changes.pop("figures", {})
    document = REGISTRATION | {"figures": figures} | changes
    status, answer = await ask("PUT", f"{node.base}/streams/{quote(uri, safe='')}", document)
    assert status == 200, answer


def rows(page: Page) -> Locator:
    return page.get_by_test_id("stream")


def row(page: Page, uri: str = FLOW) -> Locator:
    return page.locator(f'[data-testid="stream"][data-uri="{uri}"]')


def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Stream service", exact=True)


async def test_a_new_node_says_what_fills_the_list(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node, "streams")
    await expect(page.get_by_text("hpwsn streams run flow.toml")).to_be_visible()
    await register(node)
    await expect(rows(page)).to_have_count(1)


async def test_a_row_has_state_topic_rates_lag_and_requests(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await register(node)
    async with Consumer() as consumer:
        await create(node, consumer, topic=TOPIC)
        page = await open_page(node, "streams")
        cells = row(page).get_by_role("gridcell").or_(row(page).get_by_role("cell"))
        shown = ["Running", FLOW, TOPIC, "400", "100", "12", "0.5 s", "1"]
        await expect(cells).to_have_text([re.compile(rf"^\s*{re.escape(each)}\s*$") for each in shown])
        await register(node, state="stopped")
        await expect(row(page)).to_have_attribute("data-state", "stopped")
        await expect(row(page)).to_contain_text("Stopped")


async def test_the_worst_is_first_and_heads_sort(open_page: OpenedPages, tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "streams.silent_after=2s") as node:
        await register(node, "urn:a", figures={"lag": 1})
        page = await open_page(node, "streams", expected=AWAY)
        await expect(row(page, "urn:a")).to_have_attribute("data-state", "silent")
        await register(node, "urn:c", state="stopped", figures={"lag": 900})
        await register(node, "urn:b", state="stopped", figures={"lag": 5})
        names = rows(page).locator(".uri")
        await expect(names).to_have_text(["urn:a", "urn:c", "urn:b"])
        await page.get_by_role("button", name="Service", exact=True).click()
        await expect(names).to_have_text(["urn:a", "urn:b", "urn:c"])
        await page.get_by_role("button", name="Lag").click()
        await expect(names).to_have_text(["urn:c", "urn:b", "urn:a"])
        assert "sort=-lag" in page.url
        await page.reload()
        await expect(names).to_have_text(["urn:c", "urn:b", "urn:a"])


async def test_services_are_filtered_by_text_and_state(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node)
    await register(node, "urn:other", topic="roads:other", description="Something else", state="stopped")
    page = await open_page(node, "streams")
    await expect(rows(page)).to_have_count(2)
    await page.get_by_test_id("stream-search").fill("something")
    await expect(rows(page)).to_have_count(1)
    assert "q=something" in page.url
    await page.get_by_test_id("state-running").click()
    await page.get_by_role("button", name="Clear filters").click()
    await expect(rows(page)).to_have_count(2)
    await page.get_by_test_id("state-stopped").click()
    await expect(rows(page)).to_have_count(1)
    assert "state=stopped" in page.url


async def test_the_panel_draws_the_plan_and_lists_constraints(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await register(node)
    page = await open_page(node, "streams")
    await row(page).click()
    assert f"id={quote(FLOW, safe='')}" in page.url
    boxes = panel(page).get_by_test_id("plan-box")
    await expect(boxes).to_have_count(6)
    titles = sorted(await boxes.locator(".plan-title").all_text_contents())
    assert titles == sorted(["anpr", "fleet", "filter", "merge", "count", TOPIC])
    places = {}
    for box in await boxes.all():
        where = await box.bounding_box()
        assert where is not None
        places[await box.locator(".plan-title").text_content() or ""] = where["x"]
    order = ["anpr", "filter", "merge", "count", TOPIC]
    assert [places[name] for name in order] == sorted(places[name] for name in order)
    assert places["fleet"] == places["anpr"]
    assert await panel(page).locator(".plan-edge").count() >= 5
    constraints = panel(page).get_by_test_id("constraints")
    await expect(constraints.get_by_role("row", name="flow")).to_have_text(re.compile(r"flow\s*double\s*> 0"))
    await expect(constraints.get_by_role("row", name="cid")).to_contain_text("none")
    await expect(panel(page)).to_contain_text("Vehicles a minute at each camera")
    await page.keyboard.press("Escape")
    await expect(panel(page)).to_have_count(0)
    await expect(row(page)).to_be_focused()


async def test_a_service_without_a_plan_is_drawn_as_a_job(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node, plan=None)
    page = await open_page(node, f"streams?id={FLOW}")
    boxes = panel(page).get_by_test_id("plan-box").locator(".plan-title")
    await expect(boxes).to_have_text(["anpr", "fleet", "job", TOPIC])


async def test_a_plan_of_very_many_operators_stays_below_the_budget(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    many = [{"op": f"op{n}", "inputs": [n - 1] if n else ["anpr"], "text": ""} for n in range(900)]
    await register(node, plan=many, attributes={f"a{n}": "double" for n in range(900)})
    page = await open_page(node, f"streams?id={FLOW}")
    await expect(panel(page).get_by_text("780 more operators are not drawn")).to_be_visible()
    assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS


async def test_lag_and_rates_grow_while_the_panel_is_open(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node, figures={"lag": 10})
    page = await open_page(node, f"streams?id={FLOW}&tab=rates")
    lag = page.get_by_test_id("rate").filter(has_text="Lag")
    await expect(lag.locator(".figure-value b")).to_have_text("10")
    await register(node, figures={"lag": 250_000, "batch": 8})
    await expect(lag.locator(".figure-value b")).to_have_text("250,000")
    await expect(row(page)).to_contain_text("250,000")
    await expect(page.get_by_test_id("last-batch")).to_contain_text("8: 200 in, 50 out")

    async def has_points() -> bool:
        return int(await lag.locator(".chart").get_attribute("aria-valuemax") or 0) >= 1

    await eventually(has_points)
    await expect(lag.locator("canvas")).to_be_visible()


async def test_requests_in_progress_are_listed(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node)
    page = await open_page(node, f"streams?id={FLOW}&tab=requests")
    await expect(panel(page).get_by_text("Nobody reads this service now")).to_be_visible()
    async with Consumer() as consumer:
        await create(node, consumer, topic=TOPIC, filter="flow > 25")
        request = panel(page).get_by_test_id("request")
        await expect(request).to_contain_text("flow > 25")
        await expect(request).to_contain_text(consumer.url)
        await expect(panel(page).get_by_role("tab", name="Requests 1")).to_be_visible()


async def test_the_live_plot_gets_the_values_of_a_field(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node)
    page = await open_page(node, f"streams?id={FLOW}&tab=live")
    plot = page.get_by_test_id("live-plot")
    await expect(panel(page).get_by_text("Waiting for the next event")).to_be_visible()
    # A field with a constraint is the first choice.
    await expect(page.get_by_test_id("plot-field")).to_have_value("flow")
    await publish(node, TOPIC, {"cid": "c1", "flow": 24.5, "n": 3}, {"cid": "c2", "flow": 30.5, "n": 4})
    await expect(plot).to_have_attribute("data-values", "2")
    await expect(plot).to_have_attribute("data-last", "30.5")
    await expect(panel(page)).to_contain_text("least 24.5, mean 27.5, greatest 30.5")
    await page.get_by_test_id("plot-field").select_option("n")
    await expect(plot).to_have_attribute("data-last", "4")
    assert "as=n" in page.url
    await expect(plot.locator("canvas")).to_be_visible()


async def test_the_live_plot_takes_a_filter_and_marks_a_wrong_one(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await register(node)
    page = await open_page(node, f"streams?id={FLOW}&tab=live", expected=(r"^400 POST .*/filters/check",))
    field = page.get_by_test_id("plot-filter")
    await field.fill("cid = 'c1'")
    await field.press("Enter")
    await expect(page).to_have_url(re.compile("filter="))
    await field.fill("cid = ")
    await field.press("Enter")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(panel(page).get_by_role("alert")).to_contain_text("cid =")
    await expect(panel(page).get_by_text("Waiting for the next event")).to_be_visible()
    await publish(node, TOPIC, {"cid": "c2", "flow": 9}, {"cid": "c1", "flow": 8})
    await expect(page.get_by_test_id("live-plot")).to_have_attribute("data-last", "8")
    await expect(page.get_by_test_id("live-plot")).to_have_attribute("data-values", "1")


async def test_a_tab_has_one_stream_while_it_plots(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node)
    page = await open_page(node, f"streams?id={FLOW}&tab=live")

    async def streams() -> dict[str, int]:
        _, status = await ask("GET", f"{node.base}/streams/{quote(FLOW)}")
        return {"plots": int(status["requests"]["total"])}

    async def has_one() -> bool:
        return await streams() == {"plots": 1}

    await eventually(has_one)
    await panel(page).get_by_role("tab", name="Plan").click()

    async def has_none() -> bool:
        return await streams() == {"plots": 0}

    await eventually(has_none)


async def test_forgetting_a_service_names_its_effect_first(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node, state="stopped")
    page = await open_page(node, f"streams?id={FLOW}")
    await page.get_by_test_id("remove").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Its job is not stopped")
    await dialog.get_by_test_id("cancel").click()
    await expect(rows(page)).to_have_count(1)
    await page.get_by_test_id("remove").click()
    await expect(dialog.get_by_test_id("ok")).to_have_text("Forget service")
    await dialog.get_by_test_id("ok").click()
    await expect(rows(page)).to_have_count(0)
    await expect(panel(page)).to_have_count(0)


async def test_a_service_that_another_removes_stays_in_the_panel_as_gone(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await register(node)
    page = await open_page(node, f"streams?id={FLOW}", expected=(r"^404 GET .*/streams/",))
    await expect(panel(page)).to_contain_text("Running")
    assert (await ask("DELETE", f"{node.base}/streams/{quote(FLOW)}"))[0] == 204
    await expect(panel(page)).to_contain_text("Not listed any more")
    await expect(page.get_by_test_id("remove")).to_be_disabled()


async def test_who_may_not_change_streams_cannot_remove_or_start(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await register(node)

    async def prepare(page: Page) -> None:
        async def rights(route: Route) -> None:
            _, session = await ask("GET", f"{node.base}/session")
            await route.fulfill(json=session | {"may": ["read", "operate"]})

        await page.route("**/session", rights)

    page = await open_page(node, f"streams?id={FLOW}", prepare=prepare)
    await expect(page.get_by_test_id("remove")).to_be_disabled()
    await expect(page.get_by_test_id("start-service")).to_be_disabled()


async def test_services_of_all_nodes_are_listed_and_shown_through_the_relay(
    open_page: OpenedPages, members: dict[str, Member], admin: AdminProcess
) -> None:
    await register(members["one"], "urn:both", topic="roads:one")
    await register(members["two"], "urn:both", topic="roads:two", state="stopped")
    for place in (members["one"], admin):
        page = await open_page(place, "streams")
        await expect(rows(page)).to_have_count(2)
        await rows(page).filter(has_text="roads:two").click()
        await expect(panel(page).get_by_test_id("plan-box").last).to_contain_text("roads:two")
        await expect(panel(page)).to_contain_text("two")
        await panel(page).get_by_role("tab", name="Live plot").click()
        await expect(panel(page).get_by_text("Waiting for the next event")).to_be_visible()
        await publish(members["two"], "roads:two", {"flow": 5})
        await expect(page.get_by_test_id("live-plot")).to_have_attribute("data-last", "5")


async def test_hostile_names_and_descriptions_are_text(open_page: OpenedPages, node: NodeProcess) -> None:
    uri = f"urn:{HOSTILE}?/#&é"
    await register(
        node,
        uri,
        description=HOSTILE + "\u202e",
        inputs={HOSTILE: HOSTILE},
        attributes={HOSTILE: "double"},
        constraints={},
        plan=[{"op": HOSTILE, "inputs": [HOSTILE], "text": "\u202e" + HOSTILE}],
    )
    page = await open_page(node, "streams")
    await rows(page).click()
    await expect(panel(page).get_by_role("heading", level=2)).to_have_text(uri)
    await expect(panel(page).locator(".description")).to_have_text(HOSTILE + r"\u202e")
    for tab in ("Rates", "Live plot", "Requests 0", "Plan"):
        await panel(page).get_by_role("tab", name=re.compile(tab.split()[0])).click()
    await page.reload()
    await expect(panel(page).get_by_test_id("plan-box")).to_have_count(3)
    assert await page.locator("img").count() == 0
    assert await page.evaluate("globalThis.pwned") is None
    await page.get_by_test_id("remove").click()
    await page.get_by_role("dialog").get_by_test_id("ok").click()
    await expect(rows(page)).to_have_count(0)


async def test_a_node_without_an_agent_says_so(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node, "streams")
    start = page.get_by_test_id("start-service")
    await expect(start).to_be_disabled()
    await expect(start).to_have_attribute("title", re.compile("streams.agent = true"))


async def test_a_definition_is_checked_started_watched_and_stopped(
    open_page: OpenedPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cheap_environment(tmp_path / "conf").items():
        monkeypatch.setenv(name, value)
    agent = ("--set", "streams.agent=true", "--set", "streams.master=local[1]")
    with NodeProcess(tmp_path / "node", *agent) as node:
        page = await open_page(
            node, "streams", expected=(*AWAY, r"^400 POST .*/streams", r"^404 GET .*/streams/")
        )
        await page.get_by_test_id("start-service").click()
        definition = page.get_by_test_id("definition")
        await definition.fill('uri = "urn:x"')
        await page.get_by_test_id("ok").click()
        await expect(page.get_by_test_id("definition-problems")).to_contain_text("topic: is missing")
        await expect(definition).to_have_attribute("aria-invalid", "true")
        await definition.fill(RATE)
        await page.get_by_test_id("ok").click()
        await expect(row(page, "urn:example:ticks")).to_be_visible()
        # The agent tells the plan in another shape than a job.
        titles = panel(page).get_by_test_id("plan-box").locator(".plan-title")
        await expect(titles).to_have_text(["ticks", "filter", "test:ticks"])
        await panel(page).get_by_role("tab", name="Live plot").click()
        await page.get_by_test_id("plot-field").select_option("value")
        plot = page.get_by_test_id("live-plot")
        await expect(plot).to_have_attribute("data-values", re.compile(r"^[1-9]"))
        await expect(row(page, "urn:example:ticks")).to_have_attribute("data-state", "running")
        await panel(page).get_by_role("tab", name="Log").click()
        await expect(page.get_by_test_id("log")).to_contain_text("starting Spark")
        await page.get_by_test_id("remove").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("definition, checkpoint and log are removed")
        await dialog.get_by_test_id("ok").click()
        await expect(rows(page)).to_have_count(0)


async def test_a_dead_node_is_named(
    open_page: OpenedPages, tmp_path: Path, members: dict[str, Member], admin: AdminProcess
) -> None:
    with Member(tmp_path / "three", "three", "dock", admin.base) as three:
        await register(three, "urn:three")
        page = await open_page(members["one"], "streams", expected=AWAY)
        await expect(row(page, "urn:three")).to_be_visible()
        await asyncio.to_thread(three.kill)
        await expect(page.get_by_text(re.compile("three.*is dead"))).to_be_visible()
        await expect(row(page, "urn:three")).to_have_count(0)


@pytest.mark.parametrize("tab", ["", "plan", "rates", "live", "requests"])
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")])
async def test_each_part_is_accessible_and_fits(
    open_page: OpenedPages, shared_node: NodeProcess, tab: str, size: Size, scheme: Scheme
) -> None:
    await register(shared_node)
    view = f"streams?id={FLOW}&tab={tab}" if tab else "streams"
    page = await open_page(shared_node, view, size=size, scheme=scheme)
    if tab:
        await expect(panel(page).get_by_role("tab", selected=True)).to_be_visible()
    await assert_accessible(page)
    assert await page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS


async def test_on_a_phone_the_panel_fills_the_screen(open_page: OpenedPages, node: NodeProcess) -> None:
    await register(node)
    page = await open_page(node, "streams", size=PHONE)
    await expect(row(page).locator('[data-label="lag"]')).to_be_visible()
    await expect(row(page).get_by_text(TOPIC)).to_be_visible()
    await row(page).click()
    box = await panel(page).bounding_box()
    assert box is not None
    assert box["width"] == PHONE[0]
    await page.get_by_role("button", name="Services").click()
    await expect(panel(page)).to_have_count(0)
