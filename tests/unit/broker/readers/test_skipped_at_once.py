"""Events that are counted for all full paces at once: followers get what they get when each is delivered."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpwsn.broker.readers import live_delivery
from hpwsn.broker.readers.feeds import Feed, Feeds, Follower
from hpwsn.broker.readers.live_delivery import LiveDelivery
from hpwsn.broker.readers.log_pages import LOOP_BYTES
from hpwsn.broker.readers.log_readers import Query
from hpwsn.broker.readers.pace import Pace
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.node.content_engines import NEVER, BrokerEngines
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.followers import Client, TextForm, following, is_live, opened
from tests.patience import holds
from tests.runs import run_of

UPPER, LOWER = Topic.parse("A"), Topic.parse("A:B")
PLACES = {UPPER: (UPPER,), LOWER: (LOWER, UPPER)}
SOME = ContentFilter(DIALECT_PREDICATES, "n >= 3")


class Loop:
    """What live delivery uses of an event loop, at times that a test chooses."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._due: list[tuple[float, int, Any]] = []
        self._number = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[..., None], *args: object) -> Any:
        self._number += 1
        handle = SimpleNamespace(call=lambda: call(*args), cancelled=False)
        handle.cancel = lambda: setattr(handle, "cancelled", True)
        self._due.append((max(when, self.now), self._number, handle))
        return handle

    def call_soon(self, call: Callable[..., None], *args: object) -> Any:
        return self.call_at(self.now, call, *args)

    def call_later(self, seconds: float, call: Callable[..., None], *args: object) -> Any:
        return self.call_at(self.now + seconds, call, *args)

    def turn(self) -> None:
        """Make the calls that are due now, and not those that they add."""
        due = sorted(each for each in self._due if each[0] <= self.now)
        self._due = [each for each in self._due if each[0] > self.now]
        for _, _, handle in due:
            if not handle.cancelled:
                handle.call()

    def advance(self, seconds: float) -> None:
        """Let time pass, and make all calls that are due by then."""
        end = self.now + seconds
        while self._due and min(self._due)[0] <= end:
            first = min(self._due, key=lambda each: each[:2])
            self._due.remove(first)
            self.now = max(self.now, first[0])
            if not first[2].cancelled:
                first[2].call()
        self.now = end


