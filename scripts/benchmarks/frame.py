"""What every benchmark shares: its options, its table, and a measurement that is fair to all candidates."""

import gc
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How long to measure each candidate."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate's result."""

    name: str
    value: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The results of one benchmark; ratios are against the first row of each group."""

    title: str
    unit: str
    groups: tuple[tuple[Row, ...], ...]

    def ratios(self) -> tuple[tuple[Row, float], ...]:
        """Each row with its ratio to the first one of its group."""
        return tuple(
            (row, row.value / group[0].value if group[0].value else float("nan"))
            for group in self.groups
            for row in group
        )


def progress(text: str) -> None:
    """Tells a person what is being done now."""
    print(f"  {text} …", file=sys.stderr, flush=True)


def time_calls(candidates: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The best time of one call of each, in seconds; they take turns, so that a disturbance hits them all."""
    loops = {name: _loops_for(call, seconds / 50) for name, call in candidates.items()}
    best = dict.fromkeys(candidates, float("inf"))
    end = time.perf_counter() + seconds * len(candidates)
    while time.perf_counter() < end:
        for name, call in candidates.items():
            best[name] = min(best[name], _time(call, loops[name]) / loops[name])
    return best


def _loops_for(call: Callable[[], object], seconds: float) -> int:
    loops = 1
    while (taken := _time(call, loops)) < seconds / 4:
        loops *= 4
    return max(1, int(loops * seconds / taken))


def _time(call: Callable[[], object], loops: int) -> float:
    collecting = gc.isenabled()
    gc.disable()
    start = time.perf_counter()
    for _ in range(loops):
        call()
    taken = time.perf_counter() - start
    if collecting:
        gc.enable()
    return taken
