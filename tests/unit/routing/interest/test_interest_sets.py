"""Statements of interest and those who hear them."""

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.interest.interest_sets import Advertisement, MergedPatterns, ReceivedInterest
from hpwsn.routing.wire.router_messages import Interest, Scope, Subject

SUBJECT = Subject(Scope.NODE, "n")
texts = st.sampled_from(["/A", "/A//.", "/A/B", "/C", "/C/D", "/C/E", "//D", ""])


def advertise(merged: MergedPatterns, most: int = 100) -> Advertisement:
    return Advertisement(SUBJECT, 1, merged, most)


@given(st.lists(st.tuples(st.booleans(), texts), max_size=40), st.integers(1, 100), st.data())
def test_whoever_takes_every_difference_has_the_whole(
    changes: list[tuple[bool, str]], most: int, data: st.DataObject
) -> None:
    merged, held = MergedPatterns(), []
    advertisement = advertise(merged, most)
    received = ReceivedInterest(advertisement.snapshot(), "n")
    for add, text in changes:
        if add:
            merged.add(text)
            held.append(text)
        elif text in held:
            merged.discard(text)
            held.remove(text)
        if data.draw(st.booleans()):
            message = advertisement.delta()
            assert message is None or received.apply(message) is not None
            assert received.table.texts == advertisement.texts and len(advertisement.texts) <= most


def test_nothing_is_told_where_nothing_changed() -> None:
    merged = MergedPatterns()
    advertisement = advertise(merged)
    merged.add("/A")
    merged.discard("/A")
    assert advertisement.delta() is None and advertisement.version == 1


def test_what_is_covered_is_not_told_until_its_cover_goes() -> None:
    merged = MergedPatterns()
    advertisement = advertise(merged)
    merged.add("/A//.")
    merged.add("/A/B")
    assert advertisement.delta() == Interest(SUBJECT, 1, 2, 1, ("/A//.",))
    merged.discard("/A//.")
    assert advertisement.delta() == Interest(SUBJECT, 1, 3, 2, ("/A/B",), ("/A//.",))


def test_a_difference_on_another_version_is_not_taken_and_a_whole_always_is() -> None:
    received = ReceivedInterest(Interest(SUBJECT, 1, 5, 0, ("/A",)), "n")
    assert received.apply(Interest(SUBJECT, 1, 8, 7, ("/B",))) is None
    assert received.table.texts == {"/A"}
    assert received.apply(Interest(SUBJECT, 1, 8, 0, ("/B",))) == ({"/B"}, {"/A"})
    assert received.version == 8


def test_a_difference_of_completeness_alone_is_told() -> None:
    advertisement = advertise(MergedPatterns())
    message = advertisement.delta(complete=False)
    assert message is not None and not message.complete and not message.added
