"""The default engine through long histories: answers stay right, and memory follows what is live."""

import math
import random
import sys

import pytest

from hpwsn.matching.engine import kernels
from hpwsn.matching.engine.compiled_kernel import compiled, match_compiled
from hpwsn.matching.engine.conjunction_index import COMMON_ATTRIBUTE
from hpwsn.matching.engine.default_engine import DefaultEngine, fast_kernel
from hpwsn.matching.engine.interval_groups import MAX_COLUMNS, SHRINK_RATIO, SIZES
from hpwsn.matching.engine.interval_index import MAX_GROUPS
from hpwsn.matching.engine.kernels import match_numpy
from hpwsn.matching.engine.word_cells import FIRST_ROWS
from hpwsn.matching.engine.word_cells import SHRINK_RATIO as CELLS_SHRINK_RATIO
from hpwsn.matching.language.predicates import Operator, Predicate, disjunction_holds
from hpwsn.matching.language.values import Instant


def between(name, low, high):
    return Predicate(name, Operator.BETWEEN, (low, high))


def ranges(chance, names, each=3):
    chosen = chance.sample(names, min(each, len(names)))
    return (tuple(between(name, low := chance.random(), low + 0.5) for name in chosen),)


def some_texts(chance, round_):
    """Equalities of texts that later rounds ask for no more, with few values so that none is rare."""
    return (
        (
            Predicate("kind", Operator.EQ, (f"{round_} {chance.randrange(3)}",)),
            Predicate("state", Operator.EQ, (f"{round_} {chance.randrange(2)}",)),
            between("a", low := chance.random() / 2, low + 0.5),
        ),
    )


def some_words(chance):
    x, y, side = chance.uniform(-180, 180), chance.uniform(-90, 90), chance.choice([0.5, 20, 150])
    words = tuple({f"w{chance.randrange(30)}" for _ in range(chance.randint(1, 3))})
    place = (between("x", x, x + side), between("y", y, y + side)) if chance.random() < 0.9 else ()
    more = (between("a", 0.2, 0.9),) if chance.random() < 0.2 else ()
    return ((*place, Predicate("keywords", Operator.HAS, words), *more),)


def compare(engine, live, event):
    found = engine.match(event)
    assert sorted(found) == [
        id_ for id_, request in sorted(live.items()) if disjunction_holds(request, event)
    ]


@pytest.fixture(params=[match_numpy, match_compiled], ids=["numpy", "compiled"])
def engine(request, monkeypatch):
    # So that numpy's kernel joins bits with as few requests as these tests have.
    for cost in ("JOIN_COST", "FIND_COST", "ROW_COST"):
        monkeypatch.setattr(kernels, cost, 0)
    return DefaultEngine(request.param)


def turn_over(engine, live, chance, changes, make):
    """Each change removes one at random and adds another."""
    ids = list(live)
    for number in range(max(ids) + 1, max(ids) + 1 + changes):
        place = chance.randrange(len(ids))
        engine.remove(ids[place])
        del live[ids[place]]
        ids[place] = number
        live[ids[place]] = make()
        engine.add(ids[place], live[ids[place]])


def test_answers_and_memory_stay_bounded_through_ten_times_the_live_requests(engine):
    chance, names, live = random.Random(1), list("abcdefgh"), {}
    for number in range(1500):
        live[number] = ranges(chance, names)
        engine.add(number, live[number])
    for _ in range(10):
        turn_over(engine, live, chance, 1500, lambda: ranges(chance, names))
        event = {name: chance.random() * 1.5 for name in names if chance.random() < 0.9}
        compare(engine, live, event)
        assert engine._intervals.segments <= 4
        assert engine._intervals.capacity <= 8 * len(live) + SIZES[0]


def test_rows_of_a_cleared_segment_are_found_at_every_step(engine):
    chance, live, number = random.Random(2), {}, 0
    event = {"a": 0.7, "b": 0.6}
    while engine._intervals.segments < 3 and number < 6000:
        live[number] = ranges(chance, ["a", "b"], 2)
        engine.add(number, live[number])
        number += 1
        if number % 97 == 0 or (engine._intervals.segments > 1 and number % 7 == 0):
            compare(engine, live, event)
    for id_ in chance.sample(list(live), len(live) - 5):
        engine.remove(id_)
        del live[id_]
        if len(live) % 101 == 0:
            compare(engine, live, event)
    compare(engine, live, event)
    assert engine._intervals.capacity <= 2 * SHRINK_RATIO * SIZES[0]


