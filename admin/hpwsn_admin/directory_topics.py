"""The topic tree of the admin node's topic directory, read-only: `hpwsn topics` and nodes edit it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hpwsn.settings import TopicsSettings
from hpwsn.topics.directory.directory import Directory
from hpwsn.topics.opening import access_from, open_directory

TOPICS_CACHE_SECONDS = 1.0
"""Seconds for which a loaded tree is used again."""


def topics_source(url: str) -> dict[str, Any]:
    """Where topics come from, and that they are edited elsewhere, as /session tells it."""
    source = "ldap" if url.startswith("ldap") else "file" if url else "none"
    why_not = "edit topics at a node: /nodes/NAME/topics, or `hpwsn topics`"
    return {"source": source, "editable": False, "why_not": why_not}


class Topics:
    """The topic tree of a topic directory, cached for a second; settings without a URL give no directory."""

    def __init__(self, settings: TopicsSettings) -> None:
        self._directory: Directory | None = None
        if settings.url:
            self._directory = open_directory(settings.url, access_from(settings))
        self._load_lock = asyncio.Lock()
        self._cached: tuple[float, list[dict[str, Any]]] | None = None

    @property
    def known(self) -> bool:
        """Whether a topic directory is configured."""
        return self._directory is not None

    async def tree(self) -> list[dict[str, Any]]:
        """All topics, each after its parent; TopicDirectoryError if the directory is unreachable."""
        async with self._load_lock:
            if self._cached is None or time.monotonic() - self._cached[0] > TOPICS_CACHE_SECONDS:
                self._cached = time.monotonic(), await asyncio.to_thread(self._load)
            return self._cached[1]

    def _load(self) -> list[dict[str, Any]]:
        assert self._directory is not None
        return [
            {"topic": str(entry.topic), "description": entry.description, "routing": entry.routing}
            for entry in self._directory.load()
        ]
