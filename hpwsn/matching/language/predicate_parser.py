"""The predicate language, dialect urn:hpwsn:predicates:
`speed > 60 and (vid = "京B34C91" or within(longitude, latitude, 115.25, 39.26, 117.30, 41.03))`.

Parses a text to the normal form that engines take, by a fast parser for ordinary texts (`plain_form`) and by
the grammar for all others. Refused are texts that are not valid, too long, too large in normal form, or that
can never match.
"""

from __future__ import annotations

from hpwsn.matching.language.normal_form import Expression, TooLarge, normalise
from hpwsn.matching.language.plain_form import parse_plain, plain_conjunction
from hpwsn.matching.language.predicates import Disjunction

MOST_CHARACTERS = 4096


class PredicateError(ValueError):
    """The text is not a valid predicate; `column` counts characters from 1."""

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message if column is None else f"column {column}: {message}")
        self.column = column


def parse_predicates(text: str) -> Disjunction:
    """Return the normal form of an expression; raises PredicateError."""
    _check_length(text)
    if (plain := plain_conjunction(text)) is not None:
        return (plain,)
    try:
        normal = normalise(parse_expression(text))
    except TooLarge as error:
        raise PredicateError(str(error)) from None
    if not normal:
        raise PredicateError("it can never match: its conditions contradict each other; remove one of them")
    return normal


def parse_expression(text: str) -> Expression:
    """Return the expression as written; raises PredicateError."""
    _check_length(text)
    if (plain := parse_plain(text)) is not None:
        return plain
    # Lark takes more than a megabyte, and most nodes never need it.
    from hpwsn.matching.language.grammar import parse_by_grammar

    return parse_by_grammar(text)


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise PredicateError(f"the expression has {len(text)} characters; write at most {MOST_CHARACTERS}")
