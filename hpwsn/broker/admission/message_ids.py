"""Message ids seen within `journal.id_window`, each with the outcome of its first request.

A repeated id gets the outcome of the first request and is not published again. The number of ids is bounded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

MOST_IDS = 1_000_000
"""Message ids that are remembered, however long the window."""


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets that the notifications of one publish have in the log; None where they get them later."""

    first: int | None
    last: int | None


class RecentIds:
    """Message ids of the last while, with the outcome that a repetition waits for."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._ids: OrderedDict[str, tuple[float, asyncio.Future[Span]]] = OrderedDict()

    def find(self, message_id: str, now: float) -> asyncio.Future[Span] | None:
        """The outcome of the first of that id, if it is within the window."""
        self._expire(now)
        found = self._ids.get(message_id)
        return found[1] if found is not None and found[0] > now - self._window else None

    def add(self, message_id: str, time: float, outcome: asyncio.Future[Span]) -> None:
        """Remember an id from now on, at the cost of the oldest if there are too many."""
        self._ids[message_id] = (time, outcome)
        if len(self._ids) > MOST_IDS:
            self._ids.popitem(last=False)

    def discard(self, message_id: str) -> None:
        """Forget an id whose notifications were not taken."""
        self._ids.pop(message_id, None)

    def _expire(self, now: float) -> None:
        while self._ids:
            message_id, (time, _) = next(iter(self._ids.items()))
            if time > now - self._window:
                return
            del self._ids[message_id]

    def __len__(self) -> int:
        return len(self._ids)
