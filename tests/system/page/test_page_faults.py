"""What makes a test of the page fail: shown on a small page that does each wrong thing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser

from tests.patience import PAUSE, patience
from tests.system.page.opened_page import OpenedPages

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; require-trusted-types-for 'script';"
    " trusted-types 'none'"
)
READY = 'document.body.dataset.ready = "true";'
SCRIPTS = {
    "good": READY,
    "console": f'{READY} console.error("all is lost");',
    "exception": f"{READY} const nothing = null; nothing.field;",
    "rejection": f'{READY} Promise.reject(new Error("nobody cares"));',
    "inline-style": f'{READY} document.body.setAttribute("style", "color: red");',
    "trusted-types": f'{READY} try {{ document.body.innerHTML = "<b>x</b>"; }} catch {{}}',
    "request": f'{READY} fetch("missing");',
    "cookie": f'{READY} fetch("cookie");',
    "never-ready": 'throw new Error("it does not even begin");',
}
FAULTS = {
    "console": "console: all is lost",
    "exception": "exception: TypeError",
    "rejection": "nobody cares",
    "inline-style": "violation of the policy: style-src-attr",
    "trusted-types": "violation of the policy: require-trusted-types-for",
    "request": "404 GET",
    "cookie": "cookie: remembers",
    "never-ready": "it does not even begin",
}


async def _html(request: web.Request) -> web.Response:
    text = (
        f'<!doctype html><title>t</title><body><script src="{request.match_info["name"]}.js"></script></body>'
    )
    return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": POLICY})


async def _script(request: web.Request) -> web.Response:
    return web.Response(text=SCRIPTS[request.match_info["name"]], content_type="text/javascript")


async def _cookie(request: web.Request) -> web.Response:
    return web.Response(headers={"Set-Cookie": "remembers=you"})


async def _nothing(request: web.Request) -> web.Response:
    return web.Response(status=404 if request.path.endswith("missing") else 204)


@pytest_asyncio.fixture(loop_scope="session")
async def base() -> AsyncIterator[str]:
    """The address of a server of the small pages."""
    app = web.Application()
    app.router.add_get("/ui/cookie", _cookie)
    app.router.add_get("/ui/missing", _nothing)
    app.router.add_get("/favicon.ico", _nothing)
    app.router.add_get("/ui/{name:[^.]+}.js", _script)
    app.router.add_get("/ui/{name:[^.]+}", _html)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def fails(pages: OpenedPages, fault: str) -> bool:
    """Whether a test of these pages would fail now, and tell of this fault."""
    try:
        await pages.check()
    except AssertionError as failure:
        return fault in str(failure)
    return False


async def test_a_page_without_faults_passes(browser: Browser, base: str) -> None:
    pages = OpenedPages(browser)
    await pages(base, "good")
    await pages.check()
    await pages.close()


@pytest.mark.parametrize("wrong", FAULTS)
async def test_each_fault_fails_the_test_unless_it_is_expected(
    browser: Browser, base: str, wrong: str
) -> None:
    pages = OpenedPages(browser)
    try:
        page = await pages(base, wrong, ready=False)
        faults = pages.faults(page)
        async with patience():
            while not await fails(pages, FAULTS[wrong]):  # noqa: ASYNC110
                await asyncio.sleep(PAUSE)
        for fault in list(faults.found):
            faults.expect(re.escape(fault))
        await pages.check()
    finally:
        await pages.close()


async def test_a_page_that_breaks_as_it_starts_is_not_waited_for(browser: Browser, base: str) -> None:
    pages = OpenedPages(browser)
    try:
        with pytest.raises(AssertionError, match="it does not even begin"):
            await pages(base, "never-ready")
    finally:
        await pages.close()
