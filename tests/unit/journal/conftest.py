"""A journal in a folder of its own, and notifications to put into it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hpwsn.journal import Journal, Recovered
from hpwsn.notification import Notification
from hpwsn_client.wsn.topics.topic_expressions import Topic

Opened = Callable[..., AbstractAsyncContextManager[tuple[Journal, Recovered]]]
Note = Callable[..., Notification]


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
    """Makes a notification on a topic, or on none."""

    def make(
        topic: str | None = "A:B",
        text: str = "x",
        time: float = 1000.5,
        message_id: str | None = None,
        target: str | None = None,
    ) -> Notification:
        content = f"<t/><m>{text}</m>".encode()
        parsed = None if topic is None else Topic.parse(topic)
        return Notification(parsed, content, 4, len(content), time, message_id, target)

    return make
