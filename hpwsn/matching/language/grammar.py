"""The grammar of the predicate language, for Lark: the definition of what is valid, and of every error.

A syntax error names the column and the expected tokens. Also refused are ordering comparisons of booleans,
and expressions that are too deep. `not` binds tighter than `and`, and `and` tighter than `or`; keywords
ignore case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import cache

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from hpwsn.matching.language.normal_form import And, Expression, Not, Or
from hpwsn.matching.language.plain_form import unquoted
from hpwsn.matching.language.predicate_parser import PredicateError
from hpwsn.matching.language.predicates import ORDERED, Operand, Operator, Predicate
from hpwsn.matching.language.values import Instant, parse_instant

MOST_DEPTH = 50
"""Nested parentheses; four times as many negations are allowed."""

GRAMMAR = r"""
start: or_
?or_: and_ ("or"i and_)*
?and_: not_ ("and"i not_)*
?not_: "not"i not_ -> negation
    | "(" or_ ")" -> group
    | test
?test: name OPERATOR literal -> comparison
    | literal OPERATOR name -> reversed_comparison
    | literal OPERATOR name OPERATOR literal -> chain
    | name "between"i literal "and"i literal -> between
    | name "not"i "between"i literal "and"i literal -> not_between
    | name "in"i "(" literal ("," literal)* ")" -> in_
    | name "not"i "in"i "(" literal ("," literal)* ")" -> not_in
    | name "like"i STRING -> like
    | name "not"i "like"i STRING -> not_like
    | "within"i "(" name "," name "," NUMBER "," NUMBER "," NUMBER "," NUMBER ")" -> within
    | "has"i "(" name ("," STRING)+ ")" -> has
    | "exists"i "(" name ")" -> exists
?name: NAME | DATED
?literal: NUMBER -> number
    | STRING -> string
    | DATE -> date
    | DATED STRING -> dated
    | "true"i -> true
    | "false"i -> false
