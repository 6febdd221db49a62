"""One pruning from beginning to end: a chain of bounded steps, each a transaction among others."""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence

from hpwsn.journal.records import Pruned, Retention
from hpwsn.journal.retention import START, Step, prune_ids, prune_log, prune_queues, remove_empty_streams
from hpwsn.journal.writer import Work

Submit = Callable[[Work], Awaitable[Step]]
Discard = Callable[[Sequence[int]], None]


async def prune(
    submit: Submit, discard: Discard, retention: Retention, now: float, id_window: float
) -> tuple[Pruned, int]:
    """Remove all that may go; give how much, and how many streams went."""
    await _repeat(submit, lambda _: prune_queues)
    entries = await _repeat(submit, lambda after: prune_log(retention, now, after))
    ids = await _repeat(submit, lambda _: prune_ids(now, id_window))
    streams = await _repeat(submit, lambda after: _prune_streams(discard, after), START)
    return Pruned(entries, ids), streams


async def _repeat(submit: Submit, work: Callable[[int], Work], start: int = 0) -> int:
    removed, after = 0, start
    while True:
        step = await submit(work(after))
        removed += step.removed
        if step.upto is None:
            return removed
        after = step.upto


def _prune_streams(discard: Discard, after: int) -> Work:
    def work(db: sqlite3.Connection) -> Step:
        upto, gone = remove_empty_streams(db, after)
        discard(gone)
        return Step(upto, len(gone))

    return work
