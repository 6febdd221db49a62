"""When a predicate holds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.matching.language.predicates import (
    Operator,
    Predicate,
    conjunction_holds,
    disjunction_holds,
    predicate_holds,
)
from hpwsn.matching.language.values import Instant, like_pattern, parse_instant, words
from tests.unit.matching.strategies import events, predicates

NAN = float("nan")


def p(attribute, operator, *operands, negated=False):
    return Predicate(attribute, Operator(operator), operands, negated)


@pytest.mark.parametrize(
    ("predicate", "event", "holds"),
    [
        (p("x", "<", 5.0), {"x": 4.0}, True),
        (p("x", "<", 5.0), {"x": 5.0}, False),
        (p("x", "<=", 5.0), {"x": 5.0}, True),
        (p("x", ">", 5.0), {}, False),
        (p("x", ">", 5.0, negated=True), {}, True),
        (p("x", ">", 5.0), {"x": "6"}, False),
        (p("x", ">", "5"), {"x": "6"}, True),
        (p("x", "!=", 5.0), {"x": "five"}, False),
        (p("x", "!=", 5.0), {"x": 6.0}, True),
        (p("x", "!=", 5.0), {"x": NAN}, False),
        (p("x", "=", True), {"x": 1.0}, False),
        (p("x", "=", True), {"x": True}, True),
        (p("x", "<", True), {"x": False}, False),
        (p("x", "between", 1.0, 2.0), {"x": 2.0}, True),
        (p("x", "between", 2.0, 1.0), {"x": 1.5}, False),
        (p("x", "in", 1.0, "a"), {"x": "a"}, True),
        (p("x", "in", 1.0, "a"), {"x": True}, False),
        (p("x", ">=", Instant(1262304000.0)), {"x": "2010-01-01"}, True),
        (p("x", ">=", Instant(1262304000.0)), {"x": "2009-12-31T23:59:59Z"}, False),
        (p("x", ">=", Instant(1262304000.0)), {"x": "soon"}, False),
        (p("x", "exists"), {"x": ""}, True),
        (p("x", "exists"), {}, False),
        (p("x", "has", "fire", "smoke"), {"x": "smoke, fire"}, True),
        (p("x", "has", "fire", "smoke"), {"x": ("fire", "big smoke")}, True),
        (p("x", "has", "7"), {"x": 7.0}, True),
        (p("x", "has", "fir"), {"x": "fire"}, False),
        (p("x", "like", "%B34%"), {"x": "京B34C91"}, True),
        (p("x", "like", "_B34"), {"x": "京B34C91"}, False),
    ],
)
def test_a_predicate_holds_as_its_types_allow(predicate, event, holds):
    assert predicate_holds(predicate, event) is holds


def test_predicates_on_a_repeated_attribute_hold_for_one_value():
    both = (p("x", ">", 5.0), p("x", "<", 7.0))
    assert conjunction_holds(both, {"x": (1.0, 6.0)})
    assert not conjunction_holds(both, {"x": (1.0, 9.0)})


def test_words_of_a_repeated_attribute_are_taken_together():
    assert conjunction_holds((p("x", "has", "a", "b"), p("x", "=", "a")), {"x": ("a", "b")})


def test_no_conjunction_never_holds_and_an_empty_one_always_does():
    assert not disjunction_holds((), {"x": 1.0})
    assert disjunction_holds(((),), {})


@given(predicate=predicates(), event=events)
def test_a_negated_predicate_is_the_opposite_where_nothing_is_repeated(predicate, event):
    event = {name: value for name, value in event.items() if not isinstance(value, tuple)}
    opposite = Predicate(predicate.attribute, predicate.operator, predicate.operands, not predicate.negated)
    assert predicate_holds(predicate, event) is not predicate_holds(opposite, event)


@given(
    pattern=st.text(alphabet="ab%_", max_size=8) | st.text(alphabet="ab", max_size=4).map("{}%".format),
    text=st.text(alphabet="ab", max_size=10),
)
def test_like_equals_the_regular_expression(pattern, text):
    expression = "".join({"%": ".*", "_": "."}.get(c, c) for c in pattern)
    assert like_pattern(pattern).matches(text) is (re.fullmatch(expression, text) is not None)


def test_like_takes_an_escaped_character_as_it_is():
    assert like_pattern("100\\%").matches("100%")
    assert not like_pattern("100\\%").matches("100 percent")
    assert like_pattern("a\\").matches("a\\")


def test_a_pattern_of_many_parts_ends_at_once_on_a_long_text():
    assert not like_pattern("%a" * 40 + "%b").matches("a" * 20_000)


def test_words_are_values_and_their_parts():
    assert words(("big fire", 7.0, True)) == {"big fire", "big", "fire", "7", "true"}


@pytest.mark.parametrize("text", ["", "x", "2026-02-30", "99999-01-01", "7"])
def test_text_that_is_no_date_is_no_instant(text):
    assert parse_instant(text) is None


@given(predicate=predicates())
def test_a_predicate_can_be_written_down(predicate):
    assert predicate.attribute in str(predicate)


def test_predicates_of_different_types_are_different():
    assert p("x", "=", True) != p("x", "=", 1.0)
    assert p("x", "=", 1.0) == p("x", "=", 1.0)
