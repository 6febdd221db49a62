"""Message ids of the fast lane: taken once, told to whoever repeats them, forgotten where it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hpwsn.broker.admission.admission import Publisher
from hpwsn.broker.admission.message_ids import Span
from hpwsn.errors import JournalUnavailable
from hpwsn.notification import Batch, Encoded, EncodedRun, Notification
from hpwsn.topics.tree.tree import TopicTree
from tests.patience import PATIENCE


class Backbone:
    """Gives offsets from 10 on, or fails."""

    def __init__(self) -> None:
        self.fails = False

    async def send(self, notifications: Sequence[Notification]) -> int:
        if self.fails:
            raise JournalUnavailable("no disk")
        return 10


def publisher(backbone: Backbone) -> Publisher:
    return Publisher(
        tree=TopicTree(),
        backbone=backbone,  # type: ignore[arg-type]
        clock=lambda: 1000.0,
        id_window=60.0,
        admit=lambda notifications: None,
        content_limit=1000,
        registered=lambda messages, registration: None,
    )


def encoded(id_: str | None) -> Encoded:
    return Encoded(None, b"<x/>", 0, 4, id_)


async def test_a_repetition_is_told_where_the_first_one_is() -> None:
    taker = publisher(Backbone())
    plain, once = taker.ready([encoded(None)]), taker.ready([encoded("a"), encoded("a")])
    assert taker.take_once("a", once) is None
    repeated = taker.take_once("a", once)
    assert repeated is not None
    assert not repeated.done()
    assert await taker.send_ready([*plain, *once])
    assert await repeated == Span(11, 12)
    assert (taker.accepted, taker.repeated) == (3, 2)


async def test_a_run_among_others_is_found_where_all_of_it_is() -> None:
    taker = publisher(Backbone())
    plain, once = taker.ready([encoded(None)]), taker.ready(EncodedRun(None, b"", b"<a/>\x1e" * 3, 3, "a"))
    assert taker.take_once("a", once) is None
    repeated = taker.take_once("a", once)
    assert repeated is not None
    assert await taker.send_ready(Batch([plain, once, plain]))
    assert await repeated == Span(11, 13)
    assert (taker.accepted, taker.repeated) == (5, 3)


async def test_an_id_whose_notifications_were_not_stored_is_new_again() -> None:
    backbone = Backbone()
    taker = publisher(backbone)
    once = taker.ready([encoded("a")])
    assert taker.take_once("a", once) is None
    repeated = taker.take_once("a", once)
    backbone.fails = True
    assert not await taker.send_ready(once)
    assert repeated is not None
    assert isinstance(repeated.exception(), Exception)
    assert taker.take_once("a", once) is None
    backbone.fails = False
    assert await asyncio.wait_for(taker.send_ready(once), PATIENCE)
