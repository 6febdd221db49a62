"""Topic filters with wildcards, in the tree of the broker and in the matcher of paho-mqtt."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from paho.mqtt.matcher import MQTTMatcher

from benchmarks.tools.rivals import Match
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.names import DIALECT_FULL
from hpwsn_client.wsn.topics.topic_expressions import Topic, parse_topic_expression

LEVELS = (("site", 1000), ("building", 5), ("room", 10), ("sensor", 10))
"""Names of each level."""


def filters(count: int, seed: int = 5) -> Iterator[list[str]]:
    """Two to four levels; three in ten have one wildcard, two in ten are for a whole subtree."""
    chance = random.Random(seed)
    for _ in range(count):
        path = _path(chance)[: chance.randint(2, 4)]
        kind = chance.random()
        if kind < 0.3:
            path[chance.randrange(1, len(path))] = "+"
        elif kind < 0.5:
            path[-1] = "#"
        yield path


def topics(count: int, seed: int = 6) -> list[list[str]]:
    """Topics of all levels."""
    chance = random.Random(seed)
    return [_path(chance) for _ in range(count)]


def _path(chance: random.Random) -> list[str]:
    return [f"{name}{chance.randrange(most)}" for name, most in LEVELS]


def paho(count: int) -> Match:
    """A tree of steps; it holds one value for a filter, so that is a list of subscribers."""
    matcher: Any = MQTTMatcher()  # type: ignore[no-untyped-call]
    by_filter: dict[str, list[int]] = {}
    for number, path in enumerate(filters(count)):
        by_filter.setdefault("/".join(path), []).append(number)
    for text, subscribers in by_filter.items():
        matcher[text] = subscribers

    def match(topic: Any) -> list[int]:
        found: list[int] = []
        for subscribers in matcher.iter_match(topic):
            found += subscribers
        return found

    return match


def tree(count: int, published: list[Topic]) -> Match:
    """The broker's: wildcards are resolved when somebody subscribes or a topic is first published on."""
    topic_tree: TopicTree[int] = TopicTree(simple_subtree=False)
    for topic in published:
        topic_tree.retain(topic, 0)
    for number, path in enumerate(filters(count)):
        text = "/".join(path).replace("+", "*").replace("/#", "//.")
        topic_tree.subscribe((parse_topic_expression(text, DIALECT_FULL, {}),), number)
    return lambda topic: list(topic_tree.match(topic))
