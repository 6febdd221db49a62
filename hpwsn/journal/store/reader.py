"""Reads from the journal over one connection that never waits for the writer. It blocks: use its thread.

A read fetches its rows in one step of one statement: the columns as one JSON value, the contents as one
blob (append.py says why). Each call returns a bounded number of entries and bytes.
"""

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hpwsn.journal.store import dead_letter_groups
from hpwsn.journal.store.dead_letter_groups import LetterFilter
from hpwsn.journal.store.log_positions import find_since, measure
from hpwsn.journal.store.log_rows import FIRST, SIZE, Row, parse_rows, read_row, read_run
from hpwsn.journal.store.records import NO_TOPIC, Backlog, DeadLetter, Pulled, RunScan, Scan, Stored
from hpwsn.journal.store.tables import unavailable
from hpwsn.notification import INTERNAL, ROW_MEMBERS, Run
from hpwsn_client.wsn.topics.topic_expressions import Topic

MAX_BYTES = 16 << 20
_FIRST_WINDOW = 1024

_ROWS = (
    "SELECT json_group_array(json_array("
    "offset, stream, time, head, tail, message_id, length(content), outside))"
    " FROM (SELECT * FROM log WHERE {} ORDER BY offset LIMIT ?)"
)
# The row of an offset is the first row that ends at or after it, unless that row begins after it.
_ROWS_AT = _ROWS.format(
    f"offset IN (SELECT (SELECT CASE WHEN {FIRST} <= j.value THEN offset END FROM log"
    " WHERE offset >= j.value ORDER BY offset LIMIT 1) FROM json_each(?) AS j)"
)
# Rows are found by their last offset, which may be greater than the last offset to read.
_ROWS_ALL = _ROWS.format(f"offset > ? AND offset < ? + {ROW_MEMBERS} AND {FIRST} <= ? AND stream > 0")
# The inner search stays within the index: sorting whole rows to keep the first few would read them all.
_ROWS_OF = _ROWS.format(
    "offset IN (SELECT found.offset FROM json_each(?) AS s CROSS JOIN log AS found"
    f" WHERE found.stream = s.value AND found.offset > ? AND found.offset < ? + {ROW_MEMBERS}"
    f" AND {FIRST} <= ? ORDER BY found.offset LIMIT ?)"
)
_CONTENTS = (
    "SELECT CAST(group_concat(content, '') AS BLOB) FROM (SELECT content FROM log"
    " WHERE offset IN (SELECT value FROM json_each(?)) ORDER BY offset LIMIT -1)"
)
_THERE = "SELECT json_group_array(offset) FROM log WHERE offset IN (SELECT value FROM json_each(?))"
_PULL = (
    "SELECT json_group_array(json_array(offset, seq, subscription))"
    " FROM (SELECT offset, seq, subscription FROM queue"
    " WHERE pull_point = (SELECT number FROM pull_points WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?)"
)
# An entry has the time of its row, which is the first row that ends at or after its offset.
_QUEUES = (
    "SELECT p.id, p.length, (SELECT log.time FROM log WHERE log.offset >= (SELECT queue.offset FROM queue"
    " WHERE queue.pull_point = p.number ORDER BY queue.seq LIMIT 1) ORDER BY log.offset LIMIT 1)"
    " FROM pull_points AS p WHERE p.id IN (SELECT value FROM json_each(?))"
)
_LENGTH = "SELECT coalesce(max(length), 0) FROM pull_points WHERE id = ?"
_COUNT = (
    f"SELECT coalesce(sum((SELECT sum(min({SIZE}, offset - :after)) FROM log"
    " WHERE log.stream = s.value AND log.offset > :after)), 0) FROM json_each(:streams) AS s"
)
_STREAMS = (
    "SELECT json_group_array(json_array(id, topic, target))"
    " FROM (SELECT id, topic, target FROM streams WHERE id > ? OR id < ?)"
)
Noted = list[Any]
"""An offset, followed by the other columns of its row in a queue or in the dead letters."""