def test_codes_of_texts_are_used_again_by_others(engine):
    chance, live, number = random.Random(3), {}, 0
    for round_ in range(8):
        gone = list(live)
        for _ in range(600):
            live[number] = some_texts(chance, round_)
            engine.add(number, live[number])
            number += 1
        for id_ in gone:
            engine.remove(id_)
            del live[id_]
        for kind in (round_ - 1, round_):
            compare(engine, live, {"kind": f"{kind} 1", "state": f"{kind} 0", "a": 0.5})
    for id_ in live:
        engine.remove(id_)
    assert len(engine._codes) == 0
    assert engine._intervals.capacity == 0


def test_more_channels_than_columns_make_few_groups(engine):
    chance, names, live = random.Random(4), [f"n{number}" for number in range(600)], {}
    for number in range(3000):
        live[number] = ranges(chance, names, chance.choice([1, 2, 2, 5]))
        engine.add(number, live[number])
    assert len(engine._intervals._groups) <= MAX_GROUPS + len(names) // (MAX_COLUMNS // 3)
    for _ in range(10):
        compare(engine, live, {name: chance.random() * 1.5 for name in names if chance.random() < 0.8})
    repeated = {name: (chance.random(), chance.random() + 0.5) for name in names[:300]}
    compare(engine, live, repeated)
    for id_ in list(live)[::2]:
        engine.remove(id_)
        del live[id_]
    compare(engine, live, dict.fromkeys(names, 0.7))


def test_a_request_of_more_channels_than_a_group_has_is_found(engine):
    names = [f"n{number}" for number in range(2 * MAX_COLUMNS + 5)]
    request = (tuple(between(name, 0.0, 1.0) for name in names),)
    for number in range(600):
        engine.add(number, request)
    assert len(engine.match(dict.fromkeys(names, 0.5))) == 600
    assert engine.match(dict.fromkeys(names, 0.5) | {names[-1]: 2.0}) == []
    assert engine.match(dict.fromkeys(names[:-1], 0.5)) == []


def test_a_column_that_appears_late_is_a_column_of_all_new_rows(engine):
    chance, live = random.Random(5), {}
    for number in range(2000):
        names = ["a", "b", "c"] if number < 700 else [f"late{number // 100}", "a", "b", "c"]
        live[number] = ranges(chance, names, len(names))
        engine.add(number, live[number])
        if number % 150 == 0:
            compare(engine, live, {"a": 0.8, "b": 0.8, "c": 0.8, f"late{number // 100}": 0.7})
    late = {f"late{number}": 0.7 for number in range(7, 20)}
    compare(engine, live, {"a": 0.8, "b": 0.8, "c": 0.8} | late)


def test_words_and_places_stay_right_and_bounded(engine):
    chance, live, number = random.Random(6), {}, 0
    for _ in range(6):
        for _ in range(1500):
            live[number] = some_words(chance)
            engine.add(number, live[number])
            number += 1
        for id_ in chance.sample(list(live), len(live) - 200):
            engine.remove(id_)
            del live[id_]
        for _ in range(10):
            words = tuple(f"w{chance.randrange(30)}" for _ in range(6))
            x, y = chance.uniform(-180, 180), chance.uniform(-90, 90)
            compare(engine, live, {"x": x, "y": y, "keywords": words, "a": chance.random()})
        compare(engine, live, {"x": (-100.0, 50.0), "y": 10.0, "keywords": tuple(f"w{n}" for n in range(30))})
        assert engine._keywords.capacity <= 2 * max(
            CELLS_SHRINK_RATIO * len(live), FIRST_ROWS * CELLS_SHRINK_RATIO
        )
    for id_ in live:
        engine.remove(id_)
    assert engine._keywords.capacity == 0
    assert not engine._keywords._words


def test_rare_equalities_are_looked_up_and_common_ones_are_rows(engine):
    chance, live = random.Random(7), {}
    for number in range(4000):
        rare = Predicate("plate", Operator.EQ, (f"p{chance.randrange(1000)}",))
        common = Predicate("lane", Operator.EQ, (float(chance.randrange(3)),))
        live[number] = ((rare, common),) if number % 2 else ((common, between("a", 0.0, chance.random())),)
        engine.add(number, live[number])
    assert 1900 < len(engine._equalities) < 2100
    for _ in range(20):
        event = {"plate": f"p{chance.randrange(1000)}", "lane": float(chance.randrange(4)), "a": 0.3}
        compare(engine, live, event)
        compare(engine, live, event | {"plate": ("p1", "p2", "p1"), "lane": (1.0, True)})
        compare(engine, live, event | {"lane": True})
    for id_ in live:
        engine.remove(id_)
    assert not engine._equalities


