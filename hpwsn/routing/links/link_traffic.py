"""The traffic of the links of a node: counters of each link, and their rates as /cluster shows them.

Links count messages and bytes as they send. Rates are differences of two readings of these counters, taken
when somebody asks, so that no timer runs. Only the sending node counts: the way back is a link of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

By = Literal["udp", "tcp"]
State = Literal["up", "down"]

SHORTEST_SPAN = 1.0
"""Seconds between two readings at least; a rate over less is noise."""


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """The counters of one link since it exists; `up` says whether the member has answered the greeting."""

    by: By
    up: bool
    messages: int
    bytes_sent: int
    unconfirmed: int


@dataclass(frozen=True, slots=True)
class LinkReport:
    """A link as the sending node reports it.

    `rate` is messages per second and `bytes` bytes per second, both means since the reading before.
    `unconfirmed` is the number of bytes that wait or that the receiver has not confirmed.
    """

    to: str
    by: By
    state: State
    rate: float
    bytes: float
    unconfirmed: int


class LinkRates:
    """Turns counters into rates; keeps the counters of the reading before."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, By], LinkTraffic] = {}
        self._read_at: float | None = None
        self._reports: tuple[LinkReport, ...] = ()

    def read(self, links: Iterable[tuple[str, LinkTraffic]], now: float) -> tuple[LinkReport, ...]:
        """Return all links; within SHORTEST_SPAN after a reading, return that reading again."""
        if self._read_at is not None and now - self._read_at < SHORTEST_SPAN:
            return self._reports
        span = None if self._read_at is None else now - self._read_at
        found = {(to, traffic.by): traffic for to, traffic in links}
        self._reports = tuple(self._report(to, traffic, span) for (to, _), traffic in found.items())
        self._before, self._read_at = found, now
        return self._reports

    def _report(self, to: str, traffic: LinkTraffic, span: float | None) -> LinkReport:
        before = self._before.get((to, traffic.by))
        messages, sent = traffic.messages, traffic.bytes_sent
        # A link that was made anew counts from 0 again.
        if before is not None and before.messages <= messages and before.bytes_sent <= sent:
            messages, sent = messages - before.messages, sent - before.bytes_sent
        return LinkReport(
            to,
            traffic.by,
            "up" if traffic.up else "down",
            round(messages / span, 3) if span else 0.0,
            round(sent / span, 3) if span else 0.0,
            traffic.unconfirmed,
        )
