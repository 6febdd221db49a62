"""The view of dead letters: what was lost and why, its payload, and whether it can be sent again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Locator, Page, expect

from hpwsn_client import Client
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.topic_edits import change
from tests.webhooks import ask, create, data_of, publish, show

AT_ONCE = ("--set", "delivery.retry_for=0")
"""A notification is a dead letter as soon as it was refused."""
PHONE = (390, 844)


@pytest.fixture
def strict_node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node that does not retry."""
    with NodeProcess(tmp_path / "data", *AT_ONCE) as running:
        yield running


def id_of(url: str) -> str:
    return url.rsplit("/", 1)[1]


def groups(page: Page) -> Locator:
    return page.get_by_test_id("deadletter-group")


def letters(page: Page) -> Locator:
    return page.get_by_test_id("deadletter")


def side(page: Page) -> Locator:
    return page.locator(".side")


def query_of(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


async def lost(node: NodeProcess, number: int) -> None:
    """Wait until a node has so many dead letters."""

    async def so_many() -> bool:
        return bool((await show(f"{node.base}/deadletters?limit=1"))["total"] == number)

    await eventually(so_many)


async def open_first(page: Page) -> None:
    """Open the first letter of the first group."""
    await groups(page).first.click()
    await letters(page).first.click()


async def test_without_dead_letters_it_says_how_one_comes_here(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await open_page(node, "dead-letters")
    await expect(page.locator(".notice-empty")).to_contain_text("No dead letters.")


async def test_a_group_opens_its_letters_and_a_letter_its_payload(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as refuses, Consumer(lambda number: 503) as busy:
        await create(strict_node, refuses, topic="A")
        await create(strict_node, busy, topic="B")
        number = 12345678901234567890
        await publish(strict_node, "A:X", {"n": number, "tags": ["京", None]}, {"n": 2})
        await publish(strict_node, "B", {"n": 3})
        await lost(strict_node, 3)
        page = await open_page(strict_node, "dead-letters")
        await expect(groups(page)).to_have_count(2)
        await expect(groups(page).first).to_contain_text("status 404")
        await expect(groups(page).first).to_contain_text(refuses.url)
        await expect(groups(page).first.locator("td.number")).to_have_text("2")
        await expect(letters(page)).to_have_count(0)
        await groups(page).first.click()
        await expect(letters(page)).to_have_count(2)
        await letters(page).first.click()
        for name in ("payload", "replay", "drop"):
            await expect(page.get_by_test_id(name)).to_have_count(1)
        text = f'{{\n  "n": {number},\n  "tags": [\n    "京",\n    null\n  ]\n}}'
        await expect(page.get_by_test_id("payload")).to_have_text(text, use_inner_text=True)
        await side(page).get_by_role("button", name="XML").click()
        await expect(page.get_by_test_id("payload")).to_contain_text("<n>12345678901234567890</n>")
        await expect(side(page)).to_contain_text(f"POST {refuses.url}: status 404")
        await page.reload()
        await expect(letters(page)).to_have_count(2)
        await expect(page.get_by_test_id("payload")).to_contain_text('"n": 12345678901234567890')


async def test_a_payload_in_xml_is_shown_as_it_is(open_page: OpenedPages, strict_node: NodeProcess) -> None:
    payload = '<m xmlns="urn:m"><!-- kept --><b>&lt;script&gt;</b></m>'
    async with Consumer(lambda number: 404) as refuses, Client(strict_node.url) as client:
        await client.subscribe("A", refuses.url)
        await client.notify("A", payload)
        await lost(strict_node, 1)
        page = await open_page(strict_node, "dead-letters")
        await open_first(page)
        await expect(page.get_by_test_id("payload")).to_have_text(payload)
        await expect(side(page).get_by_role("button", name="JSON")).to_have_count(0)


async def test_a_replay_to_a_consumer_that_works_again_is_delivered(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"n": 1})
        await publish(strict_node, "A", {"n": 2})
        await lost(strict_node, 2)
        page = await open_page(strict_node, "dead-letters")
        await open_first(page)
        await page.get_by_test_id("replay").click()
        await expect(page.get_by_test_id("outcome")).to_contain_text("failed again. It stays a dead letter.")
        consumer.answer = lambda number: 202
        seen = len(consumer.requests)
        await page.get_by_test_id("replay").click()
        await expect(page.get_by_test_id("outcome")).to_contain_text("Delivered.")
        await expect(page.get_by_test_id("payload")).to_contain_text('"n": 1')
        await expect(page.get_by_test_id("replay")).to_be_disabled()
        await expect(letters(page)).to_have_count(1)
        assert data_of(consumer)[seen:] == [{"n": 1}]
        await lost(strict_node, 1)


async def test_drop_names_its_effect_and_deletes_the_letter(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"n": 1}, {"n": 2})
        await lost(strict_node, 2)
        page = await open_page(strict_node, "dead-letters")
        await open_first(page)
        dropped = await letters(page).first.get_attribute("data-id")
        await page.get_by_test_id("drop").click()
        await expect(page.get_by_role("dialog")).to_contain_text("is deleted and is never delivered")
        await page.get_by_test_id("ok").click()
        await expect(page.get_by_test_id("outcome")).to_contain_text("Dropped.")
        await expect(letters(page)).to_have_count(1)
        await expect(letters(page).first).not_to_have_attribute("data-id", dropped or "")
        await lost(strict_node, 1)


async def test_a_whole_group_is_replayed_with_the_outcome_of_all(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        await create(strict_node, consumer, topic="A", delivery={"batch": 1})
        await publish(strict_node, "A", *[{"n": number} for number in range(5)])
        await lost(strict_node, 5)
        page = await open_page(strict_node, "dead-letters")
        await groups(page).first.click()
        seen = len(consumer.requests)
        consumer.answer = lambda number: 404 if number == seen + 1 else 202
        await page.get_by_test_id("replay-group").click()
        await expect(page.get_by_role("dialog")).to_contain_text(f"They are sent once more to {consumer.url}")
        await page.get_by_test_id("ok").click()
        await expect(page.get_by_test_id("group-outcome")).to_contain_text("4 delivered, 1 failed again")
        await expect(letters(page)).to_have_count(1)
        await lost(strict_node, 1)
        await page.get_by_test_id("drop-group").click()
        await page.get_by_test_id("ok").click()
        await expect(page.get_by_test_id("group-outcome")).to_contain_text("Dropped 1 dead letter.")
        await expect(groups(page)).to_have_count(0)
        await expect(letters(page)).to_have_count(0)
        await lost(strict_node, 0)


async def test_the_letters_of_an_ended_subscription_cannot_be_replayed(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        url = await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"n": 1})
        await lost(strict_node, 1)
        await ask("DELETE", url)
        page = await open_page(strict_node, "dead-letters")
        await open_first(page)
        await page.get_by_test_id("replay").click()
        await expect(page.get_by_test_id("outcome")).to_contain_text("its subscription has ended")
        await expect(letters(page)).to_have_count(1)


async def test_the_letter_of_a_paused_subscription_is_queued(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        url = await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"n": 1})
        await lost(strict_node, 1)
        await ask("PATCH", url, {"paused": True})
        page = await open_page(strict_node, "dead-letters")
        await open_first(page)
        await page.get_by_test_id("replay").click()
        await expect(page.get_by_test_id("outcome")).to_contain_text("Queued.")
        consumer.answer = lambda number: 202
        await ask("PATCH", url, {"paused": False})
        await expect(letters(page)).to_have_count(0)
        await expect(side(page)).to_contain_text("Not a dead letter any more")


