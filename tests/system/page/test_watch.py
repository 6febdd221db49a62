"""The tab Watch: messages as they arrive, with a filter, a pause, and the number that is skipped."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from page_pictures.browser import Scheme, Size
from page_pictures.services import REGISTRATION
from playwright.async_api import Download, Page, Route, expect

from tests.harness import NodeProcess, quiet_port
from tests.patience import eventually
from tests.raw_soap import call, notify, send
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, publish

TOPIC = "ALL:ALARM:SMOKE"
WATCH = f"topics?topic={TOPIC}&tab=watch"
WRONG_FILTER = r"^400 POST .*/filters/check$"
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def begin(pages: OpenedPages, node: NodeProcess, *expected: str, view: str = WATCH) -> Page:
    """Open the tab once the topic exists."""
    await publish(node, TOPIC, {"n": "before"})
    page = await pages(node, view, expected=expected)
    await expect(page.get_by_test_id("earlier-event")).to_have_count(1)
    return page


async def apply(page: Page, filter_: str) -> None:
    """Type a filter and press Enter."""
    field = page.get_by_test_id("watch-filter")
    await field.fill(filter_)
    await field.press("Enter")


async def save(page: Page, button: str) -> str:
    """Press what saves a file, and return the file."""
    async with page.expect_download() as waited:
        await page.get_by_test_id(button).click()
    download: Download = await waited.value
    return Path(await download.path()).read_text("utf-8")


async def test_new_messages_are_shown_with_their_values_the_newest_first(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    await publish(node, TOPIC, {"place": "hall 3", "level": 0.82, "at": {"x": 1, "tags": ["a", "b"]}})
    await publish(node, TOPIC, {"big": 123456789012345678901234567890, "text": 'a "q" é', "none": None})
    rows = page.get_by_test_id("watch-event")
    await expect(rows).to_have_count(2)
    await expect(rows.nth(1)).to_contain_text("place hall 3 level 0.82 at.x 1 at.tags a, b")
    await expect(rows.nth(0)).to_contain_text('big 123456789012345678901234567890 text a "q" é none null')
    await expect(page.get_by_test_id("earlier-event")).to_contain_text("n before")
    await expect(page.get_by_test_id("watch-skipped")).to_have_text("none skipped")


async def test_messages_below_the_topic_name_where_they_come_from(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node, view="topics?topic=ALL&tab=watch")
    await publish(node, TOPIC, {"n": 1})
    await expect(page.get_by_test_id("watch-event")).to_contain_text("ALARM:SMOKE n 1")


async def test_a_topic_without_messages_says_what_it_waits_for(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await ask("POST", f"{node.base}/topics/changes", {"changes": [{"op": "add", "topic": "QUIET"}]})
    page = await open_page(node, "topics?topic=QUIET&tab=watch")
    await expect(page.get_by_text("Waits for the next message on QUIET and all below it.")).to_be_visible()


async def test_at_most_fifty_a_second_come_and_the_others_are_counted(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    await publish(node, TOPIC, *({"n": number} for number in range(400)))
    skipped = page.get_by_test_id("watch-skipped")
    await expect(skipped).to_have_text(re.compile(r"^\d+ skipped$"))
    await publish(node, TOPIC, {"n": "last"})
    rows = page.get_by_test_id("watch-event")
    await expect(rows.first).to_contain_text("n last")
    shown = int(str(await rows.first.get_attribute("aria-setsize"))) - 2
    assert 50 <= shown <= 100
    assert int((await skipped.inner_text()).split()[0]) == 400 - shown


async def test_five_hundred_rows_are_kept_and_only_those_in_sight_are_elements(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    rows = page.get_by_test_id("watch-event")

    async def is_full() -> bool:
        await publish(node, TOPIC, *({"n": number} for number in range(40)))
        return await rows.count() > 0 and await rows.first.get_attribute("aria-setsize") == "500"

    await eventually(is_full)
    await expect(page.get_by_role("list", name="Messages, 500")).to_be_visible()
    await publish(node, TOPIC, {"n": "one more"})
    await expect(rows.first).to_have_attribute("aria-setsize", "500")
    assert await rows.count() < 60
    assert await page.evaluate("document.querySelectorAll('*').length") < 3000


async def test_a_pause_goes_on_counting_and_resume_shows_what_came(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    rows, pause = page.get_by_test_id("watch-event"), page.get_by_test_id("watch-pause")
    await publish(node, TOPIC, {"n": "one"})
    await expect(rows).to_have_count(1)
    await pause.click()
    await publish(node, TOPIC, {"n": "two"}, {"n": "three"})
    await expect(page.get_by_text("paused · 2 new")).to_be_visible()
    await expect(rows).to_have_count(1)
    await pause.click()
    await expect(rows).to_have_count(3)
    await expect(rows.first).to_contain_text("n three")
    await publish(node, TOPIC, {"n": "four"})
    await expect(rows.first).to_contain_text("n four")


async def test_a_restart_of_the_node_leaves_no_gap_and_repeats_nothing(
    open_page: OpenedPages, tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "data", port=quiet_port()) as node:
        page = await begin(open_page, node, r"^net::ERR_", r"^50[234] ")
        rows = page.get_by_test_id("watch-event")
        await publish(node, TOPIC, *({"n": number} for number in range(5)))
        await expect(rows).to_have_count(5)
        node.kill()
        await expect(page.get_by_text("Connection lost, trying again")).to_be_visible()
        await expect(
            page.get_by_text(re.compile("Not updated since .* The node does not answer"))
        ).to_be_visible()
        node.start()
        # The page has not come back yet: these are in the log when it does.
        await publish(node, TOPIC, *({"n": number} for number in range(5, 10)))
        await expect(rows).to_have_count(10)
        await publish(node, TOPIC, {"n": 10})
        await expect(rows.first).to_contain_text("n 10")
        texts = [await row.inner_text() for row in await rows.all()]
        assert [re.sub(r".*\bn (\d+)\s*$", r"\1", text, flags=re.S) for text in texts] == [
            str(number) for number in range(10, -1, -1)
        ]
        await open_page.finish()


async def test_a_wrong_filter_is_marked_and_the_last_valid_one_runs_on(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node, WRONG_FILTER)
    field, rows = page.get_by_test_id("watch-filter"), page.get_by_test_id("watch-event")
    await publish(node, TOPIC, {"level": 0.9, "n": "first"})
    await expect(rows).to_have_count(1)
    await apply(page, "level > 0.6")
    await expect(rows).to_have_count(0)
    await expect(page.get_by_test_id("earlier-event")).to_have_count(0)
    await expect(page).to_have_url(re.compile(r"[?&]filter=level"))
    await expect(page.get_by_text("that matches the filter")).to_be_visible()

    await field.fill("level > 0.6 and state = alarm")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_role("alert")).to_have_text(
        'Column 25: put texts in quotes, "alarm". The last valid filter still runs.'
    )
    await expect(page.locator(".filter .wrong")).to_have_text("alarm")
    await field.press("Enter")
    await publish(node, TOPIC, {"level": 0.5, "n": "low"}, {"level": 0.7, "n": "high"})
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("n high")
    await expect(page).to_have_url(re.compile(r"filter=level(\+|%20)%3E(\+|%20)0\.6$"))

    await field.fill("level > 0.6")
    await expect(field).not_to_have_attribute("aria-invalid", "true")


async def test_no_message_since_enter_is_missed_while_another_filter_begins(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    rows, released = page.get_by_test_id("watch-event"), asyncio.Event()
    await publish(node, TOPIC, {"level": 0.9, "n": "first"})
    await expect(rows).to_have_count(1)

    async def hold(route: Route) -> None:
        if route.request.method == "HEAD":
            await released.wait()
        await route.continue_()

    await page.route("**/events*", hold)
    for filter_, shown in (("level > 0.6", ["n high"]), ("", ["n high", "n low"])):
        released.clear()
        await apply(page, filter_)
        await expect(rows).to_have_count(0)
        await publish(node, TOPIC, {"level": 0.5, "n": "low"}, {"level": 0.7, "n": "high"})
        released.set()
        await expect(rows).to_contain_text(shown)
    await expect(page.get_by_test_id("earlier-event")).to_have_count(0)


async def test_a_filter_in_the_address_applies_from_the_start(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await publish(node, TOPIC, {"level": 0.9, "n": "old high"}, {"level": 0.1, "n": "old low"})
    page = await open_page(node, f"{WATCH}&filter=level%20%3E%200.6")
    await expect(page.get_by_test_id("watch-filter")).to_have_value("level > 0.6")
    await expect(page.get_by_test_id("earlier-event")).to_have_count(1)
    await expect(page.get_by_test_id("earlier-event")).to_contain_text("old high")
    await publish(node, TOPIC, {"level": 0.1, "n": "low"}, {"level": 0.9, "n": "high"})
    rows = page.get_by_test_id("watch-event")
    await expect(rows.first).to_contain_text("n high")
    await expect(rows).to_have_count(1)
    await page.get_by_role("button", name="Clear the filter").click()
    await expect(page).not_to_have_url(re.compile("filter"))
    await publish(node, TOPIC, {"level": 0.1, "n": "low again"})
    await expect(rows).to_contain_text("low again")


async def test_a_filter_in_xpath_is_named_as_such(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await begin(open_page, node, WRONG_FILTER)
    field = page.get_by_test_id("watch-filter")
    await field.fill("//level[. >]")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await apply(page, "//level > 0.6")
    await expect(page.get_by_text("XPath", exact=True)).to_be_visible()
    await publish(node, TOPIC, {"level": 0.5, "n": "low"}, {"level": 0.7, "n": "high"})
    await expect(page.get_by_test_id("watch-event")).to_contain_text("n high")


async def test_an_open_row_shows_the_payload_in_every_form(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await begin(open_page, node)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    body = '{"place": "hall 2", "level": 0.91}'
    headers = {"traceparent": trace, "Hpwsn-Message-Id": "reading 17", "Content-Type": "application/json"}
    published = await page.request.post(f"{node.base}/topics/{TOPIC}/events", data=body, headers=headers)
    assert published.status == 202
    row = page.get_by_test_id("watch-event").first
    await row.get_by_role("button").first.click()
    await expect(row.locator("pre")).to_have_text('{\n  "place": "hall 2",\n  "level": 0.91\n}')
    await expect(row).to_contain_text(re.compile(r"offset 2 · id reading 17 · 34 bytes"))
    await expect(row).to_contain_text(f"trace {trace[:35]}")
    await row.get_by_role("button", name="Raw").click()
    await expect(row.locator("pre")).to_have_text('{"place": "hall 2", "level": 0.91}')
    await row.get_by_role("button", name="Copy", exact=True).click()
    assert await page.evaluate("navigator.clipboard.readText()") == body
    await row.get_by_role("button", name="XML").click()
    await expect(row.locator("pre")).to_contain_text("<place>hall 2</place><level>0.91</level></hp:event>")
    await row.get_by_role("button", name="Copy as curl").click()
    command = await page.evaluate("navigator.clipboard.readText()")
    assert command.startswith("curl -s ") and "after=1&upto=2&payload=raw" in command


async def test_a_message_is_published_again_as_it_was(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await begin(open_page, node)
    xml = '<r a="1"><!-- kept --><t>5</t></r>'
    url = f"{node.base}/topics/{TOPIC}/events"
    assert (await send(url, xml.encode(), "application/xml")).status == 202
    rows = page.get_by_test_id("watch-event")
    await expect(rows.first).to_contain_text("t 5 a 1")
    await rows.first.get_by_role("button").first.click()
    await page.get_by_test_id("publish-again").click()
    await expect(page.get_by_test_id("publish-payload")).to_have_value(xml)
    await page.get_by_test_id("publish-send").click()
    await expect(rows).to_have_count(2)
    _, events = await ask("GET", f"{url}?payload=raw")
    assert [event["raw"] for event in events][1:] == [xml, xml]  # type: ignore[index]


async def test_a_cut_payload_shows_its_beginning_and_is_downloaded_in_full(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    text = "".join(f"<v>{number}</v>" for number in range(20_000))
    assert (await call(node.url, notify(TOPIC, f"<big><place>hall 3</place>{text}</big>"))).status == 202
    row = page.get_by_test_id("watch-event").first
    await expect(row).to_contain_text(re.compile(r"2\d\d(\.\d)? KB, cut.*place hall 3", re.S))
    await row.get_by_role("button").first.click()
    await expect(row.locator("pre")).to_contain_text("<big><place>hall 3</place><v>0</v><v>1</v>")
    await expect(row).to_contain_text(re.compile(r"The first 65\.5 KB of 2\d\d"))
    saved = await save(page, "download")
    assert saved == f"<big><place>hall 3</place>{text}</big>"


async def test_large_and_deep_payloads_do_not_stop_the_page(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    rows = page.get_by_test_id("watch-event")
    deep: object = "bottom"
    for _ in range(40):
        deep = [{"d": deep}]
    line = {"line": "x" * 64_000}
    wide = {f"field{number}": number for number in range(2000)}
    payloads: list[tuple[object, str]] = [(line, "line x"), ({"deep": deep}, "d bottom"), (wide, "field0 0")]
    for payload, words in payloads:
        await publish(node, TOPIC, payload)
        size = len(json.dumps(payload))
        await expect(rows.first).to_contain_text(words)
        await rows.first.get_by_role("button").first.click()
        await expect(rows.first.locator("pre")).to_be_visible()
        more = rows.first.get_by_role("button", name="Show all of it")
        if size > 20_000:
            await more.click()
        await expect(more).to_have_count(0)
        assert await page.evaluate("document.querySelectorAll('*').length") < 3000
    await publish(node, TOPIC, *({"n": number, "text": "y" * 60_000} for number in range(100)))
    await expect(page.get_by_test_id("watch-skipped")).to_have_text(re.compile(r"^\d+ skipped$"))
    slowest = await page.evaluate(
        """() => new Promise((resolve) => {
          const times = [];
          const step = (now) => {
            times.push(now);
            if (times.length < 20) requestAnimationFrame(step);
            else resolve(Math.max(...times.slice(1).map((time, index) => time - times[index])));
          };
          requestAnimationFrame(step);
        })"""
    )
    assert slowest < 1000, f"a frame took {slowest:.0f} ms"


async def test_a_row_that_is_read_stays_where_it_is(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await begin(open_page, node)
    rows = page.get_by_test_id("watch-event")
    await publish(node, TOPIC, *({"n": number} for number in range(40)))
    await expect(rows.first).to_contain_text("n 39")
    await rows.nth(3).get_by_role("button").first.click()
    opened = page.locator(".message.open")
    await expect(opened.locator("pre")).to_contain_text('"n": 36')
    before = await opened.bounding_box()
    await publish(node, TOPIC, *({"n": number} for number in range(40, 50)))
    await expect(page.get_by_role("button", name="rows above")).to_be_visible()
    assert await opened.bounding_box() == before
    await page.get_by_role("button", name="rows above").click()
    await expect(rows.first).to_be_in_viewport()


async def test_the_keyboard_moves_through_rows_and_opens_them(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await begin(open_page, node)
    rows = page.get_by_test_id("watch-event")
    await publish(node, TOPIC, *({"n": number} for number in range(30)))
    await expect(rows.first).to_contain_text("n 29")
    await rows.first.get_by_role("button").focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(rows.nth(2).get_by_role("button")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".message.open pre")).to_contain_text('"n": 27')
    await publish(node, TOPIC, {"n": "new"})
    await expect(page.locator(".message.open > button")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".message.open")).to_have_count(0)
    await page.keyboard.press("End")
    await expect(page.get_by_test_id("earlier-event").get_by_role("button")).to_be_focused()


async def test_a_hidden_tab_has_no_stream_and_goes_on_without_a_gap(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    service = f"{node.base}/streams/urn:example:watched"
    put = json.dumps(REGISTRATION | {"topic": TOPIC}).encode()
    assert (await send(service, put, "application/json", "PUT")).status == 200

    async def streams() -> int:
        _, answer = await ask("GET", service)
        return int(answer["requests"]["total"])

    async def is_followed() -> bool:
        return await streams() == 1

    async def is_left() -> bool:
        return await streams() == 0

    page = await begin(open_page, node)
    rows = page.get_by_test_id("watch-event")
    await eventually(is_followed)
    await page.evaluate(HIDE, True)
    await eventually(is_left)
    await publish(node, TOPIC, {"n": "one"}, {"n": "two"})
    await page.evaluate(HIDE, False)
    await expect(rows).to_have_count(2)
    await eventually(is_followed)
    await page.get_by_role("tab", name="Edit").click()
    await eventually(is_left)


async def test_the_pause_of_the_page_stops_the_stream_too(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await begin(open_page, node)
    await page.get_by_role("button", name="Pause live updates").click()
    await expect(page.get_by_text("Live updates are paused")).to_be_visible()
    await publish(node, TOPIC, {"n": "meanwhile"})
    await page.get_by_role("button", name="Resume live updates").click()
    await expect(page.get_by_test_id("watch-event")).to_contain_text("n meanwhile")


async def test_an_internal_topic_asks_for_a_token(open_page: OpenedPages, tmp_path: Path) -> None:
    tree = tmp_path / "topics.toml"
    tree.write_text('[topics.secret]\nvisibility = "internal"\n')
    with NodeProcess(tmp_path / "data", "--topics", str(tree)) as node:
        view = "topics?topic=secret&tab=watch"
        page = await open_page(node, view, expected=[r"^401 "])
        await expect(page.get_by_role("dialog")).to_contain_text("token")
        await page.get_by_test_id("cancel").click()
        await expect(page.get_by_role("button", name="Enter a token…")).to_be_visible()
        await page.get_by_role("button", name="Enter a token…").click()
        await page.get_by_test_id("token").fill((tmp_path / "data" / "job.token").read_text().strip())
        await page.get_by_test_id("ok").click()
        await expect(page.get_by_text("Waits for the next message on secret")).to_be_visible()
        await publish(node, "secret", {"n": "hidden from others"})
        await expect(page.get_by_test_id("watch-event")).to_contain_text("hidden from others")
        await open_page.finish()


async def test_what_is_announced_is_the_newest_row(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await begin(open_page, node)
    await publish(node, TOPIC, {"place": "hall 3", "level": 0.82})
    announced = page.locator("p.for-screen-readers[aria-live=polite]")
    await expect(announced).to_have_text("place hall 3 level 0.82")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1440, 900), (390, 844)], ids=["wide", "phone"])
async def test_it_is_accessible_with_a_wrong_filter_an_open_row_and_the_box(
    open_page: OpenedPages, node: NodeProcess, scheme: Scheme, size: Size
) -> None:
    await publish(node, TOPIC, {"n": "before"})
    page = await open_page(node, f"{WATCH}&publish=1", expected=[WRONG_FILTER], scheme=scheme, size=size)
    await publish(node, TOPIC, {"place": "hall 3", "level": 0.82}, {"n": 2})
    rows = page.get_by_test_id("watch-event")
    await expect(rows).to_have_count(2)
    await rows.nth(1).get_by_role("button").first.click()
    await page.get_by_test_id("watch-filter").fill("level >")
    await expect(page.get_by_test_id("watch-filter")).to_have_attribute("aria-invalid", "true")
    await page.get_by_test_id("publish-payload").fill('{"a": b}')
    await assert_accessible(page)
