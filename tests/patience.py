"""How long a test waits: until what it waits for holds, however slow the machine is.

The deadline here only ends a wait for something that never comes. So it is one for all tests, and long: no
test guesses how long a server, a job or a delivery takes on a machine that others load. Above it stands
pytest's own `timeout` (pyproject.toml), for whatever does not wait here. A wait that must end without its
event, such as for a setting of the node that is short on purpose, does not belong here.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

PATIENCE = float(os.environ.get("TEST_PATIENCE", "300"))
"""Seconds; who works on a test that waits in vain sets TEST_PATIENCE to a few."""

PAUSE = 0.02
"""Seconds between two questions."""


def patience() -> asyncio.Timeout:
    """`async with patience():` around what a coroutine waits for in other ways than by asking."""
    return asyncio.timeout(PATIENCE)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again until it holds; for what only an answer of the node can tell."""
    async with patience():
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(PAUSE)


async def holds(condition: Callable[[], bool]) -> None:
    """As `eventually`, for what this process knows itself."""
    async with patience():
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(PAUSE)


def until(condition: Callable[[], object], explain: Callable[[], str] = lambda: "") -> None:
    """As `eventually`, for tests that are not coroutines; `explain` tells why it never held."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"it never held\n{explain()}"
        time.sleep(PAUSE)
