"""Plain conjunctions read without the grammar, many times sooner: `speed > 60 and has(tags, "fire")`.

Most subscriptions are of this form, and a node that starts reads all of them again. Owns the tests that
need no look ahead: comparisons of a name with a number or a text, `between` two numbers, `within` and `has`,
joined by `and`. Whatever else there is, errors above all, is left to hpwsn.matching.language, whose grammar
says what the language is; what is read here is read there in the same way.
"""

from __future__ import annotations

import math
import re

from hpwsn.matching.expressions import And, Expression
from hpwsn.matching.predicates import RESERVED, Operator, Predicate

# Possessive: a name, a number or a text is as long as it can be, as the grammar's tokens are.
_NAME = r"(?:[^\W\d][\w.\-]*+|`[^`]++`)"
_NUMBER = r"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+"
_STRING = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
_COMMA = r"\s*+,\s*+"
_test = re.compile(
    rf"""\s*+(?:
        (?P<name>{_NAME})\s*+(?:
            (?P<operator><=|>=|!=|<>|==|=|<|>)\s*+(?:(?P<number>{_NUMBER})|(?P<text>{_STRING}))
            |(?i:between)\s++(?P<low>{_NUMBER})\s++(?i:and)\s++(?P<high>{_NUMBER})
        )
        |(?i:within)\s*+\(\s*+(?P<x>{_NAME}){_COMMA}(?P<y>{_NAME})
            (?P<bounds>(?:{_COMMA}{_NUMBER}){{4}})\s*+\)
        |(?i:has)\s*+\(\s*+(?P<of>{_NAME})(?P<words>(?:{_COMMA}{_STRING})++)\s*+\)
    )(?:\s*+\Z|\s*+(?P<more>(?i:and)\s))""",
    re.VERBOSE | re.DOTALL,
).match
_strings = re.compile(_STRING, re.DOTALL).findall
_escaped = re.compile(r"""\\(["'\\])""")

_OPERATORS = {operator.value: operator for operator in Operator} | {"==": Operator.EQ, "<>": Operator.NE}
_NOT_PLAIN = RESERVED | {"date"}


def parse_plain(text: str) -> Expression | None:
    """The expression, if the text is of the plain form; None leaves it to the grammar."""
    parts: list[Expression] = []
    at, more = 0, True
    while more:
        found = _test(text, at)
        part = found and _part(found)
        if found is None or part is None:
            return None
        parts.append(part)
        at, more = found.end(), found["more"] is not None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def unquoted(text: str) -> str:
    """A text without its quotes; a backslash before a quote or a backslash takes that as it is."""
    return _escaped.sub(r"\1", text[1:-1]) if "\\" in text else text[1:-1]


def _part(found: re.Match[str]) -> Expression | None:
    if (name := found["name"]) is not None:
        return _comparison(name, found)
    if (of := found["of"]) is not None:
        words = tuple(map(unquoted, _strings(found["words"])))
        return None if of.lower() in _NOT_PLAIN else Predicate(of.strip("`"), Operator.HAS, words)
    west, south, east, north = map(float, found["bounds"].split(",")[1:])
    sides = _between(found["x"], west, east), _between(found["y"], south, north)
    return None if sides[0] is None or sides[1] is None else And((sides[0], sides[1]))


def _comparison(name: str, found: re.Match[str]) -> Predicate | None:
    if (sign := found["operator"]) is None:
        return _between(name, float(found["low"]), float(found["high"]))
    text = found["text"]
    operand = float(found["number"]) if text is None else unquoted(text)
    if name.lower() in _NOT_PLAIN or operand in (math.inf, -math.inf):
        return None
    return Predicate(name.strip("`"), _OPERATORS[sign], (operand,))


def _between(name: str, low: float, high: float) -> Predicate | None:
    if name.lower() in _NOT_PLAIN or math.isinf(low) or math.isinf(high):
        return None
    return Predicate(name.strip("`"), Operator.BETWEEN, (low, high))
