"""What every benchmark shares: its options, its table, and measurements that are fair to all candidates."""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Options:
    """How long to measure each candidate, how often, and whether large things are made small.

    `mps` is the number of messages between two lines of MPS; 0 prints none.
    """

    seconds: float = 0.8
    rounds: int = 5
    quick: bool = False
    mps: int = 0

    def sized(self, full: int, quick: int) -> int:
        """A number that a quick run makes smaller."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate's result: the median of its samples, where it was measured several times."""

    name: str
    value: float
    note: str = ""
    samples: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, samples: Iterable[float], note: str = "") -> Self:
        """The row of several samples."""
        taken = tuple(samples)
        return cls(name, statistics.median(taken), note, taken)

    @property
    def spread(self) -> str:
        """The minimum and the maximum of the samples; empty for a single one."""
        if len(self.samples) < 2:
            return ""
        return f"{figure(min(self.samples))}–{figure(max(self.samples))}"


@dataclass(frozen=True, slots=True)
class Check:
    """A figure that has a target: one value for each round, since candidates take turns within it."""

    what: str
    values: tuple[float, ...]
    target: float
    unit: str = "×"
    at_most: bool = False

    @classmethod
    def ratio(cls, what: str, row: Row, against: Row, target: float, unit: str = "×") -> Self:
        """How many times, or how many per cent, of another row a row reaches."""
        factor = 100.0 if unit == "%" else 1.0
        pairs = zip(row.samples or (row.value,), against.samples or (against.value,), strict=True)
        return cls(what, tuple(factor * one / other for one, other in pairs), target, unit)

    @property
    def value(self) -> float:
        """The median of all rounds."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value <= self.target if self.at_most else self.value >= self.target

    @property
    def wanted(self) -> str:
        """The target with its unit."""
        return f"{'≤' if self.at_most else '≥'} {round(self.target, 2):g} {self.unit}"

    @property
    def reached(self) -> str:
        """The median, with the minimum and the maximum of the rounds."""
        spread = Row("", self.value, samples=self.values).spread
        return f"{figure(self.value)} {self.unit}" + (f" ({spread})" if spread else "")


@dataclass(frozen=True, slots=True)
class Table:
    """The results of one benchmark; ratios are against the first row of each group.

    `note_title` heads the column of the rows' notes. `drawing` is an SVG that replaces the bars, for rows of
    different units. `body` is Markdown that replaces the list of rows on the page. `pictures` are SVGs by
    name; the page's text shows them.
    """

    title: str
    unit: str
    groups: tuple[tuple[Row, ...], ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    note_title: str = ""
    drawing: str | None = None
    body: str = ""
    pictures: Mapping[str, str] = field(default_factory=dict)

    def ratios(self) -> tuple[tuple[Row, float], ...]:
        """Each row with its ratio to the first one of its group."""
        return tuple(
            (row, row.value / group[0].value if group[0].value else float("nan"))
            for group in self.groups
            for row in group
        )


def figure(value: float) -> str:
    """A number with as many digits as say something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


def progress(text: str) -> None:
    """Tells a person what is being done now."""
    print(f"  {text} …", file=sys.stderr, flush=True)


def take_turns(
    candidates: Mapping[str, Callable[[], float]], rounds: int, what: str = ""
) -> dict[str, list[float]]:
    """The samples of each; they take turns, so that a disturbance hits them all."""
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds):
        progress(f"{what + ', ' if what else ''}round {number + 1} of {rounds}")
        for name in _in_turn(list(candidates), number):
            samples[name].append(candidates[name]())
    return samples


def _in_turn(names: Sequence[str], number: int) -> Sequence[str]:
    """Each round begins with another one: whoever comes first finds the machine otherwise than the rest."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


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
