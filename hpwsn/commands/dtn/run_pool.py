"""Runs simulations in parallel processes, with a progress bar on standard error.

The first run of each protocol compiles its functions, which takes up to half a minute; numba keeps the result
for the other processes and for later. Without numba the runs are interpreted, and a warning says so.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing import get_context

from hpwsn.dtn.figures.run_statistics import RunTask, perform
from hpwsn.dtn.simulation.simulation import Outcome
from hpwsn.errors import HpwsnError
from hpwsn_client.commands.completion import print_warning

WIDTH = 30
"""Characters of a full bar."""


class ProgressBar:
    """A bar on standard error, if that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begins = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def show(self, done: int, note: str = "") -> None:
        """Tell how many runs are done."""
        if self._terminal:
            filled = WIDTH * done // self._total
            bar = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{self._total} runs"
            text = f"{bar}  {time.monotonic() - self._begins:.0f} s  {note}".rstrip()
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line of the bar."""
        if self._terminal:
            print(file=sys.stderr, flush=True)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def warn_without_numba() -> None:
    """Warn if runs will be interpreted."""
    if find_spec("numba") is None:
        print_warning(
            "numba is not installed, so the runs are interpreted and take 50 times as long or more;"
            " install it with: pip install 'hpwsn[fast]'"
        )


def perform_all(tasks: Sequence[RunTask], processes: int) -> list[Outcome]:
    """The outcomes in the order of the tasks; HpwsnError if a process is killed."""
    warn_without_numba()
    bar = ProgressBar(len(tasks))
    try:
        _compile(tasks, bar)
        outcomes: list[Outcome] = []
        with _performed(tasks, min(processes, len(tasks))) as performed:
            for outcome in performed:
                outcomes.append(outcome)
                bar.show(len(outcomes))
        return outcomes
    except BrokenProcessPool:
        raise HpwsnError(
            "a process of the simulation was killed, perhaps for lack of memory; use fewer --processes"
        ) from None
    finally:
        bar.close()


def _compile(tasks: Sequence[RunTask], bar: ProgressBar) -> None:
    """Compile each protocol once, in this process, by a run of two seconds."""
    if find_spec("numba") is None:
        return
    first = {task.protocol: task for task in tasks}
    for protocol, task in first.items():
        bar.show(0, f"compiling {protocol}, which takes half a minute the first time")
        perform(replace(task, parameters=replace(task.parameters, duration=2, quiet=1)))


@contextmanager
def _performed(tasks: Sequence[RunTask], processes: int) -> Iterator[Iterator[Outcome]]:
    if processes == 1:
        yield map(perform, tasks)
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _ignore_interrupts)
    try:
        yield pool.map(perform, tasks)
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl+C to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
