"""The box that publishes on the selected topic, and the checks of what is typed."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from playwright.async_api import Page, expect

from tests.consumer import Consumer
from tests.harness import NodeProcess, hpwsn
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, create, publish

TOPIC = "ALL:ALARM:SMOKE"
BOX = f"topics?topic={TOPIC}&tab=watch"
REFUSED = r"^4\d\d POST .*/events$"


async def open_box(pages: OpenedPages, node: NodeProcess, *expected: str) -> Page:
    """The tab Watch with the box open."""
    await publish(node, TOPIC, {"n": "before"})
    page = await pages(node, BOX, expected=expected)
    await page.get_by_test_id("publish").click()
    await expect(page.get_by_test_id("publish-payload")).to_be_focused()
    return page


async def stored(node: NodeProcess, topic: str = TOPIC) -> list[object]:
    """The data of all events of the topic."""
    _, events = await ask("GET", f"{node.base}/topics/{topic}/events")
    return [event["data"] for event in events]  # type: ignore[index]


async def test_json_is_published_and_arrives_below_its_offset(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await open_box(open_page, node)
    await expect(page.get_by_test_id("publish-send")).to_be_disabled()
    await page.get_by_test_id("publish-payload").fill('{"place": "hall 3", "level": 0.82}')
    await expect(page.get_by_text("valid", exact=True)).to_be_visible()
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("publish-result")).to_have_text("Accepted at offset 2.")
    await expect(page.get_by_test_id("watch-event")).to_contain_text("place hall 3 level 0.82")
    assert await stored(node) == [{"n": "before"}, {"place": "hall 3", "level": 0.82}]


async def test_the_box_and_its_payload_stay_over_publications_tabs_and_a_reload_keeps_it_open(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    page = await open_box(open_page, node)
    payload = page.get_by_test_id("publish-payload")
    await payload.fill('{"n": 1}')
    await payload.press("Control+Enter")
    await expect(page.get_by_test_id("publish-result")).to_contain_text("offset 2")
    for tab in ("Subscribers", "History", "Edit", "Watch"):
        await page.get_by_role("tab", name=tab).click()
        await expect(payload).to_have_value('{"n": 1}')
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("publish-result")).to_contain_text("offset 3")
    await page.get_by_test_id("publish").click()
    await expect(payload).to_be_focused()
    await page.reload()
    await expect(payload).to_be_visible()


async def test_an_array_is_as_many_events(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_box(open_page, node)
    await page.get_by_test_id("publish-payload").fill('[{"n": 1}, {"n": 2}, {"n": 3}]')
    await expect(page.get_by_text("valid, 3 events")).to_be_visible()
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("publish-result")).to_have_text("Accepted: 3 events, offsets 2 to 4.")
    await expect(page.get_by_test_id("watch-event")).to_have_count(3)


async def test_xml_is_known_by_its_first_character(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_box(open_page, node)
    await page.get_by_test_id("publish-payload").fill("<reading><speed>61.5</speed></reading>")
    await expect(page.get_by_label("Kind of payload")).to_have_value("xml")
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("publish-result")).to_contain_text("offset 2")
    assert (await stored(node))[1:] == [{"speed": 61.5}]
    await page.get_by_label("Kind of payload").select_option("json")
    await expect(page.get_by_test_id("publish-payload")).to_have_attribute("aria-invalid", "true")


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (
            '{"place": "hall 3",\n "level": alarm}',
            "Line 2, column 11: alarm is not a value; put texts in quotes.",
        ),
        ('{"a": 1', "Line 1, column 8: the text ends before }."),
        ('{"a": 1,}', "Line 1, column 9: } stands where a name in quotes is expected."),
        ("[1, 2]", 'Line 1, column 2: an event is an object, such as {"value": 1}.'),
        ("[]", "the array is empty; put objects into it."),
        ("<a><b></a>", "Line 1, column 7: </a> stands where </b> is expected."),
        ("<a>\n  <x:b/>\n</a>", 'Line 2, column 3: the prefix x has no namespace; add xmlns:x="…".'),
        ("<a>&nbsp;</a>", "the entity &nbsp; is not declared"),
        ("<a/><b/>", "there is a second element; publish one, or use JSON for several events."),
        ('<!DOCTYPE a [<!ENTITY b "x">]><a>&b;</a>', "the node takes no document type; leave it out."),
    ],
)
async def test_what_is_wrong_is_marked_at_its_place_and_not_sent(
    open_page: OpenedPages, node: NodeProcess, payload: str, told: str
) -> None:
    page = await open_box(open_page, node)
    field = page.get_by_test_id("publish-payload")
    await field.fill(payload)
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_role("alert")).to_contain_text(told)
    await expect(page.get_by_test_id("publish-send")).to_be_disabled()
    await field.press("Control+Enter")
    await field.fill('{"ok": true}')
    await expect(field).not_to_have_attribute("aria-invalid", "true")
    await field.press("Control+Enter")
    await expect(page.get_by_test_id("publish-result")).to_contain_text("offset 2")


async def test_the_answer_of_a_node_that_refuses_is_shown(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_box(open_page, node, REFUSED)
    await page.get_by_test_id("publish-payload").fill('{"text": "\\u0001"}')
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("publish-result")).to_contain_text("not allowed in XML")
    await page.get_by_test_id("publish-payload").fill('{"text": "\\u0041"}')
    await page.get_by_test_id("publish-send").click()
    await expect(page.get_by_test_id("publish-result")).to_contain_text("offset 2")


async def test_it_tells_how_many_get_a_message(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_box(open_page, node)
    await expect(page.get_by_text("no subscriber gets it")).to_be_visible()
    async with Consumer() as one, Consumer() as two:
        await create(node, one, topic="ALL")
        await expect(page.get_by_text("1 subscriber gets it")).to_be_visible()
        await create(node, two, topic=TOPIC)
        await expect(page.get_by_text("2 subscribers get it")).to_be_visible()


async def test_the_copied_command_publishes_the_same(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_box(open_page, node)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_test_id("publish-payload").fill('{"text": "it\'s $HOME"}')
    for item in ("Copy as hpwsn command", "Copy as curl"):
        await page.get_by_role("button", name="More ways to publish it").click()
        await page.get_by_role("menuitem", name=item).click()
        copied = await page.evaluate("navigator.clipboard.readText()")
        if copied.startswith("hpwsn "):
            ended = hpwsn(*shlex.split(copied)[1:])
            assert ended.returncode == 0, ended.stderr
        else:
            words = shlex.split(copied)
            body = words[words.index("--data-raw") + 1]
            assert json.loads(body) == {"text": "it's $HOME"}
            assert words[-1] == f"{node.base}/topics/ALL%3AALARM%3ASMOKE/events"
    await expect(page.get_by_test_id("watch-event")).to_contain_text("text it's $HOME")


async def test_without_the_right_there_is_no_box(open_page: OpenedPages, node: NodeProcess) -> None:
    async def only_read(page: Page) -> None:
        async def answer(route) -> None:  # type: ignore[no-untyped-def]
            session = await (await route.fetch()).json()
            await route.fulfill(json={**session, "may": ["read"]})

        await page.route("**/session", answer)

    await publish(node, TOPIC, {"n": "before"})
    page = await open_page(node, f"{BOX}&publish=1", prepare=only_read)
    await expect(page.get_by_test_id("watch-filter")).to_be_visible()
    await expect(page.get_by_test_id("publish")).to_have_count(0)
    await expect(page.get_by_test_id("publish-payload")).to_have_count(0)


JSON_TEXTS = (
    *("{}", '{"a": 1}', '{"a": [1, {"b": null}], "c": {}}', ' {"a":true}\n'),
    *('[{"a": -1.5e-3}, {"b": "\\u00e9\\n"}]', "", "null", "{", "[", '{"a"}', '{"a":}', "{'a': 1}"),
    *('{"a": 01}', '{"a": 1.}', '{"a": +1}', '{"a": NaN}', '{"a": "\\x"}', '{"a": "\\u12"}'),
    *('{"a": "line\nbreak"}', '{"a": 1}}', '{"a": 1} {}', "[{},]", '{"a": 1]'),
)
XML_TEXTS = (
    *("<a/>", "<a b='1' c=\"2\"/>", '<x:a xmlns:x="u"><x:b/></x:a>', "<a>&lt;&#65;&#x41;</a>", "<a >x</a >"),
    *("<京 速='1'>京B</京>", '<?xml version="1.0"?>\n<a><!-- c --><![CDATA[<&]]><?pi x?></a>\n'),
    *('<a xml:lang="de"/>', "<a", "<a>", "</a>", "<a></b>", "<a b/>", "<a b=1/>", "<a b='1' b='2'/>"),
    *("<a b='<'/>", "<a>&</a>", "<a>& b</a>", "<a>&x;</a>", "<a/><a/>", "x<a/>", "<a/>x", "<1a/>"),
    *("<a><!-- </a>", "<a>\u0001</a>", "<x:a/>", "<a>5 < 6</a>"),
)


async def test_the_checks_agree_with_the_node(open_page: OpenedPages, node: NodeProcess) -> None:
    page = await open_page(node, ready=False)
    wrong = await page.evaluate(
        """async ([json, xml]) => {
          const { checkPayload } = await import("./app/watch/payload_check.js");
          const { checkXml } = await import("./app/watch/xml_text.js");
          const check = (kind) => (text) => {
            const found = checkPayload(text, kind, checkXml);
            return !found.empty && !found.error;
          };
          return [json.map(check("json")), xml.map(check("xml"))];
        }""",
        [JSON_TEXTS, XML_TEXTS],
    )
    for kind, texts, found in zip(("json", "xml"), (JSON_TEXTS, XML_TEXTS), wrong, strict=True):
        for text, accepted in zip(texts, found, strict=True):
            answer = await page.request.post(
                f"{node.base}/topics/checked/events",
                data=text.encode(),
                headers={"Content-Type": f"application/{kind}"},
            )
            assert (answer.status == 202) is accepted, (text, await answer.text())


@pytest.mark.parametrize("view", [BOX, ""])
async def test_the_key_p_opens_the_box_to_type_in_it(
    open_page: OpenedPages, node: NodeProcess, view: str
) -> None:
    await publish(node, TOPIC, {"n": "before"})
    page = await open_page(node, view)
    await page.locator("body").press("p")
    await expect(page.get_by_test_id("publish-payload")).to_be_focused()
    await expect(page).to_have_url(re.compile("publish=1"))
    await page.keyboard.type('{"n": "by keys"}')
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_test_id("publish-result")).to_contain_text("offset")
    # The key is a letter there; elsewhere it leads back to the box.
    await page.get_by_role("treegrid").get_by_test_id("topic").first.focus()
    await page.keyboard.press("p")
    await expect(page.get_by_test_id("publish-payload")).to_be_focused()
