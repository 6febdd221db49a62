"""Sets of topic patterns: which topics are wanted, and how a set is sent to another node. Pure.

A PatternTable answers with look-ups whether a topic is wanted; it does not visit every pattern.
MergedPatterns counts patterns, and maintains the set of those that no other pattern covers. An
Advertisement is the sending side of such a set: its versions as snapshots and deltas. A ReceivedInterest is
the receiving side: it applies a delta only to the version that the delta is based on. The module knows
neither nodes nor time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpwsn.routing.wire.patterns import EVERYTHING, coarsen, covers, parse_pattern
from hpwsn.routing.wire.router_messages import Interest, Subject
from hpwsn.topics.tree.overlap import OverlapIndex
from hpwsn_client.wsn.soap.names import DIALECT_FULL
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, TopicPattern


class PatternTable:
    """Patterns, indexed by what they match: one topic, a subtree, or topics anywhere in a namespace."""

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
        """Add a pattern; adding it twice has no effect."""
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
        """Remove a pattern, if it is in the table."""
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
        """Return the set and the topic that represent a pattern; None for a pattern with wildcards."""
        pattern = parse_pattern(text)
        if pattern.topic is not None:
            return self._exact, pattern.topic
        if not pattern.steps or any(deep or name == "*" for deep, name in pattern.steps):
            return None
        return self._below, Topic(pattern.namespace, tuple(name for _, name in pattern.steps))


class MergedPatterns:
    """Counted patterns; `outermost` contains those that no other pattern covers."""

    __slots__ = ("_counts", "_covered_index", "_outermost_index", "changed", "outermost")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._outermost_index: OverlapIndex[str] = OverlapIndex(False)
        self._covered_index: OverlapIndex[str] = OverlapIndex(False)
        self.outermost: set[str] = set()
        self.changed: set[str] = set()
        """Patterns that were added to or removed from `outermost`; the reader of this set empties it."""

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, text: str) -> bool:
        """Increment the count of a pattern; return whether the pattern is new."""
        count = self._counts.get(text, 0)
        self._counts[text] = count + 1
        if not count:
            self._insert(text)
        return not count

    def discard(self, text: str) -> bool:
        """Decrement the count of a pattern; return whether it is 0 now."""
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
        """Put a pattern into the index of outermost or of covered patterns."""
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
        # A pattern that is added and removed between two reads is not a change.
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
    """Return a pattern as the expression that the index expects; EVERYTHING is not in the index."""
    patterns = () if text == EVERYTHING else (parse_pattern(text),)
    return TopicExpression(DIALECT_FULL, text, (), patterns)


class Advertisement:
    """The versions of a merged set, as they are sent to other nodes; each has at most `most` patterns."""

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
        """Return the current version with all its patterns."""
        texts = tuple(sorted(self.texts))
        return Interest(self.subject, self.incarnation, self.version, 0, texts, (), self.complete)

    def delta(self, complete: bool = True) -> Interest | None:
        """Begin the next version, and return its changes; None if nothing has changed."""
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
            # Above the limit patterns are coarsened, which cannot be done change by change.
            wanted = coarsen(self._merged.outermost, self._most)
            return set(wanted - self.texts), set(self.texts - wanted)
        added = (changed & self._merged.outermost) - self.texts
        return added, (changed & self.texts) - self._merged.outermost


class ReceivedInterest:
    """The interest that another node has advertised, and the node that sent it (`source`)."""

    __slots__ = ("complete", "incarnation", "source", "table", "version")

    def __init__(self, message: Interest, source: str) -> None:
        self.incarnation = message.incarnation
        self.version = message.version
        self.complete = message.complete
        self.source = source
        self.table = PatternTable(message.added)

    def apply(self, message: Interest) -> tuple[set[str], set[str]] | None:
        """Apply a later version of the same incarnation; return the added and the removed patterns.

        Return None for a delta whose base is not the current version. A snapshot always applies.
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
