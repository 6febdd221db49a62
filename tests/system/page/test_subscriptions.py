"""The view of subscriptions: who is behind and why, and what an operator does about it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from playwright.async_api import Locator, Page, Route, expect

from hpwsn_client import Client
from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess, quiet_port
from tests.patience import eventually
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, create, data_of, listed, publish, show

SLOW = ("--set", "delivery.retry_first=600", "--set", "delivery.retry_max=600")
"""Retries that do not come while a test looks."""
MOST_ELEMENTS = 3000
PHONE = (390, 844)


@pytest.fixture
def slow_node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node whose failing consumers stay as they are."""
    with NodeProcess(tmp_path / "data", *SLOW) as running:
        yield running


def id_of(url: str) -> str:
    return url.rsplit("/", 1)[1]


def nobody() -> str:
    """An address where no consumer is."""
    return f"http://127.0.0.1:{quiet_port()}/wsn"


def rows(page: Page) -> Locator:
    return page.get_by_test_id("subscription")


def row(page: Page, url: str) -> Locator:
    return page.locator(f'[data-testid="subscription"][data-id="{id_of(url)}"]')


def side(page: Page) -> Locator:
    return page.locator(".side")


def query_of(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


async def waits(url: str, number: int) -> None:
    """Wait until so many notifications wait for a subscription."""

    async def so_many() -> bool:
        return bool((await show(url))["waiting"] == number)

    await eventually(so_many)


async def fails(url: str) -> None:
    """Wait until a consumer has failed."""

    async def retrying() -> bool:
        return bool((await show(url))["state"] == "retrying")

    await eventually(retrying)


async def elements(page: Page) -> int:
    found: int = await page.evaluate("document.querySelectorAll('*').length")
    return found


# The list


async def test_the_worst_is_first_with_its_state_and_a_short_reason(
    open_page: OpenedPages, slow_node: NodeProcess
) -> None:
    async with Consumer() as answers, Consumer(lambda number: 503) as refuses:
        well = await create(slow_node, answers, topic="A", filter="level > 0.5")
        busy = await create(slow_node, refuses, topic="A")
        away = await create(slow_node, nobody(), topic="A")
        await publish(slow_node, "A", {"level": 1})
        await fails(busy)
        await fails(away)
        await publish(slow_node, "A", {"level": 1})
        await waits(busy, 2)
        page = await open_page(slow_node, "subscriptions")
        await expect(rows(page)).to_have_count(3)
        await expect(rows(page).nth(2)).to_have_attribute("data-id", id_of(well))
        await expect(row(page, busy)).to_contain_text("Retrying 503")
        await expect(row(page, away)).to_contain_text("Retrying refused")
        await expect(row(page, well)).to_contain_text("Live")
        await expect(row(page, well)).to_contain_text("level > 0.5")
        await expect(row(page, well)).to_contain_text(answers.url.removeprefix("http://"))
        await expect(page.get_by_test_id("state-retrying")).to_have_text("Retrying 2")
        await expect(page.get_by_test_id("state-waiting")).to_have_text("Waiting 2")
        await expect(page.get_by_test_id("state-all")).to_have_text("All 3")


async def test_filters_are_in_the_address_and_survive_a_reload(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    first = await create(node, nobody(), topic="A:B", filter="level > 0.5")
    second = await create(node, nobody(), topic="A:B")
    third = await create(node, nobody(), topic="C")
    await ask("PATCH", third, {"paused": True})
    page = await open_page(node, "subscriptions")
    await expect(rows(page)).to_have_count(3)

    await page.get_by_test_id("subscription-search").fill("LEVEL >")
    await expect(rows(page)).to_have_count(1)
    await page.reload()
    await expect(row(page, first)).to_be_visible()
    await expect(rows(page)).to_have_count(1)
    await expect(page.get_by_test_id("subscription-search")).to_have_value("LEVEL >")
    await page.get_by_label("Clear").click()
    await expect(rows(page)).to_have_count(3)

    await page.get_by_test_id("state-paused").click()
    await expect(rows(page)).to_have_count(1)
    await page.reload()
    await expect(rows(page)).to_have_count(1)
    await expect(row(page, third)).to_contain_text("Paused")
    await page.get_by_test_id("state-all").click()

    await page.get_by_test_id("topic-filter").click()
    await page.get_by_test_id("topic-filter-text").fill("A:B")
    await page.get_by_test_id("topic-filter-text").press("Enter")
    await expect(rows(page)).to_have_count(2)
    assert query_of(page) == {"topic": "A:B"}
    await page.reload()
    await expect(row(page, second)).to_be_visible()
    await expect(rows(page)).to_have_count(2)


async def test_the_chip_of_those_that_wait_lists_only_them(
    open_page: OpenedPages, slow_node: NodeProcess
) -> None:
    async with Consumer() as answers:
        await create(slow_node, answers, topic="A")
        behind = await create(slow_node, nobody(), topic="A")
        await publish(slow_node, "A", {"n": 1})
        await fails(behind)
        page = await open_page(slow_node, "subscriptions?state=waiting")
        await expect(row(page, behind)).to_be_visible()
        await expect(rows(page)).to_have_count(1)


async def test_a_head_sorts_and_the_order_is_in_the_address(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    for host in ("b", "c", "a"):
        await create(node, f"http://{host}.example/hook", topic="A")
    page = await open_page(node, "subscriptions")
    head = page.get_by_role("columnheader", name="Consumer")
    await head.get_by_role("button").click()
    await expect(rows(page).locator("td.consumer")).to_have_text([f"{host}.example/hook" for host in "abc"])
    await expect(head).to_have_attribute("aria-sort", "ascending")
    await head.get_by_role("button").click()
    await expect(rows(page).locator("td.consumer")).to_have_text([f"{host}.example/hook" for host in "cba"])
    assert query_of(page) == {"sort": "-consumer"}


async def test_nothing_and_no_match_are_different_states(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node, "subscriptions")
    await expect(page.locator(".notice-empty")).to_contain_text("No subscriptions")
    await create(node, nobody(), topic="A")
    await expect(rows(page)).to_have_count(1)
    await page.get_by_test_id("subscription-search").fill("none has this")
    await expect(page.locator(".notice-no-match")).to_be_visible()
    await page.get_by_role("button", name="Clear filters").click()
    await expect(rows(page)).to_have_count(1)


async def test_loading_an_error_and_no_right_are_told_and_pass(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    url = await create(node, nobody(), topic="A")
    answers: list[tuple[int, str]] = []
    held = asyncio.Event()

    async def answer(route: Route) -> None:
        await held.wait()
        if not answers:
            await route.continue_()
            return
        status, words = answers[0]
        await route.fulfill(status=status, json={"error": words})

    async def hold(page: Page) -> None:
        await page.route("**/subscriptions?*", answer)

    expected = ("403 GET", "503 GET")
    page = await open_page(node, "subscriptions", prepare=hold, ready=False, expected=expected)
    await expect(page.locator(".loading i").first).to_be_visible()
    held.set()
    await expect(row(page, url)).to_be_visible()
    answers[:] = [(503, "the journal is away; check the disk")]
    note = page.locator(".panel .note.bad")
    await expect(note).to_contain_text("the journal is away; check the disk Not updated since")
    await expect(page.locator(".wrap")).to_have_class("wrap stale")
    await expect(row(page, url)).to_be_visible()
    answers.clear()
    await expect(note).to_have_count(0)
    answers[:] = [(403, "only operators may list subscriptions")]
    await expect(page.locator(".notice-not-allowed")).to_have_text("only operators may list subscriptions")
    await expect(rows(page)).to_have_count(0)


async def test_five_thousand_subscriptions_stay_few_elements(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    callback = nobody()
    async with aiohttp.ClientSession() as session:

        async def some(start: int) -> None:
            for number in range(start, 5000, 8):
                asked = {"callback": callback, "topic": "A", "filter": f"n > {number}"}
                async with session.post(f"{node.base}/subscriptions", json=asked) as answer:
                    assert answer.status == 201

        await asyncio.gather(*map(some, range(8)))
    page = await open_page(node, "subscriptions")
    await expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", "5001")
    assert await elements(page) < MOST_ELEMENTS
    for _ in range(20):
        await page.locator(".wrap").evaluate("wrap => { wrap.scrollTop = wrap.scrollHeight; }")
        last = await rows(page).last.get_attribute("aria-rowindex")
        if int(last or 0) > 1000:
            break
        await expect(rows(page).last).not_to_have_attribute("aria-rowindex", last or "")
    else:
        raise AssertionError("the list did not go on")
    assert await elements(page) < MOST_ELEMENTS


async def test_a_dead_node_is_named_with_the_number_that_is_missing(
    open_page: OpenedPages, tmp_path: Path
) -> None:
    with (
        AdminProcess(tmp_path / "admin") as admin,
        Member(tmp_path / "one", "one", "c", admin.base) as one,
        Member(tmp_path / "two", "two", "c", admin.base) as two,
    ):
        mine, theirs = await create(one, nobody(), topic="A"), await create(two, nobody(), topic="A")
        page = await open_page(one, "subscriptions", expected=("/nodes/two/",))
        await expect(row(page, mine)).to_be_visible()
        await expect(row(page, theirs)).to_be_visible()
        await expect(page.locator(".head")).to_contain_text("2 on 2 nodes")
        await row(page, theirs).click()
        await page.get_by_test_id("pause").click()
        await expect(page.get_by_test_id("resume")).to_be_visible()
        assert (await show(theirs))["paused"] is True
        await page.get_by_test_id("close-panel").click()
        # The figures come with heartbeats, and a dead node has none.
        await expect(page.get_by_test_id("nav-subscriptions")).to_contain_text("2")
        await asyncio.to_thread(two.kill)
        await expect(page.locator(".head")).to_contain_text("two is dead: its 1 is not listed")
        await expect(rows(page)).to_have_count(1)
        await expect(row(page, mine)).to_be_visible()
        alone = await open_page(one, "subscriptions?scope=node:two")
        await expect(alone.locator(".notice-partial")).to_contain_text("No node in scope answers: two.")
        await open_page.finish()


# The panel


async def test_pause_and_resume_act_at_once_at_the_node(open_page: OpenedPages, node: NodeProcess) -> None:
    async with Consumer() as consumer:
        url = await create(node, consumer, topic="A")
        page = await open_page(node, "subscriptions")
        await row(page, url).click()
        await expect(page.get_by_test_id("resume")).to_have_count(0)
        await page.get_by_test_id("pause").click()
        await expect(page.get_by_test_id("resume")).to_be_visible()
        await expect(page.get_by_test_id("pause")).to_have_count(0)
        assert (await show(url))["state"] == "paused"
        await publish(node, "A", {"n": 1})
        await expect(row(page, url)).to_contain_text("Paused")
        await expect(row(page, url).locator("td.c4")).to_have_text("1")
        await page.get_by_test_id("resume").click()
        await expect(page.get_by_test_id("pause")).to_be_visible()
        await consumer.wait(lambda found: data_of(found) == [{"n": 1}])
        await expect(page.locator(".toast").last).to_contain_text("Resumed")


async def test_try_now_delivers_to_a_consumer_that_works_again(
    open_page: OpenedPages, slow_node: NodeProcess
) -> None:
    async with Consumer(lambda number: 503 if number == 1 else 202) as consumer:
        url = await create(slow_node, consumer, topic="A")
        await publish(slow_node, "A", {"n": 1})
        await fails(url)
        page = await open_page(slow_node, f"subscriptions?id={id_of(url)}")
        await expect(side(page)).to_contain_text(re.compile(r"next attempt in \d+ min"))
        await expect(side(page).locator(".note.bad")).to_contain_text("Status 503")
        await expect(side(page)).to_contain_text(f"POST {consumer.url}: status 503")
        await page.get_by_test_id("retry").click()
        await consumer.wait(lambda found: len(found.requests) == 2)
        await expect(page.get_by_test_id("retry")).to_have_count(0)
        await expect(row(page, url)).to_contain_text("Live")


async def test_renew_takes_a_duration_or_no_end(open_page: OpenedPages, node: NodeProcess) -> None:
    url = await create(node, nobody(), topic="A")
    page = await open_page(node, f"subscriptions?id={id_of(url)}")
    await page.get_by_test_id("renew").click()
    await page.get_by_test_id("renew-duration").fill("a day")
    await expect(page.get_by_test_id("renew-duration")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_test_id("ok")).to_be_disabled()
    await page.get_by_test_id("renew-duration").fill("P1D")
    await page.get_by_test_id("ok").click()
    await expect(side(page)).to_contain_text(", in 23 h")
    assert (await show(url))["terminates"] is not None
    await page.get_by_test_id("renew").click()
    await page.get_by_role("button", name="Without an end").click()
    await page.get_by_test_id("ok").click()
    await expect(side(page).locator("dd").last).to_have_text("never")
    assert (await show(url))["terminates"] is None


async def test_end_names_what_is_dropped_before_it_ends(
    open_page: OpenedPages, slow_node: NodeProcess
) -> None:
    url = await create(slow_node, nobody(), topic="A")
    await publish(slow_node, "A", {"n": 1}, {"n": 2})
    await waits(url, 2)
    page = await open_page(slow_node, f"subscriptions?id={id_of(url)}")
    await page.get_by_test_id("end").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("This subscription ends. 2 waiting notifications are dropped.")
    await page.get_by_test_id("cancel").click()
    await expect(dialog).to_have_count(0)
    assert (await ask("GET", url))[0] == 200
    await page.get_by_test_id("end").click()
    await page.get_by_test_id("ok").click()
    await expect(page.get_by_test_id("gone")).to_contain_text("has ended")
    await expect(page.get_by_test_id("end")).to_be_disabled()
    await expect(rows(page)).to_have_count(0)
    assert (await ask("GET", url))[0] == 404


async def test_a_subscription_that_ends_while_it_is_open_says_so(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    url = await create(node, nobody(), topic="A")
    page = await open_page(node, f"subscriptions?id={id_of(url)}")
    await expect(side(page)).to_contain_text(id_of(url))
    await ask("DELETE", url)
    await expect(page.get_by_test_id("gone")).to_contain_text("has ended")
    await expect(side(page)).to_contain_text(id_of(url))


async def test_an_action_that_the_node_refuses_tells_its_words(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    url = await create(node, nobody(), topic="A")
    page = await open_page(node, f"subscriptions?id={id_of(url)}", expected=("404 PATCH",))
    await expect(page.get_by_test_id("pause")).to_be_enabled()
    # The page hears of the end only after the click.
    await page.route("**/subscriptions?*", lambda route: route.abort())
    open_page.faults(page).expect("net::ERR_FAILED")
    await ask("DELETE", url)
    await page.get_by_test_id("pause").click()
    await expect(page.locator(".toast.bad")).to_be_visible()


async def test_each_action_can_be_copied_as_curl(open_page: OpenedPages, node: NodeProcess) -> None:
    url = await create(node, nobody(), topic="A")
    page = await open_page(node, f"subscriptions?id={id_of(url)}")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await side(page).get_by_role("button", name="Copy as curl").click()
    await page.get_by_role("menuitem", name="Pause").click()
    copied = ""

    async def has_copied() -> bool:
        nonlocal copied
        copied = await page.evaluate("navigator.clipboard.readText()")
        return bool(copied.startswith("curl"))

    await eventually(has_copied)
    process = await asyncio.create_subprocess_shell(copied, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0 and b'"paused": true' in output
    await expect(page.get_by_test_id("resume")).to_be_visible()


async def test_the_panel_charts_what_waits_since_it_was_opened(
    open_page: OpenedPages, slow_node: NodeProcess
) -> None:
    url = await create(slow_node, nobody(), topic="A")
    await publish(slow_node, "A", {"n": 1})
    await fails(url)
    page = await open_page(slow_node, f"subscriptions?id={id_of(url)}")
    chart = side(page).get_by_role("img", name="Waiting notifications since")
    await expect(chart).to_have_attribute("aria-label", re.compile("now 1, axis from 0 to 1"))
    await publish(slow_node, "A", {"n": 2}, {"n": 3})
    await expect(chart).to_have_attribute("aria-label", re.compile("now 3, axis from 0 to 5"))


# Several at once


async def test_all_selected_are_paused_and_a_failure_is_told_by_itself(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    urls = [await create(node, f"http://{host}.example/hook", topic="A") for host in "abcd"]
    page = await open_page(node, "subscriptions?sort=consumer", expected=("404 PATCH",))
    await expect(rows(page)).to_have_count(4)
    await row(page, urls[0]).get_by_role("checkbox").click()
    await row(page, urls[2]).get_by_role("checkbox").click(modifiers=["Shift"])
    await expect(page.get_by_test_id("selected")).to_have_text("3 selected")
    await page.get_by_test_id("selected").click()
    await page.get_by_test_id("pause-selected").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Notifications for them wait until they are resumed.")
    await ask("DELETE", urls[1])
    await page.get_by_test_id("ok").click()
    await expect(dialog).to_contain_text("Paused 2 of 3 subscriptions, 1 failed.")
    await expect(page.get_by_test_id("failures").get_by_role("listitem")).to_have_count(1)
    await expect(page.get_by_test_id("failures")).to_contain_text("b.example/hook")
    await page.get_by_role("button", name="Close", exact=True).last.click()
    for url, paused in ((urls[0], True), (urls[2], True), (urls[3], False)):
        assert (await show(url))["paused"] is paused


async def test_select_all_and_end_names_the_effect_on_all(
    open_page: OpenedPages, slow_node: NodeProcess
) -> None:
    urls = [await create(slow_node, nobody(), topic="A") for _ in range(3)]
    await publish(slow_node, "A", {"n": 1})
    for url in urls:
        await waits(url, 1)
    page = await open_page(slow_node, "subscriptions")
    await expect(row(page, urls[0]).locator("td.c4")).to_have_text("1")
    await page.get_by_label("Select all listed subscriptions").click()
    await page.get_by_test_id("selected").click()
    await page.get_by_test_id("end-selected").click()
    await expect(page.get_by_role("dialog")).to_contain_text(
        "3 subscriptions end. 3 waiting notifications are dropped."
    )
    await page.get_by_test_id("ok").click()
    await expect(rows(page)).to_have_count(0)
    assert (await listed(slow_node))["total"] == 0


# Keys, focus and the phone


async def test_keys_move_open_select_and_close(open_page: OpenedPages, node: NodeProcess) -> None:
    urls = [await create(node, f"http://{host}.example/hook", topic="A") for host in "abc"]
    page = await open_page(node, "subscriptions?sort=consumer")
    await expect(rows(page)).to_have_count(3)
    await row(page, urls[0]).focus()
    await page.keyboard.press("ArrowDown")
    await expect(row(page, urls[1])).to_be_focused()
    await page.keyboard.press("Space")
    await expect(page.get_by_test_id("selected")).to_have_text("1 selected")
    await page.keyboard.press("Enter")
    await expect(side(page).get_by_role("heading")).to_be_focused()
    assert query_of(page)["id"] == id_of(urls[1])
    await page.keyboard.press("Escape")
    await expect(side(page)).to_have_count(0)
    await expect(row(page, urls[1])).to_be_focused()
    await page.keyboard.press("End")
    await expect(row(page, urls[2])).to_be_focused()


async def test_focus_and_selection_stay_when_the_order_changes(
    open_page: OpenedPages, slow_node: NodeProcess
) -> None:
    first = await create(slow_node, nobody(), topic="A")
    second = await create(slow_node, nobody(), topic="B")
    page = await open_page(slow_node, "subscriptions")
    await publish(slow_node, "A", {"n": 1})
    await expect(rows(page).first).to_have_attribute("data-id", id_of(first))
    await row(page, first).get_by_role("checkbox").click()
    await row(page, first).focus()
    await publish(slow_node, "B", {"n": 1}, {"n": 2})
    await expect(rows(page).first).to_have_attribute("data-id", id_of(second))
    await expect(row(page, first)).to_be_focused()
    await expect(row(page, first)).to_have_attribute("aria-selected", "true")


async def test_on_a_phone_rows_are_cards_and_the_panel_fills_the_screen(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    url = await create(node, nobody(), topic="A")
    page = await open_page(node, "subscriptions", size=PHONE)
    await expect(row(page, url).locator("td.c4")).to_be_visible()
    await expect(page.get_by_role("columnheader")).to_have_count(0)
    await row(page, url).click()
    await expect(page.get_by_test_id("end")).to_be_in_viewport()
    box = await side(page).bounding_box()
    assert box is not None and box["width"] == PHONE[0]
    await side(page).get_by_role("button", name="Subscriptions").click()
    await expect(side(page)).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_list_and_panel_are_accessible(
    open_page: OpenedPages, slow_node: NodeProcess, scheme: str
) -> None:
    url = await create(slow_node, nobody(), topic="A", filter="level > 1 or level < 2")
    await publish(slow_node, "A", {"level": 1})
    await fails(url)
    page = await open_page(
        slow_node, f"subscriptions?id={id_of(url)}", scheme="dark" if scheme == "dark" else "light"
    )
    await expect(side(page).locator(".note.bad")).to_be_visible()
    await row(page, url).get_by_role("checkbox").click()
    await assert_accessible(page)
    await page.get_by_test_id("renew").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await assert_accessible(page)


# Pull points


async def test_pull_points_are_a_filter_and_can_be_destroyed(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    async with Client(node.url) as client:
        point = await client.create_pull_point()
        await client.subscribe("A", point)
        await client.notify("A", "x")
        page = await open_page(node, "subscriptions")
        await expect(rows(page)).to_contain_text(["pull point "])
        await expect(page.get_by_test_id("state-pullpoints")).to_have_text("Pull points 1")
        await page.get_by_test_id("state-pullpoints").click()
        found = page.get_by_test_id("pullpoint")
        await expect(found).to_have_count(1)
        await expect(found.locator("td.c4")).to_have_text("1")
        await expect(found).to_contain_text("never read")
        await page.reload()
        await found.click()
        await expect(side(page)).to_contain_text(point.epr.address)
        await page.get_by_test_id("end").click()
        await expect(page.get_by_role("dialog")).to_contain_text(
            "1 notification in it is dropped, and 1 subscription that delivers into it ends too."
        )
        await page.get_by_test_id("ok").click()
        await expect(page.get_by_test_id("gone")).to_contain_text("was destroyed")
        await expect(found).to_have_count(0)
        assert (await listed(node))["total"] == 0
