"""The tabs History and Subscribers of a topic."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.async_api import Page, expect

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, create, publish

TOPIC = "ALL:ALARM:SMOKE"
HISTORY = f"topics?topic={TOPIC}&tab=history"
SUBSCRIBERS = f"topics?topic={TOPIC}&tab=subscribers"


async def events(page: Page) -> list[str]:
    """The rows that are elements, without offset and time."""
    texts = await page.get_by_test_id("history-event").all_inner_texts()
    return [text.split("\n")[-1].strip() for text in texts]


async def saved(page: Page) -> list[dict[str, object]]:
    """The events of the file that the tab saves."""
    async with page.expect_download() as waited:
        await page.get_by_test_id("history-download").click()
    download = await waited.value
    assert download.suggested_filename == "ALL_ALARM_SMOKE.ndjson"
    text = Path(await download.path()).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


async def test_history_has_the_newest_first_and_earlier_pages_below(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await publish(node, TOPIC, *({"n": number} for number in range(150)))
    await publish(node, "ELSEWHERE", *({"n": number} for number in range(150)))
    await publish(node, TOPIC, *({"n": number} for number in range(150, 250)))
    page = await open_page(node, HISTORY)
    rows = page.get_by_test_id("history-event")
    await expect(rows.first).to_contain_text(re.compile(r"^400 .* n 249", re.S))
    await expect(rows.first).to_have_attribute("aria-setsize", "100")
    await page.locator(".messages").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    await expect(rows.first).to_have_attribute("aria-setsize", "200")
    await page.locator(".messages").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    await expect(page.get_by_test_id("history-end")).to_have_text("This is the beginning of the log.")
    await page.locator(".messages").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    await expect(rows.last).to_contain_text(re.compile(r"^1 .* n 0", re.S))
    await expect(rows.last).to_have_attribute("aria-posinset", "250")


async def test_history_jumps_to_an_offset_and_keeps_it_in_the_address(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await publish(node, TOPIC, *({"n": number} for number in range(1, 41)))
    page = await open_page(node, HISTORY)
    rows = page.get_by_test_id("history-event")
    await expect(rows.first).to_contain_text("n 40")
    jump = page.get_by_test_id("history-jump")
    await jump.fill("12x")
    await expect(jump).to_have_attribute("aria-invalid", "true")
    await jump.fill("12")
    await jump.press("Enter")
    await expect(rows.first).to_contain_text("n 12")
    await expect(rows.first).to_have_attribute("aria-setsize", "12")
    await page.reload()
    await expect(rows.first).to_contain_text("n 12")


async def test_history_is_filtered_as_watch_and_saved_as_a_file(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    values = [{"level": number / 10, "big": 12345678901234567890} for number in range(10)]
    await publish(node, TOPIC, *values)
    page = await open_page(node, f"{HISTORY}&filter=level%20%3E%200.6")
    await expect(page.get_by_test_id("history-event")).to_have_count(3)
    assert [event["offset"] for event in await saved(page)] == [8, 9, 10]
    await page.get_by_test_id("history-filter").fill("level > 5")
    await page.get_by_test_id("history-filter").press("Enter")
    await expect(page.get_by_text("No kept message matches.")).to_be_visible()
    await page.get_by_role("button", name="Clear filters").click()
    await expect(page.get_by_test_id("history-event")).to_have_count(10)
    found = await saved(page)
    assert [event["data"] for event in found] == values
    await page.get_by_role("tab", name="Watch").click()
    await expect(page.get_by_test_id("watch-filter")).to_have_value("")


async def test_history_tells_of_newer_messages_and_reads_them(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await ask("POST", f"{node.base}/topics/changes", {"changes": [{"op": "add", "topic": TOPIC}]})
    page = await open_page(node, HISTORY)
    await expect(page.get_by_text(re.compile(f"The log has no message on {TOPIC}"))).to_be_visible()
    await publish(node, TOPIC, {"n": 1}, {"n": 2})
    await page.get_by_role("button", name="2 newer: read again").click()
    rows = page.get_by_test_id("history-event")
    await expect(rows).to_have_count(2)
    await rows.first.get_by_role("button").first.click()
    await expect(rows.first.locator("pre")).to_have_text('{\n  "n": 2\n}')
    await assert_accessible(page)


async def test_subscribers_are_listed_with_state_and_filter_and_lead_to_the_subscription(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await publish(node, TOPIC, {"n": "before"})
    page = await open_page(node, SUBSCRIBERS)
    await expect(page.get_by_text(f"No subscription gets messages of {TOPIC}.")).to_be_visible()
    async with Consumer() as consumer:
        await create(node, consumer, topic="ALL:OTHER")
        url = await create(node, consumer, topic="ALL:ALARM", filter="level > 0.5")
        await ask("PATCH", url, {"paused": True})
        row = page.get_by_test_id("subscriber")
        await expect(row).to_have_count(1)
        for part in (
            "Paused",
            "JSON webhook",
            "ALL:ALARM",
            "level > 0.5",
            consumer.url.removeprefix("http://"),
        ):
            await expect(row).to_contain_text(part)
        await publish(node, TOPIC, {"level": 0.9}, {"level": 0.8})
        await expect(row.locator("td").nth(1)).to_have_text("2")
        await expect(page.get_by_text("1 subscription gets messages of")).to_contain_text("1 paused")
        await assert_accessible(page)
        await row.get_by_role("button").click()
        await expect(page).to_have_url(re.compile(r"/ui/subscriptions\?.*id=" + url.rsplit("/", 1)[1]))
        await expect(page.get_by_test_id("resume")).to_be_visible()
