"""Plain conjunctions read without the grammar, many times sooner: `speed > 60 and has(tags, "fire")`.

Most subscriptions are of this form, and a node that starts reads all of them again. Owns the tests that
need no look ahead: comparisons of a name with a number or a text, `between` two numbers, `within` and `has`,
joined by `and`. Whatever else there is, errors above all, is left to hpwsn.matching.language.grammar, whose
grammar says what the language is; what is read here is read there in the same way. Tests that were written
alike before are not read again, and those who ask share one predicate.
"""

from __future__ import annotations

import math
import re
from itertools import chain
from sys import intern

from hpwsn.matching.language.normal_form import MOST_PLAIN, And, Expression
from hpwsn.matching.language.predicates import RESERVED, Conjunction, Operator, Predicate
from hpwsn.matching.language.simplify import is_simple, is_simple_alone

SHARED = 32_768
"""Tests that are remembered at most, a third of a kilobyte each as they are mostly written."""
SHORT = 1024
"""Characters of the texts whose tests are remembered, so that strangers cannot fill memory with them."""

# Possessive: a name, a number or a text is as long as it can be, as the grammar's tokens are.
_NAME = r"(?:[^\W\d][\w.\-]*+|`[^`]++`)"
_NUMBER = r"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+"
_STRING = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
_COMMA = r"\s*+,\s*+"
# What begins no test is found whole, and as nothing, so that nothing else lies between those that are found.
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
# Name, operator and operand, or name and both bounds, of what is a test.
_comparison = re.compile(
    r"(`[^`]++`|[\w.\-]++)\s*+(?:([<>=!]++)\s*+(.++)|\w++\s++(\S++)\s++\w++\s++(\S++))", re.DOTALL
).fullmatch
_arguments = re.compile(rf"{_STRING}|{_NAME}|{_NUMBER}", re.DOTALL).findall
_escaped = re.compile(r"""\\(["'\\])""")

# Compared as the grammar's words are: regardless of case `ſ` is an s, and `ı` an i.
_is_has = re.compile("has", re.IGNORECASE).fullmatch
_is_word = re.compile("|".join(RESERVED | {"date"}), re.IGNORECASE).fullmatch

_OPERATORS = {operator.value: operator for operator in Operator} | {"==": Operator.EQ, "<>": Operator.NE}

Part = tuple[Predicate, ...]
"""What one test says: a predicate, or two for `within`."""


class _NotPlain(Exception):
    """A test that is left to the grammar, or to the normal form."""


def plain_conjunction(text: str) -> Conjunction | None:
    """The normal form, if the text is plain and has nothing to simplify; None leaves it to others."""
    simple = _shared.__getitem__ if len(text) <= SHORT else _simple
    try:
        predicates = [*chain.from_iterable(map(simple, _tests(text)))]
    except _NotPlain:
        return None
    by_name = {predicate.attribute: predicate for predicate in predicates}
    if len(by_name) < len(predicates) or not 0 < len(predicates) <= MOST_PLAIN:
        return None
    return tuple([by_name[name] for name in sorted(by_name)])


def parse_plain(text: str) -> Expression | None:
    """The expression, if the text is of the plain form; None leaves it to the grammar."""
    try:
        parts = [_part(test) for test in _tests(text)]
    except _NotPlain:
        return None
    found = tuple(part[0] if len(part) == 1 else And(part) for part in parts)
    return (found[0] if len(found) == 1 else And(found)) if found else None


def unquoted(text: str) -> str:
    """A text without its quotes; a backslash before a quote or a backslash takes that as it is."""
    return _escaped.sub(r"\1", text[1:-1]) if "\\" in text else text[1:-1]


class _Shared(dict[str, Part]):
    """What tests say that need no simplifying, read when it is first asked for."""

    def __missing__(self, test: str) -> Part:
        part = _simple(test)
        if len(self) >= SHARED:
            # Not the oldest alone: keeping an order would cost each look more than this one.
            self.clear()
        self[test] = part
        return part


_shared = _Shared()


def _simple(test: str) -> Part:
    part = _part(test)
    if not (is_simple_alone(part[0]) if len(part) == 1 else is_simple(part)):
        raise _NotPlain
    return part


def _part(test: str) -> Part:
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
    if _is_word(name):
        raise _NotPlain
    return intern(name.strip("`"))


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotPlain
    return number
