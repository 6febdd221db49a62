"""What every backbone does: the embedded one, and ActiveMQ."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hpwsn.backbone.activemq.activemq_backbone import ActiveMQBackbone, Settings
from hpwsn.backbone.embedded import EmbeddedBackbone
from hpwsn.backbone.interface import Backbone, Screened
from hpwsn.backbone.wire.destinations import parse_address
from hpwsn.errors import BackboneUnavailable, JournalUnavailable
from hpwsn.journal import Journal
from hpwsn.notification import Notification, Run
from hpwsn_client.wsn.operations.notifications import NotificationMessage, encode_content
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression
from tests.patience import PATIENCE, eventually

Open = Callable[..., Any]


def note(text: str, topic: str | None = "A:B", **more: Any) -> Notification:
    expression = None if topic is None else TopicExpression.of(Topic.parse(topic))
    content, start, end = encode_content(NotificationMessage(expression, f"<m>{text}</m>".encode()))
    parsed = None if topic is None else Topic.parse(topic)
    return Notification(parsed, content, start, end, 1_700_000_000.25, **more)


def keep_all(notifications: Sequence[Notification], *, checked: bool) -> Screened:
    return Screened([Run.of(each) for each in notifications], (), 0, lambda first: None)


async def send(backbone: Backbone, notifications: Sequence[Notification]) -> int | None:
    return await backbone.send([Run.of(each) for each in notifications])


@pytest.fixture(params=["embedded", "activemq", "activemq, not persistent"])
def build(request: pytest.FixtureRequest) -> Callable[[Journal], Backbone]:
    """Makes the same backbone again, as a node that starts again does."""
    if request.param == "embedded":
        return lambda journal: EmbeddedBackbone(journal.append)
    address = parse_address(request.getfixturevalue("activemq").url)
    name = f"contract {uuid.uuid4().hex[:8]}"
    settings = Settings(persistent=request.param == "activemq", batch=10)
    return lambda journal: ActiveMQBackbone(
        address, name, journal=journal, clock=time.time, settings=settings
    )


@pytest.fixture
def opened(build: Callable[[Journal], Backbone], tmp_path: Path) -> Open:
    @asynccontextmanager
    async def open_(**more: Any) -> AsyncIterator[tuple[Backbone, Journal]]:
        journal = Journal(tmp_path / "journal.db", **more)
        await journal.open()
        backbone = build(journal)
        await backbone.start(journal.append, keep_all)

        async def ready() -> bool:
            return backbone.problem() is None

        await eventually(ready)
        try:
            yield backbone, journal
        finally:
            await backbone.close()
            await journal.close()

    return open_


async def stored(journal: Journal) -> list[Notification]:
    scan = await journal.scan(0, limit=100_000, topics=None)
    return [entry.notification for entry in scan.entries]


def texts(notifications: Sequence[Notification]) -> list[str]:
    return [n.payload.decode().removeprefix("<m>").removesuffix("</m>") for n in notifications]


async def test_what_is_sent_is_stored_when_send_returns(opened: Open) -> None:
    async with opened() as (backbone, journal):
        assert await send(backbone, [note("1")]) == 1
        assert texts(await stored(journal)) == ["1"]
        assert await send(backbone, [note("2"), note("3")]) == 2
        assert await send(backbone, [note("4")]) == 4
        assert texts(await stored(journal)) == ["1", "2", "3", "4"]


async def test_nothing_of_a_notification_changes_on_the_way(opened: Open) -> None:
    async with opened() as (backbone, journal):
        sent = [
            note("Überall 京 \U0001f600 &amp; &#xA;", "{urn:x-y}Straße:京", message_id="a:b\\n\n\u2028"),
            note("without a topic", None),
            note("", "{urn:x}A:{urn:y}B"),
            note("x" * 3_000_000, message_id="large"),
        ]
        await send(backbone, sent)
        assert await stored(journal) == sent


async def test_notifications_keep_their_order_and_those_sent_together_stay_together(opened: Open) -> None:
    async with opened() as (backbone, journal):
        groups = [[note(f"{group}.{part}") for part in range(1 + group % 4)] for group in range(300)]
        firsts = await asyncio.gather(*(send(backbone, group) for group in groups))
        assert texts(await stored(journal)) == texts([one for group in groups for one in group])
        assert firsts == [1 + sum(map(len, groups[:number])) for number in range(300)]


async def test_one_send_may_be_larger_than_any_batch(opened: Open) -> None:
    async with opened() as (backbone, journal):
        assert await send(backbone, [note(str(number)) for number in range(500)]) == 1
        assert texts(await stored(journal)) == list(map(str, range(500)))


async def test_the_next_life_goes_on_where_the_last_one_stopped(opened: Open) -> None:
    for life in range(3):
        async with opened() as (backbone, journal):
            assert await send(backbone, [note(f"{life}.0"), note(f"{life}.1")]) == 1 + 2 * life
    async with opened() as (_, journal):
        assert texts(await stored(journal)) == [f"{life}.{part}" for life in range(3) for part in range(2)]


async def test_what_is_under_way_is_stored_before_a_close_returns(opened: Open) -> None:
    async with opened() as (backbone, journal):
        sends = [asyncio.ensure_future(send(backbone, [note(str(number))])) for number in range(50)]
        await asyncio.sleep(0)
        await backbone.close()
        assert await asyncio.gather(*sends) == list(range(1, 51))
        assert texts(await stored(journal)) == list(map(str, range(50)))


async def test_a_closed_backbone_takes_nothing_and_says_so(opened: Open) -> None:
    async with opened() as (backbone, journal):
        await backbone.close()
        assert "closed" in (backbone.problem() or "")
        with pytest.raises(BackboneUnavailable, match="not open"):
            await send(backbone, [note("1")])
        await backbone.close()
        assert await stored(journal) == []


async def test_a_full_journal_refuses_publishers_and_what_was_accepted_is_there_when_it_has_room(
    opened: Open,
) -> None:
    async with opened(max_bytes=400_000, reserve=0) as (backbone, journal):
        answered = 0
        with pytest.raises(JournalUnavailable, match="is full"):
            for number in range(100):
                await asyncio.wait_for(send(backbone, [note(f"{number} " + "x" * 20_000)]), PATIENCE)
                answered += 1
        assert answered >= 3
    async with opened() as (backbone, journal):

        async def all_there() -> bool:
            return len(await stored(journal)) >= answered

        await eventually(all_there)
        await send(backbone, [note("last")])
        kept = [text.split()[0] for text in texts(await stored(journal))]
        assert kept == [*map(str, range(answered)), "last"]


async def test_figures_tell_the_kind_and_the_state(opened: Open) -> None:
    async with opened() as (backbone, _):
        figures = backbone.figures()
        assert figures["kind"] in ("embedded", "activemq")
        assert figures["state"] == "ready"
