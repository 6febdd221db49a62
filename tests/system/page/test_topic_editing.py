"""Edits of topics on the page: by button, key and drag; effects, undo, conflicts, import and export."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.harness import NodeProcess
from tests.internal_topics import get
from tests.slapd import ADMIN, BASE, Slapd
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.topic_edits import change, export
from tests.webhooks import create, publish

TREE = """\
[topics.ALL]
[topics.ALL.ALARM]
description = "Needs somebody at once"
routing = "tcp"
[topics.ALL.ALARM.FIRE]
[topics.ALL.ALARM.SMOKE]
[topics.ALL.STATE]
"""
NOBODY = "http://127.0.0.1:9/nobody"
PHONE = (390, 844)
ALARM = "topics?topic=ALL:ALARM&tab=edit"
CONFLICT = "409 POST"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node with a few topics in a file."""
    file = tmp_path / "topics.toml"
    file.write_text(TREE)
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as running:
        yield running


def row(page: Page, topic: str) -> Locator:
    return page.locator(f'[data-testid="topic"][data-topic="{topic}"]')


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog")


def conflict(page: Page) -> Locator:
    return page.get_by_test_id("conflict")


async def focused(page: Page) -> str | None:
    topic: str | None = await page.evaluate("document.activeElement?.dataset?.topic ?? null")
    return topic


async def declared(node: NodeProcess) -> dict[str, dict[str, Any]]:
    """All declared topics of a node, by name."""
    found = json.loads((await get(node, "/topics"))[2])["items"]
    return {item["topic"]: item for item in found if item["declared"]}


async def undo(page: Page) -> None:
    await expect(page.get_by_test_id("undo")).to_be_enabled()
    await page.get_by_test_id("undo").click()


async def test_a_topic_is_added_below_the_selected_one_and_the_addition_undone(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM)
    await page.get_by_test_id("topic-add").click()
    name = page.get_by_test_id("name")
    await expect(name).to_be_focused()
    await name.fill("GAS")
    await expect(page.locator(".name-hint")).to_contain_text("ALL:ALARM:GAS · Enter adds it, Esc cancels")
    await name.press("Enter")
    await expect(row(page, "ALL:ALARM:GAS")).to_be_focused()
    assert "ALL:ALARM:GAS" in await declared(node)
    await expect(page.locator(".toast")).to_contain_text("Added ALL:ALARM:GAS")
    await expect(page.get_by_test_id("undo")).to_contain_text("1")
    await undo(page)
    await expect(row(page, "ALL:ALARM:GAS")).to_have_count(0)
    await expect(page.get_by_test_id("undo")).to_be_disabled()
    assert "ALL:ALARM:GAS" not in await declared(node)