async def test_the_payload_of_an_internal_topic_is_not_shown(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"secret": "not for everybody"})
        await lost(strict_node, 1)
        await change(strict_node, {"op": "add", "topic": "A", "visibility": "internal"})
        page = await open_page(strict_node, "dead-letters")
        await open_first(page)
        await expect(page.get_by_test_id("payload")).to_contain_text("the topic is internal now")
        await expect(page.locator("body")).not_to_contain_text("not for everybody")
        await page.get_by_test_id("replay").click()
        await expect(page.get_by_test_id("outcome")).to_contain_text("Not sent: its topic is internal now.")


async def test_a_large_payload_is_cut_and_can_be_downloaded_whole(
    open_page: OpenedPages, strict_node: NodeProcess, tmp_path: Path
) -> None:
    async with Consumer(lambda number: 404) as consumer, Client(strict_node.url) as client:
        await client.subscribe("A", consumer.url)
        payload = f"<m>{'x' * 200_000}the end</m>"
        await client.notify("A", payload)
        await lost(strict_node, 1)
        page = await open_page(strict_node, "dead-letters")
        await open_first(page)
        await expect(side(page)).to_contain_text("Only the first 65.5 KB are shown")
        await expect(page.get_by_test_id("payload")).not_to_contain_text("the end")
        async with page.expect_download() as started:
            await page.get_by_test_id("download").click()
        await (await started.value).save_as(tmp_path / "letter.xml")
        assert (tmp_path / "letter.xml").read_text() == payload


