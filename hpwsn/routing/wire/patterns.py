"""Topic patterns as texts between nodes: their syntax, and which pattern covers which. Pure.

A pattern is one alternative of a topic expression (WS-Topics 1.3, section 8), after the node's settings are
applied: a Simple expression may include its subtree. It is written `/A/B`, `/A//*` or `/A//.` (A and its
subtree), with a `{namespace}` prefix unless the namespace is that of HPwsn. EVERYTHING also matches
publications without a topic. Equal patterns have equal texts, so that sets of texts can be compared. The
parser rejects any other text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import takewhile

from hpwsn.routing.wire.binary import MalformedMessage
from hpwsn_client.wsn.soap.names import DIALECT_FULL, HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Step, TopicExpression, TopicPattern

EVERYTHING = ""

Expressions = tuple[TopicExpression, ...]

_NAME = r"(?:\{[^{}]+\})?[^/{}]+"
_is_pattern = re.compile(rf"(?:\{{([^{{}}]+)\}})?((?://?{_NAME})*)").fullmatch
_steps = re.compile(rf"(//?)({_NAME})").findall

# To decide whether one wildcard pattern covers another can take many steps. Above this limit it counts as not
# covered, which only makes a message longer by one pattern.
_MOST_STEPS = 400


def encode_pattern(pattern: TopicPattern) -> str:
    """Return the text of a pattern."""
    namespace = "" if pattern.namespace == HPWSN_TOPICS else f"{{{pattern.namespace}}}"
    steps = "".join(("//" if deep else "/") + name for deep, name in pattern.steps)
    return f"{namespace}{steps}//." if pattern.subtree else namespace + steps


@lru_cache(65536)
def parse_pattern(text: str) -> TopicPattern:
    """Parse the text of a pattern; do not call this for EVERYTHING."""
    found = _is_pattern(text)
    if not found or not found[2] or len(text) > 8192:
        raise MalformedMessage(f"{text[:80]!r} is not a topic pattern; write /A/B, /A//* or /A//.")
    steps = [Step(mark == "//", name) for mark, name in _steps(found[2])]
    subtree = steps[-1] == (True, ".")
    return TopicPattern(found[1] or HPWSN_TOPICS, tuple(steps[:-1] if subtree else steps), subtree)


def expressions_of(text: str) -> Expressions:
    """Return a pattern as topic expressions; EVERYTHING has none."""
    if text == EVERYTHING:
        return ()
    return (TopicExpression(DIALECT_FULL, text, (), (parse_pattern(text),)),)


def patterns_of(expressions: Expressions, simple_subtree: bool) -> tuple[str, ...]:
    """Return the patterns of topics that match all expressions; EVERYTHING without expressions.

    Of several expressions only the narrowest is used: more may be sent than is wanted, never less.
    """
    if not expressions:
        return (EVERYTHING,)
    narrowest = min(expressions, key=_breadth)
    subtree = simple_subtree and narrowest.subtree
    return tuple(
        encode_pattern(TopicPattern(each.namespace, each.steps, each.subtree or subtree))
        for each in narrowest.patterns
    )


def _breadth(expression: TopicExpression) -> tuple[bool, int]:
    several = expression.topic is None
    return several, -min(len(fixed_names(pattern)) for pattern in expression.patterns)


def fixed_names(pattern: TopicPattern) -> tuple[str, ...]:
    """Return the names before the first wildcard."""
    return tuple(
        step.name for step in takewhile(lambda step: not step.deep and step.name != "*", pattern.steps)
    )


def covers(one: TopicPattern, other: TopicPattern) -> bool:
    """Whether `one` matches every topic of `other`; False if that takes too many steps to decide."""
    if one.namespace != other.namespace:
        return False
    if one.topic is not None:
        return one == other
    if other.topic is not None:
        return one.matches(other.topic)
    names = fixed_names(one)
    if len(names) == len(one.steps):
        return names == fixed_names(other)[: len(names)]
    return _Automaton(one).includes(_Automaton(other))


class _Automaton:
    """A pattern as an automaton over names: bit i of a state means that i steps have matched."""

    def __init__(self, pattern: TopicPattern) -> None:
        self.names = {step.name for step in pattern.steps} - {"*"}
        self._steps = pattern.steps
        self._last = len(pattern.steps)
        self._deep = sum(1 << at for at, step in enumerate(pattern.steps) if step.deep)
        self._deep |= pattern.subtree << self._last

    def after(self, state: int, name: str) -> int:
        """Return the state after another name."""
        read = sum(1 << at for at, step in enumerate(self._steps) if step.name in ("*", name))
        return (state & read) << 1 | state & self._deep

    def ended(self, state: int) -> bool:
        """Whether the pattern matches the names so far."""
        return bool(state >> self._last)

    def includes(self, other: _Automaton) -> bool:
        """Whether this pattern matches all topics of the other."""
        # All names that are in neither pattern behave the same; a blank stands for them.
        names = [*self.names | other.names, " "]
        seen = waiting = {(1, 1)}
        while waiting and len(seen) < _MOST_STEPS:
            waiting = {
                (self.after(mine, name), its_next)
                for mine, its in waiting
                for name in names
                if (its_next := other.after(its, name))
            } - seen
            if any(other.ended(its) and not self.ended(mine) for mine, its in waiting):
                return False
            seen = seen | waiting
        return not waiting


def coarsen(texts: Collection[str], most: int) -> frozenset[str]:
    """Return at most `most` patterns that cover all of these; the deepest are replaced by a subtree."""
    found = frozenset(texts)
    if len(found) <= most:
        return found
    if EVERYTHING in found:
        return frozenset((EVERYTHING,))
    patterns = [parse_pattern(text) for text in found]
    for depth in range(max(len(fixed_names(each)) for each in patterns), -1, -1):
        cut = frozenset(encode_pattern(_cut(each, depth)) for each in patterns)
        found = frozenset(_outermost(cut))
        if len(found) <= most:
            return found
    return frozenset((EVERYTHING,))


def _cut(pattern: TopicPattern, depth: int) -> TopicPattern:
    """Return the subtree at this depth that contains the pattern; a shorter pattern is unchanged."""
    if len(pattern.steps) <= depth:
        return pattern
    fixed = fixed_names(pattern)[:depth]
    return TopicPattern(pattern.namespace, tuple(Step(False, name) for name in fixed), True)


def _outermost(texts: Iterable[str]) -> Iterator[str]:
    """Yield the patterns that no subtree among them contains."""
    texts = list(texts)
    roots = {
        (each.namespace, fixed_names(each))
        for each in map(parse_pattern, texts)
        if each.subtree and len(fixed_names(each)) == len(each.steps)
    }
    for text in texts:
        pattern = parse_pattern(text)
        fixed = fixed_names(pattern)
        above = len(fixed) if (pattern.subtree and len(fixed) == len(pattern.steps)) else len(fixed) + 1
        if not any((pattern.namespace, fixed[:length]) in roots for length in range(above)):
            yield text
