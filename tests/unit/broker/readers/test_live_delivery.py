"""Long connections get exactly what a poll with the same filter gives, whatever they and the log do."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hpwsn.broker.readers import live_delivery
from hpwsn.broker.readers.log_pages import LOOP_BYTES, Stretch
from hpwsn.broker.readers.log_readers import FOLLOW_ENTRIES, Query
from hpwsn.matching.content.content_filters import ContentFilters, Evaluation
from hpwsn.notification import LARGE, with_large_apart
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.followers import Client, Log, TextForm, following, is_live, opened
from tests.patience import holds, patience
from tests.runs import run_of

TOPICS = [("A",), ("A:B",), ("A", "A:B"), ("C", "A:B"), ("A:B", "C")]


def predicates(text: str) -> ContentFilter:
    return ContentFilter(DIALECT_PREDICATES, text)


def on(*topics: str, content: ContentFilter | None = None) -> Query:
    return Query(tuple(map(Topic.parse, topics)), content)


def event(number: int, size: int = 0) -> bytes:
    blob = f"<blob>{'x' * size}</blob>" if size else ""
    return f"<m><n>{number}</n><k>{number % 7}</k>{blob}</m>".encode()


async def polled(log: Log, query: Query, after: int) -> list[int]:
    """The offsets that polls give."""
    found: list[int] = []
    while True:
        page = await log.readers.poll(query, after, 1000, 0)
        found += page.offsets
        after = page.upto
        if after >= log.head:
            return found


class Reader:
    """One client over all its connections: it resumes after the last event that it has got."""

    def __init__(self, log: Log, query: Query, form: TextForm) -> None:
        self.log, self.query, self.form = log, query, form
        self.after = log.head
        self.client: Client | None = None
        self.taken: list[int] = []

    def connect(self) -> None:
        after = self.taken[-1] if self.taken else self.after
        self.client = Client(self.form)
        follow = self.log.readers.follow(self.query, after, 60, self.client)
        self.task = asyncio.ensure_future(follow)

    async def disconnect(self) -> None:
        assert self.client is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.taken += self.client.offsets
        self.client = None

    @property
    def offsets(self) -> list[int]:
        return self.taken + (self.client.offsets if self.client else [])


def random_filter(chance: random.Random) -> ContentFilter | None:
    low = chance.randrange(2000)
    return chance.choice(
        [
            None,
            predicates(f"n >= {low} and n < {low + chance.choice((5, 300))}"),
            predicates(f"k = {chance.randrange(7)}"),
            ContentFilter(DIALECT_XPATH, f"n mod {chance.randint(2, 4)} = 1"),
            ContentFilter(DIALECT_XPATH, f"k = {chance.randrange(7)}"),
        ]
    )


@pytest.mark.parametrize("seed", range(9))
async def test_a_follower_gets_exactly_what_a_poll_gives(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    if seed % 3 == 0:
        # Small bounds, so that parts of one commit wait in the queue while followers come and go.
        monkeypatch.setattr(live_delivery, "FLUSH_BYTES", 400)
        monkeypatch.setattr(live_delivery, "QUEUED_BYTES", 3000)
    number = 0
    async with opened(tmp_path) as log, patience():
        forms = [TextForm(), TextForm()]
        readers: list[Reader] = []
        for _ in range(120):
            act = chance.random()
            if act < 0.35:
                count = chance.choice((1, 3, 30, 90))
                sizes = [LOOP_BYTES + 1 if chance.random() < 0.01 else 0 for _ in range(count)]
                payloads = [event(number + n, size) for n, size in enumerate(sizes)]
                await log.publish_run(chance.choice(("A", "A:B", "A:B:D", "C", "E")), *payloads)
                number += count
            elif not readers or (act < 0.65 and len(readers) < 45):
                query = on(*chance.choice(TOPICS), content=random_filter(chance))
                readers.append(Reader(log, query, chance.choice(forms)))
                readers[-1].after = chance.choice((0, log.head, log.head // 2, log.head + 3))
                readers[-1].connect()
            else:
                reader = chance.choice(readers)
                if reader.client is None:
                    reader.connect()
                elif act < 0.8:
                    await reader.disconnect()
                else:
                    reader.client.be_slow(not reader.client.slow)
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        for reader in readers:
            if reader.client is None:
                reader.connect()
            assert reader.client is not None
            reader.client.be_slow(slow=False)
        for reader in readers:
            wanted = await polled(log, reader.query, reader.after)
            await holds(lambda reader=reader, wanted=wanted: len(reader.offsets) >= len(wanted))
            assert reader.offsets == wanted
        for reader in readers:
            await reader.disconnect()
        assert not log.live
        assert len(log.content) == 0


async def test_many_followers_with_equal_and_different_filters_each_get_their_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, AsyncExitStack() as stack:
        form, clients = TextForm(), []
        for number in range(120):
            query = on("A", content=predicates(f"n >= {number % 60} and n < {number % 60 + 3}"))
            clients.append(await stack.enter_async_context(following(log, query, 0, form=form)))
        await is_live(log, 120)
        await log.publish_run("A", *[event(number) for number in range(70)])
        for number, client in enumerate(clients):
            await client.has(3)
            assert client.offsets == [number % 60 + 1 + n for n in range(3)]
            assert client.writes == 1
        assert form.encoded == list(range(1, 63)), "only what somebody wants is encoded, and once"


async def test_equal_filters_are_evaluated_once_and_a_filter_that_does_not_match_costs_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[object] = []
    accepts = Evaluation.accepts

    def counted(self: Evaluation, compiled: object) -> bool:
        evaluated.append(compiled)
        return accepts(self, compiled)  # type: ignore[arg-type]

    monkeypatch.setattr(Evaluation, "accepts", counted)
    async with opened(tmp_path) as log, AsyncExitStack() as stack:
        texts = ["n > 5", "n > 5", "n > 5", "n > 50"]
        clients = [
            await stack.enter_async_context(following(log, on("A", content=predicates(text)), 0))
            for text in texts
        ]
        await is_live(log, 4)
        await log.publish_run("A", event(7))
        await clients[0].has(1)
        assert [client.writes for client in clients] == [1, 1, 1, 0]
        assert len(evaluated) == 2


async def test_commits_of_one_turn_are_one_write(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, following(log, on("A"), 0) as client:
        await is_live(log)
        for first in (1, 3, 5):
            log._commit(first, [run_of("A", event(first), event(first + 1))])
        assert client.writes == 0
        await client.has(6)
        assert (client.offsets, client.writes) == ([1, 2, 3, 4, 5, 6], 1)


async def test_a_commit_waits_for_a_flush_once_the_queue_holds_more_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of("A", event(1))
    monkeypatch.setattr(live_delivery, "QUEUED_BYTES", 3 * run.content_size)
    monkeypatch.setattr(live_delivery, "FLUSH_BYTES", run.content_size)
    async with opened(tmp_path) as log, following(log, on("A"), 0) as client:
        await is_live(log)
        for offset in (1, 2, 3):
            log._commit(offset, [run])
        assert client.writes == 0
        log._commit(4, [run])
        assert client.offsets == [1]
        await client.has(4)
        assert client.offsets == [1, 2, 3, 4]


async def test_a_client_that_takes_nothing_holds_one_page_and_delays_nobody(tmp_path: Path) -> None:
    async with (
        opened(tmp_path) as log,
        following(log, on("A"), 0) as slow,
        following(log, on("A"), 0) as quick,
    ):
        await is_live(log, 2)
        slow.be_slow()
        for first in range(0, 5 * FOLLOW_ENTRIES, 100):
            await log.publish_run("A", *map(event, range(first, first + 100)))
        await quick.has(5 * FOLLOW_ENTRIES)
        assert slow.data == []
        assert not slow.pages, "the log is read only after the client has taken what was written"
        slow.be_slow(slow=False)
        await slow.has(5 * FOLLOW_ENTRIES)
        assert slow.offsets == quick.offsets == list(range(1, 5 * FOLLOW_ENTRIES + 1))
        assert max(slow.pages) <= FOLLOW_ENTRIES


async def test_a_slow_client_that_is_only_kept_alive_goes_on_where_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, following(log, on("A"), 0, beat=0.01) as client:
        await is_live(log)
        await log.publish_run("A", event(1), event(2))
        await client.has(2)
        client.be_slow()
        await holds(lambda: not log.live)
        client.be_slow(slow=False)
        await log.publish_run("A", event(3))
        await client.has(3)
        assert client.offsets == [1, 2, 3]


async def test_a_closed_connection_ends_its_follower_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, following(log, on("A"), 0) as client:
        gone = Client(TextForm())
        task = asyncio.ensure_future(log.readers.follow(on("A"), 0, 60, gone))
        await is_live(log, 2)
        gone.closed = True
        await log.publish_run("A", event(1))
        async with patience():
            with pytest.raises(ConnectionResetError):
                await task
        await client.has(1)
        assert len(list(log.live._feeds)) == 1


async def test_events_that_cannot_be_encoded_end_the_connection_and_not_the_others(tmp_path: Path) -> None:
    class Broken(TextForm):
        def encode(self, stretches: object) -> list[bytes]:
            raise ValueError("cannot be encoded")

    async with opened(tmp_path) as log, following(log, on("A"), 0) as client:
        task = asyncio.ensure_future(log.readers.follow(on("A"), 0, 60, Client(Broken())))
        await is_live(log, 2)
        await log.publish_run("A", event(1))
        async with patience():
            with pytest.raises(ValueError, match="cannot be encoded"):
                await task
        await client.has(1)


def test_a_run_is_cut_into_stretches_of_a_size_that_together_are_the_run() -> None:
    payloads = [event(n, n * 10) for n in range(40)]
    whole = Stretch(range(5, 45), run_of("A", *payloads))
    for size in (1, 100, 500, 3000, 10**6):
        parts = list(whole.cut(size))
        assert [offset for part in parts for offset in part.offsets] == list(range(5, 45))
        assert [payload for part in parts for payload in part.payloads] == payloads
        assert all(len(part.offsets) == 1 or sum(map(len, part.payloads)) <= size for part in parts)


async def test_after_an_error_in_matching_the_followers_read_the_log_and_flushes_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        opened(tmp_path) as log,
        following(log, on("A"), 0) as everything,
        following(log, on("A", content=predicates("n >= 0")), 0) as some,
        following(log, on("C"), 0) as other,
    ):
        await is_live(log, 3)
        with monkeypatch.context() as patched:

            def broken(self: ContentFilters, payload: bytes) -> Evaluation:
                raise MemoryError("no evaluation")

            patched.setattr(ContentFilters, "evaluation", broken)
            await log.publish_run("A", event(1), event(2))
            await log.publish_run("C", event(3))
            await everything.has(2)
            await some.has(2)
            await other.has(1)
        assert "could not be matched" in caplog.text
        await is_live(log, 3)
        await log.publish_run("A", event(4))
        await everything.has(3)
        await some.has(3)
        assert everything.offsets == some.offsets == [1, 2, 4]
        assert (other.offsets, everything.writes, some.writes) == ([3], 1, 1)


async def test_readers_that_find_a_large_event_in_the_log_share_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, AsyncExitStack() as stack, patience():
        await log.journal.append(with_large_apart([run_of("A", event(1, LARGE))]))
        form = TextForm()
        clients = [Client(form) for _ in range(5)]
        for client in clients:
            client.be_slow()
            task = asyncio.ensure_future(log.readers.follow(on("A"), 0, 60, client))
            stack.callback(task.cancel)
            await holds(lambda client=client: client.pages == [1])
        assert form.encoded == [1], "all share the bytes while one of them has them"
        for client in clients:
            client.be_slow(slow=False)
            await client.has(1)