async def test_without_a_selection_a_root_is_added_also_several_levels_deep(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics")
    await page.get_by_test_id("topic-add").click()
    await page.get_by_test_id("name").fill("NEW:A:B")
    await page.get_by_test_id("name").press("Enter")
    await expect(row(page, "NEW:A:B")).to_be_focused()
    await page.keyboard.press("Control+z")
    await expect(row(page, "NEW")).to_have_count(0)


async def test_names_that_are_not_allowed_are_marked_while_typing(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM)
    before = await export(node)
    await page.get_by_test_id("topic-add").click()
    name = page.get_by_test_id("name")
    for text, reason in (
        ("two words", "a space is not allowed in a name"),
        ("1st", "a name begins with a letter or '_', not with '1'"),
        ("<b>", "'<' is not allowed in a name"),
        ("A::B", "a name is empty"),
        ("FIRE", "ALL:ALARM:FIRE exists already"),
    ):
        await name.fill(text)
        await expect(name).to_have_attribute("aria-invalid", "true")
        await expect(page.locator(".name-hint")).to_contain_text(reason)
        await name.press("Enter")
        await expect(name).to_be_visible()
    await name.fill("")
    await expect(name).to_have_attribute("aria-invalid", "true")
    await name.fill("Straße-2.b")
    await expect(name).not_to_have_attribute("aria-invalid", "true")
    await name.press("Escape")
    await expect(name).to_have_count(0)
    assert await focused(page) == "ALL:ALARM"
    assert await export(node) == before


async def test_a_rename_takes_everything_below_along_and_tells_what_it_does_to_subscriptions(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    await create(node, NOBODY, topic="ALL:ALARM:FIRE")
    page = await open_page(node, ALARM)
    await page.get_by_test_id("topic-rename").click()
    name = page.get_by_test_id("name")
    await expect(name).to_have_value("ALARM")
    await name.fill("ALERT")
    await expect(page.locator(".name-hint")).to_contain_text("1 subscription then matches no topic")
    await name.press("Enter")
    await expect(row(page, "ALL:ALERT:FIRE")).to_be_visible()
    await expect(row(page, "ALL:ALERT")).to_have_attribute("aria-selected", "true")
    await expect(page).to_have_url(re.compile("topic=ALL%3AALERT"))
    assert (await declared(node))["ALL:ALERT"]["routing"] == "tcp"
    await undo(page)
    await expect(row(page, "ALL:ALARM:FIRE")).to_be_visible()
    await expect(page).to_have_url(re.compile("topic=ALL%3AALARM"))
    await expect(row(page, "ALL:ALERT")).to_have_count(0)


async def test_a_removal_names_its_effect_and_can_be_undone(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    await create(node, NOBODY, topic="ALL:ALARM:FIRE")
    await publish(node, "ALL:ALARM:FIRE", {"n": 1})
    page = await open_page(node, ALARM)
    before = await export(node)
    await page.get_by_test_id("topic-delete").click()
    for words in (
        "Remove ALL:ALARM and the 2 topics below it?",
        "1 subscription then matches no topic",
        "1 notification waits for it",
        "You can undo this.",
    ):
        await expect(dialog(page)).to_contain_text(words)
    await expect(dialog(page).locator("tr").first).to_contain_text("1 subscriber")
    await expect(page.get_by_test_id("ok")).to_have_text("Remove 3 topics")
    await assert_accessible(page)
    await page.get_by_test_id("cancel").click()
    await expect(dialog(page)).to_have_count(0)
    assert await export(node) == before
    await page.get_by_test_id("topic-delete").click()
    await page.get_by_test_id("ok").click()
    await expect(row(page, "ALL:ALARM")).to_have_count(0)
    assert set(await declared(node)) == {"ALL", "ALL:STATE"}
    await expect(page.locator(".side h2")).to_have_text("ALL")
    await page.locator(".toast").get_by_role("button", name="Undo").click()
    await expect(row(page, "ALL:ALARM:SMOKE")).to_be_visible()
    assert await export(node) == before


async def test_a_removal_tells_what_is_published_there_now(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ALARM)

    async def keep_publishing() -> None:
        while True:
            await publish(node, "ALL:ALARM:FIRE", *({"n": n} for n in range(20)))
            await asyncio.sleep(0.1)  # so that the node has time for others

    publisher = asyncio.create_task(keep_publishing())
    try:
        await expect(row(page, "ALL:ALARM").locator(".topic-rate")).to_have_text(re.compile("[1-9]"))
        await page.get_by_test_id("topic-delete").click()
        await expect(dialog(page)).to_contain_text("messages/s are published here now; publishers will get")
    finally:
        publisher.cancel()


async def test_values_are_saved_by_enter_or_button_and_restored_by_undo(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM)
    before = await export(node)
    await page.get_by_test_id("description").fill("Calls the guard")
    await page.get_by_test_id("description").press("Enter")
    await expect(row(page, "ALL:ALARM")).to_contain_text("Calls the guard")
    await page.get_by_test_id("routing").select_option("udp")
    await page.get_by_test_id("visibility").select_option("internal")
    await page.get_by_test_id("save").click()
    await expect(row(page, "ALL:ALARM")).to_contain_text("internal")
    await expect(page.get_by_test_id("save")).to_be_disabled()
    found = (await declared(node))["ALL:ALARM"]
    assert (found["description"], found["routing"], found["visibility"]) == (
        "Calls the guard",
        "udp",
        "internal",
    )
    # Only with the token of jobs can the mark be lifted again, as the node says.
    open_page.faults(page).expect("401 POST")
    await undo(page)
    await expect(page.locator(".toast.bad")).to_contain_text("only with the token")
    await expect(page.get_by_test_id("undo")).to_contain_text("2")
    assert await export(node) != before


async def test_each_edit_is_undone_in_turn(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ALARM)
    before = await export(node)
    await page.get_by_test_id("routing").select_option("udp")
    await page.get_by_test_id("save").click()
    await expect(row(page, "ALL:ALARM")).to_contain_text("udp")
    await page.get_by_test_id("topic-add").click()
    await page.get_by_test_id("name").fill("GAS")
    await page.get_by_test_id("name").press("Enter")
    await expect(row(page, "ALL:ALARM:GAS")).to_be_visible()
    await page.get_by_test_id("topic-delete").click()
    await page.get_by_test_id("ok").click()
    await expect(row(page, "ALL:ALARM")).to_have_count(0)
    await expect(page.get_by_test_id("undo")).to_contain_text("3")
    for left in ("2", "1"):
        await undo(page)
        await expect(page.get_by_test_id("undo")).to_contain_text(left)
    await undo(page)
    await expect(page.get_by_test_id("undo")).to_be_disabled()
    await expect(row(page, "ALL:ALARM")).to_contain_text("tcp")
    assert await export(node) == before


async def test_a_topic_is_moved_by_keys_by_dialog_and_by_dragging(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics")
    await row(page, "ALL:ALARM").focus()
    await page.keyboard.press("Control+x")
    await expect(row(page, "ALL:ALARM")).to_have_class(re.compile("cut"))
    await row(page, "ALL:STATE").focus()
    await page.keyboard.press("Control+v")
    await expect(dialog(page)).to_contain_text("Move ALL:ALARM and the 2 topics below it to ALL:STATE:ALARM?")
    await expect(page.get_by_test_id("ok")).to_have_text("Move 3 topics")
    await page.get_by_test_id("ok").click()
    await expect(row(page, "ALL:STATE:ALARM:FIRE")).to_be_visible()
    await page.keyboard.press("Control+z")
    await expect(row(page, "ALL:ALARM:FIRE")).to_be_visible()

    await row(page, "ALL:ALARM:SMOKE").click(button="right")
    await page.get_by_role("menuitem", name="Move…", exact=True).click()
    await page.get_by_test_id("parent").fill("")
    await expect(dialog(page)).to_contain_text("SMOKE becomes SMOKE.")
    await page.get_by_test_id("ok").click()
    await page.get_by_role("button", name="Move 1 topic").click()
    await expect(row(page, "SMOKE")).to_be_visible()

    await row(page, "SMOKE").drag_to(row(page, "ALL:STATE"))
    await page.get_by_test_id("ok").click()
    await expect(row(page, "ALL:STATE:SMOKE")).to_be_visible()
    assert set(await declared(node)) == {"ALL", "ALL:ALARM", "ALL:ALARM:FIRE", "ALL:STATE", "ALL:STATE:SMOKE"}


async def test_the_keyboard_alone_adds_renames_and_removes(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics")
    await row(page, "ALL:STATE").focus()
    await page.keyboard.press("Insert")
    await expect(page.get_by_test_id("name")).to_be_focused()
    await page.keyboard.type("DOOR")
    await page.keyboard.press("Enter")
    await expect(row(page, "ALL:STATE:DOOR")).to_be_focused()
    await page.keyboard.press("F2")
    await expect(page.get_by_test_id("name")).to_be_focused()
    await page.keyboard.type("GATE")
    await page.keyboard.press("Enter")
    await expect(row(page, "ALL:STATE:GATE")).to_be_focused()
    await page.keyboard.press("Delete")
    await expect(dialog(page)).to_be_visible()
    await page.get_by_test_id("ok").focus()
    await page.keyboard.press("Enter")
    await expect(row(page, "ALL:STATE:GATE")).to_have_count(0)
    await expect(row(page, "ALL:STATE")).to_be_focused()
    for topic, number in (("ALL:STATE:GATE", 1), ("ALL:STATE:DOOR", 1), ("ALL:STATE:DOOR", 0)):
        await expect(page.get_by_test_id("undo")).to_be_enabled()
        await page.keyboard.press("Control+z")
        await expect(row(page, topic)).to_have_count(number)


async def test_keys_that_undo_while_the_tree_is_read_again_are_not_lost(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, "topics?topic=ALL:ALARM:SMOKE&tab=edit")
    before, released = await export(node), asyncio.Event()

    async def rename(name: str) -> None:
        await page.get_by_test_id("topic-rename").click()
        await page.get_by_test_id("name").fill(name)
        await page.get_by_test_id("name").press("Enter")
        await expect(row(page, f"ALL:ALARM:{name}")).to_be_visible()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await rename("FOG")
    await expect(page.get_by_test_id("undo")).to_be_enabled()
    await page.route("**/topics?*", hold)
    await rename("MIST")
    await expect(page.get_by_test_id("undo")).to_be_disabled()
    await page.keyboard.press("Control+z")
    await page.keyboard.press("Control+z")
    released.set()
    await expect(row(page, "ALL:ALARM:SMOKE")).to_be_visible()
    await expect(page.get_by_test_id("undo")).not_to_contain_text("1")
    assert await export(node) == before


async def test_others_who_change_a_topic_under_a_rename_are_a_conflict(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM, expected=(CONFLICT,))
    await page.get_by_test_id("topic-rename").click()
    await page.get_by_test_id("name").fill("ALERT")
    await change(node, {"op": "set", "topic": "ALL:ALARM", "routing": "udp"})
    before = await export(node)
    await page.get_by_test_id("name").press("Enter")
    await expect(conflict(page)).to_contain_text("routing was tcp, is now udp; you rename it to ALERT")
    await page.get_by_test_id("name").press("Enter")
    assert await export(node) == before
    await page.get_by_test_id("apply-yours").click()
    await expect(row(page, "ALL:ALERT")).to_contain_text("udp")
    await expect(conflict(page)).to_have_count(0)


async def test_others_who_change_a_topic_under_its_form_are_a_conflict_that_keeps_either(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM, expected=(CONFLICT,))
    await page.get_by_test_id("routing").select_option("udp")
    await change(node, {"op": "set", "topic": "ALL:ALARM", "routing": None})
    # Known before Enter, since the page follows the node.
    await expect(conflict(page)).to_contain_text("routing was tcp, is now default, yours is udp")
    await page.get_by_test_id("save").click()
    await expect(conflict(page)).to_be_focused()
    assert (await declared(node))["ALL:ALARM"]["routing"] is None
    await page.get_by_role("button", name="Keep default").click()
    await expect(page.get_by_test_id("routing")).to_have_value("default")
    await page.get_by_test_id("description").fill("mine")
    await change(node, {"op": "set", "topic": "ALL:ALARM", "routing": "tcp"})
    await expect(conflict(page)).to_contain_text("yours is mine")
    await page.get_by_test_id("apply-yours").click()
    await expect(row(page, "ALL:ALARM")).to_contain_text("mine")
    found = (await declared(node))["ALL:ALARM"]
    assert (found["description"], found["routing"]) == ("mine", "tcp")


@pytest.mark.parametrize("first", ["begins first", "begins last"])
async def test_of_two_pages_that_edit_a_topic_the_slower_one_writes_nothing(
    node: NodeProcess, open_page: OpenedPages, first: str
) -> None:
    one = await open_page(node, ALARM, expected=(CONFLICT,))
    other = await open_page(node, ALARM, expected=(CONFLICT,))
    for page in (one, other) if first == "begins first" else (other, one):
        await page.get_by_test_id("topic-rename").click()
        await page.get_by_test_id("name").fill("ONE" if page is one else "OTHER")
    await one.get_by_test_id("name").press("Enter")
    await expect(row(one, "ALL:ONE")).to_be_visible()
    await other.get_by_test_id("name").press("Enter")
    await expect(conflict(other)).to_contain_text("ALL:ALARM was removed or renamed elsewhere")
    assert "ALL:OTHER" not in await declared(node)
    await other.get_by_test_id("keep-theirs").click()
    await expect(conflict(other)).to_have_count(0)
    await expect(other.get_by_test_id("name")).to_have_count(0)


async def test_a_form_of_a_topic_that_vanishes_can_be_kept(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ALARM, expected=("404 GET", CONFLICT))
    await page.get_by_test_id("description").fill("mine")
    await change(node, {"op": "remove", "topic": "ALL:ALARM"})
    await expect(conflict(page)).to_contain_text("ALL:ALARM was removed or renamed elsewhere")
    await page.get_by_test_id("description").press("Enter")
    assert "ALL:ALARM" not in await declared(node)
    await page.get_by_role("button", name="Add it again").click()
    await expect(row(page, "ALL:ALARM")).to_contain_text("mine")
    await expect(conflict(page)).to_have_count(0)


async def test_others_who_change_a_topic_under_its_removal_are_a_conflict(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM, expected=(CONFLICT,))
    await page.get_by_test_id("topic-delete").click()
    await expect(dialog(page)).to_be_visible()
    await change(node, {"op": "add", "topic": "ALL:ALARM:GAS"})
    await page.get_by_test_id("ok").click()
    await expect(conflict(page)).to_be_visible()
    assert "ALL:ALARM" in await declared(node)
    await page.get_by_test_id("apply-yours").click()
    await expect(dialog(page)).to_contain_text("Remove ALL:ALARM and the 3 topics below it?")
    await page.get_by_test_id("ok").click()
    await expect(row(page, "ALL:ALARM")).to_have_count(0)


async def test_a_name_that_others_take_while_it_is_typed_is_a_conflict(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM, expected=(CONFLICT,))
    await page.get_by_test_id("topic-add").click()
    await page.get_by_test_id("name").fill("GAS")
    await change(node, {"op": "add", "topic": "ALL:ALARM:GAS", "description": "theirs"})
    await page.get_by_test_id("name").press("Enter")
    await expect(conflict(page)).to_contain_text("ALL:ALARM:GAS was added elsewhere")
    assert (await declared(node))["ALL:ALARM:GAS"]["description"] == "theirs"
    await page.get_by_test_id("name").fill("GAS2")
    await expect(conflict(page)).to_have_count(0)
    await page.get_by_test_id("name").press("Enter")
    await expect(row(page, "ALL:ALARM:GAS2")).to_be_visible()


async def test_a_topic_is_not_added_below_one_that_others_remove_meanwhile(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM, expected=(CONFLICT,))
    await page.get_by_test_id("topic-add").click()
    await page.get_by_test_id("name").fill("GAS")
    await change(node, {"op": "remove", "topic": "ALL:ALARM"})
    await page.get_by_test_id("name").press("Enter")
    await expect(conflict(page)).to_contain_text("ALL:ALARM was removed or renamed elsewhere")
    assert set(await declared(node)) == {"ALL", "ALL:STATE"}
    await page.get_by_test_id("keep-theirs").click()
    await expect(page.get_by_test_id("name")).to_have_count(0)


async def test_an_undo_that_others_have_overtaken_is_dropped_with_the_reason(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM, expected=(CONFLICT,))
    await page.get_by_test_id("routing").select_option("udp")
    await page.get_by_test_id("save").click()
    await expect(row(page, "ALL:ALARM")).to_contain_text("udp")
    await change(node, {"op": "set", "topic": "ALL:ALARM", "routing": None})
    await undo(page)
    await expect(page.locator(".toast.bad")).to_contain_text("somebody else was faster")
    await expect(page.get_by_test_id("undo")).to_be_disabled()
    assert (await declared(node))["ALL:ALARM"]["routing"] is None


async def test_edits_reach_an_ldap_server_and_ldapmodify_under_an_edit_is_a_conflict(
    slapd: Slapd, tmp_path: Path, open_page: OpenedPages
) -> None:
    settings = {"topics.edit_bind_dn": ADMIN, "topics.edit_password_file": slapd.password_file}
    arguments = ("--topics", slapd.url, *(f"--set={key}={value}" for key, value in settings.items()))
    with NodeProcess(tmp_path / "data", *arguments) as node:
        page = await open_page(node, ALARM, expected=(CONFLICT,))
        await page.get_by_test_id("topic-add").click()
        await page.get_by_test_id("name").fill("GAS")
        await page.get_by_test_id("name").press("Enter")
        await expect(row(page, "ALL:ALARM:GAS")).to_be_visible()
        await page.get_by_test_id("topic-rename").click()
        await page.get_by_test_id("name").fill("ALERT")
        entry = f"dn: cn=ALARM,cn=ALL,{BASE}\nchangetype: modify\nreplace: description\n"
        await asyncio.to_thread(slapd.modify, f"{entry}description: by ldapmodify\n")
        await page.get_by_test_id("name").press("Enter")
        await expect(conflict(page)).to_contain_text("by ldapmodify")
        assert "ALL:ALERT" not in await declared(node)
        await page.get_by_test_id("keep-theirs").click()
        await expect(row(page, "ALL:ALARM")).to_contain_text("by ldapmodify")
        await undo(page)
        await expect(row(page, "ALL:ALARM:GAS")).to_have_count(0)
        await open_page.finish()


async def test_undeclared_topics_can_be_declared_and_say_why_they_cannot_be_renamed(
    tmp_path: Path, open_page: OpenedPages
) -> None:
    with NodeProcess(tmp_path / "data") as node:
        await publish(node, "used:once", {"n": 1})
        page = await open_page(node, "topics?topic=used:once&tab=edit")
        await expect(row(page, "used:once")).to_contain_text("undeclared")
        await expect(page.get_by_test_id("topic-rename")).to_be_disabled()
        await expect(page.locator(".side")).to_contain_text("Renaming, moving and removing are not possible.")
        await row(page, "used:once").focus()
        await page.keyboard.press("F2")
        await expect(page.locator(".toast.bad")).to_contain_text("Declare it first.")
        await page.get_by_test_id("topic-declare").click()
        await expect(page.get_by_test_id("topic-rename")).to_be_enabled()
        assert "used:once" in await declared(node)
        await undo(page)
        await expect(page.get_by_test_id("topic-rename")).to_be_disabled()
        await open_page.finish()


async def test_an_export_is_downloaded_and_its_import_shows_the_difference_first(
    node: NodeProcess, open_page: OpenedPages, tmp_path: Path
) -> None:
    page = await open_page(node, "topics")
    before = await export(node)
    saved: dict[str, Path] = {}
    for form in ("TOML", "LDIF"):
        await page.get_by_role("button", name="Export", exact=True).click()
        async with page.expect_download() as download:
            await page.get_by_role("menuitem", name=f"Download as {form}").click()
        saved[form] = tmp_path / f"saved.{form.lower()}"
        await (await download.value).save_as(saved[form])
        assert saved[form].read_text() == await export(node, form.lower())
    await change(
        node,
        {"op": "remove", "topic": "ALL:ALARM:FIRE"},
        {"op": "set", "topic": "ALL:ALARM", "routing": None},
        {"op": "add", "topic": "NEW"},
    )
    changed = await export(node)
    await expect(row(page, "NEW")).to_be_visible()
    for form in ("TOML", "LDIF"):
        await page.get_by_role("button", name="Import…").click()
        await page.get_by_test_id("import-file").set_input_files(saved[form])
        await page.get_by_role("button", name="Replace all").click()
        await page.get_by_test_id("compare").click()
        await expect(page.get_by_test_id("difference")).to_have_text("1 added, 1 changed, 1 removed.")
        await expect(dialog(page)).to_contain_text("routing default → tcp")
        assert await export(node) == changed
        await expect(page.get_by_test_id("ok")).to_have_text("Import 3 topics")
        await page.get_by_test_id("ok").click()
        await expect(row(page, "NEW")).to_have_count(0)
        assert await export(node) == before
        await undo(page)
        await expect(row(page, "NEW")).to_be_visible()
        assert await export(node) == changed


async def test_an_import_with_mistakes_tells_their_lines(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, "topics", expected=("400 POST",))
    await page.get_by_role("button", name="Import…").click()
    await page.get_by_test_id("import-text").fill('[topics.A]\nrouting = "pigeon"\n')
    await page.get_by_test_id("compare").click()
    await expect(dialog(page).get_by_role("alert")).to_contain_text("pigeon")
    await page.get_by_test_id("import-text").fill("[topics.A]\n[topics.A\n")
    await expect(dialog(page).get_by_role("alert")).to_have_count(0)
    await page.get_by_test_id("compare").click()
    await expect(dialog(page).get_by_role("alert")).to_contain_text("line 2")
    await assert_accessible(page)
    await page.get_by_test_id("cancel").click()
    await expect(dialog(page)).to_have_count(0)


async def test_where_topics_are_only_read_the_page_says_why(tmp_path: Path, open_page: OpenedPages) -> None:
    with NodeProcess(tmp_path / "data", "--set", "topics.edit=never") as node:
        await publish(node, "used:once", {"n": 1})
        page = await open_page(node, "topics?topic=used:once&tab=edit")
        await expect(page.get_by_test_id("read-only")).to_contain_text('topics.edit is "never"')
        for each in ("topic-add", "topic-rename", "topic-delete", "save", "undo"):
            await expect(page.get_by_test_id(each)).to_be_disabled()
        await expect(page.get_by_test_id("description")).not_to_be_editable()
        await row(page, "used:once").focus()
        for key in ("F2", "Insert", "Delete"):
            await page.keyboard.press(key)
        await expect(page.get_by_test_id("name")).to_have_count(0)
        await open_page.finish()


async def test_every_action_of_a_menu_can_be_copied_as_a_command(
    node: NodeProcess, open_page: OpenedPages
) -> None:
    page = await open_page(node, ALARM)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_test_id("topic-delete").click()
    await dialog(page).get_by_role("button", name="Copy as curl").click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("curl -s -X POST")
    assert f"'{node.base}/topics/changes'" in copied
    body = json.loads(copied.split("--data-raw '")[1].split("' ")[0])
    assert (body["changes"][0]["op"], body["changes"][0]["below"]) == ("remove", 2)


async def test_on_a_phone_the_name_is_typed_in_the_panel(node: NodeProcess, open_page: OpenedPages) -> None:
    page = await open_page(node, ALARM, size=PHONE, expected=(CONFLICT,))
    await page.get_by_test_id("topic-add").click()
    name = page.get_by_test_id("name")
    await expect(page.locator(".side").get_by_test_id("name")).to_be_focused()
    await name.fill("GAS")
    await name.press("Enter")
    await expect(name).to_have_count(0)
    assert "ALL:ALARM:GAS" in await declared(node)
    await undo(page)
    await expect(page.get_by_test_id("undo")).to_be_disabled()
    await page.get_by_test_id("topic-rename").click()
    await page.get_by_test_id("name").fill("ALERT")
    await change(node, {"op": "set", "topic": "ALL:ALARM", "routing": "udp"})
    await page.get_by_test_id("name").press("Enter")
    await expect(page.locator(".side").get_by_test_id("conflict")).to_be_visible()
    await page.get_by_test_id("apply-yours").click()
    await expect(page.locator(".side h2")).to_have_text("ALL : ALERT")
    await page.get_by_test_id("topic-delete").click()
    await page.get_by_test_id("ok").click()
    await expect(page.locator(".side h2")).to_have_text("ALL")
