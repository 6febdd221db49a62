"""Opens views of the page as a person would, and sees to it that they stay without faults.

`open_page(node, "topics?topic=A:B")` is how a test gets a page. Waits of Playwright (`expect`, `click`) last
as long as all others of the tests: until what they wait for holds (tests/patience.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from page_pictures.browser import DESKTOP, Look, Scheme, Size, new_context
from playwright.async_api import Browser, Page
from playwright.async_api import TimeoutError as BrowserTimeoutError

from tests.patience import PATIENCE, patience
from tests.system.page.page_faults import PageFaults

READY = 'body[data-ready="true"]'


class Served(Protocol):
    """Whatever serves the page: a node, an admin node, a proxy."""

    @property
    def base(self) -> str:
        """Its address without a path, or with a prefix."""


class OpenedPages:
    """The pages of one test."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._faults: dict[Page, PageFaults] = {}

    async def __call__(
        self,
        served: Served | str,
        view: str = "",
        *,
        size: Size = DESKTOP,
        scheme: Scheme = "light",
        reduced_motion: bool = False,
        expected: Sequence[str] = (),
        prepare: Callable[[Page], Awaitable[object]] | None = None,
        ready: bool = True,
    ) -> Page:
        """Open `/ui/VIEW` in a context of its own, and wait until it shows data, or only load it.

        `expected` has patterns of the faults that the test causes; `prepare` is called before the page is
        loaded, to install a clock or to hold requests back.
        """
        base = served if isinstance(served, str) else served.base
        context = await new_context(self._browser, Look(size, scheme, reduced_motion))
        context.set_default_timeout(PATIENCE * 1000)
        page = await context.new_page()
        faults = self._faults[page] = PageFaults(page, expected)
        await faults.watch_policy()
        if prepare is not None:
            await prepare(page)
        await page.goto(f"{base}/ui/{view}")
        if ready:
            await self.ready(page)
        return page

    async def ready(self, page: Page) -> None:
        """Wait until the view shows data; a fault ends the wait."""
        faults = self._faults[page]
        shown = asyncio.ensure_future(page.wait_for_selector(READY, state="attached"))
        fault = asyncio.ensure_future(faults.first.wait())
        try:
            async with patience():
                await asyncio.wait((shown, fault), return_when=asyncio.FIRST_COMPLETED)
            if not shown.done():
                await faults.check()
            await shown
        except (TimeoutError, BrowserTimeoutError):
            raise AssertionError(f"it is not ready: {page.url} shows\n{await shown_text(page)}") from None
        finally:
            for each in (shown, fault):
                each.cancel()
            await asyncio.gather(shown, fault, return_exceptions=True)

    def faults(self, page: Page) -> PageFaults:
        """What went wrong in a page so far."""
        return self._faults[page]

    async def check(self) -> None:
        """Fail for what went wrong in any page."""
        for faults in self._faults.values():
            await faults.check()

    async def finish(self) -> None:
        """Check all, and close them; for a test whose servers end before it does."""
        try:
            await self.check()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close all, and with them their streams."""
        while self._faults:
            page, _ = self._faults.popitem()
            await page.context.close()


async def shown_text(page: Page) -> str:
    """All that a person can read in the page now."""
    return await page.locator("body").inner_text()
