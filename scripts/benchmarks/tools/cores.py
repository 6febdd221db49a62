"""Pins the server to one core and the load to another, so that neither slows the other down.

On a machine with a single core they share it, and the tables say so.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


_ALLOWED = os.sched_getaffinity(0)

SERVER_CORE, LOAD_CORE = min(_ALLOWED), max(_ALLOWED)


def pinning_notes() -> tuple[str, ...]:
    """A warning for the table if the server and the load could not have a core each."""
    return ("server and load share the only core",) if SERVER_CORE == LOAD_CORE else ()


def pin_server(pid: int = 0) -> None:
    """Bind a process, with the threads it has and will have, to the server's core."""
    for thread in Path(f"/proc/{pid or 'self'}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {SERVER_CORE})


def unpin() -> None:
    """Let this process, a child of the load, run anywhere while it starts."""
    os.sched_setaffinity(0, _ALLOWED)


@contextmanager
def on_load_core() -> Iterator[None]:
    """The block, and the threads that it starts, run on the load's core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LOAD_CORE})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def settle(pid: int, longest: float = 5.0) -> None:
    """Wait until a process, with those it has started, has done what it still had to do."""
    end = time.monotonic() + longest
    before = cpu_seconds(pid)
    while time.monotonic() < end:
        time.sleep(0.05)
        now = cpu_seconds(pid)
        if now - before < 0.02 and not _has_children(pid):
            return
        before = now


def _has_children(pid: int) -> bool:
    # A thread may end while it is asked: then the process was not at rest.
    try:
        return any((thread / "children").read_text() for thread in Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return True