class World:
    """Live delivery with its followers, all of whose steps are repeatable."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.content = ContentFilters()
        self.content.acquire((SOME,))
        self.live = LiveDelivery(Feeds(self.content, lambda topics: BrokerEngines(NEVER)))
        self.form = TextForm()
        self.followers: list[Follower] = []
        self.clients: list[Client] = []
        self.head = 0
        self.committed: list[tuple[int, Topic, bool, int]] = []
        self.returned: list[tuple[int, list[int]]] = []

    def enter(self, topic: Topic, content: bool, limit: int, internal: bool, ahead: int) -> None:
        client = Client(self.form)
        client.pace = Pace(limit) if limit else None
        self.clients.append(client)
        self.followers.append(Follower((topic,), SOME if content else None, client, internal))
        self.live.enter(self.followers[-1], self.head + ahead)

    def leave(self, number: int) -> None:
        self.loop.advance(0.0)  # else what is queued is skipped in one world and left in the log in the other
        if self.followers:
            self.live.leave(self.followers[number % len(self.followers)])

    def back(self, number: int) -> None:
        """Let a follower that has left return, as if it had read the log and its pace had not changed."""
        self.loop.turn()
        if self.followers and self.followers[number % len(self.followers)].feed is None:
            self.returned.append((self.head, self.left(number % len(self.followers))))
            self.live.enter(self.followers[number % len(self.followers)], self.head)

    def slow(self, number: int) -> None:
        if self.clients:
            client = self.clients[number % len(self.clients)]
            client.be_slow(not client.slow)

    def commit(self, topic: Topic, numbers: list[int], internal: bool) -> None:
        first = self.head + 1
        self.head += len(numbers)
        self.committed += [(first + place, topic, internal, n) for place, n in enumerate(numbers)]
        run = run_of(str(topic), *[b"<m><n>%d</n></m>" % n for n in numbers])
        groups = self.live.groups(PLACES[topic], internal)
        if groups:
            self.live.committed(groups, first, run)

    def left(self, number: int) -> list[int]:
        """The events that a follower will get from the log."""
        follower = self.followers[number]
        return [
            offset
            for offset, topic, internal, n in self.committed
            if offset > follower.upto
            and follower.topics[0] in PLACES[topic]
            and internal <= follower.internal
            and (follower.content is None or n >= 3)
        ]

    def seen(self, number: int) -> tuple[object, ...]:
        """What a follower got and skipped, and what it will get from the log if it is not live."""
        follower, client = self.followers[number], self.clients[number]
        if follower.feed is not None:
            follower.feed.settle()
        pace = client.pace
        skipped = (pace.skipped, pace.upto if pace.skipped else 0) if pace else None
        return b"".join(client.data), skipped, self.left(number) if follower.feed is None else None


def random_step(chance: random.Random) -> tuple[Any, ...]:
    topic = chance.choice((UPPER, UPPER, LOWER))
    match chance.choices(
        ("commit", "turn", "advance", "enter", "leave", "back", "slow"), (12, 4, 6, 3, 2, 2, 1)
    )[0]:
        case "commit":
            return "commit", topic, [chance.randrange(6) for _ in range(chance.randint(1, 4))], rarely(chance)
        case "turn":
            return ("turn",)
        case "advance":
            return "advance", chance.choice((0.0, 0.125, 0.25, 0.5, 1.125))
        case "enter":
            limit = 0 if rarely(chance) else chance.randint(1, 4)
            return "enter", topic, rarely(chance), limit, rarely(chance), 3 if rarely(chance) else 0
        case other:
            return other, chance.randrange(4)


def rarely(chance: random.Random) -> bool:
    return chance.random() < 0.15


@contextmanager
def patched(world: World, always_deliver: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_delivery, "asyncio", SimpleNamespace(get_running_loop=lambda: world.loop))
        if always_deliver:
            patch.setattr(Feed, "is_full", lambda self, first, now: False)
        yield


def run(steps: list[tuple[Any, ...]], always_deliver: bool) -> list[tuple[object, ...]]:
    world = World()
    with patched(world, always_deliver):
        for name, *arguments in steps:
            getattr(world.loop if name in ("turn", "advance") else world, name)(*arguments)
        world.loop.advance(0.0)
        return [*world.returned, *map(world.seen, range(len(world.followers)))]


@pytest.mark.parametrize("seed", range(200))
def test_followers_see_what_they_see_when_every_event_is_delivered(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(live_delivery, "FLUSH_BYTES", 200)  # parts of the queue wait for later turns
    steps = [random_step(chance) for _ in range(chance.randint(10, 60))]
    assert run(steps, always_deliver=False) == run(steps, always_deliver=True)


def test_events_are_not_queued_while_all_followers_are_full_and_their_number_is_told() -> None:
    world = World()
    with patched(world, always_deliver=False):
        world.enter(UPPER, False, 2, False, 0)
        world.enter(UPPER, False, 2, False, 0)
        world.commit(LOWER, [1, 2, 3], internal=False)
        world.loop.advance(0.25)
        for _ in range(5):
            world.commit(UPPER, [1, 2], internal=False)
        assert not world.live._queue
        world.loop.advance(0.8)
        world.commit(UPPER, [1], internal=False)
        world.loop.advance(0.0)
        lines = [b"".join(client.data).splitlines() for client in world.clients]
        assert lines == [[b"1 1", b"2 2", b"13 skipped 11", b"14 1"]] * 2
        assert world.form.encoded == [1, 2, 14]


def test_a_newcomer_delivers_to_itself_what_others_skip() -> None:
    world = World()
    with patched(world, always_deliver=False):
        world.enter(UPPER, False, 1, False, 0)
        world.commit(UPPER, [1, 2], internal=False)
        world.loop.advance(0.0)
        world.commit(UPPER, [3], internal=False)
        world.enter(UPPER, False, 1, False, 0)
        world.commit(UPPER, [4], internal=False)
        world.loop.advance(2.0)
        lines = [b"".join(client.data).splitlines() for client in world.clients]
        assert lines == [[b"1 1", b"4 skipped 3"], [b"4 4"]]


def test_events_are_skipped_after_those_that_wait_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_delivery, "FLUSH_BYTES", 1)
    world = World()
    with patched(world, always_deliver=False):
        world.enter(UPPER, False, 1, False, 0)
        world.commit(UPPER, [1, 2], internal=False)
        world.commit(UPPER, [3, 4], internal=False)
        world.loop.turn()
        world.commit(UPPER, [5], internal=False)
        world.loop.advance(1.0)
        assert b"".join(world.clients[0].data).splitlines() == [b"1 1", b"5 skipped 4"]


def test_a_follower_that_returns_with_a_full_pace_skips_nothing_that_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_delivery, "FLUSH_BYTES", 1)
    world = World()
    with patched(world, always_deliver=False):
        world.enter(UPPER, False, 1, False, 0)
        world.enter(UPPER, False, 1, False, 0)
        world.commit(UPPER, [1], internal=False)
        world.loop.advance(0.0)
        world.leave(0)
        world.enter(UPPER, False, 0, False, 0)  # without a pace, so that events are queued
        for number in (2, 3):
            world.commit(UPPER, [number], internal=False)
        world.live.enter(world.followers[0], 3)
        world.loop.advance(1.0)
        lines = [b"".join(client.data).splitlines() for client in world.clients]
        assert lines == [[b"1 1"], [b"1 1", b"3 skipped 2"], [b"2 2", b"3 3"]]


async def test_a_large_event_that_nobody_may_get_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_delivery, "TELL_AFTER", 0.01)
    async with opened(tmp_path) as log, following(log, Query((UPPER,)), 0, pace=Pace(1)) as client:
        await is_live(log)
        await log.publish_run("A", b"<m><n>a</n></m>", b"<m><n>b</n></m>")
        await holds(lambda: b"2 skipped 1" in b"".join(client.data))
        await log.publish_run("A", b"<m><n>%b</n></m>" % (b"c" * LOOP_BYTES))
        await holds(lambda: b"3 skipped 1" in b"".join(client.data))
        assert client.pages == []


async def test_who_falls_behind_or_leaves_has_the_count_of_what_was_skipped(tmp_path: Path) -> None:
    pace = Pace(1)
    async with opened(tmp_path) as log, following(log, Query((UPPER,)), 0, pace=pace) as client:
        await is_live(log)
        await log.publish_run("A", b"<m><n>a</n></m>")
        await client.has(1)
        await log.publish_run("A", b"<m><n>b</n></m>", b"<m><n>c</n></m>")
        (follower,) = list(log.live._feeds)
        assert (pace.skipped, follower.feed.missed if follower.feed else None) == (0, 2)
        log.live.leave(follower)
        assert (pace.skipped, pace.upto, follower.upto) == (2, 3, 3)
