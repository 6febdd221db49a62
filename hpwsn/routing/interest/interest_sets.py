"""Interest: sets of topic patterns that somebody wants, merged, versioned, and asked about topics. Pure.

A Table answers whether a topic is wanted, by look-ups and not by a walk over patterns. A Merged set counts
patterns and leaves out those that others cover, change by change. A Statement is what a node tells of such a
set: versions, each told as a difference or as a whole. A Heard is the other side of it: it takes differences
only on the very version that they build on. Knows neither nodes nor time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpwsn.routing.wire.patterns import EVERYTHING, coarsen, covers, parse_pattern
from hpwsn.routing.wire.router_messages import Interest, Subject
from hpwsn.topics.tree.overlap import OverlapIndex
from hpwsn_client.wsn.soap.names import DIALECT_FULL
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, TopicPattern


class PatternTable:
    """Patterns by where they match: at one topic, below one, or anywhere in a namespace."""

    __slots__ = ("_below", "_exact", "_wild", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: set[str] = set()
        self._exact: set[Topic] = set()
        self._below: set[Topic] = set()
        self._wild: dict[str, dict[str, TopicPattern]] = {}
        for text in texts:
            self.add(text)

    def wants(self, topic: Topic | None) -> bool:
        """Whether a pattern matches the topic."""
        if EVERYTHING in self.texts:
            return True
        if topic is None:
            return False
        if topic in self._exact or topic in self._below:
            return True
        if self._below and any(above in self._below for above in topic.ancestors()):
            return True
        wild = self._wild.get(topic.namespace)
        return wild is not None and any(pattern.matches(topic) for pattern in wild.values())

    def add(self, text: str) -> None:
        """Take in a pattern."""
        if text in self.texts:
            return
        place = None if text == EVERYTHING else self._place(text)
        self.texts.add(text)
        if place is not None:
            place[0].add(place[1])
        elif text != EVERYTHING:
            pattern = parse_pattern(text)
            self._wild.setdefault(pattern.namespace, {})[text] = pattern

    def discard(self, text: str) -> None:
        """Let a pattern go."""
        if text not in self.texts:
            return
        self.texts.discard(text)
        place = None if text == EVERYTHING else self._place(text)
        if place is not None:
            place[0].discard(place[1])
        elif text != EVERYTHING:
            namespace = parse_pattern(text).namespace
            del self._wild[namespace][text]
            if not self._wild[namespace]:
                del self._wild[namespace]

    def _place(self, text: str) -> tuple[set[Topic], Topic] | None:
        """The set and the topic that stand for a pattern without wildcards."""
        pattern = parse_pattern(text)
        if pattern.topic is not None:
            return self._exact, pattern.topic
        if not pattern.steps or any(deep or name == "*" for deep, name in pattern.steps):
            return None
        return self._below, Topic(pattern.namespace, tuple(name for _, name in pattern.steps))


class MergedPatterns:
    """Patterns, counted; `outermost` are those that no other one covers."""

    __slots__ = ("_counts", "_covered_index", "_outermost_index", "changed", "outermost")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._outermost_index: OverlapIndex[str] = OverlapIndex(False)
        self._covered_index: OverlapIndex[str] = OverlapIndex(False)
        self.outermost: set[str] = set()
        self.changed: set[str] = set()
        """The patterns that became outermost, or no longer are; whoever looks at them empties it."""

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, text: str) -> bool:
        """Count a pattern; whether it is new here."""
        count = self._counts.get(text, 0)
        self._counts[text] = count + 1
        if not count:
            self._insert(text)
        return not count

    def discard(self, text: str) -> bool:
        """Count a pattern less; whether it is gone."""
        count = self._counts[text] - 1
        if count:
            self._counts[text] = count
            return False
        del self._counts[text]
        if text in self.outermost:
            self._set_outermost(text, False)
            for below in [
                below for below in self._candidates(self._covered_index, text) if _covers(text, below)
            ]:
                self._covered_index.discard(_expression(below), below)
                self._insert(below)
        else:
            self._covered_index.discard(_expression(text), text)
        return True

    def _insert(self, text: str) -> None:
        """Find the place of a pattern that has none."""
        if any(_covers(other, text) for other in self._candidates(self._outermost_index, text)):
            self._covered_index.add(_expression(text), text)
            return
        for below in [
            below for below in self._candidates(self._outermost_index, text) if _covers(text, below)
        ]:
            self._set_outermost(below, False)
            self._covered_index.add(_expression(below), below)
        self._set_outermost(text, True)

    def _set_outermost(self, text: str, shown: bool) -> None:
        # A pattern that comes and goes between two looks is no change.
        self.changed ^= {text}
        if shown:
            self.outermost.add(text)
            self._outermost_index.add(_expression(text), text)
        else:
            self.outermost.discard(text)
            self._outermost_index.discard(_expression(text), text)

    def _candidates(self, index: OverlapIndex[str], text: str) -> Iterator[str]:
        if text == EVERYTHING:
            return iter(
                [
                    each
                    for each in self._counts
                    if (each in self.outermost) == (index is self._outermost_index)
                ]
            )
        found = dict.fromkeys(index.candidates(_expression(text)))
        if EVERYTHING in self.outermost and index is self._outermost_index:
            found[EVERYTHING] = None
        return iter(found)


def _covers(one: str, other: str) -> bool:
    if one == EVERYTHING or other == EVERYTHING:
        return one == EVERYTHING
    return covers(parse_pattern(one), parse_pattern(other))


def _expression(text: str) -> TopicExpression:
    """As the index wants it; EVERYTHING has no place there."""
    patterns = () if text == EVERYTHING else (parse_pattern(text),)
    return TopicExpression(DIALECT_FULL, text, (), patterns)


class Advertisement:
    """What is told of a merged set: its versions, at most `most` patterns in each."""

    __slots__ = ("_merged", "_most", "complete", "incarnation", "subject", "texts", "version")

    def __init__(
        self, subject: Subject, incarnation: int, merged: MergedPatterns, most: int, version: int = 1
    ) -> None:
        self.subject = subject
        self.incarnation = incarnation
        self.version = version
        self.complete = True
        self._merged = merged
        self._most = most
        merged.changed = set()
        self.texts = set(coarsen(merged.outermost, most))

    def snapshot(self) -> Interest:
        """The version as a whole."""
        texts = tuple(sorted(self.texts))
        return Interest(self.subject, self.incarnation, self.version, 0, texts, (), self.complete)

    def delta(self, complete: bool = True) -> Interest | None:
        """The next version as a difference, where something has changed since the last."""
        added, removed = self._difference()
        if not added and not removed and complete == self.complete:
            return None
        self.texts |= added
        self.texts -= removed
        self.version += 1
        self.complete = complete
        base = self.version - 1
        return Interest(
            self.subject,
            self.incarnation,
            self.version,
            base,
            tuple(sorted(added)),
            tuple(sorted(removed)),
            complete,
        )

    def _difference(self) -> tuple[set[str], set[str]]:
        changed, self._merged.changed = self._merged.changed, set()
        if not changed:
            return set(), set()
        if len(self._merged.outermost) > self._most or len(self.texts) >= self._most:
            # Merged neighbours cannot be told apart change by change.
            wanted = coarsen(self._merged.outermost, self._most)
            return set(wanted - self.texts), set(self.texts - wanted)
        added = (changed & self._merged.outermost) - self.texts
        return added, (changed & self.texts) - self._merged.outermost


class ReceivedInterest:
    """An interest that another node told."""

    __slots__ = ("complete", "incarnation", "source", "table", "version")

    def __init__(self, message: Interest, source: str) -> None:
        self.incarnation = message.incarnation
        self.version = message.version
        self.complete = message.complete
        self.source = source
        self.table = PatternTable(message.added)

    def apply(self, message: Interest) -> tuple[set[str], set[str]] | None:
        """Take a later version of the same incarnation: what was added and removed; None where it cannot be.

        A difference must build on the version that is here; a whole can always be taken.
        """
        if message.base and message.base != self.version:
            return None
        if message.base:
            added = set(message.added) - self.table.texts
            removed = set(message.removed) & self.table.texts
        else:
            wanted = set(message.added)
            added, removed = wanted - self.table.texts, self.table.texts - wanted
        for text in added:
            self.table.add(text)
        for text in removed:
            self.table.discard(text)
        self.version, self.complete = message.version, message.complete
        return added, removed
