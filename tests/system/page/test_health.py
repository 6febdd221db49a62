"""Health: charts of nodes, their crosshair, gaps and restarts; all figures of a node; nodes side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from page_pictures.browser import DESKTOP, PHONE, Scheme, Size
from playwright.async_api import Locator, Page, Route, expect

from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess, quiet_port
from tests.patience import PATIENCE, eventually
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import publish

AWAY = (r"^net::ERR_", r"^50[234] ")
"""Requests to or about a node that is away, or that stops or starts, fail."""
MOST_ELEMENTS = 3000
CHARTS = 16
INK = """(canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const colours = new Map();
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] === 255) colours.set(`${data[at]} ${data[at + 1]} ${data[at + 2]}`, true);
  }
  return [...colours.keys()];
}"""
"""The colours of a canvas that are not see-through."""
DRAWN = """async ([count, points]) => {
  const { Chart } = await import(new URL("app/parts/charts.js", document.baseURI));
  const { html, render } = await import(new URL("app/html.js", document.baseURI));
  const times = Array.from({ length: points }, (_, index) => index * 10);
  const values = times.map((time) => (time % 700 ? 50 + 40 * Math.sin(time / 900) : null));
  const series = [{ label: "one", values }];
  const box = document.createElement("div");
  box.style.cssText = "position: fixed; inset: 0; z-index: 99";
  document.body.append(box);
  render(Array.from({ length: count }, (_, index) => html`<${Chart} key=${index} times=${times} top=${100}
    series=${series} label=${`chart ${index}`} />`), box);
  while (box.querySelectorAll("canvas").length < count) await new Promise((done) => setTimeout(done, 20));
  const sizes = [...box.querySelectorAll("canvas")].map((canvas) => canvas.width);
  render(null, box);
  box.remove();
  return sizes;
}"""
"""Draws charts with so many points over the page, and gives the widths of their canvases."""


def chart(page: Page, figure: str, node: str | None = None) -> Locator:
    of_node = "" if node is None else f'[data-node="{node}"]'
    return page.locator(f'[data-testid="chart"][data-figure="{figure}"]{of_node}')


def plot(page: Page, figure: str, node: str | None = None) -> Locator:
    return chart(page, figure, node).locator(".chart")


def panel(page: Page, node: str) -> Locator:
    return page.locator(f'[data-testid="node"][data-name="{node}"]')


def answers(node: NodeProcess, path: str) -> Any:
    """What the node answers in JSON."""
    with urlopen(f"{node.base}/{path}", timeout=PATIENCE) as answer:
        return json.load(answer)


async def ink(canvas: Locator) -> set[str]:
    return set(await canvas.evaluate(INK))


async def is_drawn(page: Page, figure: str, node: str | None = None, colours: int = 3) -> None:
    """Wait until a chart has a line, beside the grid and the words of its axes."""
    canvas = plot(page, figure, node).locator("canvas")
    await expect(canvas).to_be_visible()

    async def has_ink() -> bool:
        return len(await ink(canvas)) >= colours

    await eventually(has_ink)


async def time_under(page: Page, figure: str = "published_rate", node: str | None = None) -> str:
    return await chart(page, figure, node).locator(".chart-time").inner_text()


async def test_charts_show_what_is_published(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node, "health")
    await expect(page.get_by_test_id("chart")).to_have_count(CHARTS)
    await is_drawn(page, "memory")
    shown = chart(page, "published_rate")
    await expect(shown.locator(".figure-value b")).to_have_text("0")
    idle = await shown.get_attribute("data-end")

    async def has_risen() -> bool:
        await publish(node, "ALL:STATE", *({"n": n} for n in range(200)))
        return await shown.get_attribute("data-end") != idle

    await eventually(has_risen)
    await is_drawn(page, "published_rate")
    await expect(chart(page, "topics").locator(".figure-value b")).to_have_text("2")


async def test_the_axis_ends_at_one_two_or_five_times_a_power_of_ten(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health")
    await is_drawn(page, "memory")
    ends = [
        float(await each.get_attribute("data-end") or "0")
        for each in await page.get_by_test_id("chart").all()
    ]
    assert {f"{end:.1e}"[:3] for end in ends} <= {"1.0", "2.0", "5.0"}


async def test_ranges_are_in_the_address_and_have_their_steps(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health")
    values = plot(page, "cpu")
    for name, in_address, steps in (("24 hours", "24h", 1440), ("1 hour", "1h", 720), ("5 min", "5m", 300)):
        await page.get_by_role("button", name=name, exact=True).click()
        await expect(values).to_have_attribute("aria-valuemax", str(steps - 1))
        assert f"range={in_address}" in page.url
    await page.goto(f"{shared_node.base}/ui/health?range=24h")
    await expect(values).to_have_attribute("aria-valuemax", "1439")
    await expect(page.get_by_role("button", name="24 hours")).to_have_attribute("aria-pressed", "true")


async def test_the_mouse_moves_one_crosshair_in_all_charts(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health")
    await is_drawn(page, "memory")
    await plot(page, "published_rate").locator(".u-over").hover()
    await expect(page.locator(".chart-time:empty")).to_have_count(0)
    times = await page.locator(".chart-time").all_inner_texts()
    assert len(set(times)) == 1, times
    await page.get_by_role("heading", name="Health").hover()
    await expect(page.locator(".chart-time:not(:empty)")).to_have_count(0)


async def test_keys_move_the_crosshair_choose_a_chart_and_open_it(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health")
    await is_drawn(page, "memory")
    first = plot(page, "published_rate")

    async def ends_with_a_sample() -> bool:
        # The sample of the last step may be late.
        await first.focus()
        await page.keyboard.press("End")
        last = await time_under(page)
        return await first.get_attribute("aria-valuetext") == f"{last}: 0 /s"

    await eventually(ends_with_a_sample)
    # Else the first step goes as another one comes.
    await page.get_by_role("button", name="Pause live updates").click()
    await first.focus()
    await page.keyboard.press("Home")
    began = await time_under(page)
    await page.keyboard.press("ArrowRight")
    assert await time_under(page) > began
    await page.keyboard.press("ArrowLeft")
    assert await time_under(page) == began
    assert await time_under(page, "files") == began
    await expect(first).to_have_attribute("aria-valuetext", f"{began}: no sample")
    await page.keyboard.press("Escape")
    assert await time_under(page) == ""
    # One chart of a panel is in the order of Tab.
    await page.keyboard.press("ArrowDown")
    await expect(plot(page, "delivered_rate")).to_be_focused()
    await expect(page.locator('.chart[tabindex="0"]')).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Delivered /s")).to_be_visible()
    assert "id=delivered_rate" in page.url


async def test_a_large_chart_has_its_values_as_a_table(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health?id=accept&range=1h")
    await expect(page.get_by_test_id("chart")).to_have_count(1)
    table = page.get_by_test_id("values")
    name = answers(shared_node, "status")["node"]
    await expect(table.get_by_role("columnheader")).to_have_text(["Time", f"{name} p50", f"{name} p99"])
    await expect(table).to_have_attribute("aria-rowcount", "721")
    await page.get_by_role("button", name="All charts").click()
    await expect(page.get_by_test_id("chart")).to_have_count(CHARTS)
    await page.go_back()
    await expect(page.get_by_test_id("chart")).to_have_count(1)


async def test_a_threshold_is_named_with_its_setting(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health?id=cpu")
    await expect(page.get_by_text("monitoring.cpu_percent")).to_contain_text("alert from 95 %")


async def test_lines_have_the_colours_of_the_theme_and_follow_it(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health")
    await is_drawn(page, "memory")
    canvas = plot(page, "memory").locator("canvas")
    assert "10 103 131" in await ink(canvas)
    await page.emulate_media(color_scheme="dark")

    async def is_dark() -> bool:
        return "98 198 226" in await ink(canvas)

    await eventually(is_dark)
    # The button goes from the system's theme to the light one.
    await page.get_by_role("button", name="Theme:").click()

    async def is_light() -> bool:
        return "10 103 131" in await ink(canvas)

    await eventually(is_light)


async def test_times_under_the_crosshair_follow_the_zone(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health")
    await is_drawn(page, "memory")
    assert await page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone") == "UTC"
    clocks = """async ([zone]) => {
      const { clock, setZone } = await import(new URL("app/format.js", document.baseURI));
      setZone(zone);
      return clock(0);
    }"""
    assert await page.evaluate(clocks, ["utc"]) == "00:00:00"
    await page.get_by_role("button", name="Times are").click()
    await is_drawn(page, "memory")
    await plot(page, "memory").focus()
    await page.keyboard.press("End")
    assert len(await time_under(page, "memory")) == len("00:00:00")


async def test_charts_take_the_width_of_the_window(open_page: OpenedPages, shared_node: NodeProcess) -> None:
    page = await open_page(shared_node, "health?id=memory")
    canvas = plot(page, "memory").locator("canvas")
    await is_drawn(page, "memory")
    wide = await canvas.evaluate("(canvas) => canvas.width")
    await page.set_viewport_size({"width": 1000, "height": 800})

    async def is_narrower() -> bool:
        return bool(await canvas.evaluate("(canvas) => canvas.width") < wide)

    await eventually(is_narrower)


async def test_a_restart_leaves_a_gap_and_a_mark(open_page: OpenedPages, tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", port=quiet_port()) as node:
        page = await open_page(node, "health", expected=AWAY)
        await is_drawn(page, "memory")
        await expect(page.get_by_test_id("restarts")).to_have_count(0)
        amber = "138 82 0"
        canvas = plot(page, "memory").locator("canvas")
        assert amber not in await ink(canvas)
        node.terminate()
        await expect(page.locator("[data-connection]")).to_have_attribute("data-connection", "away")
        node.start()
        await expect(page.get_by_test_id("restarts")).to_contain_text("restarted")

        async def is_marked() -> bool:
            return amber in await ink(canvas)

        await eventually(is_marked)


async def test_every_node_of_a_cluster_has_the_same_axes(
    open_page: OpenedPages, members: dict[str, Member], admin: AdminProcess
) -> None:
    await publish(members["two"], "ALL:STATE", *({"n": n} for n in range(500)))
    for place in (members["one"], admin):
        page = await open_page(place, "health?range=1h")
        await expect(page.get_by_test_id("node")).to_have_count(3)
        for name in members:
            await panel(page, name).scroll_into_view_if_needed()
            await is_drawn(page, "memory", name)
            await expect(panel(page, name)).to_have_attribute("data-state", "alive")
        # Those out of sight are empty, so that their canvases take no memory.
        await panel(page, "three").scroll_into_view_if_needed()
        ends: dict[str, set[str]] = {}
        for each in await page.get_by_test_id("chart").all():
            figure, end = await each.get_attribute("data-figure"), await each.get_attribute("data-end")
            ends.setdefault(str(figure), set()).add(str(end))
        assert all(len(of_figure) == 1 for of_figure in ends.values()), ends


async def test_the_scope_chooses_nodes(open_page: OpenedPages, members: dict[str, Member]) -> None:
    page = await open_page(members["one"], "health?scope=cluster:plant")
    await expect(page.get_by_test_id("node")).to_have_count(2)
    await page.goto(f"{members['one'].base}/ui/health?scope=node:three")
    await expect(panel(page, "three")).to_be_visible()
    await is_drawn(page, "memory", "three")
    await expect(page.get_by_test_id("node")).to_have_count(1)


async def test_many_charts_stay_below_the_budget_of_elements(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    found, history = answers(shared_node, "cluster"), answers(shared_node, "history")
    (cluster,) = found["clusters"]
    (own,) = cluster["nodes"]
    cluster["nodes"] += [{**own, "name": f"copy-{n}"} for n in range(60)]

    async def prepare(page: Page) -> None:
        await page.route("**/cluster", lambda route: route.fulfill(json=found))
        await page.route("**/nodes/copy-*/history*", lambda route: route.fulfill(json=history))

    page = await open_page(shared_node, "health", prepare=prepare)
    await expect(page.get_by_test_id("node")).to_have_count(24)
    await page.get_by_role("button", name="Show 24 more of 61 nodes").click()
    await expect(page.get_by_test_id("node")).to_have_count(48)
    last = page.get_by_test_id("node").last
    await last.scroll_into_view_if_needed()
    await expect(last.get_by_test_id("chart").first).to_be_visible()
    assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
    assert await page.locator("canvas").count() <= 4 * CHARTS


async def test_six_charts_of_a_day_by_ten_seconds_are_drawn(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health?tab=nodes")
    sizes = await page.evaluate(DRAWN, [6, 8640])
    assert len(sizes) == 6
    assert min(sizes) > 0


async def test_the_table_of_figures_has_all_that_the_node_tells(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
        if isinstance(value, dict) and value:
            for name, inner in value.items():
                yield from leaves(inner, (*path, name))
        elif isinstance(value, list) and value:
            for index, inner in enumerate(value):
                yield from leaves(inner, (*path, str(index)))
        else:
            yield ".".join(path)

    page = await open_page(shared_node, "health?tab=figures")
    told = set(leaves(answers(shared_node, "status")))
    table = page.get_by_test_id("figures")
    await expect(table).to_have_attribute("aria-rowcount", str(len(told) + 1))
    shown: set[str] = set()
    wrap = page.get_by_role("region", name="Figures", exact=True)

    async def scrolled() -> bool:
        rows = page.get_by_test_id("figure")
        shown.update(await rows.evaluate_all("(rows) => rows.map((row) => row.dataset.figure)"))
        await wrap.evaluate("(wrap) => { wrap.scrollTop += 300; }")
        return shown >= told

    await eventually(scrolled)
    assert shown == told


async def test_figures_are_found_by_a_search_that_is_in_the_address(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "health?tab=figures")
    await page.get_by_test_id("figure-search").fill("rss")
    await expect(page.get_by_test_id("figure")).to_have_count(1)
    await expect(page.get_by_test_id("figure")).to_contain_text("MB")
    assert "q=rss" in page.url
    await page.reload()
    await expect(page.get_by_test_id("figure")).to_have_count(1)
    await page.get_by_test_id("figure-search").fill("there is no such figure")
    await page.get_by_role("button", name="Clear filters").click()
    await expect(page.get_by_test_id("figure").first).to_be_visible()
    await page.get_by_role("button", name="Charts").click()
    await page.get_by_test_id("figure-search").fill("latency")
    await expect(page.get_by_test_id("chart")).to_have_count(2)


async def test_the_figures_of_the_own_node_are_live(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node, "health?tab=figures&q=published.accepted")
    value = page.locator('[data-figure="published.accepted"]')
    await expect(value).to_contain_text("0")
    await publish(node, "ALL:STATE", {"n": 1}, {"n": 2})
    await expect(value.get_by_text("2", exact=True)).to_be_visible()


async def test_figures_of_another_node_are_chosen_in_the_table(
    open_page: OpenedPages, members: dict[str, Member], admin: AdminProcess
) -> None:
    for place in (members["one"], admin):
        page = await open_page(place, "health?tab=figures&q=cluster.name")
        await page.get_by_test_id("figures-node").select_option("three")
        await expect(page.locator('[data-figure="cluster.name"]')).to_contain_text("three")
        assert "scope=node" in page.url


async def test_a_figure_is_copied_as_a_request(open_page: OpenedPages, shared_node: NodeProcess) -> None:
    page = await open_page(shared_node, "health?tab=figures")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="Copy as curl").click()
    await expect(page.get_by_text("Copied as curl")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == f"curl -s '{shared_node.base}/status'"


async def test_nodes_stand_side_by_side(
    open_page: OpenedPages, members: dict[str, Member], admin: AdminProcess
) -> None:
    for place in (members["one"], admin):
        page = await open_page(place, "health?tab=nodes")
        rows = page.get_by_test_id("node")
        await expect(rows).to_have_count(3)
        names = [await each.get_attribute("data-name") for each in await rows.all()]
        assert names == sorted(members)
        await page.get_by_role("columnheader", name="Node").get_by_role("button").click()
        await expect(rows.first).to_have_attribute("data-name", "two")
        await panel(page, "three").click()
        await expect(page.get_by_test_id("figures")).to_be_visible()
        assert "scope=node" in page.url


async def test_a_node_that_dies_keeps_its_charts_and_is_said_to_be_dead(
    open_page: OpenedPages, tmp_path: Path, admin: AdminProcess, members: dict[str, Member]
) -> None:
    with Member(tmp_path / "four", "four", "lab", admin.base) as four:
        pages = [
            await open_page(place, "health?scope=cluster:lab", expected=AWAY)
            for place in (members["one"], admin)
        ]
        for page in pages:
            await is_drawn(page, "memory", "four")
        await asyncio.to_thread(four.kill)
        for page in pages:
            await expect(panel(page, "four")).to_have_attribute("data-state", "dead")
            await is_drawn(page, "memory", "four")
        await expect(pages[0].get_by_text("Its figures are not updated")).to_be_visible()


async def test_who_may_not_operate_is_told_so(open_page: OpenedPages, shared_node: NodeProcess) -> None:
    async def prepare(page: Page) -> None:
        async def refuse(route: Route) -> None:
            await route.fulfill(status=403, json={"error": "anonymous may not operate this node"})

        await page.route("**/history*", refuse)

    page = await open_page(shared_node, "health", prepare=prepare, expected=(r"^403 GET .*/history",))
    await expect(page.get_by_text("anonymous may not operate this node")).to_be_visible()


@pytest.mark.parametrize("view", ["health", "health?id=accept", "health?tab=figures", "health?tab=nodes"])
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")])
async def test_each_part_is_accessible_and_fits(
    open_page: OpenedPages, members: dict[str, Member], view: str, size: Size, scheme: Scheme
) -> None:
    page = await open_page(members["one"], view, size=size, scheme=scheme)
    await expect(page.get_by_test_id("node").or_(page.get_by_test_id("figures")).first).to_be_visible()
    await assert_accessible(page)
    assert await page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
