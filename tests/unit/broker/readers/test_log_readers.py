"""Readers over a real journal: what wakes them, how far they look, and what they leave alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hpwsn.broker.readers.log_pages import LOOP_BYTES, Page, Stretch, encode_once
from hpwsn.broker.readers.log_readers import FOLLOW_BYTES, FOLLOW_ENTRIES, POLL_BYTES, Query
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.followers import Client, TextForm, following, is_live, opened
from tests.patience import holds, patience
from tests.runs import run_of

A = Query((Topic.parse("A"),))


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
        await log.journal.prune(
            1e9,
            head=6,
            needs={},
            needs_all=None,
            id_window=0,
            retention_age=1.0,
            retention_bytes=None,
        )
        async with following(log, A, 0) as client:
            await client.has(4)
        assert client.texts == ["6", "7", "8", "9"]


async def test_a_follower_gets_everything_once_and_in_order_however_it_comes(tmp_path: Path) -> None:
    total = 5 * FOLLOW_ENTRIES
    async with opened(tmp_path) as log, following(log, A, 0) as client:
        sent = 0
        while sent < total:
            burst = 1 if sent % 3 else 2 * FOLLOW_ENTRIES
            await log.publish(f"A:t{sent % 7}", *map(str, range(sent, min(total, sent + burst))))
            sent += burst
        await client.has(total)
        assert client.texts == list(map(str, range(total)))


async def test_a_page_is_bounded_in_bytes_and_the_next_goes_on(tmp_path: Path) -> None:
    large = "x" * (FOLLOW_BYTES // 3)
    async with opened(tmp_path) as log:
        await log.publish("A", *[large] * 7)
        async with following(log, A, 0) as client:
            await client.has(7)
            assert client.pages == [2, 2, 2, 1]
            await is_live(log)
            await log.publish("A", *[large] * 7)
            await client.has(14)
            assert client.offsets == list(range(1, 15))
            assert max(client.pages) == 2
        await log.publish("B", *["x" * POLL_BYTES] * 2)
        page = await log.readers.poll(Query((Topic.parse("B"),)), 0, 10, 0)
        assert (page.count, page.upto) == (1, 15)


async def test_news_of_other_topics_wake_nobody(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, following(log, A, 0) as client:
        await log.publish("B", *map(str, range(1000)))
        await log.publish("B:A", "x")
        assert client.data == []
        await log.publish("A:C", "1")
        await client.has(1)
        assert (client.texts, log.head) == (["1"], 1002)


async def test_a_quiet_connection_is_kept_alive_at_each_beat(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, following(log, A, 0, beat=0.01) as client:
        await holds(lambda: client.beats >= 3)
        assert client.data == []
        await log.publish("A", "1")
        await client.has(1)
        assert client.texts == ["1"]


async def test_a_filter_lets_a_poll_wait_on_until_something_is_selected(tmp_path: Path) -> None:
    wanted = Query(A.topics, ContentFilter(DIALECT_XPATH, "n = 3"))
    async with opened(tmp_path) as log, patience():
        page = asyncio.ensure_future(log.readers.poll(wanted, 0, 10, 15))
        for n in range(5):
            await log.publish("A", str(n))
        assert texts(await page) == ["3"]
        assert (await log.readers.poll(wanted, 4, 10, 0)).upto == 5


async def test_a_filter_that_selects_more_than_asked_goes_on_where_it_stopped(tmp_path: Path) -> None:
    wanted = Query(A.topics, ContentFilter(DIALECT_XPATH, "n mod 2 = 1"))
    async with opened(tmp_path) as log:
        await log.publish("A", *map(str, range(2500)))
        found, after = [], 0
        while (page := await log.readers.poll(wanted, after, 7, 0)).stretches:
            assert page.count <= 7
            found += texts(page)
            after = page.upto
        assert (found, after) == ([str(n) for n in range(1, 2500, 2)], 2500)


async def test_without_subtrees_a_topic_is_itself_alone(tmp_path: Path) -> None:
    async with opened(tmp_path, subtree=False) as log, following(log, A, 0) as client:
        await log.publish("A", "0")
        await is_live(log)
        await log.publish("A:B", "1")
        await log.publish("A", "2")
        await client.has(2)
        assert client.texts == ["0", "2"]


async def test_closing_ends_every_wait(tmp_path: Path) -> None:
    async with opened(tmp_path) as log, patience():
        page = asyncio.ensure_future(log.readers.poll(A, 0, 10, 300))
        client = Client(TextForm())
        follower = asyncio.ensure_future(log.readers.follow(A, 0, 60, client))
        await is_live(log)
        await log.publish("B", "1")
        log.readers.close()
        assert (await page).stretches == []
        await follower
        assert client.data == []


async def test_new_commits_come_from_memory_and_are_encoded_once_for_all_followers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as log, AsyncExitStack() as stack:
        await log.publish("A", "0")

        async def no_look(*given: object, **named: object) -> None:
            raise AssertionError("a reader at the end of the log looked into the journal")

        form = TextForm()
        clients = [await stack.enter_async_context(following(log, A, 1, form=form)) for _ in range(3)]
        poll = asyncio.ensure_future(log.readers.poll(A, 1, 10, 60))
        await is_live(log, 3)
        monkeypatch.setattr(log.journal, "scan_runs", no_look)
        monkeypatch.setattr(log.journal, "read", no_look)
        await log.publish("A", "1", "2")
        assert texts(await poll) == ["1", "2"]
        for client in clients:
            await client.has(2)
            assert client.entries == [(2, "1"), (3, "2")]
        assert form.encoded == [2, 3]


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
        async with following(log, A, 3) as client:
            await is_live(log)
            await log.publish("A", "2", "3")
            await log.publish("A", "4")
            async with patience():
                page = await poll
            await client.has(1)
            assert (texts(page), page.upto, client.entries) == (["4"], 4, [(4, "4")])