class Reader:
    """Sees complete commits only; every method reads one snapshot."""

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        read_large: Callable[[str], bytes | None],
        note_missing: Callable[[set[str]], None],
    ) -> None:
        self._db = db
        self._path = path
        self._read_large = read_large
        self._note_missing = note_missing
        self._not_found: dict[int, str] = {}
        self.forget_streams()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def query(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Run a function on a snapshot of the database."""
        with self._snapshot():
            return work(self._db)

    def forget_streams(self) -> None:
        """Drop the cached streams after some were removed; the next read loads them again."""
        self._texts: dict[int, tuple[str, str]] = {}
        self._topics: dict[int, Topic | None] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._top = self._bottom = 0

    def read(self, offsets: Collection[int], room: int | None = None) -> list[Stored]:
        """The existing entries at these offsets, in order, cut at `room` bytes."""
        room, wanted = room or MAX_BYTES, set(offsets)
        with self._snapshot():
            return _fitting(self._load(_within(self._rows_at(wanted), room), wanted), room)

    def scan(
        self,
        after: int,
        limit: int,
        topics: Collection[str] | None,
        target: str | None,
        head: int | None = None,
        room: int | None = None,
    ) -> Scan:
        """The next entries of some topics, or of all, up to `head`."""
        with self._snapshot():
            last = self._one("SELECT max(offset) FROM log") or 0
            if head is not None:
                last = min(last, head)
            streams = self._streams_of(topics, target)
            rows = self._search(streams, after, last, limit)
            kept = _within(rows, room or MAX_BYTES)
            found = self._load(kept, range(after + 1, last + 1))
            entries = _fitting(found[:limit], room or MAX_BYTES)
            whole = len(kept) == len(rows) and len(entries) == len(found) < limit
            upto = entries[-1].offset if entries else max(after, kept[-1].offset if kept else 0)
            return Scan(entries, max(after, last) if whole else upto)

    def scan_runs(
        self, after: int, limit: int, topics: Collection[str], head: int, room: int, internal: bool
    ) -> RunScan:
        """The next entries without a target of some topics, up to `head`, as runs.

        With `internal` also what was accepted while its topic was internal. The rows are cut at `room` bytes,
        but there is at least one.
        """
        with self._snapshot():
            last = min(self._one("SELECT max(offset) FROM log") or 0, head)
            rows = self._search(self._readable(topics, internal), after, last, limit)
            kept = _within(rows, room)
            runs: list[tuple[int, Run]] = []
            contents = self._one(_CONTENTS, json.dumps([row.offset for row in kept])) if kept else b""
            start, upto = 0, after
            for row in kept:
                end = min(last, max(row.first - 1, after) + limit)
                found, start = contents[start : start + row.length], start + row.length
                content = self._content(row, found)
                if content is None:
                    upto = row.offset
                    continue
                runs.append(self._run_of(row, content, after, end))
                limit -= runs[-1][1].size
                upto = runs[-1][0] + runs[-1][1].size - 1
            whole = len(kept) == len(rows) and limit > 0
            return RunScan(runs, max(after, last) if whole else upto)

    def backlog(self, after: int, limit: int, topics: Collection[str], head: int, internal: bool) -> Backlog:
        """The entries that `scan_runs` finds on some topics after an offset, up to `head`."""
        with self._snapshot():
            return measure(self._db, self._readable(topics, internal), after, limit, head)

    def oldest(self) -> int:
        """The first offset from which on retention has removed nothing."""
        with self._snapshot():
            return int(self._one("SELECT upto + 1 FROM removed"))

    def since(self, time: float, after: int) -> tuple[int, bool]:
        """Search a bounded part of the log after an offset for the first entry at or after a time.

        Returns the offset before this entry and True, or the last offset of the part and False.
        """
        with self._snapshot():
            return find_since(self._db, time, after)

    def count(self, after: int, topics: Collection[str] | None) -> int:
        """The number of entries without a target after an offset, on some topics or on all."""
        with self._snapshot():
            numbers = self._numbers.get("", {})
            streams = list(numbers.values()) if topics is None else self._streams_of(set(topics), None)
            values = {"after": after, "streams": json.dumps(streams)}
            return int(self._db.execute(_COUNT, values).fetchone()[0])

    def pull(self, pull_point_id: str, limit: int, after: int) -> list[Pulled]:
        """The oldest messages of a pull point's queue after a sequence number."""
        with self._snapshot():
            rows = json.loads(self._one(_PULL, pull_point_id, after, limit))
            return [Pulled(seq, origin or None, stored) for (_, seq, origin), stored in self._join(rows)]

    def queue_length(self, pull_point_id: str) -> int:
        """The number of messages in a pull point's queue."""
        with self._snapshot():
            return int(self._one(_LENGTH, pull_point_id))

    def queues(self, pull_point_ids: Collection[str]) -> dict[str, tuple[int, float | None]]:
        """The length of each queue, and when its oldest message was published; None if it is empty."""
        with self._snapshot():
            found = self._db.execute(_QUEUES, (json.dumps(list(pull_point_ids)),))
            return {id_: (length, None if time is None else time / 1e6) for id_, length, time in found}

    def dead_letters(self, limit: int, after: int, which: LetterFilter) -> list[DeadLetter]:
        """Dead letters in the order of their ids."""
        with self._snapshot():
            return self._with_contents(dead_letter_groups.letters(self._db, which, limit, after))

    def dead_letter(self, number: int) -> DeadLetter | None:
        """One dead letter, or None."""
        with self._snapshot():
            return next(iter(self._with_contents(dead_letter_groups.letter(self._db, number))), None)

    def _with_contents(self, rows: list[Noted]) -> list[DeadLetter]:
        return [
            DeadLetter(number, origin, stored, reason, time / 1e6, consumer)
            for (_, number, origin, reason, time, consumer), stored in self._join(rows)
        ]

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN")
            self._learn_streams()
            yield
        except sqlite3.Error as error:
            raise unavailable(self._path, error) from error
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if self._not_found:
                self._check_not_found()

    def _check_not_found(self) -> None:
        """Note the contents that are missing, without those that retention has removed meanwhile."""
        not_found, self._not_found = self._not_found, {}
        with suppress(sqlite3.Error):  # the next read reports a file that is damaged
            there = json.loads(self._one(_THERE, json.dumps(list(not_found))))
            self._note_missing({not_found[offset] for offset in there})

    def _one(self, statement: str, *values: Any) -> Any:
        return self._db.execute(statement, values).fetchone()[0]

    def _learn_streams(self) -> None:
        for number, topic, target in json.loads(self._one(_STREAMS, self._top, self._bottom)):
            self._texts[number] = (topic, target)
            self._numbers.setdefault(target, {})[topic] = number
            self._top, self._bottom = max(self._top, number), min(self._bottom, number)

    def _streams_of(self, topics: Collection[str] | None, target: str | None) -> list[int] | None:
        if topics is None:
            return None if target is None else list(self._numbers.get(target, {}).values())
        numbers = self._numbers.get(target or "", {})
        return [numbers[topic] for topic in topics if topic in numbers]

    def _readable(self, topics: Collection[str], internal: bool) -> list[int]:
        """The streams of readers without a subscription."""
        found = self._streams_of(topics, None) or []
        return found + (self._streams_of(topics, INTERNAL) or []) if internal else found

    def _run_of(self, row: Row, content: bytes, after: int, upto: int) -> tuple[int, Run]:
        target = self._texts[row.stream][1] or None
        return read_run(row, content, self._topic(row.stream), target, after, upto)

    def _search(self, streams: list[int] | None, after: int, last: int, limit: int) -> list[Row]:
        # SQLite sorts all matches in a window before it applies the limit. So windows start small, for dense
        # topics, and grow, for sparse ones.
        rows: list[Row] = []
        window = max(_FIRST_WINDOW, 4 * limit, len(streams or ()))
        while after < last and limit > 0 and streams != []:
            upto = min(last, after + window)
            more = _enough(self._stretch(streams, after, upto, limit), after, limit)
            limit -= sum(row.count_after(after) for row in more)
            rows += more
            after, window = max(upto, more[-1].offset if more else 0), window * 8
        return rows

    def _stretch(self, streams: list[int] | None, after: int, upto: int, limit: int) -> list[Row]:
        if streams is None:
            return self._rows(_ROWS_ALL, after, upto, upto, limit)
        return self._rows(_ROWS_OF, json.dumps(streams), after, upto, upto, limit, -1)

    def _rows_at(self, offsets: Iterable[int]) -> list[Row]:
        return self._rows(_ROWS_AT, json.dumps(list(offsets)), -1)

    def _rows(self, statement: str, *values: Any) -> list[Row]:
        return parse_rows(json.loads(self._one(statement, *values)))

    def _join(self, noted: Sequence[Noted]) -> list[tuple[Noted, Stored]]:
        """Rows of a queue or of dead letters with their entries, without pruned ones, cut at MAX_BYTES."""
        offsets = {each[0] for each in noted}
        row_of = _by_offset(self._rows_at(offsets), offsets)
        there = [each for each in noted if each[0] in row_of]
        kept = there[: _count_within([row_of[each[0]] for each in there], MAX_BYTES)]
        loaded = self._load(_distinct(row_of[each[0]] for each in kept), {each[0] for each in kept})
        stored = {entry.offset: entry for entry in loaded}
        # The contents of a run are larger than its row, which stores the bytes before the payload only once.
        kept = [each for each in kept if each[0] in stored]
        fitting = _fitting([stored[each[0]] for each in kept], MAX_BYTES)
        return list(zip(kept, fitting, strict=False))

    def _load(self, rows: Sequence[Row], wanted: Container[int]) -> list[Stored]:
        loaded: list[Stored] = []
        at = 0
        while at < len(rows):
            piece = _within(rows[at:], MAX_BYTES)
            loaded += self._load_piece(piece, wanted)
            at += len(piece)
        return loaded

    def _load_piece(self, rows: Sequence[Row], wanted: Container[int]) -> list[Stored]:
        contents = self._one(_CONTENTS, json.dumps([row.offset for row in rows]))
        loaded = []
        at = 0
        for row in rows:
            content = self._content(row, contents[at : at + row.length])
            at += row.length
            if content is None:
                continue
            target = self._texts[row.stream][1] or None
            read = read_row(row, content, self._topic(row.stream), target, wanted)
            loaded += [Stored(offset, notification) for offset, notification in read]
        return loaded

    def _content(self, row: Row, found: bytes) -> bytes | None:
        """The content of a row, which has the name of a file if it is large; None if the file is gone."""
        if not row.outside:
            return found
        name = found.decode()
        content = self._read_large(name)
        if content is None:
            self._not_found[row.offset] = name
        return content

    def _topic(self, stream: int) -> Topic | None:
        if stream not in self._topics:
            text = self._texts[stream][0]
            self._topics[stream] = None if text == NO_TOPIC else Topic.parse(text)
        return self._topics[stream]


def _enough(rows: list[Row], after: int, limit: int) -> list[Row]:
    """The first rows that together hold `limit` entries after an offset."""
    for number, row in enumerate(rows, 1):
        limit -= row.count_after(after)
        if limit <= 0:
            return rows[:number]
    return rows


def _within(rows: Sequence[Row], size: int) -> Sequence[Row]:
    """The first rows that fit into `size` bytes, at least one."""
    return rows[: _count_within(rows, size)]


def _count_within(rows: Sequence[Row], size: int) -> int:
    """How many of the first rows fit into `size` bytes, at least one; a repeated run counts once."""
    runs: set[int] = set()
    for number, row in enumerate(rows):
        if row.offset not in runs:
            size -= row.size
        if size < 0 and number:
            return number
        if row.tail < 0:
            runs.add(row.offset)
    return len(rows)


def _fitting(entries: list[Stored], size: int) -> list[Stored]:
    """The first entries that fit into `size` bytes, at least one."""
    for number, stored in enumerate(entries):
        size -= len(stored.notification.content)
        if size < 0 and number:
            return entries[:number]
    return entries


def _by_offset(rows: Sequence[Row], offsets: Iterable[int]) -> dict[int, Row]:
    """The row that holds each offset; the rows must be sorted."""
    found, ends = {}, [row.offset for row in rows]
    for offset in offsets:
        at = bisect_left(ends, offset)
        if at < len(rows) and rows[at].first <= offset:
            found[offset] = rows[at]
    return found


def _distinct(rows: Iterable[Row]) -> list[Row]:
    return sorted({row.offset: row for row in rows}.values())
