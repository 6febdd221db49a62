"""The pace of a connection: never more than its limit in any second, and an exact count of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.readers import live_delivery
from hpwsn.broker.readers.log_pages import Stretch
from hpwsn.broker.readers.log_readers import Query
from hpwsn.broker.readers.pace import Pace
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.followers import TextForm, following, is_live, opened
from tests.patience import holds
from tests.runs import run_of

ARRIVALS = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 9)), max_size=40)
"""Tenths of a second since the last arrival, and its number of events."""


@given(st.integers(1, 10), ARRIVALS)
def test_no_second_has_more_than_the_limit_and_nothing_is_refused_in_vain(
    limit: int, arrivals: list[tuple[int, int]]
) -> None:
    pace, tenths = Pace(limit), 0
    sent: list[int] = []
    for pause, count in arrivals:
        tenths += pause
        taken = pace.take(count, tenths / 8)
        recent = sum(tenths - each < 8 for each in sent)
        assert taken == min(count, limit - recent)
        sent += [tenths] * taken


def test_what_is_over_the_limit_is_skipped_and_counted() -> None:
    pace = Pace(3)
    one, two = (
        Stretch(range(5, 7), run_of("A", b"<a/>", b"<b/>")),
        Stretch([9, 12], run_of("A", b"<c/>", b"<d/>")),
    )
    kept = pace.admit([one, two], 100.0)
    assert [offset for each in kept for offset in each.offsets] == [5, 6, 9]
    assert (pace.skipped, pace.upto) == (1, 12)
    assert pace.admit([one], 100.5) == []
    assert (pace.skipped, pace.upto) == (3, 6)
    pace.told()
    assert pace.admit([two], 101.0) == [two]
    assert pace.skipped == 0


def on(topic: str, content: ContentFilter | None = None) -> Query:
    return Query((Topic.parse(topic),), content)


@pytest.mark.parametrize("content", [None, ContentFilter(DIALECT_PREDICATES, "n >= 0")])
async def test_a_live_follower_gets_the_first_events_and_the_rest_is_not_encoded(
    tmp_path: Path, content: ContentFilter | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_delivery, "TELL_AFTER", 0.01)
    form = TextForm()
    async with (
        opened(tmp_path) as log,
        following(log, on("A", content), 0, form=form, pace=Pace(3)) as client,
    ):
        await is_live(log)
        await log.publish_run("A", *[b"<m><n>%d</n></m>" % n for n in range(50)])
        await holds(lambda: b"skipped" in b"".join(client.data))
        assert b"".join(client.data).splitlines() == [b"1 0", b"2 1", b"3 2", b"50 skipped 47"]
        assert form.encoded == [1, 2, 3]


async def test_other_followers_of_the_feed_get_everything(tmp_path: Path) -> None:
    form = TextForm()
    async with (
        opened(tmp_path) as log,
        following(log, on("A"), 0, form=form, pace=Pace(2)) as paced,
        following(log, on("A"), 0, form=form, pace=Pace(5)) as faster,
        following(log, on("A"), 0, form=form) as all_of_it,
    ):
        await is_live(log, 3)
        await log.publish_run("A", *[b"<m><n>%d</n></m>" % n for n in range(20)])
        await all_of_it.has(20)
        await paced.has(2)
        await faster.has(5)
        assert all_of_it.offsets == list(range(1, 21))
        assert paced.offsets[:2] == [1, 2]
        assert faster.offsets[:5] == [1, 2, 3, 4, 5]
        assert sorted(form.encoded) == list(range(1, 21)), "each is encoded once"


async def test_the_count_comes_before_the_next_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    pace = Pace(1)
    take = pace.take
    monkeypatch.setattr(Pace, "take", lambda self, count, now: take.__func__(self, count, clock[0]))  # type: ignore[attr-defined]
    async with opened(tmp_path) as log, following(log, on("A"), 0, pace=pace) as client:
        await is_live(log)
        await log.publish_run("A", b"<m><n>a</n></m>", b"<m><n>b</n></m>", b"<m><n>c</n></m>")
        await holds(lambda: pace.skipped == 2)
        clock[0] += 1
        await log.publish_run("A", b"<m><n>d</n></m>")
        await holds(lambda: b"4 d" in b"".join(client.data))
        assert b"".join(client.data).splitlines() == [b"1 a", b"3 skipped 2", b"4 d"]


async def test_a_slow_client_reads_the_log_and_is_still_told_once(tmp_path: Path) -> None:
    pace = Pace(2)
    async with opened(tmp_path) as log, following(log, on("A"), 0, pace=pace) as client:
        await is_live(log)
        client.be_slow()
        await log.publish_run("A", b"<m><n>a</n></m>", b"<m><n>b</n></m>")
        await holds(lambda: not list(log.live._feeds))
        client.be_slow(False)
        await client.has(2)
        assert client.offsets == [1, 2]
        assert pace.skipped == 0
