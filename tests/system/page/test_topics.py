"""The tree of topics: what is shown of it, how it is searched, and how others' edits appear."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess
from tests.slapd import BASE, Slapd
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.topic_edits import change
from tests.webhooks import ask, create, publish

TREE = """\
[topics.ALL]
description = "Everything"
[topics.ALL.ALARM]
description = "Needs somebody at once"
routing = "tcp"
[topics.ALL.ALARM.FIRE]
[topics.ALL.ALARM.SMOKE]
description = "Smoke detectors"
[topics.ALL.STATE]
[topics.ALL.STATE.DOOR]
[topics.traffic]
[topics.traffic.anpr]
visibility = "internal"
[topics.traffic.flow]
[[namespaces]]
uri = "urn:example:weather"
[namespaces.topics.Storm]
[namespaces.topics.Storm.Hail]
"""
STORM = "{urn:example:weather}Storm"
NOBODY = "http://127.0.0.1:9/nobody"
PHONE = (390, 844)
NARROW = (1000, 800)
MOST_ELEMENTS = 3000


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node with a few topics in a file."""
    file = tmp_path / "topics.toml"
    file.write_text(TREE)
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as running:
        yield running


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with 10,110 topics: ten roots, ten topics below each, a hundred below each of these."""
    folder = tmp_path_factory.mktemp("large")
    tables = (f"[topics.R{a}.B{b}.C{c:02}]\n" for a in range(10) for b in range(10) for c in range(100))
    (folder / "topics.toml").write_text("".join(tables))
    with NodeProcess(folder / "data", "--topics", str(folder / "topics.toml")) as running:
        yield running


def row(page: Page, topic: str) -> Locator:
    return page.locator(f'[data-testid="topic"][data-topic="{topic}"]')


async def topics(page: Page) -> list[str]:
    rows = page.get_by_test_id("topic")
    return [await each.get_attribute("data-topic") or "" for each in await rows.all()]


async def focused(page: Page) -> str | None:
    topic: str | None = await page.evaluate("document.activeElement?.dataset?.topic ?? null")
    return topic


async def elements(page: Page) -> int:
    number: int = await page.evaluate("document.querySelectorAll('*').length")
    return number


async def test_a_small_tree_is_open_with_its_values(node: NodeProcess, open_page: OpenedPages) -> None:
    await create(node, NOBODY, topic="ALL:ALARM")
    page = await open_page(node, "topics")
    assert await topics(page) == [
        "ALL", "ALL:ALARM", "ALL:ALARM:FIRE", "ALL:ALARM:SMOKE", "ALL:STATE", "ALL:STATE:DOOR",
        "traffic", "traffic:anpr", "traffic:flow", STORM, f"{STORM}:Hail",
    ]  # fmt: skip
    await expect(row(page, "ALL:ALARM")).to_contain_text("Needs somebody at once")
    await expect(row(page, "ALL:ALARM")).to_contain_text("tcp")
    await expect(row(page, "traffic:anpr")).to_contain_text("internal")
    await expect(row(page, STORM)).to_contain_text("{urn:example:weather}")
    await expect(row(page, "ALL:ALARM").locator(".c-subscribers")).to_have_text("1")
    await expect(row(page, "traffic").locator(".c-subscribers")).to_have_text("0")
    await expect(page.locator(".topics-source")).to_contain_text("topics.toml")
    await expect(page.get_by_test_id("topic-total")).to_have_attribute("data-total", "11")


async def test_branches_close_and_open(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics")
    await expect(row(page, "ALL:ALARM")).to_have_attribute("aria-expanded", "true")
    await row(page, "ALL:ALARM").locator(".twist").click()
    await expect(row(page, "ALL:ALARM")).to_have_attribute("aria-expanded", "false")
    await expect(row(page, "ALL:ALARM:FIRE")).to_have_count(0)
    await row(page, "ALL:ALARM").locator(".twist").click()
    await expect(row(page, "ALL:ALARM:FIRE")).to_be_visible()
    assert await row(page, "ALL:ALARM:FIRE").get_attribute("aria-expanded") is None


async def test_figures_of_rows_in_sight_follow_the_traffic(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics")
    await expect(row(page, "ALL:ALARM:SMOKE").locator(".c-last")).to_have_text("never")
    await publish(node, "ALL:ALARM:SMOKE", *({"n": n} for n in range(50)))
    await expect(row(page, "ALL:ALARM:SMOKE").locator(".c-last")).not_to_have_text("never")
    await expect(row(page, "ALL").locator(".topic-rate")).to_have_text(re.compile("[1-9]"))
    width = await row(page, "ALL").locator(".topic-rate i").evaluate("(bar) => bar.offsetWidth")
    assert width > 2


async def test_an_address_shows_its_topic_with_all_above_and_below(
    large: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(large, "topics?topic=R3:B4&tab=edit")
    await expect(row(page, "R3:B4")).to_have_attribute("aria-selected", "true")
    await expect(row(page, "R3:B4:C00")).to_have_count(1)
    await expect(row(page, "R3")).to_have_attribute("aria-expanded", "true")
    await expect(page.get_by_role("tab", name="Edit")).to_have_attribute("aria-selected", "true")
    await expect(page.locator(".side h2")).to_have_text("R3 : B4")
    await page.get_by_role("tab", name="History").click()
    await expect(page).to_have_url(re.compile("tab=history"))
    await page.go_back()
    await expect(page.get_by_role("tab", name="Edit")).to_have_attribute("aria-selected", "true")


async def test_a_click_opens_the_topic_and_closing_the_panel_leaves_the_tree(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics")
    await row(page, "ALL:STATE").click()
    await expect(page.locator(".side h2")).to_have_text("ALL : STATE")
    await expect(page).to_have_url(re.compile("topic=ALL%3ASTATE"))
    await page.get_by_role("button", name="Close the panel").click()
    await expect(page.locator(".side")).to_have_count(0)
    assert "topic=" not in page.url


async def test_a_topic_that_does_not_exist_has_similar_ones_and_can_be_added(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics?topic=ALL:STATO", expected=("404 GET",))
    side = page.locator(".side")
    await expect(side).to_contain_text("ALL:STATO does not exist.")
    await side.get_by_role("button", name="Add this topic").click()
    await expect(row(page, "ALL:STATO")).to_have_attribute("aria-selected", "true")
    page = await open_page(node, "topics?topic=ALL:STAT", expected=("404 GET",))
    await page.locator(".side .notice").get_by_role("button", name="ALL:STATE").click()
    await expect(page.locator(".side h2")).to_have_text("ALL : STATE")


async def test_a_topic_that_does_not_exist_is_not_read_before_it_is_known_whether_it_may_appear(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    async def hold_the_stream(page: Page) -> None:
        await page.route("**/live?*", hold)

    # A read of its messages would be another 404, which fails the test.
    page = await open_page(
        node, "topics?topic=ALL:STATO", expected=("404 GET .*STATO$",), prepare=hold_the_stream
    )
    await expect(page.get_by_test_id("watch-filter")).to_have_count(0)
    released.set()
    await expect(page.locator(".side")).to_contain_text("ALL:STATO does not exist.")


async def test_a_search_shows_matches_with_the_topics_above_them(
    large: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(large, "topics")
    await page.get_by_test_id("topic-search").fill("c77")
    await expect(page.locator(".topics-found")).to_contain_text("100 matches")
    await expect(page.get_by_test_id("topic").nth(2)).to_have_attribute("data-topic", "R0:B0:C77")
    assert (await topics(page))[:4] == ["R0", "R0:B0", "R0:B0:C77", "R0:B1"]
    assert await page.locator("mark").first.inner_text() == "C77"
    await expect(row(page, "R0:B0")).to_have_class(re.compile("context"))
    assert "q=c77" in page.url
    # Closed, and then open with all that is below, a topic among the results is as any other.
    await row(page, "R0:B0").locator(".twist").click()
    await expect(row(page, "R0:B0:C77")).to_have_count(0)
    again = await open_page(large, "topics?q=c77")
    assert (await topics(again))[:3] == ["R0", "R0:B0", "R0:B0:C77"]


async def test_without_a_match_the_filters_can_be_cleared(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics?q=nothing-has-this")
    await expect(page.locator(".notice-no-match")).to_be_visible()
    assert await topics(page) == []
    await page.get_by_role("button", name="Clear filters").click()
    await expect(row(page, "ALL")).to_be_visible()
    assert "q=" not in page.url


async def test_chips_leave_topics_with_subscribers_or_traffic(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    await create(node, NOBODY, topic="ALL:STATE:DOOR")
    page = await open_page(node, "topics")
    await page.get_by_role("button", name="With subscribers").click()
    await expect(row(page, "traffic")).to_have_count(0)
    assert await topics(page) == ["ALL", "ALL:STATE", "ALL:STATE:DOOR"]
    assert "state=subscribers" in page.url
    await create(node, NOBODY, topic="traffic:flow")
    await expect(row(page, "traffic:flow")).to_be_visible()
    page = await open_page(node, "topics?state=traffic")
    await expect(page.locator(".notice-no-match")).to_be_visible()
    await publish(node, "traffic:flow", {"n": 1})
    await expect(row(page, "traffic:flow")).to_be_visible()
    assert await topics(page) == ["traffic", "traffic:flow"]


async def test_edits_of_others_appear_by_themselves(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics")
    await row(page, "ALL:STATE").locator(".twist").click()
    await row(page, "ALL:ALARM:FIRE").focus()
    added = {"op": "add", "topic": "ALL:ALARM:GAS", "description": "by another"}
    await change(node, added, {"op": "remove", "topic": "traffic:flow"})
    await expect(row(page, "ALL:ALARM:GAS")).to_contain_text("by another")
    await expect(row(page, "traffic:flow")).to_have_count(0)
    # What was closed, and the focus, are as before.
    await expect(row(page, "ALL:STATE")).to_have_attribute("aria-expanded", "false")
    assert await focused(page) == "ALL:ALARM:FIRE"
    await expect(page.locator(".topics-source")).to_contain_text("last edit")


async def test_edits_of_others_appear_while_a_topic_is_watched(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics?topic=ALL:ALARM&tab=watch")
    await change(node, {"op": "add", "topic": "ALL:ALARM:GAS"})
    await expect(row(page, "ALL:ALARM:GAS")).to_be_visible()
    await change(node, {"op": "set", "topic": "ALL:ALARM", "description": "watched"})
    await expect(page.locator(".side header")).to_contain_text("watched")


async def test_an_edit_of_the_file_appears(node: NodeProcess, open_page: OpenedPages, tmp_path: Path) -> None:
    page = await open_page(node, "topics?topic=ALL:ALARM&tab=edit")
    (tmp_path / "topics.toml").write_text(TREE.replace("at once", "tomorrow") + "[topics.ALL.NEWS]\n")
    await expect(row(page, "ALL:NEWS")).to_be_visible()
    await expect(page.get_by_test_id("description")).to_have_value("Needs somebody tomorrow")


async def test_an_edit_by_ldapmodify_appears(slapd: Slapd, tmp_path: Path, open_page: OpenedPages) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url) as node:
        page = await open_page(node, "topics?topic=ALL:ALARM&tab=edit")
        await expect(page.locator(".topics-source")).to_contain_text(f"Follows {slapd.url}")
        entry = f"dn: cn=ALARM,cn=ALL,{BASE}\nchangetype: modify\nreplace: description\n"
        await asyncio.to_thread(slapd.modify, f"{entry}description: by ldapmodify\n")
        await expect(row(page, "ALL:ALARM")).to_contain_text("by ldapmodify")
        await expect(page.get_by_test_id("description")).to_have_value("by ldapmodify")
        # This node has no account to edit with, which is said where somebody would edit.
        await expect(page.get_by_test_id("read-only")).to_contain_text("topics.edit_bind_dn is not set")
        await expect(page.get_by_test_id("topic-rename")).to_be_disabled()
        await expect(page.get_by_test_id("topic-add")).to_be_disabled()
        await row(page, "ALL:ALARM").focus()
        await page.keyboard.press("F2")
        await expect(page.get_by_test_id("name")).to_have_count(0)
        await open_page.finish()


async def test_ten_thousand_topics_are_open_with_few_elements(
    large: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(large, "topics")
    assert [topic for topic in await topics(page) if topic.startswith("R")][:2] == ["R0", "R1"]
    await page.get_by_role("button", name="Collapse or expand all").click()
    await page.get_by_role("menuitem", name="Expand all").click()
    tree = page.get_by_role("treegrid")
    await expect(tree).to_have_attribute("aria-rowcount", "10111")
    await expect(page.get_by_test_id("topic-total")).to_have_attribute("data-total", "10,110")
    assert await elements(page) < MOST_ELEMENTS
    await page.get_by_test_id("topic").first.focus()
    await page.keyboard.press("End")
    await expect(row(page, "R9:B9:C99")).to_be_focused()
    await expect(row(page, "R9:B9:C99")).to_be_in_viewport()
    assert await row(page, "R9:B9:C99").get_attribute("aria-rowindex") == "10111"
    assert await elements(page) < MOST_ELEMENTS
    # The row with the focus stays an element when it is out of sight.
    await page.locator(".topics-panel .wrap").evaluate("(box) => { box.scrollTop = 0; }")
    await expect(row(page, "R0")).to_be_in_viewport()
    assert await focused(page) == "R9:B9:C99"
    await page.keyboard.press("ArrowUp")
    await expect(row(page, "R9:B9:C98")).to_be_in_viewport()


SCROLL_BY_ROWS = """async (steps) => {
  const tree = document.querySelector('[role="treegrid"]');
  const list = tree.closest(".wrap");
  const height = 33;
  const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const made = new Set(tree.querySelectorAll("tbody tr[data-topic]"));
  const found = { changes: 0, missing: [] };
  for (let step = 0; step < steps; step += 1) {
    list.scrollTop += height;
    await drawn();
    await drawn();
    const rows = [...tree.querySelectorAll("tbody tr[data-topic]")];
    if (rows.some((each) => !made.has(each))) found.changes += 1;
    for (const each of rows) made.add(each);
    const frame = list.getBoundingClientRect();
    for (const part of [0.1, 0.5, 0.95]) {
      const hit = document.elementFromPoint(frame.left + 40, frame.top + frame.height * part);
      if (!hit?.closest("tr")?.matches("[data-topic], [aria-rowindex='1']")) found.missing.push([step, part]);
    }
  }
  return found;
}"""


async def test_scrolling_makes_rows_several_at_once_and_leaves_no_gap(
    large: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(large, "topics")
    for topic, below in (("R0", "R0:B0"), ("R0:B0", "R0:B0:C00")):
        await row(page, topic).focus()
        await page.keyboard.press("ArrowRight")
        await row(page, below).wait_for()
    found = await page.evaluate(SCROLL_BY_ROWS, 60)
    assert found["missing"] == []
    assert 2 <= found["changes"] <= 15


async def test_a_level_of_thousands_is_loaded_to_its_end(tmp_path: Path, open_page: OpenedPages) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("".join(f"[topics.flat.T{n:04}]\n" for n in range(2500)))
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        page = await open_page(node, "topics?topic=flat")
        await expect(page.get_by_role("treegrid")).to_have_attribute("aria-rowcount", "2502")
        await row(page, "flat").focus()
        await page.keyboard.press("End")
        last = row(page, "flat:T2499")
        await expect(last).to_be_focused()
        assert [await last.get_attribute(f"aria-{name}") for name in ("level", "posinset", "setsize")] == [
            "2", "2500", "2500",
        ]  # fmt: skip
        await open_page.finish()


async def test_the_keyboard_reaches_everything(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics")
    await page.get_by_test_id("topic-search").focus()
    await page.keyboard.press("ArrowDown")
    assert await focused(page) == "ALL"
    for key, topic in (
        ("ArrowDown", "ALL:ALARM"), ("ArrowRight", "ALL:ALARM:FIRE"), ("ArrowLeft", "ALL:ALARM"),
        ("End", f"{STORM}:Hail"), ("Home", "ALL"), ("PageDown", f"{STORM}:Hail"),
        ("PageUp", "ALL"), ("ArrowUp", "ALL"),
    ):  # fmt: skip
        await page.keyboard.press(key)
        await expect(row(page, topic)).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowLeft")
    await expect(row(page, "ALL:ALARM:FIRE")).to_have_count(0)
    await page.keyboard.press("ArrowRight")
    await expect(row(page, "ALL:ALARM:FIRE")).to_have_count(1)
    assert await page.locator('[role=row][tabindex="0"]').count() == 1
    await page.keyboard.press("Enter")
    await expect(page.locator(".side h2")).to_have_text("ALL : ALARM")
    await page.keyboard.press("Shift+F10")
    await expect(page.get_by_role("menuitem", name="Rename")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("menu")).to_have_count(0)
    assert await focused(page) == "ALL:ALARM"


async def test_rows_tell_their_place_to_a_screen_reader(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics?topic=ALL:ALARM:SMOKE&tab=edit")
    smoke = row(page, "ALL:ALARM:SMOKE")
    assert [await smoke.get_attribute(f"aria-{name}") for name in ("level", "posinset", "setsize")] == [
        "3",
        "2",
        "2",
    ]
    await assert_accessible(page)
    dark = await open_page(node, "topics?q=alarm&state=subscribers", scheme="dark", size=PHONE)
    await assert_accessible(dark)


async def test_a_phone_shows_the_tree_and_then_the_topic(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics", size=PHONE)
    await expect(row(page, "ALL:ALARM").locator(".c-routing")).to_be_hidden()
    box = await row(page, "ALL:ALARM").bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    await row(page, "ALL:ALARM").click()
    side = await page.locator(".side").bounding_box()
    assert side is not None
    assert (side["x"], side["width"]) == (0, PHONE[0])
    await page.get_by_role("button", name="Topics", exact=True).click()
    await expect(page.locator(".side")).to_have_count(0)
    await expect(row(page, "ALL:ALARM")).to_be_in_viewport()


async def test_a_narrow_window_lays_the_panel_over_the_tree(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics?topic=ALL:ALARM&tab=edit", size=NARROW)
    side = await page.locator(".side").bounding_box()
    tree = await page.locator(".topics-panel").bounding_box()
    assert side is not None
    assert tree is not None
    assert side["x"] < tree["x"] + tree["width"]
    await page.get_by_test_id("topic-rename").click()
    await expect(page.get_by_test_id("name")).to_be_in_viewport()


async def test_publishing_begins_on_the_first_topic_and_stays_open_over_tabs(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics?publish=1")
    await expect(page.locator(".side h2")).to_have_text("ALL")
    await expect(page.get_by_test_id("publish-payload")).to_be_visible()
    await page.get_by_role("tab", name="Edit").click()
    await expect(page.get_by_test_id("publish-payload")).to_be_visible()


async def test_an_empty_tree_says_what_fills_it(tmp_path: Path, open_page: OpenedPages) -> None:
    with NodeProcess(tmp_path / "data") as node:
        page = await open_page(node, "topics")
        await expect(page.locator(".notice-empty")).to_contain_text("No topics yet.")
        await publish(node, "first:one", {"n": 1})
        await expect(row(page, "first")).to_be_visible()
        await open_page.finish()


async def test_a_node_that_dies_leaves_the_tree_with_the_time_of_its_figures(
    tmp_path: Path, open_page: OpenedPages
) -> None:
    node = NodeProcess(tmp_path / "data").start()
    await publish(node, "first:one", {"n": 1})
    page = await open_page(node, "topics", expected=("ERR_",))
    await expect(row(page, "first:one")).to_be_visible()
    node.kill()
    await expect(page.locator(".topics-panel [role=alert]")).to_contain_text("Not updated since")
    await expect(row(page, "first:one")).to_be_visible()
    with NodeProcess(tmp_path / "data", port=node.port) as again:
        await expect(page.locator(".topics-panel [role=alert]")).to_have_count(0)
        await publish(again, "first:two", {"n": 1})
        await expect(row(page, "first:two")).to_be_visible()
        await open_page.finish()


async def test_names_and_descriptions_of_others_are_text(tmp_path: Path, open_page: OpenedPages) -> None:
    image = "<img src=x onerror=globalThis.pwned=1>"
    uri = "urn:x:&lt;b&gt;'onclick='globalThis.pwned=1"
    with NodeProcess(tmp_path / "data") as node:
        await change(node, {"op": "add", "topic": f"{{{uri}}}A:B", "description": f"{image} safe‮gnp"})
        page = await open_page(node, "topics?q=B")
        line = page.get_by_test_id("topic").nth(1)
        await expect(line).to_contain_text(f"{image} safe\\u202egnp")
        await line.click()
        await expect(page.locator(".side header")).to_contain_text(image)
        await page.get_by_role("tab", name="Edit").click()
        await page.get_by_test_id("topic-delete").click()
        await expect(page.get_by_role("dialog")).to_contain_text(uri)
        assert await page.evaluate("globalThis.pwned") is None
        assert await page.locator("img, #page script").count() == 0
        await open_page.finish()


async def test_the_admin_node_shows_the_topics_as_a_node_sees_them(
    tmp_path: Path, open_page: OpenedPages
) -> None:
    with (
        AdminProcess(tmp_path / "admin") as admin,
        Member(tmp_path / "hall", "hall-1", "plant", admin.base) as hall,
    ):
        await change(hall, {"op": "add", "topic": "ALL:ALARM", "description": "of the hall"})
        await admin.comes_to(lambda: admin.states().get("hall-1") == "alive")
        page = await open_page(admin, "topics?topic=ALL:ALARM&tab=edit")
        await expect(page.locator(".topics-source")).to_contain_text("as hall-1 sees them")
        await expect(row(page, "ALL:ALARM")).to_contain_text("of the hall")
        await page.get_by_test_id("description").fill("edited by the relay")
        await page.get_by_test_id("description").press("Enter")
        await expect(row(page, "ALL:ALARM")).to_contain_text("edited by the relay")
        _, found = await ask("GET", f"{hall.base}/topics/ALL:ALARM")
        assert found["description"] == "edited by the relay"
        await change(hall, {"op": "add", "topic": "ALL:OTHER"})
        await expect(row(page, "ALL:OTHER")).to_be_visible()
        await open_page.finish()
