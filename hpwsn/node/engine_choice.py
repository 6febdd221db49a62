"""Which matching engine a group of content filters gets: `matching.engine` and `matching.topics`.

The topic expressions of a group decide, since all its filters are in one engine. An expression counts for the
topic that it names, or that its steps before the first wildcard name. The entry of that topic or of its
nearest ancestor wins. Without an entry, or where expressions lead to different engines, `matching.engine`
counts. The choice has no influence on what matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hpwsn.matching.content.content_index import Engines
from hpwsn.matching.language.reference_engine import Engine
from hpwsn.topics.tree.subscriber_groups import Expressions, fixed_part
from hpwsn_client.wsn.topics.topic_expressions import Topic

DEFAULT = "default"


class PaperEngines:
    """Creates engines of one kind, which need no preparation."""

    def __init__(self, name: str) -> None:
        self.name = name

    def make(self) -> Engine:
        """A new engine; the papers' engines are loaded with the first one."""
        from hpwsn.matching.papers.selectable import SELECTABLE

        return SELECTABLE[self.name]()

    def prepare(self) -> None:
        """Do nothing: only the default engine has a compiled kernel."""


class EngineChoice:
    """The engines of a node, by topic; `default` creates those named `default`."""

    def __init__(self, engine: str, topics: Iterable[tuple[str, str]], default: Engines) -> None:
        self.engine = engine
        self.topics: Mapping[Topic, str] = {Topic.parse(topic): name for topic, name in topics}
        self._engines: dict[str, Engines] = {DEFAULT: default}

    def of_expressions(self, expressions: Expressions) -> Engines:
        """The engines for the filters of subscribers with these topic expressions."""
        return self.of_topics([fixed_part(pattern) for each in expressions for pattern in each.patterns])

    def of_topics(self, topics: Iterable[Topic | None]) -> Engines:
        """The engines for the filters of those who follow these topics; None stands for any topic."""
        names = {self._name_at(topic) for topic in topics}
        name = names.pop() if len(names) == 1 else self.engine
        return self._engines.setdefault(name, PaperEngines(name))

    def _name_at(self, topic: Topic | None) -> str:
        for each in () if topic is None else (topic, *topic.ancestors()):
            if each in self.topics:
                return self.topics[each]
        return self.engine

    def figures(self, subscriptions: int) -> dict[str, Any]:
        """What /status has under `matching`, given the number of subscriptions with a content filter."""
        return {
            "engine": self.engine,
            "topics": {str(topic): name for topic, name in self.topics.items()},
            # In the node a notification is matched before it is delivered: nothing is behind.
            "state": "running",
            "mode": "local",
            "subscriptions": subscriptions,
            "lag": 0,
        }