async def test_filters_are_in_the_address_and_survive_a_reload(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as refuses, Consumer(lambda number: 503) as busy:
        first = await create(strict_node, refuses, topic="A")
        await create(strict_node, busy, topic="A")
        await publish(strict_node, "A", {"n": 1})
        await lost(strict_node, 2)
        page = await open_page(strict_node, f"subscriptions?id={id_of(first)}")
        await page.get_by_test_id("letters-link").click()
        await expect(groups(page)).to_have_count(1)
        await page.reload()
        await expect(groups(page)).to_contain_text("status 404")
        await expect(groups(page)).to_have_count(1)
        await page.get_by_test_id("subscription-filter").click()
        await expect(groups(page)).to_have_count(2)
        await page.get_by_test_id("deadletter-search").fill(busy.url)
        await expect(groups(page)).to_have_count(1)
        await page.get_by_test_id("deadletter-search").fill("")
        await page.get_by_test_id("reason-filter").click()
        await page.get_by_role("menuitem", name="status 503").click()
        await expect(groups(page)).to_have_count(1)
        assert query_of(page) == {"reason": "status 503"}
        await page.get_by_test_id("deadletter-search").fill("none has this")
        await expect(page.locator(".notice-no-match")).to_be_visible()
        await page.get_by_role("button", name="Clear filters").click()
        await expect(groups(page)).to_have_count(2)


async def test_a_thousand_letters_are_paged_and_few_elements(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer() as consumer:
        url = await create(strict_node, consumer, topic="A", delivery={"maxQueue": 1})
        await ask("PATCH", url, {"paused": True})
        await publish(strict_node, "A", *[{"n": number} for number in range(1001)])
        await lost(strict_node, 1000)
        page = await open_page(strict_node, "dead-letters")
        await groups(page).first.click()
        grid = page.get_by_role("grid", name="Dead letters", exact=True)
        await expect(grid).to_have_attribute("aria-rowcount", "1001")
        await letters(page).first.focus()
        for _ in range(20):
            before = await letters(page).last.get_attribute("aria-rowindex")
            if before == "1001":
                break
            await page.keyboard.press("End")
            await expect(letters(page).last).not_to_have_attribute("aria-rowindex", before or "")
        await expect(letters(page).last).to_have_attribute("aria-rowindex", "1001")
        assert await page.evaluate("document.querySelectorAll('*').length") < 3000


async def test_keys_open_a_group_and_a_letter(open_page: OpenedPages, strict_node: NodeProcess) -> None:
    async with Consumer(lambda number: 404) as consumer:
        await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"n": 1}, {"n": 2})
        await lost(strict_node, 2)
        page = await open_page(strict_node, "dead-letters")
        await groups(page).first.focus()
        await page.keyboard.press("Enter")
        await letters(page).first.focus()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(side(page).get_by_role("heading", level=2)).to_be_focused()
        await expect(page.get_by_test_id("payload")).to_contain_text('"n": 2')
        await page.keyboard.press("Escape")
        await expect(letters(page).nth(1)).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_groups_letters_and_payload_are_accessible(
    open_page: OpenedPages, strict_node: NodeProcess, scheme: str
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"n": 1})
        await lost(strict_node, 1)
        page = await open_page(strict_node, "dead-letters", scheme="dark" if scheme == "dark" else "light")
        await open_first(page)
        await page.get_by_test_id("replay").click()
        await expect(page.get_by_test_id("outcome")).to_be_visible()
        await assert_accessible(page)


async def test_on_a_phone_groups_and_letters_are_cards(
    open_page: OpenedPages, strict_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 404) as consumer:
        await create(strict_node, consumer, topic="A")
        await publish(strict_node, "A", {"n": 1})
        await lost(strict_node, 1)
        page = await open_page(strict_node, "dead-letters", size=PHONE)
        await open_first(page)
        await expect(page.get_by_test_id("replay")).to_be_in_viewport()
        await side(page).get_by_role("button", name="Dead letters").click()
        await expect(side(page)).to_have_count(0)
        await expect(letters(page)).to_have_count(1)
