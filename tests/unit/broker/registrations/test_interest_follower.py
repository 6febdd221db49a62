"""Who uses a target: subscriptions, waiting readers and other nodes, counted only while there is a target."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest

from hpwsn.broker.registrations.interest_follower import FOLLOWED, InterestFollower
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE, DIALECT_SIMPLE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression


def named(text: str, dialect: str = DIALECT_CONCRETE) -> TopicExpression:
    return TopicExpression.of(Topic.parse(text), dialect)


@dataclass(eq=False)
class Wanting:
    """What the follower knows of a subscription."""

    topics: tuple[TopicExpression, ...]
    deliverable: bool = True


class Field:
    """A follower of two targets, with the users that a test gives it."""

    def __init__(self, **options: Any) -> None:
        self.told: list[str] = []
        self.follower: InterestFollower[str] = InterestFollower(self.told.append, True, **options)
        self.users: list[Wanting] = []
        self.waiting: list[Topic] = []
        self.others: set[tuple[TopicExpression, ...]] = set()
        self.follower.subscriptions = cast(Any, lambda: self.users)
        self.follower.watched = lambda: self.waiting
        self.follower.elsewhere = lambda: self.others

    def add(self, *targets: str) -> None:
        for target in targets:
            self.follower.add(target, named(target))

    def change(self, user: Wanting) -> None:
        self.follower.subscription_changed(cast(Any, user))

    def wanted(self, *targets: str) -> list[bool]:
        return [self.follower.wanted(target) for target in targets]


def test_users_from_before_the_first_target_count() -> None:
    field = Field()
    field.users = [Wanting((named("A:B"),)), Wanting((named("A:C"),), deliverable=False)]
    field.waiting = [Topic.parse("A:D")]
    field.others = {(named("A:E"),)}
    field.add("A:B", "A:C", "A:D", "A:E", "A:F")
    assert field.wanted("A:B", "A:C", "A:D", "A:E", "A:F") == [True, False, True, True, False]
    assert field.told == []


def test_a_target_is_told_of_its_first_and_of_its_last_user_only() -> None:
    field = Field()
    field.add("A:B", "A:C")
    first, second = Wanting((named("A:B"),)), Wanting((named("A", DIALECT_SIMPLE),))
    for user in (first, second):
        field.change(user)
        field.change(user)
    assert field.told == ["A:B", "A:C"]
    first.deliverable = False
    field.change(first)
    assert field.told == ["A:B", "A:C"]
    field.follower.reader_changed(Topic.parse("A:C"), True)
    second.deliverable = False
    field.change(second)
    assert field.told == ["A:B", "A:C", "A:B"]
    field.follower.reader_changed(Topic.parse("A:C"), False)
    assert field.told == ["A:B", "A:C", "A:B", "A:C"]
    assert field.wanted("A:B", "A:C") == [False, False]


def test_interests_of_other_nodes_come_and_go() -> None:
    field = Field()
    field.add("A:B")
    field.others = {(named("A:B"),)}
    field.follower.elsewhere_changed()
    assert field.wanted("A:B") == [True]
    field.others = set()
    field.follower.elsewhere_changed()
    assert field.wanted("A:B") == [False]
    assert field.told == ["A:B", "A:B"]


@pytest.mark.parametrize("counts", [True, False])
def test_a_subscription_without_topics_counts_unless_it_is_left_out(counts: bool) -> None:
    field = Field(without_topics=counts)
    field.users, field.others = [Wanting(())], {()}
    field.add("A:B")
    assert field.wanted("A:B") == [counts]
    field.users[0].deliverable = False
    field.change(field.users[0])
    field.others = set()
    field.follower.elsewhere_changed()
    assert field.wanted("A:B") == [False]
    assert field.told == (["A:B"] if counts else [])


def test_nothing_is_counted_without_a_target_and_a_new_target_counts_anew() -> None:
    field = Field()
    field.users = [Wanting((named("A:B"),))]
    field.add("A:B")
    field.follower.discard("A:B")
    field.users[0].deliverable = False
    field.change(field.users[0])
    field.follower.reader_changed(Topic.parse("A:B"), True)
    assert field.told == []
    field.add("A:B")
    assert field.wanted("A:B") == [False]


async def test_many_subscriptions_are_counted_in_steps_once_clients_wait() -> None:
    field = Field()
    field.follower.begin()
    field.users = [Wanting((named(f"A:T{number}"),)) for number in range(FOLLOWED + 2)]
    last, ended = field.users[-1].topics[0].text, field.users[-2]
    field.add("A:T0", last, ended.topics[0].text)
    assert field.wanted("A:T0", last) == [True, False]
    ended.deliverable = False
    field.change(ended)
    for _ in range(4):
        await asyncio.sleep(0)
    assert field.told == [last]
    assert field.wanted(ended.topics[0].text) == [False]
    await field.follower.close()


async def test_counting_ends_with_the_last_target_and_with_the_follower() -> None:
    field = Field()
    field.follower.begin()
    field.users = [Wanting((named(f"A:T{number}"),)) for number in range(FOLLOWED + 1)]
    last = field.users[-1].topics[0].text
    field.add(last)
    field.follower.discard(last)
    for _ in range(4):
        await asyncio.sleep(0)
    field.add(last)
    assert field.wanted(last) == [False]
    await field.follower.close()
    assert (field.wanted(last), field.told) == ([False], [])
