"""One complete pruning as a chain of bounded steps; other transactions run between two steps."""

import sqlite3
from collections.abc import Callable, Sequence
from itertools import islice

from hpwsn.journal.retention.leftovers import prune_dead_letters, prune_ids, prune_queues
from hpwsn.journal.retention.retention import (
    START,
    STEP,
    LogRetention,
    LogStep,
    NextStep,
    remove_empty_streams,
    still_forgotten,
)
from hpwsn.journal.store.records import NO_TOPIC, Pruned, Retention
from hpwsn.journal.store.writer import Step, Submit, Work, repeat

MAX_FORGOTTEN = 10_000
_NEEDS_AT_ONCE = 10_000

Discard = Callable[[Sequence[int]], None]


class Pruning:
    """Removes everything past retention; only one may run at a time, since it uses the table `needs`."""

    def __init__(
        self,
        submit: Submit,
        discard: Discard,
        forgotten: dict[str, None],
        retention: Retention,
        now: float,
    ) -> None:
        self._submit = submit
        self._discard = discard
        self._retention = retention
        self._now = now
        self._log = LogRetention(retention, now)
        self._forgotten = forgotten  # shared with the caller, so that the next pruning continues a failed one
        self.streams = 0

    async def run(self) -> Pruned:
        """Run all steps, and return what they removed."""
        r, now = self._retention, self._now
        await repeat(self._submit, lambda _: prune_queues)
        letters = prune_dead_letters(now, r.dead_letter_age, r.dead_letter_limit)
        dead_letters = await repeat(self._submit, lambda _: letters)
        entries = await self._prune_log()
        ids = await repeat(self._submit, lambda _: prune_ids(now, r.id_window))
        await repeat(self._submit, self._prune_streams, START)
        forgotten = await self._submit(still_forgotten(self._forgotten))
        self._forgotten.clear()
        return Pruned(entries, ids, dead_letters, forgotten)

    async def _prune_log(self) -> int:
        await self._note_needs()
        removed = fruitless = 0
        streams, after = await self._find(0)
        while after is not None and len(self._forgotten) + STEP <= MAX_FORGOTTEN // 2:
            step: LogStep = await self._submit(self._log.remove(after))
            removed += step.removed
            self._forgotten |= dict.fromkeys(step.forgotten)
            fruitless = 0 if step.removed else fruitless + step.looked
            after = step.upto
            # To check one stream costs about as much as to check one entry.
            if after is not None and fruitless > streams:
                fruitless, (streams, after) = 0, await self._find(after)
        return removed

    async def _note_needs(self) -> None:
        await self._submit(self._log.clear_needs)
        needs = iter(self._retention.needs.items())
        while some := dict(islice(needs, _NEEDS_AT_ONCE)):
            await self._submit(self._log.add_needs(some))

    async def _find(self, after: int) -> tuple[int, int | None]:
        """The number of streams, and the offset after which the first removable entry comes, if any."""
        streams, first, stream = 0, [], START
        while True:
            step: NextStep = await self._submit(self._log.find(after, stream))
            streams += step.streams
            first += [] if step.first is None else [step.first]
            if step.upto is None:
                return streams, min(first) - 1 if first else None
            stream = step.upto

    def _prune_streams(self, after: int) -> Work:
        def work(db: sqlite3.Connection) -> Step:
            upto, gone = remove_empty_streams(db, after)
            self._discard([number for number, _ in gone])
            self._forgotten |= {topic: None for number, topic in gone if number > 0 and topic != NO_TOPIC}
            self.streams += len(gone)
            full = len(self._forgotten) + STEP > MAX_FORGOTTEN
            return Step(None if full else upto, len(gone))

        return work
