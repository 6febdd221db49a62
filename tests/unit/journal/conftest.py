"""A journal in a folder of its own, and notifications to put into it, each a run of one."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hpwsn.journal import Journal, Recovered
from hpwsn.notification import Run
from tests.runs import run_of

Opened = Callable[..., AbstractAsyncContextManager[tuple[Journal, Recovered]]]
Note = Callable[..., Run]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "journal.db"


@pytest.fixture
def opened(path: Path) -> Opened:
    """Opens the journal of this test, again and again if need be."""

    @asynccontextmanager
    async def open_it(ids_since: float = 0.0, **settings: Any) -> AsyncIterator[tuple[Journal, Recovered]]:
        journal = Journal(path, **{"reserve": 1 << 16} | settings)
        recovered = await journal.open(ids_since=ids_since)
        try:
            yield journal, recovered
        finally:
            await journal.close()

    return open_it


@pytest.fixture
def note() -> Note:
    """Makes a notification on a topic, or on none, as a run of one."""

    def make(
        topic: str | None = "A:B",
        text: str = "x",
        time: float = 1000.5,
        message_id: str | None = None,
        target: str | None = None,
        routing: int = 0,
    ) -> Run:
        payload = f"<m>{text}</m>".encode()
        return run_of(
            topic,
            payload,
            time=time,
            message_id=message_id,
            target=target,
            routing=routing,
            before=b"<t/>",
        )

    return make
