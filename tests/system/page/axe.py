"""axe-core on an open page: what a person with an assistive technology would stumble over."""

from __future__ import annotations

import functools
from typing import Any

from playwright.async_api import Page

from tests.needs import AXE, need

FAILING = ("serious", "critical")


@functools.cache
def _source() -> str:
    return AXE.read_text("utf-8")


async def findings(page: Page) -> list[str]:
    """The serious and critical findings, each as a text with rule, element and what is wrong."""
    need("axe-core")
    # Evaluated by the debugger, which the policy of the page does not bind.
    await page.evaluate(_source())
    results: dict[str, Any] = await page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['impact']}: {rule['id']} at {' '.join(map(str, node['target']))}\n"
        f"    {node['html'][:200]}\n    {(node['failureSummary'] or '').replace(chr(10), ' ')}"
        for rule in results["violations"]
        if rule["impact"] in FAILING
        for node in rule["nodes"]
    ]


async def assert_accessible(page: Page) -> None:
    """Fail with a list of the findings, if there is one."""
    found = await findings(page)
    assert not found, f"{page.url}\n" + "\n".join(found)
