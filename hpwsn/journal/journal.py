"""The journal for one event loop: the log of notifications, the cursors, and the records of resources.

It owns the lock of the data directory, a writer thread and a reader thread. The future of an append completes
with the offset. What that guarantees depends on the durability. With `fsync`, the notification survives a
crash of the machine. With `commit`, it survives a crash of the process (kill -9); a crash of the machine may
lose the last commits, but does not damage the file. With `none`, nothing is guaranteed: the future does not
wait for the commit. In every mode the listeners in `committed` run after the commit, in the order of the log.
If the future fails, nothing of its append is stored.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from hpwsn.errors import JournalUnavailable
from hpwsn.histogram import Histogram
from hpwsn.journal.channel import Channel
from hpwsn.journal.cursors.cursor_rows import NONE_AHEAD
from hpwsn.journal.retention.pruning import Pruning
from hpwsn.journal.store import changes, dead_letter_groups
from hpwsn.journal.store.data_directory import DirectoryLock
from hpwsn.journal.store.dead_letter_groups import LetterFilter
from hpwsn.journal.store.large_contents import LargeContents
from hpwsn.journal.store.log_positions import times_of
from hpwsn.journal.store.reader import Reader
from hpwsn.journal.store.records import (
    Arrival,
    Backlog,
    DeadLetter,
    DeadLetterGroup,
    Durability,
    Pruned,
    Pulled,
    PullPointRecord,
    Recovered,
    RegistrationRecord,
    Retention,
    RunScan,
    Scan,
    State,
    Stored,
    SubscriptionRecord,
    UpstreamRecord,
)
from hpwsn.journal.store.recovery import recover
from hpwsn.journal.store.reserve import Reserve
from hpwsn.journal.store.routed import Routed
from hpwsn.journal.store.spool import Spool
from hpwsn.journal.store.tables import check_unclosed, is_damage, open_reader, open_writer, opening_error
from hpwsn.journal.store.writer import Work, Writer, repeat
from hpwsn.listeners import Listeners
from hpwsn.notification import LargeRun, Run, mark_of

MAX_WAITING = 64 << 20
RESERVE = 16 << 20
LINGER = 0.002
"""Seconds for which the writer collects changes before a commit, with durability `none` only."""

T = TypeVar("T")


class Journal:
    """One SQLite file in a data directory that this process has locked."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "commit",
        max_bytes: int | None = None,
        max_waiting: int = MAX_WAITING,
        reserve: int = RESERVE,
        commit_times: Histogram | None = None,
    ) -> None:
        self._path = path
        self._commit_times = commit_times
        self._durability = durability
        self._max_bytes = max_bytes
        self._lock = DirectoryLock(path.parent)
        self._reserve = Reserve(path.parent, reserve)
        self._large = LargeContents(path.parent / "large", sync=durability == "fsync", limit=max_bytes)
        self._in_files = ThreadPoolExecutor(1, thread_name_prefix="journal-files")
        self._pruning = asyncio.Lock()
        self._forgotten: dict[str, None] = {}
        self._channel = Channel(max_waiting=max_waiting, wait_for_commit=durability != "none")
        self._open = False
        self._append = self._channel.append
        # Every notification needs this call, so it skips a level: see Channel for its contract.
        self.advance = self._channel.advance
        self.advance_ahead = self._channel.advance_ahead
        self.spool = Spool(self._channel.change, self._query)
        self.routed = Routed(self._channel.change)
        self._writer: Writer
        self._reader: Reader
        self._reading: ThreadPoolExecutor

    @property
    def committed(self) -> Listeners[int, Sequence[Run]]:
        """Listeners that get the first offset and the runs of each committed append, in the order of the log.

        They run in the event loop, before the future of the append completes.
        """
        return self._channel.committed

    last_offset = cast(int, property(attrgetter("_channel.last_offset")))
    """The offset of the last committed notification of which the listeners were told."""

    async def open(self, *, ids_since: float = 0.0) -> Recovered:
        """Lock the data directory and return the stored state, with the message ids since a time."""
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="journal-reader")
        try:
            recovered = await self._read(self._open_files, ids_since)
        except BaseException:
            self._reading.shutdown(wait=False)
            raise
        self._channel.connect(self._writer, recovered.next_offset - 1)
        self._writer.start()
        self._open = True
        return recovered

    async def close(self) -> None:
        """Write all pending changes and unlock the directory."""
        if not self._open:
            return
        self._open = False
        self._channel.disconnect()
        await self._read(self._reader.close)
        await self._read(self._writer.stop)
        self._reading.shutdown()
        self._in_files.shutdown()
        self._lock.release()

    def append(self, runs: Sequence[Run], arrival: Arrival | None = None) -> asyncio.Future[int]:
        """Store runs, all or none, at the next offsets; see Channel.append.

        Large notifications are written to files first, so that their offsets follow those of later appends.
        """
        for run in runs:
            if run.large:
                return asyncio.get_running_loop().create_task(self._append_large(runs, arrival))
        return self._append(runs, arrival)

    async def _append_large(self, runs: Sequence[Run], arrival: Arrival | None) -> int:
        names: list[str] = []
        try:
            for run in runs:
                if isinstance(run, LargeRun):
                    run.file = self._large.new_name()
                    names.append(run.file)
                    await self._in_file(self._large.write, run.file, run.content, mark_of(run.trace))
        except BaseException:
            self._drop_files(names)
            raise
        appended = self._append(runs, arrival)
        appended.add_done_callback(partial(self._large_appended, names))
        await asyncio.wait((appended,))  # a cancelled wait does not cancel the append: it may be committed
        return appended.result()

    def _large_appended(self, names: Sequence[str], appended: asyncio.Future[int]) -> None:
        if appended.cancelled() or appended.exception() is not None:
            self._drop_files(names)
        else:
            self._large.stored(names)

    def _drop_files(self, names: Sequence[str]) -> None:
        # It runs after a write that is under way. A journal that was closed leaves it to the next start.
        with contextlib.suppress(RuntimeError):
            self._in_files.submit(self._large.drop, names)

    async def _in_file(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._in_files, function, *arguments)

    async def read(self, offsets: Collection[int], *, room: int | None = None) -> list[Stored]:
        """The entries at these offsets, in the order of the log, without offsets that were pruned.

        The result is cut at `room` bytes (16 MiB by default), but has at least one entry.
        """
        return await self._read(self._reader.read, offsets, room)

    async def scan(
        self,
        after: int,
        *,
        limit: int,
        topics: Collection[str] | None,
        target: str | None = None,
        head: int | None = None,
        room: int | None = None,
    ) -> Scan:
        """The next entries after an offset whose topic key is one of these; None for every topic.

        A target is the id of a pull point: the result has only notifications posted to its address. Without
        a target, the result has none of these. Entries after `head` are not read.
        """
        return await self._read(self._reader.scan, after, limit, topics, target, head, room)

    async def count(self, after: int, topics: Collection[str] | None) -> int:
        """How many entries without a target lie after an offset on these topics; None for every topic."""
        return await self._read(self._reader.count, after, topics)

    async def scan_runs(
        self,
        after: int,
        *,
        limit: int,
        topics: Collection[str],
        head: int,
        room: int,
        internal: bool = False,
    ) -> RunScan:
        """Like `scan`, without targets, as runs with their first offsets; no notification is built.

        With `internal` also what was accepted while its topic was internal.
        """
        return await self._read(self._reader.scan_runs, after, limit, topics, head, room, internal)

    async def backlog(
        self, after: int, limit: int, topics: Collection[str], head: int, internal: bool = False
    ) -> Backlog:
        """The number of entries that `scan_runs` finds after an offset, up to `head`, on these topics.

        `upto` is the offset of entry number `limit`, or `head` if there are fewer.
        """
        return await self._read(self._reader.backlog, after, limit, topics, head, internal)

    async def oldest(self) -> int:
        """The first offset from which on retention has removed nothing."""
        return await self._read(self._reader.oldest)

    async def since(self, time: float) -> int:
        """The greatest offset before which every entry is older than a time."""
        offset, found = 0, False
        while not found:
            offset, found = await self._read(self._reader.since, time, offset)
        return offset

    async def times(self, offsets: Collection[int]) -> dict[int, float]:
        """When the entries at these offsets were accepted, without offsets that were pruned."""
        found: dict[int, float] = await self._query(partial(times_of, offsets=offsets))
        return found

    def put_subscription(self, record: SubscriptionRecord) -> asyncio.Future[None]:
        """Store a subscription or its changed state; a stored cursor never moves back."""
        return self._channel.change(changes.put_subscription(record), grows=True)

    def delete_subscription(self, subscription_id: str) -> asyncio.Future[None]:
        """Remove a subscription."""
        return self._channel.change(changes.delete_subscription(subscription_id))

    def put_registration(self, record: RegistrationRecord) -> asyncio.Future[None]:
        """Store a publisher's registration or its changed lifetime."""
        return self._channel.change(changes.put_registration(record), grows=True)

    def delete_registration(self, registration_id: str) -> asyncio.Future[None]:
        """Remove a registration and the records of its upstream subscriptions."""
        return self._channel.change(changes.delete_registration(registration_id))

    def put_upstream(self, record: UpstreamRecord) -> asyncio.Future[None]:
        """Store a subscription that this node has at a registered publisher."""
        return self._channel.change(changes.put_upstream(record), grows=True)

    def delete_upstream(self, registration_id: str, place: int) -> asyncio.Future[None]:
        """Remove the record of a subscription at a publisher."""
        return self._channel.change(changes.delete_upstream(registration_id, place))

    def put_documents(self, kind: str, documents: Mapping[str, bytes]) -> asyncio.Future[None]:
        """Store documents of a kind by name, all or none; existing ones are replaced."""
        return self._channel.change(changes.put_documents(kind, documents), grows=True)

    def delete_documents(self, kind: str, names: Collection[str]) -> asyncio.Future[int]:
        """Remove documents of a kind by name; the result is how many there were."""
        return self._channel.change(changes.delete_documents(kind, names))

    def put_pull_point(self, record: PullPointRecord) -> asyncio.Future[None]:
        """Store a pull point or its changed state."""
        return self._channel.change(changes.put_pull_point(record), grows=True)

    def delete_pull_point(self, pull_point_id: str) -> asyncio.Future[None]:
        """Remove a pull point with its queue."""
        return self._channel.change(changes.delete_pull_point(pull_point_id))

    def enqueue(
        self,
        pull_point_id: str,
        entries: Sequence[tuple[int, str | None]],
        cursors: Mapping[str, int],
        ahead: Mapping[str, Sequence[int]] = NONE_AHEAD,
    ) -> asyncio.Future[None]:
        """Add entries to a queue and move cursors in one transaction; queued entries are not added twice.

        `ahead` has offsets beyond a cursor that its subscription is done with.
        """
        return self._channel.change(changes.enqueue(pull_point_id, entries, cursors, ahead), grows=True)

    async def pull(self, pull_point_id: str, limit: int, *, after: int = 0) -> list[Pulled]:
        """The oldest messages of a queue after a sequence number; they stay queued until `confirm`."""
        return await self._read(self._reader.pull, pull_point_id, limit, after)

    def confirm(self, pull_point_id: str, upto_seq: int, from_seq: int = 0) -> asyncio.Future[int]:
        """Remove queued messages from `from_seq` to `upto_seq`, both included; the result is their number."""
        return self._channel.change(changes.confirm(pull_point_id, upto_seq, from_seq))

    def discard(self, pull_point_id: str, seqs: Collection[int]) -> asyncio.Future[int]:
        """Remove queued messages by their sequence numbers; the result is how many were removed."""
        return self._channel.change(changes.discard(pull_point_id, seqs))

    async def queue_length(self, pull_point_id: str) -> int:
        """The number of messages in a queue; it is stored, so the call is fast for a queue of any length."""
        return await self._read(self._reader.queue_length, pull_point_id)

    async def queues(self, pull_point_ids: Collection[str]) -> dict[str, tuple[int, float | None]]:
        """The length of each pull point's queue, and when its oldest message was published; None if empty."""
        return await self._read(self._reader.queues, pull_point_ids)

    def trim(self, pull_point_id: str, limit: int) -> asyncio.Task[int]:
        """Remove the oldest messages beyond `limit`, in small steps; the result is how many were removed."""
        return self._in_steps(lambda _: changes.trim(pull_point_id, limit))

    def forget_current(self, topic: str) -> asyncio.Future[None]:
        """Clear the current message of the topic with this key."""
        return self._channel.change(changes.forget_current(topic))

    def bury(
        self,
        subscription_id: str,
        offsets: Sequence[int],
        reason: str,
        time: float,
        *,
        cursor: int | None = None,
        ahead: Sequence[int] = (),
        consumer: str = "",
    ) -> asyncio.Future[None]:
        """Turn entries into dead letters of a subscription and move its cursor, in one transaction.

        `ahead` are those of the offsets that stay beyond the cursor.
        """
        work = changes.bury(subscription_id, offsets, reason, time, consumer, cursor, ahead)
        return self._channel.change(work, grows=True)

    async def dead_letters(
        self, limit: int, after: int = 0, subscription_id: str | None = None, reason: str | None = None
    ) -> list[DeadLetter]:
        """Dead letters whose id is greater than `after`, in order, of one subscription or of all.

        `reason` is that of a group. The result is cut at 16 MiB, but has at least one dead letter.
        """
        which = LetterFilter(subscription_id, reason)
        return await self._read(self._reader.dead_letters, limit, after, which)

    async def dead_letter(self, number: int) -> DeadLetter | None:
        """The dead letter with this id, or None."""
        return await self._read(self._reader.dead_letter, number)

    async def dead_letter_count(self, subscription_id: str | None = None, reason: str | None = None) -> int:
        """The number of dead letters of one subscription or of all, with the reason of a group or any."""
        which = LetterFilter(subscription_id, reason)
        return int(await self._query(lambda db: dead_letter_groups.count_letters(db, which)))

    async def dead_letters_by_subscription(
        self, subscription_ids: Collection[str] | None = None
    ) -> dict[str, int]:
        """The number of dead letters of each of these subscriptions, or of all, that has some."""
        count = dead_letter_groups.count_by_subscription
        found: dict[str, int] = await self._query(lambda db: count(db, subscription_ids))
        return found

    async def dead_letter_groups(self) -> list[DeadLetterGroup]:
        """The dead letters by subscription and reason, the largest group first."""
        found: list[DeadLetterGroup] = await self._query(dead_letter_groups.groups)
        return found

    def drop_dead_letters(self, ids: Iterable[int]) -> asyncio.Future[int]:
        """Remove dead letters; the result is how many were removed."""
        return self._channel.change(changes.drop_dead_letters(ids))

    def drop_dead_letters_of(self, subscription_id: str) -> asyncio.Task[int]:
        """Remove the dead letters of a subscription, in small steps; the result is how many were removed."""
        return self._in_steps(lambda _: changes.drop_dead_letters_of(subscription_id))

    def prune(
        self,
        now: float,
        *,
        head: int,
        needs: Mapping[str, int],
        needs_all: int | None,
        id_window: float,
        retention_age: float | None,
        retention_bytes: int | None,
        dead_letter_age: float | None = None,
        dead_letter_limit: int | None = None,
    ) -> asyncio.Task[Pruned]:
        """Remove entries beyond the retention age or size, in small steps, except entries still needed.

        Needed are: all entries after `head`, the entries of a topic after its offset in `needs`, all entries
        without a target after `needs_all`, queued entries, and dead letters.
        """
        retention = Retention(
            head=min(head, self.last_offset),
            needs=dict(needs),
            needs_all=needs_all,
            age=retention_age,
            size=retention_bytes,
            id_window=id_window,
            dead_letter_age=dead_letter_age,
            dead_letter_limit=dead_letter_limit,
        )
        return asyncio.get_running_loop().create_task(self._prune(retention, now))

    @property
    def unavailable(self) -> str | None:
        """Why appends fail at present; None while they succeed."""
        return self._channel.unavailable

    @property
    def problem(self) -> str | None:
        """Why the journal does not do all that it should; None if it does."""
        return self._channel.unavailable or self._large.problem

    @property
    def state(self) -> State:
        """The current figures."""
        writer, channel = self._writer, self._channel
        return State(
            last_offset=channel.last_offset,
            commits=writer.commits,
            changes=writer.changes,
            entries=writer.entries,
            mean_group=writer.changes / writer.commits if writer.commits else 0.0,
            failures=channel.failures,
            lost=channel.lost,
            missing=len(self._large.missing),
            database_bytes=sum(_size(self._path.with_name(self._path.name + end)) for end in ("", "-wal"))
            + self._large.bytes,
            waiting=writer.waiting,
            waiting_bytes=channel.waiting_bytes,
            unavailable=channel.unavailable,
        )

    def _open_files(self, ids_since: float) -> Recovered:
        try:
            self._lock.acquire()
        except OSError as error:
            reason = f"the data directory {self._path.parent} cannot be used: {error}"
            raise JournalUnavailable(reason) from error
        try:
            return self._connect(ids_since)
        except BaseException:
            self._lock.release()
            raise

    def _connect(self, ids_since: float) -> Recovered:
        self._reserve.release()  # SQLite needs this space to open the file on a full disk
        check_unclosed(self._path)
        db = open_writer(self._path, self._durability, self._max_bytes, self._reserve.checkpoint_bytes)
        try:
            recovered = recover(db, self._path, ids_since)
            self._reserve.take()
            linger = LINGER if self._durability == "none" else 0.0
            self._writer = Writer(
                db,
                self._path,
                self._channel.hand_back,
                self._reserve,
                linger=linger,
                commit_times=self._commit_times,
            )
            self._reader = Reader(
                open_reader(self._path), self._path, self._large.read, self._large.note_missing
            )
            self._large.collect_at_start(self._reader.query(_files_needed))
        except sqlite3.Error as error:
            db.close()
            raise opening_error(self._path, error) from error
        return recovered

    async def _read(self, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reading, function, *arguments)
        except JournalUnavailable as error:
            if is_damage(error.__cause__):
                self._channel.note(error)
            raise

    async def _query(self, work: Work) -> Any:
        return await self._read(self._reader.query, work)

    def _in_steps(self, work: Callable[[int], Work]) -> asyncio.Task[int]:
        return asyncio.get_running_loop().create_task(repeat(self._channel.change, work))

    async def _prune(self, retention: Retention, now: float) -> Pruned:
        async with self._pruning:
            change, discard = self._channel.change, self._writer.discard_streams
            pruning = Pruning(change, discard, self._forgotten, retention, now)
            try:
                return await pruning.run()
            finally:
                if pruning.streams and self._open:
                    await self._read(self._reader.forget_streams)
                if (self._large.bytes or self._large.missing) and self._open:
                    names = await self._in_file(self._large.names)
                    await self._in_file(self._large.collect, names, await self._query(_files_needed))


def _files_needed(db: sqlite3.Connection) -> set[str]:
    """The names of the files with the contents of large notifications."""
    return {name for (name,) in db.execute("SELECT content FROM log WHERE outside > 0")}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
