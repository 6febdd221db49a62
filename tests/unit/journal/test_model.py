"""The journal against a simple model in memory, by random steps with restarts in between."""

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hpwsn.journal import Journal, PullPointRecord, Recovered, SubscriptionRecord
from hpwsn.journal.store import log_rows as rows
from hpwsn.journal.store.log_rows import rows_of
from hpwsn.notification import END, Notification, Run, count_of, members
from tests.runs import run_of

T = TypeVar("T")
TOPICS = ["A", "A:B", "{urn:x}C"]
keys = st.sampled_from([*TOPICS, ""])
readers = st.sampled_from(["s1", "s2", "s3"])
pull_points = st.sampled_from(["p1", "p2"])
offsets = st.integers(0, 60)
singles = st.builds(
    lambda topic, payload, time, target: run_of(topic or None, payload, time=float(time), target=target),
    keys,
    st.binary(max_size=40).map(lambda payload: payload.replace(END, b"")),
    st.integers(0, 100),
    st.one_of(st.none(), pull_points),
)
runs = st.builds(
    lambda topic, payloads, time, target: run_of(
        topic or None, *payloads, time=float(time), target=target, before=b"<t/>"
    ),
    keys,
    st.lists(st.sampled_from([b"<x/>", b"<y>text</y>"]), min_size=2, max_size=9),
    st.integers(0, 100),
    st.one_of(st.none(), st.none(), pull_points),
)
appends = st.lists(st.one_of(singles, singles, runs), min_size=1, max_size=6)


