"""What one measurement of a stream service gave, and whether the load was sustained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WHOLE = 0.99
"""The share of its deliveries that a sustained load has within GRACE seconds."""
BUSY = 0.2
"""The share of waiting from which on a run is marked."""
GROWTH, GROWTH_MS = 2.0, 20.0
"""A backlog grows where the last third is later than so many times the first third and so many ms."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Latency in ms from intake to receipt; CPU in per cent of a core and memory in MB, by part."""

    requests: int
    rate: float
    offered: float
    """Deliveries a second that the load causes."""
    delivered: float
    mean: float
    p99: float
    cpu: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, float] = field(default_factory=dict)
    network: float = 0.0
    problem: str = ""
    """Why the load counts as not sustained; empty if it was."""
    waited: float = 0.0
    """The share of the time in which the node was ready to run and had no core."""

    @property
    def sustained(self) -> bool:
        """Whether the figures are those of a load that can go on."""
        return not self.problem


def busy_note(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """A warning for a run in which other processes took the node's core."""
    most = max((one.waited for one in outcomes), default=0.0)
    if most < BUSY:
        return ()
    return (
        f"busy machine: the node waited up to {most:.0%} of the time for a core, so latencies are too high",
    )


def problem_of(
    stats: Mapping[str, Any], *, wanted: int, sent: int, accepted: int, waited: float = 0.0
) -> str:
    """Why a load was not sustained; empty if it was."""
    problem = _problem(stats, wanted, sent, accepted)
    if problem and waited >= BUSY:
        return f"{problem}; the node waited {waited:.0%} of the time for a core"
    return problem


def _problem(stats: Mapping[str, Any], wanted: int, sent: int, accepted: int) -> str:
    if accepted < WHOLE * sent:
        return f"{accepted / sent:.0%} of the events accepted"
    if stats["deliveries"] < WHOLE * wanted:
        return f"{stats['deliveries'] / wanted:.0%} delivered in time"
    if stats["last"] > GROWTH * stats["first"] + GROWTH_MS:
        return f"latency grew from {stats['first']:,.0f} to {stats['last']:,.0f} ms"
    return ""
