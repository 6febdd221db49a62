"""Category matching cuts as its paper says, and descends only where bounds contain the event."""

import math

import pytest

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.papers.categories import (
    CategoryEngine,
    Range,
    categorise,
    number_of_categories,
    ranges_of,
)
from hpwsn.matching.papers.conjunctions import StoredConjunction


def band(attribute, low, high):
    return Predicate(attribute, Operator.BETWEEN, (float(low), float(high)))


def held(number, *predicates):
    one = StoredConjunction(number, predicates)
    one.place = ranges_of(predicates)
    return one


@pytest.mark.parametrize(("n", "c"), [(1, 1), (2, 2), (8, 4), (9, 5), (10_000, 15), (50_000, 17)])
def test_the_number_of_categories_is_by_sturges(n, c):
    assert number_of_categories(n) == c


def test_categories_are_of_equal_size_sorted_by_lower_value_and_known_by_their_bounds():
    conjunctions = [held(n, band("x", n, n + 2)) for n in reversed(range(8))]
    categories = categorise(conjunctions).categories["x"]
    assert [(category.low, category.high) for category in categories] == [(0, 3), (2, 5), (4, 7), (6, 9)]
    inside = [[one.id for one in category.inside.left] for category in categories]
    assert inside == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_there_is_one_level_for_each_range():
    conjunctions = [held(n, band("x", n, n), band("y", n, n), band("z", n, n)) for n in range(64)]
    level, depth = categorise(conjunctions), 0
    while level.categories:
        (categories,) = level.categories.values()
        level, depth = categories[0].inside, depth + 1
    assert depth == 3


def test_ranges_of_one_attribute_are_one_range():
    magnitude = Predicate("magnitude", Operator.GE, (7.0,))
    cold = Predicate("temperature", Operator.LT, (500.0,))
    warm = Predicate("temperature", Operator.GT, (299.0,))
    text = Predicate("place", Operator.EQ, ("Jeju",))
    expected = [Range("magnitude", 7.0, math.inf), Range("temperature", 299.0, 500.0)]
    assert ranges_of((cold, text, magnitude, warm)) == expected


def test_only_categories_that_contain_the_event_are_tested():
    engine = CategoryEngine()
    for number in range(256):
        engine.add(number, ((band("x", number, number + 0.5),),))
    assert engine.match({"x": 3.25}) == [3]
    # Nine categories of 29: the first contains the value and the second begins above it.
    assert engine.bounds == 2
    assert engine.evaluations == 2 + 29


def test_an_event_without_the_attribute_is_compared_with_nothing():
    engine = CategoryEngine()
    for number in range(256):
        engine.add(number, ((band("x", number, number + 0.5),),))
    assert engine.match({"y": 3.25}) == []
    assert engine.evaluations == 0