class JournalMachine(RuleBasedStateMachine):
    """Every rule does the same to the journal and to a few dicts."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.most, rows.ROW_MEMBERS = rows.ROW_MEMBERS, 4
        self.log: dict[int, Notification] = {}
        self.ends: dict[int, int] = {}
        """The last offset in the row of each, which go together."""
        self.next = self.given = 1
        self.forgotten: dict[str, int] = {}
        self.cursors: dict[str, int] = {}
        self.subscriptions: set[str] = set()
        self.queues: dict[str, list[tuple[int, str | None]]] = {}
        self.dead: dict[tuple[str, int], str] = {}
        self.open()

    def teardown(self) -> None:
        self.run(self.journal.close())
        self.runner.close()
        self.folder.cleanup()
        rows.ROW_MEMBERS = self.most

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def open(self) -> Recovered:
        self.journal = Journal(Path(self.folder.name) / "journal.db", reserve=0)
        return self.run(self.journal.open())

    def do(self, name: str, *arguments: Any, **named: Any) -> Any:
        async def call() -> Any:
            return await getattr(self.journal, name)(*arguments, **named)

        return self.run(call())

    def current(self) -> dict[str, int]:
        last: dict[str, int] = {}
        for offset, n in sorted(self.log.items()):
            if n.topic is not None and n.target is None:
                last[str(n.topic)] = offset
        return {key: offset for key, offset in last.items() if offset > self.forgotten.get(key, 0)}

    @rule(group=st.lists(appends, min_size=1, max_size=4))
    def append(self, group: list[Sequence[Run]]) -> None:
        async def all_of_them() -> list[int]:
            return await asyncio.gather(*[self.journal.append(one) for one in group])

        for first, one in zip(self.run(all_of_them()), group, strict=True):
            assert first == self.next
            self.log |= dict(enumerate(members(one), first))
            self.note_rows(first, one)
            for offset, n in enumerate(members(one), first):
                if n.target in self.queues:
                    self.queues[n.target].append((offset, None))
            self.next = self.given = first + count_of(one)

    def note_rows(self, first: int, appended: Sequence[Run]) -> None:
        for run in appended:
            for _, _, _, size in rows_of(run):
                self.ends |= dict.fromkeys(range(first, first + size), first + size - 1)
                first += size

    @rule(
        after=offsets,
        limit=st.integers(1, 8),
        topics=st.one_of(st.none(), st.sets(keys)),
        to=st.one_of(st.none(), pull_points),
    )
    def scan(self, after: int, limit: int, topics: set[str] | None, to: str | None) -> None:
        scan = self.do("scan", after, limit=limit, topics=topics, target=to)
        matching = [
            (offset, n)
            for offset, n in sorted(self.log.items())
            if offset > after
            and n.target == to
            and (topics is None or ("" if n.topic is None else str(n.topic)) in topics)
        ]
        assert [(entry.offset, entry.notification) for entry in scan.entries] == matching[:limit]
        assert scan.upto >= after
        assert [offset for offset, _ in matching if offset <= scan.upto] == [o for o, _ in matching[:limit]]

    @rule(reader=readers, cursor=offsets)
    def put_subscription(self, reader: str, cursor: int) -> None:
        self.do("put_subscription", SubscriptionRecord(reader, b"r", "1.1", 1.0, cursor=cursor))
        self.subscriptions.add(reader)
        self.cursors[reader] = max(cursor, self.cursors.get(reader, 0))

    @rule(reader=readers)
    def delete_subscription(self, reader: str) -> None:
        self.do("delete_subscription", reader)
        self.subscriptions.discard(reader)
        self.cursors.pop(reader, None)

    @rule(reader=readers, cursor=offsets)
    def advance(self, reader: str, cursor: int) -> None:
        if reader in self.cursors:
            self.journal.advance(reader, cursor)
            self.cursors[reader] = max(cursor, self.cursors[reader])
            self.do("forget_current", "nothing")

    @rule(name=pull_points)
    def put_pull_point(self, name: str) -> None:
        self.do("put_pull_point", PullPointRecord(name, None, 1.0))
        self.queues.setdefault(name, [])

    @rule(name=pull_points)
    def delete_pull_point(self, name: str) -> None:
        self.do("delete_pull_point", name)
        self.queues.pop(name, None)

    @rule(name=pull_points, data=st.data(), reader=st.one_of(st.none(), readers), cursor=offsets)
    def enqueue(self, name: str, data: st.DataObject, reader: str | None, cursor: int) -> None:
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.log)), max_size=5)) if self.log else []
        self.do("enqueue", name, [(offset, reader) for offset in chosen], {reader: cursor} if reader else {})
        if reader in self.cursors:
            self.cursors[reader] = max(cursor, self.cursors[reader])
        queue = self.queues.get(name)
        if queue is not None:
            queue += [entry for entry in dict.fromkeys((o, reader) for o in chosen) if entry not in queue]

    @rule(name=pull_points, limit=st.integers(1, 6), take=st.booleans())
    def pull(self, name: str, limit: int, take: bool) -> None:
        pulled = self.do("pull", name, limit)
        queue = self.queues.get(name, [])
        assert [(p.stored.offset, p.subscription_id) for p in pulled] == queue[:limit]
        assert all(p.stored.notification == self.log[p.stored.offset] for p in pulled)
        if take and pulled:
            assert self.do("confirm", name, pulled[-1].seq) == len(pulled)
            del queue[: len(pulled)]

    @rule(reader=readers, data=st.data(), reason=st.text(st.characters(codec="utf-8")))
    def bury(self, reader: str, data: st.DataObject, reason: str) -> None:
        if self.log:
            chosen = data.draw(st.lists(st.sampled_from(sorted(self.log)), max_size=3))
            self.do("bury", reader, chosen, reason, 3.0)
            self.dead |= {(reader, offset): reason for offset in chosen}

    @rule()
    def drop_dead_letters(self) -> None:
        letters = self.do("dead_letters", 1000)
        assert self.do("drop_dead_letters", [letter.id for letter in letters]) == len(self.dead)
        self.dead.clear()

    @rule(after=offsets, topics=st.one_of(st.none(), st.sets(keys)))
    def count(self, after: int, topics: set[str] | None) -> None:
        matching = [
            offset
            for offset, n in self.log.items()
            if offset > after
            and n.target is None
            and (topics is None or ("" if n.topic is None else str(n.topic)) in topics)
        ]
        assert self.do("count", after, topics) == len(matching)

    @rule(name=pull_points, limit=st.integers(0, 6))
    def trim(self, name: str, limit: int) -> None:
        queue = self.queues.get(name, [])
        more = max(0, len(queue) - limit)
        assert self.do("trim", name, limit) == more
        del queue[:more]

    @rule(reader=readers)
    def drop_dead_letters_of(self, reader: str) -> None:
        mine = [key for key in self.dead if key[0] == reader]
        assert len(self.do("dead_letters", 1000, subscription_id=reader)) == len(mine)
        assert self.do("drop_dead_letters_of", reader) == len(mine)
        for key in mine:
            del self.dead[key]

    @rule(topic=keys)
    def forget_current(self, topic: str) -> None:
        self.do("forget_current", topic)
        self.forgotten[topic] = self.next - 1

    @rule(
        now=st.integers(0, 150),
        age=st.one_of(st.none(), st.integers(0, 50)),
        size=st.sampled_from([None, 0]),
        head=offsets,
        needs=st.dictionaries(keys, offsets),
        needs_all=st.one_of(st.none(), offsets),
    )
    def prune(
        self,
        now: int,
        age: int | None,
        size: int | None,
        head: int,
        needs: dict[str, int],
        needs_all: int | None,
    ) -> None:
        current = self.current()
        head = min(head, self.journal.last_offset)
        limits: dict[str, Any] = {"retention_age": age, "retention_bytes": size, "id_window": 1}
        pruned = self.do("prune", float(now), **limits, head=head, needs=needs, needs_all=needs_all)
        kept = {offset for queue in self.queues.values() for offset, _ in queue}
        kept |= {offset for _, offset in self.dead}
        for offset, n in self.log.items():
            after = (
                [needs.get("" if n.topic is None else str(n.topic)), needs_all] if n.target is None else []
            )
            if any(offset > upto for upto in [head, *after] if upto is not None):
                kept.add(offset)
        old = {offset for offset, n in self.log.items() if age is not None and n.time < now - age}
        gone = old if size is None else set(self.log) - (set(current.values()) - old)
        kept |= {offset for offset in self.log if offset not in gone}
        held = {self.ends[offset] for offset in kept}
        kept |= {offset for offset in self.log if self.ends[offset] in held}
        assert pruned.entries == len(gone - kept)
        before = {str(n.topic) for n in self.log.values() if n.topic is not None and n.target is None}
        self.log = {offset: n for offset, n in self.log.items() if offset not in gone - kept}
        after_it = {str(n.topic) for n in self.log.values() if n.topic is not None and n.target is None}
        lost = {topic for topic, offset in current.items() if offset in gone - kept}
        for topic in lost:
            self.forgotten[topic] = current[topic]
        assert set(pruned.forgotten) == lost | (before - after_it)

    @rule()
    def restart(self) -> None:
        self.run(self.journal.close())
        recovered = self.open()
        assert recovered.next_offset >= self.given  # further only by cursors that are beyond the log
        self.next = recovered.next_offset
        assert recovered.current == self.current()
        assert {record.id: record.cursor for record in recovered.subscriptions} == self.cursors
        assert {record.id for record in recovered.pull_points} == set(self.queues)

    @invariant()
    def the_log_is_the_models(self) -> None:
        if hasattr(self, "journal"):
            stored = self.do("read", range(1, self.next))
            assert {entry.offset: entry.notification for entry in stored} == self.log

    @invariant()
    def dead_letters_are_the_models(self) -> None:
        if hasattr(self, "journal"):
            letters = self.do("dead_letters", 1000)
            assert {(d.subscription_id, d.stored.offset): d.reason for d in letters} == self.dead
            assert self.do("dead_letter_count") == len(self.dead)

    @invariant()
    def queues_have_the_models_lengths(self) -> None:
        if hasattr(self, "journal"):
            for name in ("p1", "p2"):
                assert self.do("queue_length", name) == len(self.queues.get(name, []))


TestJournalAgainstModel = JournalMachine.TestCase
TestJournalAgainstModel.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
