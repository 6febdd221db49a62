"""The pictures: each a name, an address, how the window looks, and what is done before it is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from playwright.async_api import Page, expect

from page_pictures.browser import DESKTOP, PHONE, Scheme, Size

Where = Literal["admin", "hall-1", "dock-1", "new", "field"]
Step = Callable[[Page], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture; `where` is who serves the page: `new` is an unused node, `field` has sensors."""

    name: str
    address: str = ""
    where: Where = "admin"
    scheme: Scheme = "light"
    size: Size = DESKTOP
    step: Step | None = None


async def _watched(page: Page) -> None:
    """Some events in the list."""
    await expect(page.get_by_test_id("watch-event").nth(7)).to_be_visible()


async def _opened(page: Page) -> None:
    """Events that a filter selects, one of them opened; paused, so that it stays in sight."""
    await page.get_by_test_id("watch-filter").fill("level > 0.6")
    await page.get_by_test_id("watch-filter").press("Enter")
    await expect(page.get_by_test_id("watch-event").nth(9)).to_be_visible()
    await page.get_by_role("button", name="Pause", exact=True).click()
    await page.get_by_test_id("watch-event").nth(2).click()


async def _removing(page: Page) -> None:
    """The dialog that names the effect of a removal."""
    await page.get_by_test_id("topic-delete").click()
    await expect(page.get_by_role("dialog")).to_contain_text("subscription")


async def _first_group(page: Page) -> None:
    """The letters of the first group, and the first letter with its payload."""
    await page.get_by_test_id("deadletter-group").first.click()
    await page.get_by_test_id("deadletter").first.click()
    await expect(page.get_by_test_id("payload")).to_be_visible()


async def _worst(page: Page) -> None:
    """The subscription that is behind most."""
    await page.get_by_test_id("subscription").first.click()
    await expect(page.get_by_test_id("pause")).to_be_visible()


async def _node(page: Page) -> None:
    """A node with what happened there."""
    await page.locator('[data-testid="node"][data-name="hall-1"]').first.click()


async def _service(page: Page) -> None:
    await page.get_by_text("urn:example:busiest").first.click()


async def _silent(page: Page) -> None:
    """A sensor that is silent, on the map and in the panel."""
    await page.locator('[data-testid="sensor"][data-state="silent"]').first.click()
    await expect(page.get_by_test_id("quantities")).to_be_visible()


async def _plotted(page: Page) -> None:
    """A virtual sensor with its results."""
    await page.locator('[data-testid="virtual"][data-name="gusts"]').click()
    await expect(page.get_by_test_id("last-text")).to_be_visible()
    await expect(page.get_by_role("button", name="Virtual 3")).to_be_visible()


SMOKE = "topics?scope=node:hall-1&topic=ALL:ALARM:SMOKE"
SHOTS: Sequence[Shot] = (
    Shot("first-run-light", where="new"),
    Shot("overview-light"),
    Shot("overview-dark", scheme="dark"),
    Shot("overview-phone", size=PHONE),
    Shot("topics-light", f"{SMOKE}&tab=watch", "hall-1", step=_opened),
    Shot("topics-dark", f"{SMOKE}&tab=watch", "hall-1", "dark", step=_opened),
    Shot("topics-phone", "topics?scope=node:hall-1", "hall-1", size=PHONE),
    Shot("watch-phone-dark", f"{SMOKE}&tab=watch", "hall-1", "dark", PHONE, _watched),
    Shot("edit-light", f"{SMOKE}&tab=edit", "hall-1"),
    Shot("remove-dark", f"{SMOKE}&tab=edit", "hall-1", "dark", step=_removing),
    Shot("subscriptions-light", "subscriptions", step=_worst),
    Shot("subscriptions-dark", "subscriptions", scheme="dark", step=_worst),
    Shot("subscriptions-phone", "subscriptions", size=PHONE),
    Shot("dead-letters-light", "dead-letters", step=_first_group),
    Shot("dead-letters-dark", "dead-letters", scheme="dark", step=_first_group),
    Shot("topology-light", "topology", step=_node),
    Shot("topology-dark", "topology", scheme="dark", step=_node),
    Shot("topology-phone", "topology", size=PHONE),
    Shot("health-light", "health?range=5m"),
    Shot("health-dark", "health?range=5m", scheme="dark"),
    Shot("streams-light", "streams?scope=node:dock-1", "dock-1", step=_service),
    Shot("streams-dark", "streams?scope=node:dock-1", "dock-1", "dark", step=_service),
    Shot("sensors-light", "sensors", "field", step=_silent),
    Shot("sensors-dark", "sensors", "field", "dark", step=_silent),
    Shot("sensors-phone", "sensors", "field", size=PHONE),
    Shot("virtual-light", "sensors?tab=virtual", "field", step=_plotted),
    Shot("virtual-dark", "sensors?tab=virtual", "field", "dark", step=_plotted),
)
