"""The frame of the page: views by address and key, history, theme, search, and a prefix of a proxy."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from page_pictures.browser import PHONE
from playwright.async_api import Page, Request, Route, expect

from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess
from tests.system.page.opened_page import OpenedPages
from tests.system.page.prefix_proxy import PREFIX, proxied
from tests.topic_edits import change
from tests.webhooks import publish

TITLES = {
    "overview": "Overview",
    "topics": "Topics",
    "subscriptions": "Subscriptions",
    "dead-letters": "Dead letters",
    "topology": "Topology",
    "health": "Health",
    "streams": "Streams",
    "sensors": "Sensors",
}
LETTERS = {
    "topics": "t",
    "subscriptions": "s",
    "dead-letters": "d",
    "topology": "y",
    "health": "h",
    "streams": "r",
    "sensors": "n",
    "overview": "o",
}
LIVE = '[data-connection="live"]'


def path_of(view: str) -> str:
    return "" if view == "overview" else view


async def shows(pages: OpenedPages, page: Page, base: str, view: str) -> None:
    """Wait until a view is shown: address, title, mark in the rail, and data."""
    await expect(page).to_have_title(f"{TITLES[view]} · HPwsn")
    await expect(page).to_have_url(re.compile(re.escape(f"{base}/ui/{path_of(view)}") + r"(\?.*)?$"))
    await expect(page.get_by_test_id(f"nav-{view}")).to_have_attribute("aria-current", "page")
    await pages.ready(page)


async def test_the_root_leads_a_browser_to_the_page(open_page: OpenedPages, shared_node: NodeProcess) -> None:
    page = await open_page(shared_node)
    await page.goto(f"{shared_node.base}/")
    await shows(open_page, page, shared_node.base, "overview")


@pytest.mark.parametrize("view", TITLES)
async def test_every_view_has_an_address_that_can_be_opened_and_reloaded(
    open_page: OpenedPages, shared_node: NodeProcess, view: str
) -> None:
    page = await open_page(shared_node, path_of(view))
    await shows(open_page, page, shared_node.base, view)
    await page.reload()
    await shows(open_page, page, shared_node.base, view)


async def test_the_rail_leads_to_every_view_and_the_back_button_returns(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page, base = await open_page(shared_node), shared_node.base
    loads: list[str] = []
    page.on("request", lambda request: loads.append(request.url) if request.is_navigation_request() else None)
    views = list(TITLES)
    for view in views[1:]:
        await page.get_by_test_id(f"nav-{view}").click()
        await shows(open_page, page, base, view)
    for view in reversed(views[:-1]):
        await page.go_back()
        await shows(open_page, page, base, view)
    await page.go_forward()
    await shows(open_page, page, base, views[1])
    assert loads == []


async def test_a_key_and_a_letter_lead_to_every_view(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node)
    for view, letter in LETTERS.items():
        await page.keyboard.press("g")
        await page.keyboard.press(letter)
        await shows(open_page, page, shared_node.base, view)


async def test_help_lists_the_keys_and_escape_closes_it(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node)
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    for title in TITLES.values():
        await expect(dialog.get_by_text(title, exact=True)).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_search_finds_a_topic_by_keyboard_alone(open_page: OpenedPages, node: NodeProcess) -> None:
    await change(node, {"op": "add", "topic": "ALL:ALARM:SMOKE"}, {"op": "add", "topic": "ALL:NEWS"})
    page = await open_page(node)
    await page.keyboard.press("/")
    await expect(page.get_by_role("combobox", name="Find a topic")).to_be_focused()
    await page.keyboard.type("smo")
    await expect(page.get_by_role("option").filter(has_text="SMOKE")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/ui/topics\?topic=ALL(:|%3A)ALARM(:|%3A)SMOKE$"))
    row = page.locator('[data-testid="topic"][data-topic="ALL:ALARM:SMOKE"]')
    await expect(row).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(page.locator('[data-testid="topic"][data-topic="ALL:ALARM"]')).to_be_focused()


async def test_escape_leaves_the_search_for_the_view(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "topics")
    await page.keyboard.press("/")
    await page.keyboard.type("g")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    await expect(page.locator("main :focus")).to_have_count(1)


async def test_keys_of_the_page_are_letters_while_somebody_types(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node)
    await page.keyboard.press("/")
    await page.keyboard.type("g?/gt")
    await expect(page.get_by_role("combobox", name="Find a topic")).to_have_value("g?/gt")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await shows(open_page, page, shared_node.base, "overview")


@pytest.mark.parametrize(("scheme", "background"), [("light", (245, 246, 248)), ("dark", (14, 18, 23))])
async def test_the_theme_follows_the_system_until_a_person_chooses(
    open_page: OpenedPages, shared_node: NodeProcess, scheme: str, background: tuple[int, int, int]
) -> None:
    page = await open_page(shared_node, scheme=scheme)  # type: ignore[arg-type]
    await expect(page.locator("body")).to_have_css("background-color", f"rgb{background}")
    button = page.get_by_role("button", name=re.compile("^Theme: "))
    for name, chosen in (("light", "rgb(245, 246, 248)"), ("dark", "rgb(14, 18, 23)")):
        await button.click()
        await expect(button).to_have_accessible_name(f"Theme: {name}")
        await expect(page.locator("body")).to_have_css("background-color", chosen)
        await page.reload()
        await expect(page.locator("body")).to_have_css("background-color", chosen)


async def test_a_view_that_could_not_be_loaded_is_loaded_again(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, expected=["health.js", "streams.js", "ERR_FAILED"])
    # Without this, the page tries again as soon as it hears of the node.
    await page.get_by_role("button", name="Pause live updates").click()
    await page.route(re.compile("views/(health|streams).js"), lambda route: route.abort())
    await page.get_by_test_id("nav-health").click()
    await expect(page.get_by_role("alert")).to_contain_text("Health could not be loaded: the node does not")
    await page.get_by_test_id("nav-streams").click()
    await expect(page.get_by_role("alert")).to_contain_text("Streams could not be loaded")
    await page.unroute_all()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="Streams")).to_be_visible()


async def test_a_view_is_loaded_again_once_the_node_is_heard_of(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, expected=["health.js", "ERR_FAILED"])
    await page.get_by_role("button", name="Pause live updates").click()
    await page.route("**/views/health.js", lambda route: route.abort())
    await page.get_by_test_id("nav-health").click()
    await expect(page.get_by_role("alert")).to_contain_text("Health could not be loaded")
    await page.unroute_all()
    await page.get_by_role("button", name="Resume live updates").click()
    await expect(page.get_by_role("heading", name="Health")).to_be_visible()


async def test_a_part_that_could_not_be_loaded_appears_later(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    tried: list[str] = []

    async def fail_once(page: Page) -> None:
        async def handle(route: Route) -> None:
            tried.append(route.request.url)
            await (route.abort() if len(tried) == 1 else route.continue_())

        await page.route("**/new_node.js", handle)

    page = await open_page(node, prepare=fail_once, expected=["new_node.js", "ERR_FAILED"])
    await expect(page.get_by_test_id("first-run")).to_be_visible()
    assert len(tried) == 2


@pytest.mark.parametrize("view", ["", "topics", "health"])
async def test_an_address_whose_node_has_left_says_so(
    open_page: OpenedPages, shared_node: NodeProcess, view: str
) -> None:
    page = await open_page(shared_node, f"{view}?scope=node:gone", expected=["404 GET"])
    await expect(page.get_by_text("gone has no nodes, or does not exist any more.")).to_be_visible()
    await expect(page.get_by_text("All is well")).to_have_count(0)
    await page.get_by_role("button", name="Show all nodes").click()
    await expect(page).to_have_url(re.compile(rf"/ui/{view}$"))
    await expect(page.get_by_role("heading").first).to_be_visible()


async def test_live_updates_pause_and_resume(open_page: OpenedPages, shared_node: NodeProcess) -> None:
    page = await open_page(shared_node)
    await expect(page.locator(LIVE)).to_have_text("Live")
    await page.get_by_role("button", name="Pause live updates").click()
    await expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Resume live updates").click()
    await expect(page.locator(LIVE)).to_have_text("Live")


async def test_the_page_keeps_no_cookie_and_asks_nobody_but_its_node(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    asked: list[Request] = []

    async def listen(page: Page) -> None:
        page.on("request", lambda request: asked.append(request))

    page = await open_page(shared_node, prepare=listen)
    for view in TITLES:
        await page.get_by_test_id(f"nav-{view}").click()
        await shows(open_page, page, shared_node.base, view)
    assert await page.evaluate("document.cookie") == ""
    assert await page.context.cookies() == []
    node = urlsplit(shared_node.base).netloc
    assert {urlsplit(each.url).netloc for each in asked if not each.url.startswith("data:")} == {node}
    assert {name for each in asked for name in await each.all_headers()} & {
        "cookie",
        "authorization",
    } == set()


async def test_every_view_works_behind_the_prefix_of_a_proxy(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await change(node, {"op": "add", "topic": "ALL:NEWS"})
    asked: list[Request] = []

    async def listen(page: Page) -> None:
        page.on("request", lambda request: asked.append(request))

    async with proxied(node.base) as base:
        page = await open_page(base, prepare=listen)
        await expect(page.locator(LIVE)).to_have_text("Live")
        for view in TITLES:
            await page.get_by_test_id(f"nav-{view}").click()
            await shows(open_page, page, base, view)
        await page.goto(f"{base}/ui/topics?topic=ALL:NEWS&tab=watch")
        await open_page.ready(page)
        await expect(page.locator('[data-testid="topic"][data-topic="ALL:NEWS"]')).to_be_visible()
        await publish(node, "ALL:NEWS", {"headline": "the prefix works"})
        await expect(page.get_by_test_id("watch-event")).to_contain_text("the prefix works")
        outside = [each.url for each in asked if not urlsplit(each.url).path.startswith(f"{PREFIX}/")]
        assert [url for url in outside if not url.startswith("data:")] == []
        await open_page.finish()


@pytest.mark.parametrize("view", TITLES)
async def test_on_a_phone_every_view_fits_the_width(
    open_page: OpenedPages, shared_node: NodeProcess, view: str
) -> None:
    page = await open_page(shared_node, path_of(view), size=PHONE)
    await expect(page.get_by_role("navigation").filter(visible=True)).to_have_count(1)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_on_a_phone_the_names_of_topics_have_room_and_the_list_its_full_height(
    open_page: OpenedPages, filled: NodeProcess
) -> None:
    page = await open_page(filled, "topics", size=PHONE)
    topics = page.get_by_test_id("topic")
    name = topics.filter(has_text="SMOKE").get_by_text("SMOKE", exact=True)
    box = await name.bounding_box()
    assert box is not None and box["width"] > 30
    rows = int(await page.get_by_role("treegrid").get_attribute("aria-rowcount") or "0")
    row = await topics.first.evaluate("(each) => each.getBoundingClientRect().height")
    height = await page.locator("tbody").evaluate("(each) => each.getBoundingClientRect().height")
    assert rows - 1 <= height / row <= rows


@pytest.mark.parametrize("members", [0, 2])
async def test_the_admin_node_serves_every_view(
    open_page: OpenedPages, admin: AdminProcess, tmp_path: Path, members: int
) -> None:
    with ExitStack() as stack:
        for number in range(members):
            member = Member(tmp_path / f"n{number}", f"n{number}", f"c{number}", admin.base)
            stack.enter_context(member)
        page = await open_page(admin)
        for view in TITLES:
            await page.get_by_test_id(f"nav-{view}").click()
            await shows(open_page, page, admin.base, view)
            await expect(page.locator(LIVE)).to_have_text("Live")
        await open_page.finish()
