"""How the work of an XPath 1.0 expression grows with the document, so that no filter can stop a broker.

A path costs about as much as the document has nodes. A predicate is evaluated for each node that a path
selects, so one that looks at more than that node's own children (`//`, an absolute path, `..`, other axes)
multiplies: a square, a cube, and so on. The estimate is of the power alone, and rather too high than too
low.
"""

import re

MAX_POWER = 4
"""A filter that grows faster is refused."""
BUDGET = 4_000_000
"""Most steps, estimated as nodes to the power; on a payload that would take more, a filter does not hold."""

_WIDE = {"ancestor", "ancestor-or-self", "descendant", "descendant-or-self", "parent"}
_WIDER = {"following", "following-sibling", "preceding", "preceding-sibling"}
_tokens = re.compile(r"//|::|\.\.|[^\W\d][\w.-]*|[\d.]+|\S").findall
_BEFORE_A_STEP = {
    "(",
    "[",
    ",",
    "@",
    "::",
    "/",
    "//",
    "|",
    "+",
    "-",
    "=",
    "<",
    ">",
    "!",
    ":",
    "and",
    "or",
    "div",
    "mod",
}


def power(expression: str) -> int:
    """The power of the number of nodes; string literals must have been taken out."""
    levels = [_Level(own=1)]
    before = ""
    for token in _tokens(expression):
        level = levels[-1]
        if token == "[":
            levels.append(_Level(own=0))
        elif token == "]" and len(levels) > 1:
            inner = levels.pop()
            levels[-1].inner = max(levels[-1].inner, inner.total)
        elif token == "::":
            level.axis(before)
        elif token in ("//", "..") or (token == "/" and _begins(before)):
            level.wide = True
        before = "times" if token == "*" and not _begins(before) else token
    while len(levels) > 1:
        inner = levels.pop()
        levels[-1].inner = max(levels[-1].inner, inner.total)
    return levels[0].total


def _begins(before: str) -> bool:
    """Whether a path, and no operator, comes after this token."""
    return not before or before in _BEFORE_A_STEP or before == "times"


class _Level:
    """What stands within one pair of brackets."""

    __slots__ = ("extra", "inner", "own", "wide")

    def __init__(self, own: int) -> None:
        self.own = own
        self.wide = False
        self.extra = 0
        self.inner = 0

    def axis(self, name: str) -> None:
        self.wide = self.wide or name in _WIDE or name in _WIDER
        self.extra += name in _WIDER

    @property
    def total(self) -> int:
        return max(self.own, int(self.wide)) + self.extra + self.inner
