"""The way from the event loop to the writer's thread and back.

It gives offsets in the order of the calls, bounds what waits, notes cursors until they are written, and hands
outcomes to the loop with one call for each commit, in the order of the log. Only the loop's thread calls it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from hpwsn.errors import JournalUnavailable
from hpwsn.journal.store.records import Arrival
from hpwsn.journal.store.spool import note_frames
from hpwsn.journal.store.tables import is_damage
from hpwsn.journal.store.writer import Change, Work, Writer
from hpwsn.listeners import Listeners
from hpwsn.notification import Run

log = logging.getLogger(__name__)

CURSOR_DELAY = 0.2
PROBE_DELAY = 1.0
ENTRY_OVERHEAD = 256


class Channel:
    """Everything that is on its way to the database."""

    def __init__(self, *, max_waiting: int, wait_for_commit: bool) -> None:
        self.committed: Listeners[int, Sequence[Run]] = Listeners("a commit")
        """Told of every commit of runs, in the order of the log: the first offset, and the runs."""
        self.last_offset = 0
        self.waiting_bytes = 0
        self.failures = 0
        self.lost = 0
        self.unavailable: str | None = None
        self._loop: asyncio.AbstractEventLoop
        self._next = 1
        self._max_waiting = max_waiting
        self._wait_for_commit = wait_for_commit
        self._writer: Writer | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._probing: asyncio.TimerHandle | None = None
        self._damaged = False

    def connect(self, writer: Writer, last_offset: int) -> None:
        """Begin to pass things on to a writer."""
        self._loop = asyncio.get_running_loop()
        self._writer = writer
        self.last_offset = last_offset
        self._next = last_offset + 1

    def disconnect(self) -> None:
        """Send the last cursors, and refuse whatever comes now."""
        for timer in (self._timer, self._probing):
            if timer is not None:
                timer.cancel()
        self._flush_cursors()
        self._writer = None

    def append(self, runs: Sequence[Run], arrival: Arrival | None = None) -> asyncio.Future[int]:
        """Store runs, all or none, at the next offsets; the future has the first of these.

        What the arrival says is stored in the same transaction.
        """
        if not runs:
            raise ValueError("an append needs at least one notification")
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        number = sum([run.size for run in runs])
        # The content of a large run is in a file already, so that it does not wait here.
        size = sum(
            [
                ENTRY_OVERHEAD
                if run.large
                else len(run.payloads) + (len(run.before) + ENTRY_OVERHEAD) * run.size
                for run in runs
            ]
        )
        if self._writer is None or (self.waiting_bytes and self.waiting_bytes + size > self._max_waiting):
            future.set_exception(self._refusal())
            return future
        first = self._next
        self._next += number
        self.waiting_bytes += size
        work = None
        if arrival is not None:
            from_peers = number if arrival.from_peers else 0
            work = note_frames(arrival.frames, arrival.ranges, arrival.time, from_peers)(first)
        self._writer.submit(Change(future, first, runs, number, size, work, grows=True))
        # After a failure answers wait again, so that nothing is promised that cannot be written.
        if not self._wait_for_commit and self.unavailable is None:
            future.set_result(first)
        return future

    def change(self, work: Work, *, grows: bool = False) -> asyncio.Future[Any]:
        """Send any other change on its way; one that grows the journal needs space on the disk."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._writer is None:
            future.set_exception(self._refusal())
        else:
            self._writer.submit(Change(future, work=work, grows=grows))
        return future

    def advance(self, reader_id: str, offset: int) -> None:
        """Note a cursor; one that comes after the end is lost, and its notifications are delivered again."""
        if self._writer is not None:
            self._set_timer()
            self._writer.advance(reader_id, offset)

    def advance_ahead(self, reader_id: str, offsets: Sequence[int]) -> None:
        """Note offsets beyond a cursor that its reader is done with; what holds for `advance` holds here."""
        if self._writer is not None:
            self._set_timer()
            self._writer.advance_ahead(reader_id, offsets)

    def hand_back(self, group: list[Change]) -> None:
        """Bring outcomes to the loop; the one method that the writer's thread calls."""
        # A loop that was closed without us leaves nobody to tell; what is written is written.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, group)

    def _settle(self, group: list[Change]) -> None:
        for change in group:
            self.waiting_bytes -= change.size
            if change.error is not None:
                self._fail(change, change.error)
                continue
            if change.runs:
                self._announce(change)
            if change.handle is not None and not change.handle.done():
                change.handle.set_result(change.first or change.result)

    def _announce(self, change: Change) -> None:
        self._available()
        self.last_offset = change.first + change.count - 1
        self.committed(change.first, change.runs)

    def _fail(self, change: Change, error: Exception) -> None:
        self.failures += 1
        if isinstance(error, JournalUnavailable):
            self.note(error)
            self._set_probe()
        if change.handle is None:
            self._set_timer()
        elif not change.handle.done():
            change.handle.set_exception(error)
        elif not change.handle.cancelled():
            self.lost += change.count

    def note(self, error: JournalUnavailable) -> None:
        """Have an error shown; that of a damaged file stays until the end."""
        if self._damaged:
            return
        self.unavailable = error.reason
        self._damaged = is_damage(error.__cause__)
        if self._damaged:
            log.error("%s", error)

    def _available(self) -> None:
        if not self._damaged:
            self.unavailable = None

    def _set_probe(self) -> None:
        if self._probing is None:
            self._probing = self._loop.call_later(PROBE_DELAY, self._probe)

    def _probe(self) -> None:
        """See whether appends are possible again, where nobody else tries."""
        self._probing = None
        if self._writer is not None and self.unavailable is not None:
            self.change(self._writer.probe, grows=True).add_done_callback(self._probed)

    def _probed(self, probe: asyncio.Future[Any]) -> None:
        if not probe.cancelled() and probe.exception() is None:
            self._available()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(CURSOR_DELAY, self._flush_cursors)

    def _flush_cursors(self) -> None:
        self._timer = None
        if self._writer is not None and self._writer.has_cursors:
            self._writer.submit(Change(None, work=self._writer.write_cursors))

    def _refusal(self) -> JournalUnavailable:
        if self._writer is None:
            return JournalUnavailable("the journal is not open: the node is starting or stopping")
        return JournalUnavailable(
            f"{self.waiting_bytes} bytes are waiting to be written to the journal and the limit is "
            f"{self._max_waiting}: try again in a moment"
        )
