"""The topic tree of the clusters as the admin node shows it: read from its directory, at most once a second.

Only reads; `hpwsn topics` edits, and nodes follow the directory themselves.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hpwsn.settings import TopicsSettings
from hpwsn.topics.directory import Directory, access_from, open_directory

FRESH = 1.0


class Topics:
    """The tree in a directory, or none."""

    def __init__(self, settings: TopicsSettings) -> None:
        self._directory: Directory | None = None
        if settings.url:
            self._directory = open_directory(settings.url, access_from(settings))
        self._reading = asyncio.Lock()
        self._read: tuple[float, list[dict[str, Any]]] | None = None

    @property
    def known(self) -> bool:
        """Whether there is a directory."""
        return self._directory is not None

    async def tree(self) -> list[dict[str, Any]]:
        """All topics, each after its parent; TopicDirectoryError where the directory is away."""
        async with self._reading:
            if self._read is None or time.monotonic() - self._read[0] > FRESH:
                self._read = time.monotonic(), await asyncio.to_thread(self._load)
            return self._read[1]

    def _load(self) -> list[dict[str, Any]]:
        assert self._directory is not None
        return [
            {"topic": str(one.topic), "description": one.description, "routing": one.routing}
            for one in self._directory.load()
        ]
