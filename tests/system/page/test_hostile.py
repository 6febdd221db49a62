"""Markup, control characters and direction overrides from outside are shown as text, and nothing runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
import pytest_asyncio
from aiohttp import web
from page_pictures.services import REGISTRATION
from playwright.async_api import Page, expect

from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, notify, send
from tests.system.page.opened_page import OpenedPages
from tests.topic_edits import change
from tests.webhooks import ask, create, publish

IMAGE = '<img src=x onerror="globalThis.pwned=1">'
IN_ADDRESS = "<img/src=x/onerror=globalThis.pwned=1>"
SCRIPT = "</script><script>globalThis.pwned=1</script>"
OVERRIDE = "safe\u202egnp.exe\u2066\u200b"
CONTROLS = "delete\u007f next\u0085 device\u0090"
"""XML has no others, so that a node refuses them."""
TEMPLATE = "${globalThis.pwned=1}{{constructor.constructor('globalThis.pwned=1')()}}"
TEXTS = {
    "image": IMAGE,
    "script": SCRIPT,
    "override": OVERRIDE,
    "controls": CONTROLS,
    "template": TEMPLATE,
    "address": "javascript:globalThis.pwned=1",
}
SHOWN = {
    **{name: text for name, text in TEXTS.items() if name not in ("override", "controls")},
    "override": r"safe\u202egnp.exe\u2066\u200b",
    "controls": r"delete\u007f next\u0085 device\u0090",
}
"""How a person reads each text: what is invisible is written out."""
MASKED = (
    r"[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
)
VIEWS = (
    "",
    "topics?topic=ALL:NEWS&tab=watch",
    "subscriptions",
    "dead-letters",
    "topology",
    "health",
    "streams",
    "sensors",
)
NODE = f'n<b>1</b>"{OVERRIDE}'


async def assert_harmless(page: Page) -> None:
    """Nothing ran or was built from a text, nothing invisible is left, and no outside address is a link."""
    assert await page.evaluate("globalThis.pwned") is None
    built = "img, iframe, object, embed, body script, base, form, b[onclick], [onerror], [onmouseover]"
    assert await page.locator(built).count() == 0
    masked = await page.evaluate(f"() => document.body.textContent.match(/{MASKED}/g)")
    assert masked is None, masked
    own = await page.evaluate("[...document.links].map((link) => link.href)")
    base = await page.evaluate("location.origin")
    assert [link for link in own if not link.startswith((f"{base}/", "blob:"))] == []


@pytest_asyncio.fixture(loop_scope="session")
async def ill() -> AsyncIterator[str]:
    """A consumer that refuses everything, with markup in its answer."""

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=500, reason="<b>ill</b>", text=IMAGE)

    app = web.Application()
    app.router.add_post("/{path:.*}", refuse)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def hostile(node: NodeProcess, ill: str) -> None:
    """Bring every hostile text into a node, by every way that takes it."""
    full = {"maxQueue": 1, "overflow": "dead-letter"}
    await change(node, {"op": "add", "topic": "ALL:NEWS", "description": IMAGE + OVERRIDE})
    await create(node, f"{ill}/{IN_ADDRESS}", topic="ALL:NEWS", delivery=full)
    await create(node, f'{ill}/"onmouseover="globalThis.pwned=1', topic="ALL", filter=f"title = '{IMAGE}'")
    await publish(node, "ALL:NEWS", *({"kind": kind, text: text} for kind, text in TEXTS.items()))
    payload = f"<news title={quoteattr(IMAGE)}><title>{escape(IMAGE + OVERRIDE)}</title></news>"
    assert (await call(node.url, notify("ALL:NEWS", payload))).status == 202
    service = REGISTRATION | {
        "description": IMAGE + OVERRIDE,
        "inputs": {IMAGE: f"topic {SCRIPT}"},
        "attributes": {IMAGE: SCRIPT},
        "plan": [{"op": IMAGE, "inputs": [IMAGE], "text": SCRIPT + OVERRIDE}],
    }
    put = json.dumps(service).encode()
    answer = await send(f"{node.base}/streams/urn:x:%3Cb%3E", put, "application/json", "PUT")
    assert answer.status == 200, answer.body

    async def has_letters() -> bool:
        _, groups = await ask("GET", f"{node.base}/deadletters/groups")
        return bool(groups["total"])

    await eventually(has_letters)


@pytest.mark.parametrize("view", VIEWS)
async def test_no_view_runs_or_hides_anything(
    open_page: OpenedPages, tmp_path: Path, ill: str, view: str
) -> None:
    with NodeProcess(tmp_path / "data", "--name", NODE) as node:
        await hostile(node, ill)
        page = await open_page(node, view)
        await assert_harmless(page)
        for item in ("watch-event", "subscription", "deadletter-group", "deadletter", "node"):
            for each in (await page.get_by_test_id(item).all())[:3]:
                await each.click()
                await assert_harmless(page)
        await open_page.finish()


async def test_every_payload_is_watched_as_the_text_that_it_is(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    await change(node, {"op": "add", "topic": "ALL:NEWS"})
    page = await open_page(node, "topics?topic=ALL:NEWS&tab=watch")
    for kind, text in TEXTS.items():
        await publish(node, "ALL:NEWS", {"kind": kind, "text": text})
        newest = page.get_by_test_id("watch-event").first
        await expect(newest).to_contain_text(f"kind {kind}")
        await expect(newest).to_contain_text(SHOWN[kind])
    await assert_harmless(page)


async def test_a_payload_in_xml_is_text_too(open_page: OpenedPages, node: NodeProcess) -> None:
    await change(node, {"op": "add", "topic": "ALL:NEWS"})
    page = await open_page(node, "topics?topic=ALL:NEWS&tab=watch")
    html = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><script>globalThis.pwned=1</script><img src="x"/></html>'
    )
    assert (await call(node.url, notify("ALL:NEWS", html))).status == 202
    event = page.get_by_test_id("watch-event").first
    await expect(event).to_contain_text("globalThis.pwned=1")
    await event.click()
    await assert_harmless(page)


async def test_names_of_topics_that_mean_something_to_javascript(
    open_page: OpenedPages, node: NodeProcess
) -> None:
    names = ("__proto__", "constructor", "toString", "hasOwnProperty", "שלום", "京")
    await change(node, *({"op": "add", "topic": name} for name in names))
    page = await open_page(node, "topics")
    for name in names:
        await expect(page.locator(f'[data-testid="topic"][data-topic="{name}"]')).to_contain_text(name)
    await page.goto(f"{node.base}/ui/topics?topic=__proto__&tab=watch")
    await open_page.ready(page)
    await publish(node, "__proto__", {"__proto__": {"polluted": True}, "constructor": "c"})
    await expect(page.get_by_test_id("watch-event")).to_contain_text("polluted")
    assert await page.evaluate("({}).polluted") is None


@pytest.mark.parametrize("view", ["topics", "subscriptions", "dead-letters", "streams", "health", "sensors"])
async def test_a_hostile_address_of_the_page_is_harmless(
    open_page: OpenedPages, shared_node: NodeProcess, view: str
) -> None:
    page = await open_page(shared_node, expected=(r"^40[04] GET",))
    names = ("scope", "range", "q", "sort", "state", "topic", "filter", "tab", "id", "as")
    query = dict.fromkeys(names, " ".join(TEXTS.values()))
    await page.evaluate(
        "([view, query]) => history.pushState(null, '', `${view}?${new URLSearchParams(query)}`)",
        [view, query],
    )
    await page.reload()
    await expect(page.get_by_test_id(f"nav-{view}")).to_have_attribute("aria-current", "page")
    await assert_harmless(page)