DATED: "date"i
OPERATOR: "<=" | ">=" | "!=" | "<>" | "==" | "=" | "<" | ">"
DATE.2: /\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?/
NUMBER: /[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?/
STRING: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s
NAME: /[^\W\d][\w.\-]*|`[^`]+`/
%ignore /\s+/
"""

TERMINAL_NAMES = {
    "NAME": "an attribute", "NUMBER": "a number", "STRING": "a text in quotes", "DATE": "a date",
    "DATED": "'date'", "OPERATOR": "a comparison", "LPAR": "'('", "RPAR": "')'", "COMMA": "','",
    "$END": "the end",
}  # fmt: skip


def parse_by_grammar(text: str) -> Expression:
    """Return the same as `parse_expression`, without the fast parser."""
    _check_depth(text)
    try:
        return _parser().parse(text)  # type: ignore[return-value]
    except VisitError as error:
        if isinstance(error.orig_exc, PredicateError):
            raise error.orig_exc from None
        raise
    except UnexpectedInput as error:
        raise _syntax_error(error, text) from None


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SPELLINGS = {"==": "=", "<>": "!="}


@v_args(inline=True)
class _Builder(Transformer[Token, Expression]):
    """Builds the expression during parsing."""

    def start(self, expression: Expression) -> Expression:
        return expression

    def group(self, expression: Expression) -> Expression:
        return expression

    def or_(self, *parts: Expression) -> Expression:
        return Or(parts)

    def and_(self, *parts: Expression) -> Expression:
        return And(parts)

    def negation(self, part: Expression) -> Expression:
        return Not(part)

    def comparison(self, name: Token, operator: Token, operand: Operand) -> Expression:
        return _compared(name, str(operator), operand, operator)

    def reversed_comparison(self, operand: Operand, operator: Token, name: Token) -> Expression:
        return _compared(name, _FLIPPED.get(operator, str(operator)), operand, operator)

    def chain(self, low: Operand, first: Token, name: Token, second: Token, high: Operand) -> Expression:
        return And((self.reversed_comparison(low, first, name), self.comparison(name, second, high)))

    def between(self, name: Token, low: Operand, high: Operand) -> Expression:
        if type(low) is not type(high) or type(low) is bool:
            raise PredicateError("between takes two numbers, two texts or two dates", _column(name))
        return Predicate(_name(name), Operator.BETWEEN, (low, high))

    def not_between(self, name: Token, low: Operand, high: Operand) -> Expression:
        return Not(self.between(name, low, high))

    def in_(self, name: Token, *operands: Operand) -> Expression:
        return Predicate(_name(name), Operator.IN, operands)

    def not_in(self, name: Token, *operands: Operand) -> Expression:
        return Not(self.in_(name, *operands))

    def like(self, name: Token, pattern: Token) -> Expression:
        return Predicate(_name(name), Operator.LIKE, (unquoted(pattern),))

    def not_like(self, name: Token, pattern: Token) -> Expression:
        return Not(self.like(name, pattern))

    def within(self, x: Token, y: Token, *bounds: Token) -> Expression:
        west, south, east, north = (self.number(bound) for bound in bounds)
        return And(
            (
                Predicate(_name(x), Operator.BETWEEN, (west, east)),
                Predicate(_name(y), Operator.BETWEEN, (south, north)),
            )
        )

    def has(self, name: Token, *words: Token) -> Expression:
        return Predicate(_name(name), Operator.HAS, tuple(map(unquoted, words)))

    def exists(self, name: Token) -> Expression:
        return Predicate(_name(name), Operator.EXISTS, ())

    def number(self, token: Token) -> float:
        value = float(token)
        if math.isinf(value):
            raise PredicateError(f"{token} is too large; numbers must fit a double", _column(token))
        return value

    def string(self, token: Token) -> str:
        return unquoted(token)

    def date(self, token: Token) -> Instant:
        text = unquoted(token) if token.type == "STRING" else str(token)
        instant = parse_instant(text)
        if instant is None:
            raise PredicateError(
                f"{text!r} is not a date; write one such as 2026-01-31T12:00:00Z", (token.start_pos or 0) + 1
            )
        return instant

    def dated(self, _word: Token, text: Token) -> Instant:
        return self.date(text)

    def true(self) -> bool:
        return True

    def false(self) -> bool:
        return False


def _compared(name: Token, operator: str, operand: Operand, at: Token) -> Expression:
    chosen = Operator(_SPELLINGS.get(operator, operator))
    if type(operand) is bool and chosen in ORDERED:
        raise PredicateError(
            "true and false have no order; compare them with = or !=", (at.start_pos or 0) + 1
        )
    return Predicate(_name(name), chosen, (operand,))


def _column(token: Token) -> int:
    return (token.start_pos or 0) + 1


def _name(token: Token) -> str:
    return str(token).strip("`")


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", transformer=_Builder())


_NESTING = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)|(\()|(\))|\bnot\b""", re.I | re.S)


def _check_depth(text: str) -> None:
    depth = nots = 0
    for found in _NESTING.finditer(text):
        if found[1]:
            continue
        depth += bool(found[2]) - bool(found[3])
        nots += not (found[2] or found[3])
        if depth > MOST_DEPTH or nots > MOST_DEPTH * 4:
            raise PredicateError(
                f"parentheses are deeper than {MOST_DEPTH}, or negations more than {MOST_DEPTH * 4};"
                " write a shorter expression",
                found.start() + 1,
            )


def _syntax_error(error: UnexpectedInput, text: str) -> PredicateError:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        return _unexpected(repr(str(error.token)), error.accepts or error.expected, _column(error.token))
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        if text[at] in "\"'`":
            return PredicateError(f"the quote {text[at]} is never closed; add another {text[at]}", at + 1)
        return _unexpected(repr(text[at]), _accepted_after(text[:at]), at + 1)
    expected = (error.accepts or error.expected) if isinstance(error, UnexpectedToken) else set()
    return _unexpected("the end of the expression", expected, len(text) + 1)


def _accepted_after(text: str) -> set[str]:
    """Return the terminals that the grammar accepts after a text; the lexer knows them only roughly."""
    parser = _parser().parse_interactive(text)
    parser.exhaust_lexer()
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return accepted


def _unexpected(found: str, expected: Collection[str], column: int) -> PredicateError:
    return PredicateError(f"{found} where {_listed(expected)} was expected", column)


def _listed(terminals: Collection[str]) -> str:
    names = sorted(TERMINAL_NAMES.get(name, f"'{name.lower()}'") for name in terminals)
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names) or "more"
