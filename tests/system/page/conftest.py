"""A real browser for the tests of the page, and a node to look at.

The browser is one for all tests of a process. It lives in an event loop, so all tests here run in one loop,
that of the session. Fixtures: `open_page`; `filled`, a node with something to show in every view; `admin`;
and those of tests/system (`node`, `shared_node`, `slapd`). Events are published by `publish` of
tests/webhooks.py, consumers are those of tests/consumer.py, and topics are edited by tests/topic_edits.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from page_pictures.browser import browsing
from playwright.async_api import Browser, expect

from tests.cluster import AdminProcess, Member
from tests.harness import NodeProcess
from tests.needs import need
from tests.patience import PATIENCE
from tests.system.page.filled_node import filled_node
from tests.system.page.opened_page import OpenedPages

HERE = Path(__file__).parent
CLUSTERS = {"one": "plant", "two": "plant", "three": "dock"}
"""The cluster of each node."""
OPEN_PAGE = "open_page"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests here run in the browser's loop, and judge their pages before their nodes end."""
    for item in items:
        if HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            # The last fixture to begin is the first to end.
            item.fixturenames.sort(key=OPEN_PAGE.__eq__)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, for all tests of this process."""
    need("Chromium")
    expect.set_options(timeout=PATIENCE * 1000)
    async with browsing() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser) -> AsyncIterator[OpenedPages]:
    """Opens pages; at its end the test fails for what went wrong in one of them."""
    pages = OpenedPages(browser)
    try:
        yield pages
    finally:
        await pages.finish()


@pytest.fixture(scope="module")
def admin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    """An admin node for the tests of a module, with the module's SETTINGS."""
    settings = getattr(request.module, "SETTINGS", ())
    with AdminProcess(tmp_path_factory.mktemp("admin") / "data", *settings) as running:
        yield running


@pytest.fixture(scope="module")
def members(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, admin: AdminProcess
) -> Iterator[dict[str, Member]]:
    """Nodes of the admin node by name, with the module's SETTINGS; its CLUSTERS can name others."""
    clusters = getattr(request.module, "CLUSTERS", CLUSTERS)
    settings = getattr(request.module, "SETTINGS", ())
    folder = tmp_path_factory.mktemp("members")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Member(folder / name, name, cluster, admin.base, *settings))
            for name, cluster in clusters.items()
        }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def filled(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NodeProcess]:
    """A node with something to show in every view, which the tests of a module only look at."""
    async with filled_node(tmp_path_factory.mktemp("filled")) as node:
        yield node
