"""Readers over a real journal: what wakes them, how far they look, and what they leave alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import pytest

from hpwsn.broker.delivery.log_pages import LOOP_BYTES, Page, Stretch, encode_once
from hpwsn.broker.delivery.log_readers import FOLLOW_BYTES, FOLLOW_ENTRIES, POLL_BYTES, Query, Readers
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.journal import Journal
from hpwsn.matching.content.content_filters import compile_condition
from hpwsn.notification import Run, members
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import patience
from tests.runs import run_of

A = Query((Topic.parse("A"),))


class Log:
    """A journal, a tree and their readers, joined as a node joins them."""

    def __init__(self, journal: Journal, subtree: bool) -> None:
        self.journal = journal
        self.tree: TopicTree[Subscription] = TopicTree(simple_subtree=subtree)
        self.head = 0
        self.readers = Readers(journal, self.tree, lambda: self.head, subtree=subtree)
        journal.committed.add(self._commit)

    def _commit(self, first: int, runs: Sequence[Run]) -> None:
        for offset, notification in enumerate(members(runs), first):
            if notification.topic is not None:
                self.tree.retain(notification.topic, offset)
            self.head = offset
        self.readers.committed(first, runs)

    async def publish(self, topic: str | None, *texts: str, target: str | None = None) -> None:
        payloads = [f"<m><n>{text}</n></m>".encode() for text in texts]
        await self.journal.append([run_of(topic, payload, target=target) for payload in payloads])


@asynccontextmanager
async def opened(folder: Path, subtree: bool = True) -> AsyncIterator[Log]:
    journal = Journal(folder / "data" / "journal.db", reserve=0)
    await journal.open()
    try:
        yield Log(journal, subtree)
    finally:
        await journal.close()


def texts(page: Page) -> list[str]:
    payloads = [payload for each in page.stretches for payload in each.payloads]
    return [payload.decode().split("<n>")[1].split("<")[0] for payload in payloads]


async def test_a_topic_covers_those_below_it_and_nothing_posted_to_a_pull_point(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        await log.publish("A:B", "1")
        await log.publish("AB", "2")
        await log.publish(None, "3")
        await log.publish("A", "4", target="point")
        await log.publish("A", "5")
        page = await log.readers.poll(A, 0, 10, 0)
        assert (texts(page), page.upto) == (["1", "5"], 5)


async def test_a_reader_behind_retention_gets_what_is_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        await log.publish("A", *map(str, range(10)))
        async with aclosing(log.readers.follow(A, 0, 60)) as pages:
            await log.journal.prune(
                1e9,
                head=6,
                needs={},
                needs_all=None,
                id_window=0,
                retention_age=1.0,
                retention_bytes=None,
            )
            assert texts(await anext(pages)) == ["6", "7", "8", "9"]


async def test_a_follower_gets_everything_once_and_in_order_however_it_comes(tmp_path: Path) -> None:
    total = 5 * FOLLOW_ENTRIES
    async with opened(tmp_path) as log, patience():

        async def publish() -> None:
            sent = 0
            while sent < total:
                burst = 1 if sent % 3 else 2 * FOLLOW_ENTRIES
                await log.publish(f"A:t{sent % 7}", *map(str, range(sent, min(total, sent + burst))))
                sent += burst

        publishing = asyncio.ensure_future(publish())
        found: list[str] = []
        async with aclosing(log.readers.follow(A, 0, 60)) as pages:
            while len(found) < total:
                found += texts(await anext(pages))
        await publishing
        assert found == list(map(str, range(total)))


async def test_a_page_is_bounded_in_bytes_and_the_next_goes_on(tmp_path: Path) -> None:
    large = "x" * (FOLLOW_BYTES // 3)
    async with opened(tmp_path) as log, patience():
        async with aclosing(log.readers.follow(A, 0, 60)) as pages:
            await log.publish("A", *[large] * 7)
            assert [len(texts(await anext(pages))) for _ in range(4)] == [2, 2, 2, 1]
            await log.publish("A", *[large] * 7)
            assert [len(texts(await anext(pages))) for _ in range(4)] == [2, 2, 2, 1]
        await log.publish("B", *["x" * POLL_BYTES] * 2)
        page = await log.readers.poll(Query((Topic.parse("B"),)), 0, 10, 0)
        assert (page.count, page.upto) == (1, 15)


async def test_news_of_other_topics_wake_nobody(tmp_path: Path) -> None:
    async with (
        opened(tmp_path) as log,
        patience(),
        aclosing(log.readers.follow(A, 0, 60)) as pages,
    ):
        page = asyncio.ensure_future(anext(pages))
        await log.publish("B", *map(str, range(1000)))
        await log.publish("B:A", "x")
        assert not page.done()
        await log.publish("A:C", "1")
        assert (texts(await page), log.head) == (["1"], 1002)


async def test_a_quiet_stream_has_an_empty_page_at_each_beat(tmp_path: Path) -> None:
    async with (
        opened(tmp_path) as log,
        patience(),
        aclosing(log.readers.follow(A, 0, 0.01)) as pages,
    ):
        assert [texts(await anext(pages)) for _ in range(3)] == [[], [], []]
        await log.publish("A", "1")
        while not (page := await anext(pages)).stretches:
            pass
        assert texts(page) == ["1"]


async def test_a_filter_lets_a_poll_wait_on_until_something_is_selected(tmp_path: Path) -> None:
    wanted = Query(A.topics, compile_condition(ContentFilter(DIALECT_XPATH, "n = 3")))
    async with opened(tmp_path) as log, patience():
        page = asyncio.ensure_future(log.readers.poll(wanted, 0, 10, 15))
        for n in range(5):
            await log.publish("A", str(n))
        assert texts(await page) == ["3"]
        assert (await log.readers.poll(wanted, 4, 10, 0)).upto == 5


async def test_a_filter_that_selects_more_than_asked_goes_on_where_it_stopped(tmp_path: Path) -> None:
    wanted = Query(A.topics, compile_condition(ContentFilter(DIALECT_XPATH, "n mod 2 = 1")))
    async with opened(tmp_path) as log:
        await log.publish("A", *map(str, range(2500)))
        found, after = [], 0
        while (page := await log.readers.poll(wanted, after, 7, 0)).stretches:
            assert page.count <= 7
            found += texts(page)
            after = page.upto
        assert (found, after) == ([str(n) for n in range(1, 2500, 2)], 2500)


async def test_without_subtrees_a_topic_is_itself_alone(tmp_path: Path) -> None:
    async with (
        opened(tmp_path, subtree=False) as log,
        patience(),
        aclosing(log.readers.follow(A, 0, 60)) as pages,
    ):
        await log.publish("A", "0")
        assert texts(await anext(pages)) == ["0"]
        page = asyncio.ensure_future(anext(pages))
        await log.publish("A:B", "1")
        await log.publish("A", "2")
        assert texts(await page) == ["2"]


async def test_closing_ends_every_wait(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, patience():
        page = asyncio.ensure_future(log.readers.poll(A, 0, 10, 300))
        stream = asyncio.ensure_future(_all(log.readers))
        await log.publish("B", "1")
        log.readers.close()
        assert (await page).stretches == []
        assert await stream == []


async def _all(readers: Readers) -> list[Page]:
    async with aclosing(readers.follow(A, 0, 60)) as pages:
        return [page async for page in pages]


async def test_new_commits_are_read_from_memory_and_encoded_once_for_all_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as log:
        await log.publish("A", "0")

        async def no_look(*given: object, **named: object) -> None:
            raise AssertionError("a reader at the end of the log looked into the journal")

        encoded: list[int] = []

        def encode(stretches: Sequence[Stretch]) -> list[bytes]:
            offsets = [offset for each in stretches for offset in each.offsets]
            encoded.extend(offsets)
            return [b"%d" % offset for offset in offsets]

        async with AsyncExitStack() as stack:
            readers = [
                await stack.enter_async_context(aclosing(log.readers.follow(A, 1, 60))) for _ in range(3)
            ]
            waiting = [asyncio.ensure_future(anext(pages)) for pages in readers]
            poll = asyncio.ensure_future(log.readers.poll(A, 1, 10, 60))
            await asyncio.sleep(0)
            monkeypatch.setattr(log.journal, "scan_runs", no_look)
            monkeypatch.setattr(log.journal, "read", no_look)
            await log.publish("A", "1", "2")
            for page in [*await asyncio.gather(*waiting), await poll]:
                assert texts(page) == ["1", "2"]
                assert await encode_once(page.stretches, encode) == [b"2", b"3"]
            assert encoded == [2, 3]


async def test_a_large_entry_is_encoded_once_in_a_thread() -> None:
    run = run_of("A", b"<n>" + b"x" * LOOP_BYTES + b"</n>")
    stretch, threads = Stretch(range(1, 2), run), []

    def encode(stretches: Sequence[Stretch]) -> list[bytes]:
        threads.append(threading.current_thread())
        return [b"made"]

    made = await asyncio.gather(*[encode_once([stretch], encode) for _ in range(5)])
    assert made == [[b"made"]] * 5
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_a_reader_beyond_the_end_gets_nothing_before_its_offset(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        await log.publish("A", "1")
        poll = asyncio.ensure_future(log.readers.poll(A, 3, 10, 60))
        async with aclosing(log.readers.follow(A, 3, 60)) as pages:
            following = asyncio.ensure_future(anext(pages))
            await asyncio.sleep(0)
            await log.publish("A", "2", "3")
            await log.publish("A", "4")
            async with patience():
                found = await asyncio.gather(poll, following)
            assert [(texts(page), page.upto) for page in found] == [(["4"], 4)] * 2
