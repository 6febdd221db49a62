"""Long work as a chain of bounded steps, each a transaction among others, so that appends come in between."""

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """How far a step came and what it removed; None when there is no more to look at."""

    upto: int | None
    removed: int


Submit = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]


async def repeat(
    submit: Submit, work: Callable[[int], Callable[[sqlite3.Connection], Step]], start: int = 0
) -> int:
    """Take steps, each from where the last one stopped, to the end; give how much they removed."""
    removed, after = 0, start
    while True:
        step: Step = await submit(work(after))
        removed += step.removed
        if step.upto is None:
            return removed
        after = step.upto
