"""axe-core finds nothing serious in any view, light and dark, on a desktop and on a phone."""

from __future__ import annotations

import pytest
from page_pictures.browser import DESKTOP, PHONE, Scheme, Size
from playwright.async_api import Page, expect

from tests.cluster import AdminProcess
from tests.harness import NodeProcess
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages

SMOKE = "topics?topic=ALL:ALARM:SMOKE"
VIEWS = ("", SMOKE, "subscriptions", "dead-letters", "topology", "health", "streams", "sensors")
TABS = ("watch", "subscribers", "history", "edit")
LOOKS = pytest.mark.parametrize(
    ("scheme", "size"),
    [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)],
    ids=["light", "dark", "light phone", "dark phone"],
)
TWO_LOOKS = pytest.mark.parametrize(
    ("scheme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["light", "dark phone"]
)
"""For what shares its colours with the views."""


@LOOKS
@pytest.mark.parametrize("view", VIEWS)
async def test_every_view(
    open_page: OpenedPages, filled: NodeProcess, view: str, scheme: Scheme, size: Size
) -> None:
    await assert_accessible(await open_page(filled, view, scheme=scheme, size=size))


@TWO_LOOKS
@pytest.mark.parametrize("tab", TABS)
async def test_every_tab_of_a_topic(
    open_page: OpenedPages, filled: NodeProcess, tab: str, scheme: Scheme, size: Size
) -> None:
    page = await open_page(filled, f"{SMOKE}&tab={tab}", scheme=scheme, size=size)
    await expect(page.get_by_role("tab", selected=True)).to_be_visible()
    await assert_accessible(page)


@TWO_LOOKS
async def test_the_first_run_of_a_new_node(
    open_page: OpenedPages, node: NodeProcess, scheme: Scheme, size: Size
) -> None:
    await assert_accessible(await open_page(node, scheme=scheme, size=size))


@TWO_LOOKS
@pytest.mark.parametrize(
    ("view", "item", "shown"),
    [("subscriptions", "subscription", "end"), ("dead-letters", "deadletter-group", "deadletter")],
)
async def test_the_panel_of_an_item(
    open_page: OpenedPages,
    filled: NodeProcess,
    view: str,
    item: str,
    shown: str,
    scheme: Scheme,
    size: Size,
) -> None:
    page = await open_page(filled, view, scheme=scheme, size=size)
    await page.get_by_test_id(item).first.click()
    await expect(page.get_by_test_id(shown).first).to_be_visible()
    await assert_accessible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_dialogs_and_the_box_to_publish(
    open_page: OpenedPages, filled: NodeProcess, scheme: Scheme
) -> None:
    page = await open_page(filled, f"{SMOKE}&tab=edit", scheme=scheme)
    await page.get_by_test_id("topic-delete").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_test_id("cancel").click()
    await page.get_by_test_id("publish").click()
    await page.get_by_test_id("publish-payload").fill('{"level": ')
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await _help(page)
    await assert_accessible(page)


async def _help(page: Page) -> None:
    await page.get_by_role("button", name="Keys").click()
    await expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.parametrize("view", ["", "topology", "health", "streams", "sensors"])
async def test_the_admin_node(open_page: OpenedPages, admin: AdminProcess, view: str) -> None:
    await assert_accessible(await open_page(admin, view))
