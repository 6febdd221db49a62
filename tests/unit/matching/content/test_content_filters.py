"""Content filters are shared while they are used, and looked at once for a payload."""

import pytest

from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH


def _xpath(expression: str) -> ContentFilter:
    return ContentFilter(DIALECT_XPATH, expression, ())


def test_equal_filters_are_one_until_the_last_user_leaves() -> None:
    filters = ContentFilters()
    filters.acquire((_xpath("/a"), _xpath("/b")))
    filters.acquire((_xpath("/a"),))
    assert len(filters) == 2
    filters.release((_xpath("/a"), _xpath("/b")))
    assert len(filters) == 1
    filters.release((_xpath("/a"),))
    assert len(filters) == 0


def test_a_filter_that_does_not_compile_leaves_nothing_behind() -> None:
    filters = ContentFilters()
    with pytest.raises(InvalidMessageContentExpressionFault):
        filters.acquire((_xpath("/a"), _xpath("][")))
    assert len(filters) == 0


def test_all_filters_must_hold() -> None:
    filters = ContentFilters()
    fast, red = _xpath("/car/speed > 60"), _xpath("/car/@colour = 'red'")
    filters.acquire((fast, red))
    filters.acquire((red,))
    evaluation = filters.evaluation(b"<car colour='red'><speed>61</speed></car>")
    assert evaluation.holds((fast, red))
    slow = filters.evaluation(b"<car colour='red'><speed>60</speed></car>")
    assert not slow.holds((fast, red))
    assert slow.holds((red,))
    assert slow.holds(())


@pytest.mark.parametrize(
    ("expression", "payload"),
    [
        ("/r/a/text() = 'fire'", b"<r><a>fi<!-- c -->re</a></r>"),
        ("/r/a[text() = 'fire']", b"<r><!-- c --><a><?pi x?>fire<!-- c --></a></r>"),
        ("/r/a > 60", b"<r><a>6<!-- 5 -->1</a></r>"),
        ("count(/r/node()) = 1", b"<r><!-- c --><a/><?pi x?></r>"),
        ("not(//comment()) and not(//processing-instruction())", b"<r><!-- c --><?pi x?></r>"),
        ("/r = ''", b"<r><!-- <a>1</a> --></r>"),
    ],
)
def test_comments_and_instructions_are_not_there_for_a_filter(expression: str, payload: bytes) -> None:
    filters = ContentFilters()
    wanted = (_xpath(expression),)
    filters.acquire(wanted)
    assert filters.evaluation(payload).holds(wanted)


def test_predicates_see_the_values_that_comments_stand_in() -> None:
    filters = ContentFilters()
    wanted = (ContentFilter(DIALECT_PREDICATES, "speed > 60 and has(keywords, 'fire', 'smoke')"),)
    filters.acquire(wanted)
    plain = b"<r><speed>61</speed><keywords>fire,smoke</keywords></r>"
    remarked = (
        b"<r><!-- <speed>1</speed> --><speed>6<!-- 0 -->1</speed><keywords>fi<?pi?>re,smoke</keywords></r>"
    )
    assert filters.evaluation(plain).holds(wanted)
    assert filters.evaluation(remarked).holds(wanted)
    assert filters.evaluation(remarked).event == filters.evaluation(plain).event
