"""Words and places: the default engine answers as the definition does, wherever rectangles lie."""

import random
import sys
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.matching.engine import word_cells
from hpwsn.matching.engine.cells import Grid, size_of
from hpwsn.matching.engine.default_engine import DefaultEngine
from hpwsn.matching.language.predicates import Operator, Predicate, disjunction_holds

LARGEST, SMALLEST = sys.float_info.max, 5e-324
WORDS = ["fire", "smoke", "7", "true", "a b", "", "b"]

coordinates = st.sampled_from(
    [0.0, -0.0, 1.0, 2.0, -1.0, 4.0, 0.5, SMALLEST, -SMALLEST, 1e-300, LARGEST, -LARGEST, 2.0**1000]
) | st.floats(-8, 8)
sides = st.tuples(coordinates, coordinates).map(sorted)
some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
values = coordinates | st.sampled_from([float("nan"), float("inf"), "fire", True])
several = values | st.lists(values, min_size=1, max_size=3).map(tuple)


@st.composite
def places(draw):
    """Words, nearly always a rectangle, and sometimes more."""
    predicates = [Predicate("keywords", Operator.HAS, tuple(draw(some_words)))]
    if draw(st.integers(0, 9)):
        predicates += [Predicate(name, Operator.BETWEEN, tuple(draw(sides))) for name in "xy"]
    if not draw(st.integers(0, 3)):
        predicates.append(Predicate("x", Operator.GE, (draw(coordinates),)))
    return (tuple(draw(st.permutations(predicates))),)


events = st.fixed_dictionaries(
    {"keywords": some_words.map(tuple) | st.sampled_from([*WORDS, "fire, b", (7.0, True, "fire")])},
    optional={"x": several, "y": several},
)


@pytest.fixture(params=[0, word_cells.SCALAR_LIMIT, 10**9], ids=["numpy", "as it is", "python"])
def few(request, monkeypatch):
    monkeypatch.setattr(word_cells, "SCALAR_LIMIT", request.param)


def expected(live, event):
    return sorted(id_ for id_, request in live.items() if disjunction_holds(request, event))


@given(
    requests=st.lists(places(), max_size=40),
    gone=st.sets(st.integers(0, 39)),
    cases=st.lists(events, min_size=1, max_size=8),
)
@settings(max_examples=100, deadline=None)
def test_every_place_is_found_as_the_definition_says(requests, gone, cases):
    engine, live = DefaultEngine(), dict(enumerate(requests))
    for id_, request in live.items():
        engine.add(id_, request)
    for id_ in gone & live.keys():
        engine.remove(id_)
        del live[id_]
    for event in cases:
        ids = expected(live, event)
        for few in (0, 10**9):
            with patch.object(word_cells, "SCALAR_LIMIT", few):
                assert sorted(engine.match(event)) == ids


def request_of(chance):
    """On a lattice, so that many share bounds and all touch cells of others."""
    west, south, wide, high = (chance.randrange(0, 16) / 2 for _ in range(4))
    words = tuple(chance.choice(["fire", "smoke", "flood", "b"]) for _ in range(chance.choice([1, 1, 2, 3])))
    place = [("x", west, west + wide), ("y", south, south + high)]
    ranges = tuple(Predicate(name, Operator.BETWEEN, (low, high)) for name, low, high in place)
    return ((*ranges, Predicate("keywords", Operator.HAS, words)),)


def test_rows_that_take_the_places_of_others_are_found_after_all_changes(few):
    chance, engine, live = random.Random(11), DefaultEngine(), {}
    for number in range(3000):
        live[number] = request_of(chance)
        engine.add(number, live[number])
        if chance.random() < (0.4 if number < 1500 else 0.7):
            gone = chance.choice(list(live)[:50])
            engine.remove(gone)
            del live[gone]
        if number % 50 == 0:
            x, y = chance.randrange(0, 60) / 4, chance.randrange(0, 60) / 4
            event = {"x": x, "y": y, "keywords": ("fire", "b", chance.choice(["smoke", "flood", "quake"]))}
            assert sorted(engine.match(event)) == expected(live, event)
    for id_ in live:
        engine.remove(id_)
    assert engine._keywords.capacity == 0
    assert not engine._keywords._words


def test_more_words_than_a_signature_has_bits_are_told_apart(few):
    engine, live = DefaultEngine(), {}
    anywhere = tuple(Predicate(name, Operator.BETWEEN, (0.0, 1.0)) for name in "xy")
    for number in range(4 * word_cells.SIGNATURE_BITS):
        live[number] = ((*anywhere, Predicate("keywords", Operator.HAS, ("fire", f"w{number}"))),)
        engine.add(number, live[number])
    event = {"x": 0.5, "y": 0.5, "keywords": ("fire", "w1", f"w{1 + word_cells.SIGNATURE_BITS}")}
    assert sorted(engine.match(event)) == [1, 1 + word_cells.SIGNATURE_BITS]


@pytest.mark.parametrize(
    ("rectangle", "most"),
    [
        ((0.0, 1.0, 0.0, 1.0), 4),
        ((-1.0, 1.0, -1.0, 1.0), 4),
        ((1e9, 1e9, 1e9, 1e9), 1),
        ((1e300, 1e300, -SMALLEST, SMALLEST), 2),
        ((-SMALLEST, SMALLEST, 0.0, 0.0), 2),
        ((-LARGEST, LARGEST, -LARGEST, LARGEST), 64),
        ((-LARGEST, LARGEST, 0.0, 0.0), 8),
    ],
)
def test_a_rectangle_touches_few_cells_however_large_or_far_it_is(rectangle, most):
    grid = Grid(size_of(rectangle))
    cells = grid.touched_by(rectangle)
    assert len(cells) <= most
    west, east, south, north = rectangle
    assert all(cell in cells for cell in grid.containing([west, east], [south, north]))
