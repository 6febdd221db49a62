"""Message ids seen within `journal.id_window`, each with the outcome of its first request.

A message id is an idempotency key: a repeated id gets the outcome of the first request, and nothing is
published again. The number of ids is bounded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from hpwsn.journal.store.records import MessageId
from hpwsn.notification import Run

MOST_IDS = 1_000_000
"""Message ids that are remembered, however long the window."""


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets of one request's notifications in the log; None where they are known later."""

    first: int | None
    last: int | None


Outcome = asyncio.Future[Span]


class MessageIds:
    """The ids of the window: looked up, claimed for a request, then settled or released."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._ids: OrderedDict[str, tuple[float, Outcome]] = OrderedDict()
        self.claims: dict[str, Outcome] = {}
        """The ids of requests whose append has not ended."""

    def find(self, message_id: str, now: float) -> Outcome | None:
        """The outcome of the first request of that id, if it is within the window or not stored yet."""
        if message_id in self.claims:
            return self.claims[message_id]
        self._expire(now)
        found = self._ids.get(message_id)
        return found[1] if found is not None and found[0] > now - self._window else None

    def claim(self, message_id: str, now: float) -> Outcome:
        """Take an id for a request that is about to be appended; settle or release ends the claim."""
        outcome: Outcome = asyncio.get_running_loop().create_future()
        self.claims[message_id] = outcome
        self._add(message_id, now, outcome)
        return outcome

    def settle(self, first: int | None, runs: Iterable[Run]) -> None:
        """The runs are stored, from offset `first` on: tell their spans to those who repeated an id."""
        spans: dict[str, Span] = {}
        for run in runs:
            if (id_ := run.message_id) is not None:
                last = None if first is None else first + run.size - 1
                spans[id_] = Span(spans[id_].first if id_ in spans else first, last)
            if first is not None:
                first += run.size
        for id_, span in spans.items():
            if (claim := self.claims.pop(id_, None)) is not None:
                claim.set_result(span)

    def release(self, runs: Iterable[Run], error: Exception) -> None:
        """The runs are not stored: forget their ids, and fail those who repeated one."""
        for id_ in {run.message_id for run in runs if run.message_id is not None}:
            if (claim := self.claims.pop(id_, None)) is not None:
                self._ids.pop(id_, None)
                claim.set_exception(error)
                claim.exception()  # perhaps nobody waits for it

    def note(self, message_id: str, now: float) -> None:
        """Remember the id of what another node published and this one has stored."""
        if self.find(message_id, now) is None:
            self._add_done(message_id, now, Span(None, None))

    def restore(self, ids: Iterable[MessageId]) -> None:
        """Take up the ids that the journal still knows."""
        for known in ids:
            self._add_done(known.id, known.time, Span(known.first, known.last))

    def _add_done(self, message_id: str, time: float, span: Span) -> None:
        outcome: Outcome = asyncio.get_running_loop().create_future()
        outcome.set_result(span)
        self._add(message_id, time, outcome)

    def _add(self, message_id: str, time: float, outcome: Outcome) -> None:
        self._ids[message_id] = (time, outcome)
        if len(self._ids) > MOST_IDS:
            self._ids.popitem(last=False)

    def _expire(self, now: float) -> None:
        while self._ids:
            message_id, (time, _) = next(iter(self._ids.items()))
            if time > now - self._window:
                return
            del self._ids[message_id]

    def __len__(self) -> int:
        return len(self._ids)
