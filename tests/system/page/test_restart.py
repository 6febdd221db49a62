"""The node that serves the page goes away and comes back while somebody watches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.harness import NodeProcess, quiet_port
from tests.system.page.opened_page import OpenedPages
from tests.topic_edits import change
from tests.webhooks import publish

AWAY = (r"^net::ERR_", r"^50[234] ")
"""Requests to a node that is away, or that stops or starts, fail."""
CONNECTION = "[data-connection]"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node that can come back at its address."""
    with NodeProcess(tmp_path / "data", port=quiet_port()) as running:
        yield running


async def stops(node: NodeProcess, page: Page, ending: str) -> None:
    """End the node, and wait until the page says so."""
    node.kill() if ending == "killed" else node.terminate()
    await expect(page.locator(CONNECTION)).to_have_attribute("data-connection", "away")
    await expect(page.locator(CONNECTION)).to_have_text(re.compile(r"Not updated since \d\d:\d\d:\d\d"))


async def returns(node: NodeProcess, page: Page) -> None:
    """Start the node, and wait until the page is live again, without a reload."""
    node.start()
    await expect(page.locator(CONNECTION)).to_have_attribute("data-connection", "live")


@pytest.mark.parametrize("ending", ["stopped", "killed"])
@pytest.mark.parametrize("view", ["", "topics", "subscriptions", "topology", "health"])
async def test_a_view_says_that_the_node_is_away_and_recovers(
    open_page: OpenedPages, node: NodeProcess, view: str, ending: str
) -> None:
    page = await open_page(node, view, expected=AWAY)
    await page.evaluate("globalThis.sameDocument = true")
    await expect(page.locator(CONNECTION)).to_have_attribute("data-connection", "live")
    await stops(node, page, ending)
    await returns(node, page)
    assert await page.evaluate("globalThis.sameDocument") is True


async def test_topics_that_appear_after_the_restart_are_shown(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await change(node, {"op": "add", "topic": "BEFORE"})
    page = await open_page(node, "topics", expected=AWAY)
    await expect(page.locator('[data-testid="topic"][data-topic="BEFORE"]')).to_be_visible()
    await stops(node, page, "killed")
    await returns(node, page)
    await change(node, {"op": "add", "topic": "AFTER"})
    await expect(page.locator('[data-testid="topic"][data-topic="AFTER"]')).to_be_visible()


async def test_watching_goes_on_without_a_gap(open_page: OpenedPages, node: NodeProcess) -> None:
    await change(node, {"op": "add", "topic": "ALL:NEWS"})
    page = await open_page(node, "topics?topic=ALL:NEWS&tab=watch", expected=AWAY)
    events = page.get_by_test_id("watch-event")
    await publish(node, "ALL:NEWS", {"n": "one"}, {"n": "two"})
    await expect(events).to_have_count(2)
    node.kill()
    node.start()
    await publish(node, "ALL:NEWS", {"n": "three"}, {"n": "four"})
    await expect(events).to_have_count(4)
    for event, word in zip(await events.all(), ("four", "three", "two", "one"), strict=True):
        await expect(event).to_contain_text(word)
