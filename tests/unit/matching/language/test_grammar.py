"""The predicate language: what it reads, what it refuses, and that its normal form means the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.matching.language import plain_form
from hpwsn.matching.language.grammar import MOST_DEPTH, parse_by_grammar
from hpwsn.matching.language.normal_form import (
    MOST_CONJUNCTIONS,
    MOST_PLAIN,
    And,
    Not,
    Or,
    TooLarge,
    expression_holds,
    normalise,
)
from hpwsn.matching.language.plain_form import parse_plain, plain_conjunction
from hpwsn.matching.language.predicate_parser import (
    MOST_CHARACTERS,
    PredicateError,
    parse_expression,
    parse_predicates,
)
from hpwsn.matching.language.predicates import Operator, Predicate, disjunction_holds
from hpwsn.matching.language.values import Instant
from tests.unit.matching.strategies import events, predicates

single_events = events.map(lambda event: {k: v for k, v in event.items() if not isinstance(v, tuple)})
expressions = st.recursive(
    predicates(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(tuple).map(And)
        | st.lists(inner, min_size=1, max_size=3).map(tuple).map(Or)
        | inner.map(Not)
    ),
    max_leaves=6,
)


def holds(text, event):
    return disjunction_holds(parse_predicates(text), event)


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("speed > 60", {"speed": 61.0}, True),
        ("60 < speed", {"speed": 61.0}, True),
        ("115.25 < longitude < 117.30", {"longitude": 116.0}, True),
        ("115.25 < longitude < 117.30", {"longitude": 118.0}, False),
        ("speed > 60 and lane = 1 or vid = 'x'", {"vid": "x"}, True),
        ("speed > 60 and (lane = 1 or vid = 'x')", {"vid": "x"}, False),
        ("not speed > 60 and lane = 1", {"lane": 1.0}, True),
        ("NOT speed > 60 AND lane = 1", {"speed": 61.0, "lane": 1.0}, False),
        ("speed between 1 and 2 and lane = 1", {"speed": 2.0, "lane": 1.0}, True),
        ("speed not between 1 and 2", {"speed": 3.0}, True),
        ("lane in (1, 2, 'left')", {"lane": "left"}, True),
        ("lane not in (1, 2)", {"lane": 3.0}, True),
        ("vid like '京B%'", {"vid": "京B34C91"}, True),
        ("vid not like '京B%'", {"vid": "京A34C91"}, True),
        ('vid like "100\\%"', {"vid": "100%"}, True),
        ("within(x, y, -10, 0, 10, 5)", {"x": -10.0, "y": 5.0}, True),
        ("within(x, y, -10, 0, 10, 5)", {"x": 0.0, "y": 6.0}, False),
        ('has(keywords, "fire", "smoke")', {"keywords": ("smoke", "fire")}, True),
        ("exists(speed)", {}, False),
        ("not exists(speed)", {}, True),
        ("open = true", {"open": True}, True),
        ("open != TRUE", {"open": False}, True),
        ("time >= 2010-01-01", {"time": "2010-01-01T00:00:00Z"}, True),
        ('time < date "2010-01-01T00:00:00+08:00"', {"time": "2009-12-31"}, True),
        ('date > date "2020-01-01" and Date = 1', {"date": "2021-01-01", "Date": 1.0}, True),
        ('date "2020-01-01" < date', {"date": "2021-01-01"}, True),
        ("`air temperature` > -5.5e0", {"air temperature": 1.0}, True),
        ("air-temp.max <> 4", {"air-temp.max": 5.0}, True),
        ("温度 == 20", {"温度": 20.0}, True),
        ('name = "a \\"b\\" \\\\"', {"name": 'a "b" \\'}, True),
    ],
)
def test_an_expression_holds_as_it_is_written(text, event, expected):
    assert holds(text, event) is expected


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "an attribute"),
        ("speed >", 8, "a number"),
        ("speed > > 5", 9, "a number"),
        ("speed > 60 and", 15, "an attribute"),
        ("(speed > 60", 12, ")"),
        ("speed 60", 7, "a comparison"),
        ("speed > 60 ]", 12, "where 'and', 'or' or the end was expected"),
        ("(speed > 60 ]", 13, "where ')', 'and' or 'or' was expected"),
        ("has(keywords ;", 14, "where ',' was expected"),
        ("within(x, y, 1, 2, 3)", 21, ","),
        ("has(keywords)", 13, ","),
        ("lane in ()", 10, "a number"),
        ("open < true", 6, "order"),
        ("time > date 'soon'", 13, "date"),
        ("x > 1e999", 5, "too large"),
        ("x between 1 and 'a'", 1, "between"),
        ("x = 1 and y = 'open", 15, "never closed"),
        ("speed > 60 && lane = 1", 12, "and"),
        ("温度 > 高", 6, "a number"),
        ("x = y", 5, "a number"),
        ("x > 1_000", 6, "and"),
        ("speed > 60\nand lane >", 22, "a number"),
    ],
)
def test_an_error_points_at_the_column_with_what_was_expected(text, column, words):
    with pytest.raises(PredicateError) as refused:
        parse_predicates(text)
    assert refused.value.column == column
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "speed > 60 and speed < 50",
        "speed > 60 and speed <= 60",
        "speed = 1 and speed = 2",
        "speed = 1 and speed = 'one'",
        "speed = 1 and speed != 1",
        "speed between 5 and 1",
        "lane in (1, 2) and lane > 3",
        "open = true and open = false",
        "exists(x) and not exists(x)",
        "x > 1 and not exists(x)",
        "x > 1 and not x > 1",
        "x > 1 and not x > 0",
        "time > 2020-01-01 and time < 2010-01-01",
        "vid like 'a%' and vid = 5",
        "vid like 'ab%' and vid like '%b' and vid like 'ac_'",
        r"vid like 'a\%%' and vid like 'ab%'",
        "vid = 'b' and vid like 'a%'",
        "vid in ('b', 'c') and not vid in ('c', 'b', 'a')",
        "vid = 'a' and not vid like 'a%'",
        "lane in (1, 'left') and lane in (2, 'right', true)",
        "time = 'soon' and time > 2020-01-01",
        "time = '2019-05-01' and time > 2020-01-01",
        "time = 2020-01-01 and time = 2020-01-02",
        'has(tags, "fire", "smoke") and not has(tags, "fire")',
        'has(tags, "fire") and has(tags, "smoke") and not has(tags, "smoke", "fire")',
        "within(x, y, 10, 0, -10, 5)",
        "(x > 5 and x < 3) or (y = 1 and y = 2)",
    ],
)
def test_an_expression_that_can_never_hold_is_refused(text):
    with pytest.raises(PredicateError, match="never match"):
        parse_predicates(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("x > 1 and x > 2", "x > 2"),
        ("x >= 1 and x <= 2", "x between 1 and 2"),
        ("x >= 1 and x <= 1", "x = 1"),
        ("x in (1, 2, 3) and x > 1 and x != 2", "x = 3"),
        ("x > 1 or (x > 1 and y = 2)", "x > 1"),
        ("x > 1 and not x > 5", "x > 1 and x <= 5"),
        ("x > 1 and exists(x)", "x > 1"),
        ("x != 0 and x > 1", "x > 1"),
        ('x in ("ab", "b") and x like "a%"', 'x = "ab"'),
        ('time = "2020-05-01" and time > 2020-01-01', 'time = "2020-05-01"'),
        ('x in (1, true, "1") and not x = 1', 'x in (true, "1")'),
        ('has(x, "a") and has(x, "a", "b")', 'has(x, "a", "b")'),
        ('has(x, "a") and exists(x) and not has(x, "c")', 'has(x, "a") and not has(x, "c")'),
        ("(x > 5 and x < 3) or y = 1", "y = 1"),
    ],
)
def test_the_normal_form_is_simple(text, normal):
    written = " or ".join(" and ".join(map(str, conjunction)) for conjunction in parse_predicates(text))
    assert sorted(written.split(" and ")) == sorted(normal.split(" and "))


@given(expression=expressions, event=single_events)
@settings(max_examples=500, deadline=None)
def test_the_normal_form_means_the_same(expression, event):
    assert disjunction_holds(normalise(expression), event) is expression_holds(expression, event)


@given(predicate=predicates())
def test_a_predicate_reads_as_it_is_written(predicate):
    readable = [o for o in predicate.operands if not isinstance(o, float) or abs(o) < float("inf")]
    ordered_truth = (
        any(isinstance(o, bool) for o in predicate.operands) and predicate.operator.value in "<=>="
    )
    if len(readable) == len(predicate.operands) and not ordered_truth:
        expected = Predicate(predicate.attribute, predicate.operator, predicate.operands)
        assert parse_expression(str(expected)) == expected


@pytest.mark.parametrize("name", ["air temperature", "in", "Not", "7up", "a/b", "京 B", "date", "x.y-z"])
def test_an_attribute_of_any_name_reads_as_it_is_written(name):
    for predicate in (one(name), Predicate(name, Operator.BETWEEN, (1.0, 2.0)), has(name)):
        assert parse_expression(str(predicate)) == predicate


PLAIN = [
    "x > 1", "x<-.5e3", "`a b` != 'it\\'s'", "x between 1 and 2", "X BETWEEN -1 AND +2.", "x = 2020-01-01",
    "within(x, y, 1, 2, 3, 4)", "has(k, 'a', \"b\")", "has (k,'\\\\')", "in > 1", "date > 1", "has = 1",
    "x > 1e999", "x- > 5", "x.y <> 3", "温度 == 20", "x = true", "within(x, y, 1, 2, 3)",
    "x between 1 and 'a'", "and = 1", "x > ٣", "has(date, 'a')", "exists(x)", "x = 'open", "x > 1 ]",
    "x > 5y", "x = 'a,b)'",
]  # fmt: skip


@given(
    tests=st.lists(st.sampled_from(PLAIN), min_size=1, max_size=4),
    joint=st.sampled_from([" and ", " AND\n", "and ", " and", " and(", " or ", "\tand\u2003"]),
    around=st.sampled_from(["", " ", "\n"]),
)
@settings(max_examples=400, deadline=None)
def test_the_plain_form_is_read_as_the_grammar_reads_it(tests, joint, around):
    text = around + joint.join(tests) + around
    plain = parse_plain(text)
    if plain is not None:
        assert parse_by_grammar(text) == plain


@pytest.mark.parametrize(
    "text", ['haſ(tags, "fire")', 'haſ(a, "b", "c", "d", "e", "f")', "wıthin(x, y, 1, 2, 3, 4)"]
)
def test_words_in_letters_that_are_the_same_in_capitals_are_read_as_the_grammar_reads_them(text):
    assert parse_expression(text) == parse_by_grammar(text)


@pytest.mark.parametrize("text", ["haſ > 5", "falſe between 1 and 2", "`x` = 1 and exiſts = 3"])
def test_a_word_of_the_language_is_no_attribute_in_such_letters_either(text):
    with pytest.raises(PredicateError, match="was expected"):
        parse_predicates(text)


@given(
    tests=st.lists(st.sampled_from(PLAIN) | predicates().map(str), min_size=1, max_size=5),
    joint=st.sampled_from([" and ", " AND\n", " and"]),
)
@settings(max_examples=400, deadline=None)
def test_the_normal_form_of_a_plain_text_is_that_of_what_the_grammar_reads(tests, joint):
    text = joint.join(tests)
    plain = plain_conjunction(text)
    if plain is not None:
        assert normalise(parse_by_grammar(text)) == (plain,)


def test_tests_that_are_written_alike_share_a_predicate():
    one = plain_conjunction("speed between 10 and 20 and lane = 3")
    other = plain_conjunction("weight > 5 and speed between 10 and 20")
    assert one[1] is other[0]


def test_no_more_tests_are_remembered_than_the_bound(monkeypatch):
    monkeypatch.setattr(plain_form, "MAX_SHARED", 3)
    plain_form._shared.clear()
    assert [plain_conjunction(f"x > {n}")[0].operands for n in range(5)] == [(float(n),) for n in range(5)]
    assert len(plain_form._shared) == 2


@pytest.mark.parametrize(("spaces", "kept"), [(0, 1), (1, 0)])
def test_tests_of_long_texts_are_not_remembered(spaces, kept):
    plain_form._shared.clear()
    assert plain_conjunction("x > 1".ljust(plain_form.MAX_SHARED_TEXT + spaces)) is not None
    assert len(plain_form._shared) == kept


@pytest.mark.parametrize("extra", [0, 1])
def test_a_plain_text_of_many_tests_has_one_normal_form(extra):
    text = " and ".join(f"a{n}>{n}" for n in range(MOST_PLAIN + extra))
    assert (plain_conjunction(text) is None) == bool(extra)
    assert parse_predicates(text) == normalise(parse_by_grammar(text))


@given(text=st.text(alphabet="ax <>=!'\"()nd1.5e,`\\-", max_size=30))
@settings(max_examples=400, deadline=None)
def test_what_the_plain_form_takes_the_grammar_takes(text):
    plain = parse_plain(text)
    if plain is not None:
        assert parse_by_grammar(text) == plain


@pytest.mark.parametrize(
    "text",
    ["speed > 60", 'vid = "京B34C91" and within(x, y, 1, 2, 3, 4) and has(k, "a")', "a between 1 and 2"],
)
def test_what_most_subscriptions_ask_for_is_plain(text):
    assert parse_plain(text) is not None


@given(text=st.text(max_size=40) | st.text(alphabet="ab <>=!'\"()andornt1.5,`\\", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        parse_predicates(text)
    except PredicateError as error:
        assert error.column is None or 1 <= error.column <= len(text) + 1


def test_length_depth_and_size_are_bounded_at_their_edges():
    longest = "x = " + "1" * 10 + " " * (MOST_CHARACTERS - 14)
    assert parse_predicates(longest)
    with pytest.raises(PredicateError, match=str(MOST_CHARACTERS)):
        parse_predicates(longest + " ")
    assert parse_predicates("(" * MOST_DEPTH + "x = 1" + ")" * MOST_DEPTH)
    with pytest.raises(PredicateError, match=str(MOST_DEPTH)):
        parse_predicates("(" * (MOST_DEPTH + 1) + "x = 1" + ")" * (MOST_DEPTH + 1))
    eight = " and ".join(f"(a{n} = 1 or b{n} = 1)" for n in range(8))
    assert len(parse_predicates(eight)) == MOST_CONJUNCTIONS
    with pytest.raises(PredicateError, match="in \\("):
        parse_predicates(eight + " and (c = 1 or d = 1)")


def test_what_unfolds_beyond_all_bounds_is_refused_at_once():
    with pytest.raises(TooLarge):
        normalise(And(tuple(Or((one(f"a{n}"), one(f"b{n}"))) for n in range(200))))


def test_what_takes_long_to_unfold_is_refused_even_if_little_would_be_left():
    alternatives = " or ".join(f"a = {n}" for n in range(50))
    with pytest.raises(PredicateError, match="combinations"):
        parse_predicates(f"({alternatives}) and ({alternatives})")


def one(name):
    return Predicate(name, Operator.EQ, (1.0,))


def has(name):
    return Predicate(name, Operator.HAS, ("a",))


def test_dates_are_instants():
    (((predicate,),),) = (parse_predicates("t > 1970-01-02"),)
    assert predicate.operands == (Instant(86400.0),)
