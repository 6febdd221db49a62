"""Statements of interest and those who hear them."""

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.interest.interest_sets import Heard, Merged, Statement
from hpwsn.routing.wire.router_messages import Interest, Scope, Subject

SUBJECT = Subject(Scope.NODE, "n")
texts = st.sampled_from(["/A", "/A//.", "/A/B", "/C", "/C/D", "/C/E", "//D", ""])


def statement(merged: Merged, most: int = 100) -> Statement:
    return Statement(SUBJECT, 1, merged, most)


@given(st.lists(st.tuples(st.booleans(), texts), max_size=40), st.integers(1, 100), st.data())
def test_whoever_takes_every_difference_has_the_whole(
    changes: list[tuple[bool, str]], most: int, data: st.DataObject
) -> None:
    merged, held = Merged(), []
    told = statement(merged, most)
    heard = Heard(told.whole(), "n")
    for add, text in changes:
        if add:
            merged.add(text)
            held.append(text)
        elif text in held:
            merged.discard(text)
            held.remove(text)
        if data.draw(st.booleans()):
            message = told.next()
            assert message is None or heard.take(message) is not None
            assert heard.table.texts == told.texts and len(told.texts) <= most


def test_nothing_is_told_where_nothing_changed() -> None:
    merged = Merged()
    told = statement(merged)
    merged.add("/A")
    merged.discard("/A")
    assert told.next() is None and told.version == 1


def test_what_is_covered_is_not_told_until_its_cover_goes() -> None:
    merged = Merged()
    told = statement(merged)
    merged.add("/A//.")
    merged.add("/A/B")
    assert told.next() == Interest(SUBJECT, 1, 2, 1, ("/A//.",))
    merged.discard("/A//.")
    assert told.next() == Interest(SUBJECT, 1, 3, 2, ("/A/B",), ("/A//.",))


def test_a_difference_on_another_version_is_not_taken_and_a_whole_always_is() -> None:
    heard = Heard(Interest(SUBJECT, 1, 5, 0, ("/A",)), "n")
    assert heard.take(Interest(SUBJECT, 1, 8, 7, ("/B",))) is None
    assert heard.table.texts == {"/A"}
    assert heard.take(Interest(SUBJECT, 1, 8, 0, ("/B",))) == ({"/B"}, {"/A"})
    assert heard.version == 8


def test_a_difference_of_completeness_alone_is_told() -> None:
    told = statement(Merged())
    message = told.next(complete=False)
    assert message is not None and not message.complete and not message.added
