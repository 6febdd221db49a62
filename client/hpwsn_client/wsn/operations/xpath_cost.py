"""An estimate of the complexity of an XPath 1.0 expression, so that no filter can block a broker.

A path takes time linear in the number of nodes. A predicate is evaluated for each node that a path selects. A
predicate that visits more than the node's children (`//`, an absolute path, `..`, other axes) multiplies the
cost: quadratic, cubic, and so on. Only the exponent is estimated, and never too low.
"""

import re

MAX_POWER = 4
"""The maximum exponent of a filter; others are rejected."""
BUDGET = 4_000_000
"""Maximum steps, estimated as nodes to the power; a filter does not match a payload that needs more."""

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
    """The exponent of the number of nodes in the cost; `expression` must not contain string literals."""
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
    """Whether a path, and not an operator, follows this token."""
    return not before or before in _BEFORE_A_STEP or before == "times"


class _Level:
    """The cost of the expression inside one pair of brackets."""

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
