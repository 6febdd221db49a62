"""The streams that are open now: server-sent events and WebSockets, by topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from hpwsn_client.wsn.topics.topic_expressions import Topic


@dataclass(frozen=True, slots=True, eq=False)
class OpenStream:
    """A client that follows topics; `kind` is `stream` or `socket`."""

    kind: str
    client: str
    topics: tuple[Topic, ...]
    filter: str

    def describe(self) -> dict[str, Any]:
        """The stream in the list of requests."""
        return {
            "kind": self.kind,
            "client": self.client,
            "topics": list(map(str, self.topics)),
            "filter": [self.filter] if self.filter else [],
        }


class OpenStreams:
    """The streams that are open now."""

    def __init__(self) -> None:
        self._on: dict[Topic, dict[OpenStream, None]] = {}

    @contextmanager
    def opened(self, request: web.Request, topics: Sequence[Topic], kind: str) -> Iterator[None]:
        """List the stream of a request while the block runs."""
        wanted = request.query.get("filter", "").strip()
        one = OpenStream(kind, request.remote or "", tuple(topics), wanted)
        for topic in one.topics:
            self._on.setdefault(topic, {})[one] = None
        try:
            yield
        finally:
            for topic in one.topics:
                del self._on[topic][one]
                if not self._on[topic]:
                    del self._on[topic]

    def on(self, topic: Topic, ancestors: Iterable[Topic]) -> list[OpenStream]:
        """The streams of a topic and of topics above it, each once."""
        found = (one for place in (topic, *ancestors) for one in self._on.get(place, ()))
        return list(dict.fromkeys(found))