def test_lists_of_rare_values_are_looked_up_and_found_once(engine):
    chance, live = random.Random(9), {}
    for number in range(1000):
        plates = tuple(f"p{chance.randrange(2000)}" for _ in range(3))
        some = Predicate("plate", Operator.IN, plates)
        live[number] = ((some, Predicate("lane", Operator.IN, (1.0, "left"))),) if number % 2 else ((some,),)
        engine.add(number, live[number])
    assert len(engine._equalities) > 950
    for _ in range(20):
        plate, other = f"p{chance.randrange(2000)}", f"p{chance.randrange(2000)}"
        compare(engine, live, {"plate": plate, "lane": chance.choice([1.0, "left", True, "right"])})
        compare(engine, live, {"plate": (plate, other, plate), "lane": (1.0, 2.0)})
    for id_ in live:
        engine.remove(id_)
    assert not engine._equalities


def test_requests_with_attributes_of_their_own_take_no_columns_until_others_share_them(engine):
    live = {number: ((between(f"n{number}", 0.0, 1.0),),) for number in range(300)}
    for number, request in live.items():
        engine.add(number, request)
    assert engine._intervals.capacity == 0
    before = engine.evaluations
    compare(engine, live, {"n7": 0.5, "n8": 2.0, "x": 1.0})
    assert engine.evaluations == before + 2
    for number in range(300, 300 + COMMON_ATTRIBUTE):
        live[number] = ((between("n7", 0.0, 0.6), between(f"m{number}", 0.0, 1.0)),)
        engine.add(number, live[number])
        engine.add(1000 + number, ((between("n7", 0.0, 0.6),),))
        live[1000 + number] = ((between("n7", 0.0, 0.6),),)
    assert engine._intervals.capacity > 0
    compare(engine, live, {"n7": 0.5, "m301": 0.5, "n9": 0.1})
    for id_ in live:
        engine.remove(id_)
    assert engine._intervals.capacity == 0
    assert engine.match({"n7": 0.5, "m301": 0.5}) == []


def test_a_word_that_many_ask_for_does_not_make_all_of_them_asked(engine):
    live = {}
    for number in range(2000):
        fire = Predicate("keywords", Operator.HAS, ("fire",))
        live[number] = ((fire, Predicate("a", Operator.GT, (float(number),))),)
        engine.add(number, live[number])
    before = engine.evaluations
    compare(engine, live, {"keywords": "fire", "a": 100.5})
    assert engine.evaluations - before < 400
    compare(engine, live, {"keywords": "smoke", "a": 100.5})


def test_the_kernel_can_be_changed_while_requests_are_live():
    engine, chance, live = DefaultEngine(), random.Random(8), {}
    for number in range(1000):
        live[number] = ranges(chance, ["a", "b", "c"], 2)
        engine.add(number, live[number])
    event = {"a": 0.7, "b": 0.7, "c": 0.7}
    before = sorted(engine.match(event))
    engine.kernel = fast_kernel()
    assert engine.kernel is match_compiled
    assert sorted(engine.match(event)) == before
    compare(engine, live, event)


@pytest.mark.parametrize("bounds", [(1.0, "z"), ("a", 2.0), (Instant(0.0), 5.0), (3.0, 1.0)])
def test_nothing_lies_between_bounds_that_do_not_fit(engine, bounds):
    request = ((Predicate("a", Operator.BETWEEN, bounds),),)
    engine.add(1, request)
    for value in (1.5, "m", True, "1970-01-01"):
        compare(engine, {1: request}, {"a": value})


def test_ranges_may_reach_as_far_as_numbers_do(engine):
    # Enough to be packed: the largest number has no next one there, and no finite distance from the least.
    most = sys.float_info.max
    bounds = [(-most, most), (-most, -most), (most, most), (0.0, most), (-math.inf, -most), (most, math.inf)]
    live = {}
    for id_ in range(300):
        live[id_] = ((between("a", *bounds[id_ % len(bounds)]),),)
        engine.add(id_, live[id_])
    for value in (0.0, math.nextafter(most, 0.0), most, math.inf):
        compare(engine, live, {"a": value})
        compare(engine, live, {"a": -value})


def test_what_cannot_be_kept_on_disk_is_compiled_all_the_same():
    namespace = {}
    exec("def twice(number):\n    return 2 * number", namespace)
    # It comes from no file, so numba has no place for it, as in an installation that cannot be written to.
    assert compiled(namespace["twice"])(21) == 42
