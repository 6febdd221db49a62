"""What goes wrong in a page without anybody looking: errors, violations, failed requests, cookies.

A test of the page fails for each of them at its end, unless it says that it expects them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from playwright.async_api import ConsoleMessage, Error, Page, Request, Response

ABORTED = "net::ERR_ABORTED"
"""How a request ends that the page itself gave up, such as a stream when its view closes."""
FAILED_REQUEST = "Failed to load resource"
"""How Chromium's console begins to tell of a response, which is judged by its status here."""
REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (violation) => {
  const where = `${violation.sourceFile}:${violation.lineNumber}`;
  const what = `${violation.effectiveDirective} blocked ${violation.blockedURI} ${violation.sample}`;
  console.error(`violation of the policy: ${what} at ${where}`);
});
"""


class PageFaults:
    """The faults of one page so far; `expected` are patterns of those that the test causes.

    A fault is a text: `console: …`, `exception: …`, `503 GET URL`, `net::ERR_CONNECTION_REFUSED GET URL`,
    `cookie: …`.
    """

    def __init__(self, page: Page, expected: Sequence[str] = ()) -> None:
        self._page = page
        self._expected = [re.compile(pattern) for pattern in expected]
        self.found: list[str] = []
        self.first = asyncio.Event()
        page.on("console", self._on_console)
        page.on("pageerror", self._on_exception)
        page.on("requestfailed", self._on_failed)
        page.on("response", self._on_response)

    async def watch_policy(self) -> None:
        """Hear of violations from the page's first script on."""
        await self._page.add_init_script(REPORT_VIOLATIONS)

    def expect(self, pattern: str) -> None:
        """From now on, and of what was found, such faults are what the test causes."""
        self._expected.append(re.compile(pattern))
        self.found = [fault for fault in self.found if not self._is_expected(fault)]
        if not self.found:
            self.first.clear()

    def _is_expected(self, fault: str) -> bool:
        return any(pattern.search(fault) for pattern in self._expected)

    def _add(self, fault: str) -> None:
        if not self._is_expected(fault):
            self.found.append(fault)
            self.first.set()

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(FAILED_REQUEST):
            self._add(f"console: {message.text} ({message.location.get('url')})")

    def _on_exception(self, error: Error) -> None:
        self._add(f"exception: {error.stack or error.message}")

    def _on_failed(self, request: Request) -> None:
        if request.failure != ABORTED:
            self._add(f"{request.failure} {request.method} {request.url}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self._add(f"{response.status} {response.request.method} {response.url}")

    async def check(self) -> None:
        """Fail if there was any fault that the test did not expect."""
        for cookie in await self._page.context.cookies():
            self._add(f"cookie: {cookie.get('name')}")
        assert not self.found, "the page had faults:\n" + "\n".join(self.found)
