"""The greatest number of requests whose mean latency stays within a bound, found by doubling and halving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.services.outcomes import Outcome

CLOSE = 1.15
"""The search ends when the least number that fails is at most so many times the greatest that holds."""
TRIES = 2
"""A number fails if it fails so often: a short disturbance of the machine must not end the search."""


@dataclass(frozen=True, slots=True)
class Held:
    """The best outcome within the bound, if any, and why there is no better one."""

    best: Outcome | None
    reason: str

    @property
    def count(self) -> int:
        """The number of requests."""
        return self.best.requests if self.best else 0


def search(
    measure: Callable[[int], Outcome], within: float, *, first: int, most: int, tries: int = TRIES
) -> Held:
    """Search from `first`, up to `most` requests."""
    best: Outcome | None = None
    least, reason = most + 1, f"the search ends at {most:,}"
    count = first
    while count:
        outcome, why = _tried(measure, count, within, tries)
        if why:
            least, reason = count, f"at {count:,}: {why}"
        else:
            best = outcome
        low = best.requests if best else 0
        if low == most or (best and least <= CLOSE * low) or least == low + 1:
            break
        count = _next(low, least, most)
    return Held(best, reason)


def _tried(
    measure: Callable[[int], Outcome], count: int, within: float, tries: int
) -> tuple[Outcome | None, str]:
    why = ""
    for _ in range(tries):
        try:
            outcome = measure(count)
        except (OSError, RuntimeError) as error:
            why = f"processes could not be started ({error})"
            continue
        if outcome.sustained and outcome.mean <= within:
            return outcome, ""
        why = outcome.problem or f"mean latency {outcome.mean:,.0f} ms"
    return None, why


def _next(low: int, least: int, most: int) -> int:
    """Twice what holds while nothing has failed, half of what fails while nothing holds, else between."""
    if least > most:
        return min(2 * low, most)
    return least // 2 if not low else (low + least) // 2
