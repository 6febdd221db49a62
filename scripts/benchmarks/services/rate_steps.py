"""Down from the paper's rate to one that is sustained, for each number of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.services.outcomes import Outcome


def descend(
    measure: Callable[[int, float], Outcome],
    counts: Sequence[int],
    rates: Sequence[float],
    *,
    first_again: bool,
) -> Iterator[Outcome]:
    """All that was tried: counts ascend, rates descend until one is sustained.

    What fewer requests do not sustain, more will not: rates that failed are left out from then on, except the
    first one with `first_again`, so that each number of requests has a line for it.
    """
    failed: set[float] = set()
    for count in counts:
        for rate in rates:
            if rate in failed and not (first_again and rate == rates[0]):
                continue
            outcome = measure(count, rate)
            yield outcome
            if outcome.sustained:
                break
            failed.add(rate)
