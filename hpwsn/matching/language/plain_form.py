"""A fast parser for plain conjunctions, which skips the grammar: `speed > 60 and has(tags, "fire")`.

Most subscriptions have this form, and a node reads all of them again when it starts. A plain conjunction
joins tests with `and`: a comparison of a name with a number or a text, `between` two numbers, `within`, or
`has`. Everything else, and every error, is left to `hpwsn.matching.language.grammar`, which defines the
language; both parsers give the same result. Tests with the same text are parsed once and share one predicate.
"""

from __future__ import annotations

import math
import re
from itertools import chain
from sys import intern

from hpwsn.matching.language.normal_form import MOST_PLAIN, And, Expression
from hpwsn.matching.language.predicates import RESERVED, Conjunction, Operator, Predicate
from hpwsn.matching.language.simplify import is_simple, is_simple_alone

MAX_SHARED = 32_768
"""Maximum number of cached tests, usually a third of a kilobyte each."""
MAX_SHARED_TEXT = 1024
"""Maximum length of texts whose tests are cached, so that subscribers cannot fill memory."""

# Possessive quantifiers: names, numbers and texts are maximal, like the grammar's tokens.
_NAME = r"(?:[^\W\d][\w.\-]*+|`[^`]++`)"
_NUMBER = r"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+"
_STRING = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
_COMMA = r"\s*+,\s*+"
# Text that is not a test matches as a whole with an empty group, so nothing is skipped between tests.
_tests = re.compile(
    rf"""\s*+(
        {_NAME}\s*+(?:
            (?:<=|>=|!=|<>|==|=|<|>)\s*+(?:{_NUMBER}|{_STRING})
            |(?i:between)\s++{_NUMBER}\s++(?i:and)\s++{_NUMBER}
        )
        |(?i:within)\s*+\(\s*+{_NAME}{_COMMA}{_NAME}(?:{_COMMA}{_NUMBER}){{4}}\s*+\)
        |(?i:has)\s*+\(\s*+{_NAME}(?:{_COMMA}{_STRING})++\s*+\)
    )(?:\s*+\Z|\s*+(?i:and)(?=\s))
    |.++""",
    re.VERBOSE | re.DOTALL,
).findall
# A test's name, operator and operand, or its name and both bounds.
_comparison = re.compile(
    r"(`[^`]++`|[\w.\-]++)\s*+(?:([<>=!]++)\s*+(.++)|\w++\s++(\S++)\s++\w++\s++(\S++))", re.DOTALL
).fullmatch
_arguments = re.compile(rf"{_STRING}|{_NAME}|{_NUMBER}", re.DOTALL).findall
_escaped = re.compile(r"""\\(["'\\])""")

# Ignores case like the grammar's keywords: `ſ` equals s, and `ı` equals i.
_is_has = re.compile("has", re.IGNORECASE).fullmatch
_is_reserved = re.compile("|".join(RESERVED | {"date"}), re.IGNORECASE).fullmatch

_OPERATORS = {operator.value: operator for operator in Operator} | {"==": Operator.EQ, "<>": Operator.NE}

Part = tuple[Predicate, ...]
"""The predicates of one test: one, or two for `within`."""


class _NotPlain(Exception):
    """A test that is left to the grammar or to the normal form."""


def plain_conjunction(text: str) -> Conjunction | None:
    """Return the normal form of a plain text that needs no simplification; None for any other."""
    simple = _shared.__getitem__ if len(text) <= MAX_SHARED_TEXT else _parse_simple
    try:
        predicates = [*chain.from_iterable(map(simple, _tests(text)))]
    except _NotPlain:
        return None
    by_name = {predicate.attribute: predicate for predicate in predicates}
    if len(by_name) < len(predicates) or not 0 < len(predicates) <= MOST_PLAIN:
        return None
    return tuple([by_name[name] for name in sorted(by_name)])


def parse_plain(text: str) -> Expression | None:
    """Return the expression of a plain text; None for any other."""
    try:
        parts = [_parse_test(test) for test in _tests(text)]
    except _NotPlain:
        return None
    found = tuple(part[0] if len(part) == 1 else And(part) for part in parts)
    return (found[0] if len(found) == 1 else And(found)) if found else None


def unquoted(text: str) -> str:
    """Return a text without its quotes and without the backslashes that escape quotes and backslashes."""
    return _escaped.sub(r"\1", text[1:-1]) if "\\" in text else text[1:-1]


class _Shared(dict[str, Part]):
    """A cache of tests that need no simplification, parsed on first use."""

    def __missing__(self, test: str) -> Part:
        part = _parse_simple(test)
        if len(self) >= MAX_SHARED:
            # Cleared completely: an eviction order would make every lookup slower.
            self.clear()
        self[test] = part
        return part


_shared = _Shared()


def _parse_simple(test: str) -> Part:
    part = _parse_test(test)
    if not (is_simple_alone(part[0]) if len(part) == 1 else is_simple(part)):
        raise _NotPlain
    return part


def _parse_test(test: str) -> Part:
    if not test:
        raise _NotPlain
    if (found := _comparison(test)) is not None:
        name, sign, operand, low, high = found.groups()
        return (_compared(name, sign, operand) if sign else _between(name, low, high),)
    function, first, *others = _arguments(test)
    if _is_has(function):
        return (Predicate(_attribute(first), Operator.HAS, tuple(map(unquoted, others))),)
    second, west, south, east, north = others
    return _between(first, west, east), _between(second, south, north)


def _compared(name: str, sign: str, operand: str) -> Predicate:
    value = unquoted(operand) if operand[0] in "\"'" else _number(operand)
    return Predicate(_attribute(name), _OPERATORS[sign], (value,))


def _between(name: str, low: str, high: str) -> Predicate:
    return Predicate(_attribute(name), Operator.BETWEEN, (_number(low), _number(high)))


def _attribute(name: str) -> str:
    if _is_reserved(name):
        raise _NotPlain
    return intern(name.strip("`"))


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotPlain
    return number
