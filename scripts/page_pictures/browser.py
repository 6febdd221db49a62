"""Debian's Chromium without a window, driven by Playwright; for tests, pictures and measurements of the page.

Playwright brings no browser here: it starts the one of the system. Each page that is opened has a context of
its own, as another person at another machine: storage, preferences and cache are not shared.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from playwright.async_api import Browser, BrowserContext, async_playwright

PROGRAM = "chromium"
FLAGS = (
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Nothing but the page itself uses the network."""

Scheme = Literal["light", "dark"]
Size = tuple[int, int]
DESKTOP: Size = (1440, 900)
PHONE: Size = (390, 844)
"""Width and height in CSS pixels, at a device scale of 1."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the person has: the size of the window, what the system prefers, language and time zone."""

    size: Size = DESKTOP
    scheme: Scheme = "light"
    reduced_motion: bool = False
    locale: str = "en-GB"
    timezone: str = "UTC"

    @property
    def is_phone(self) -> bool:
        """Whether the page lays itself out for a phone."""
        return self.size[0] <= 720


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser while the block runs; Chromium's sandbox is off for root, who cannot have it."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise FileNotFoundError(f"there is no {PROGRAM}; apt-get install {PROGRAM}")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, chromium_sandbox=os.geteuid() != 0, args=FLAGS
        )
        try:
            yield browser
        finally:
            await browser.close()


async def new_context(browser: Browser, look: Look) -> BrowserContext:
    """The state of one person's browser, empty."""
    width, height = look.size
    return await browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=1,
        color_scheme=look.scheme,
        reduced_motion="reduce" if look.reduced_motion else "no-preference",
        has_touch=look.is_phone,
        locale=look.locale,
        timezone_id=look.timezone,
        accept_downloads=True,
    )
