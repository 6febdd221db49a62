"""The three steps of a new node: publish, watch, subscribe; each also as a command that works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import aiohttp
import pytest
from page_pictures.browser import Scheme, Size
from playwright.async_api import Page, expect

from tests.harness import ROOT, NodeProcess, hpwsn
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import publish


async def commands(page: Page) -> list[str]:
    """The commands of all steps, as they are copied."""
    await expect(page.get_by_test_id("first-run")).to_be_visible()
    texts = await page.get_by_test_id("first-run").locator(".command code").all_inner_texts()
    return [text.removeprefix("$ ") for text in texts]


async def test_a_newcomer_publishes_watches_and_edits_without_leaving_the_page(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await open_page(node)
    await expect(page.get_by_text(re.compile("Waits for the first message"))).to_be_visible()
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("publish-result")).to_have_text("Accepted at offset 1.")
    row = page.get_by_test_id("watch-event")
    await expect(row).to_contain_text("world text first message")
    await page.get_by_test_id("publish-payload").fill('{"text": "second message"}')
    await page.get_by_test_id("publish-payload").press("Control+Enter")
    await expect(row).to_have_count(2)
    await expect(row.first).to_contain_text("second message")
    await page.get_by_test_id("first-run-next").click()
    await expect(page).to_have_url(re.compile(r"/ui/topics\?topic=hello&tab=watch$"))
    await expect(page.get_by_test_id("earlier-event")).to_have_count(2)
    await page.get_by_role("tab", name="Edit").click()
    await expect(page.get_by_test_id("topic-add").last).to_be_visible()


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
async def test_a_late_stream_does_not_decide_which_overview_is_shown(
    open_page: OpenedPages, node: NodeProcess, used: bool
) -> None:
    if used:
        await publish(node, "plant", {"n": 1})
    asked: list[str] = []

    async def hold_stream(page: Page) -> None:
        page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        # Never answered, as long as the page is open.
        await page.route("**/live?*", lambda route: None)

    page = await open_page(node, prepare=hold_stream)
    await expect(page.get_by_test_id("first-run")).to_have_count(0 if used else 1)
    await expect(page.get_by_role("heading", name="All is well")).to_have_count(1 if used else 0)
    assert ("usual.js" in asked, "new_node.js" in asked) == (used, not used)


@pytest.mark.parametrize(("used", "most"), [(False, 51), (True, 41)], ids=["new", "used"])
async def test_the_start_needs_few_files_and_none_twice(
    open_page: OpenedPages, node: NodeProcess, used: bool, most: int
) -> None:
    if used:
        await publish(node, "plant", {"n": 1})
    asked: list[str] = []

    async def listen(page: Page) -> None:
        page.on("request", lambda request: asked.append(request.url))

    await open_page(node, prepare=listen)
    files = [url for url in asked if "/ui/" in url]
    assert len(files) == len(set(files)) <= most


async def test_messages_of_a_program_arrive_too(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node)
    publishing, listening, *_ = await commands(page)
    assert listening == f"hpwsn listen hello --url {node.url}"
    ended = hpwsn(*shlex.split(publishing)[1:])
    assert ended.returncode == 0, ended.stderr
    await expect(page.get_by_test_id("watch-event")).to_contain_text("world text first message")


async def test_the_addresses_for_programs_are_true(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node)
    _, _, wsdl, stream, install = await commands(page)
    async with aiohttp.ClientSession() as session:
        async with session.get(wsdl) as answer:
            assert answer.status == 200 and "wsdl" in await answer.text()
        *_, url = shlex.split(stream)
        async with session.get(url, headers={"Accept": "text/event-stream"}) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
    folder = Path(ROOT, install.removeprefix("pip install "))
    assert (folder / "pyproject.toml").is_file()
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "pip install ./client" in readme and "client.subscribe(" in readme


async def test_the_watched_topic_follows_the_published_one_until_it_is_chosen(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await open_page(node)
    await page.get_by_test_id("publish-topic").fill("plant:hall:door")
    await expect(page.get_by_test_id("watch-topic")).to_have_value("plant")
    await expect(page.get_by_text("hpwsn listen plant")).to_be_visible()
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("watch-event")).to_contain_text("hall:door text first message")
    await page.get_by_test_id("watch-topic").fill("other")
    await expect(page.get_by_text("hpwsn listen other")).to_be_visible()
    await publish(node, "other", {"n": 1})
    await expect(page.get_by_test_id("watch-event")).to_contain_text("n 1")
    await page.get_by_test_id("publish-topic").fill("plant::door")
    await expect(page.get_by_test_id("publish-topic")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_test_id("publish-send")).to_be_disabled()


async def test_where_topics_are_fixed_the_steps_begin_with_one_of_them(
    open_page: OpenedPages, tmp_path: Path
) -> None:
    tree = tmp_path / "topics.toml"
    tree.write_text('[topics.INNER]\nvisibility = "internal"\n\n[topics.PLANT.DOOR]\n', "utf-8")
    with NodeProcess(tmp_path / "data", "--topics", str(tree)) as node:
        page = await open_page(node)
        await expect(page.get_by_test_id("publish-topic")).to_have_value("PLANT:DOOR")
        await expect(page.get_by_test_id("watch-topic")).to_have_value("PLANT")
        await page.get_by_test_id("publish-send").click()
        await expect(page.get_by_test_id("watch-event")).to_contain_text("DOOR text first message")
        await open_page.finish()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1440, 900), (1000, 800), (390, 844)], ids=["wide", "narrow", "phone"])
async def test_the_steps_are_accessible(
    open_page: OpenedPages, node: NodeProcess, scheme: Scheme, size: Size
) -> None:
    page = await open_page(node, size=size, scheme=scheme)
    await expect(page.get_by_test_id("first-run")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_test_id("publish-payload").fill('{"text": first}')
    await expect(page.get_by_test_id("publish-payload")).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
