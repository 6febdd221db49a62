"""Lists in pages: every item once, whatever the limit, and cursors that need no escaping."""

import re
from collections.abc import Callable, Iterable
from typing import cast
from urllib.parse import urlencode

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.http_json.list_pages import (
    LARGEST_PAGE,
    Sortable,
    cursor_of,
    key_of,
    page_of,
    page_of_sorted,
    sorted_page,
)
from hpwsn_client.wsn.soap.faults import SoapFault


def asked(**query: object) -> web.Request:
    return cast(web.Request, make_mocked_request("GET", f"/streams?{urlencode(query)}"))


@given(st.sets(st.text(min_size=1), max_size=30), st.integers(1, 31))
def test_pages_have_every_name_once_and_in_order(names: set[str], limit: int) -> None:
    found: list[str] = []
    query: dict[str, object] = {"limit": limit}
    while True:
        page, following = page_of(asked(**query), names)
        assert len(page) <= limit
        found += page
        if following is None:
            break
        query["after"] = following
    assert found == sorted(names)


@given(st.sets(st.text(min_size=1), max_size=30), st.integers(1, 31), st.text())
def test_pages_of_sorted_names_are_those_of_names_in_any_order(
    names: set[str], limit: int, last: str
) -> None:
    for query in ({}, {"after": cursor_of(last)}):
        request = asked(limit=limit, **query)
        assert page_of_sorted(request, sorted(names)) == page_of(request, names)


def test_a_wrong_cursor_is_refused_for_sorted_names_too() -> None:
    with pytest.raises(SoapFault, match="after"):
        page_of_sorted(asked(after="%"), ["a"])


@given(st.text())
def test_a_cursor_needs_no_escaping(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]*", cursor_of(name))
    assert key_of(cursor_of(name)).decode() == name


@given(st.from_regex(r"[A-Za-z0-9_-]*", fullmatch=True))
def test_any_text_of_the_characters_of_a_cursor_is_one(text: str) -> None:
    page_of(asked(after=text), ["a", "b"])


def test_the_limit_has_a_default_and_a_bound() -> None:
    names = [f"{number:05}" for number in range(1500)]
    assert len(page_of(asked(), names)[0]) == 100
    for limit in (LARGEST_PAGE, LARGEST_PAGE + 1, 10**17):
        assert len(page_of(asked(limit=limit), names)[0]) == LARGEST_PAGE


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": "x"}, {"limit": -1}, {"after": "%"}, {"after": "é"}]
)
def test_a_wrong_parameter_is_refused(query: dict[str, object]) -> None:
    with pytest.raises(SoapFault, match=next(iter(query))):
        page_of(asked(**query), ["a"])


def test_a_cursor_works_after_its_item_is_gone() -> None:
    assert page_of(asked(after=cursor_of("b")), ["a", "c", "d"]) == (["c", "d"], None)


Item = tuple[str, Sortable]
ORDERS: dict[str, Callable[[Item], Sortable]] = {"value": lambda item: item[1], "name": lambda item: item[0]}


def sorted_by(items: Iterable[Item], **query: object) -> tuple[list[Item], str | None]:
    return sorted_page(asked(**query), items, lambda item: item[0], ORDERS, "-value")


def expected(item: Item) -> tuple[int, str | float, str]:
    name, value = item
    return (0, 0, name) if value is None else (2 if isinstance(value, str) else 1, value, name)


@given(
    st.dictionaries(st.text(min_size=1), st.none() | st.integers() | st.text(max_size=3), max_size=30),
    st.integers(1, 31),
    st.sampled_from(["value", "-value", None]),
)
def test_sorted_pages_have_every_item_once_and_in_order(
    values: dict[str, Sortable], limit: int, sort: str | None
) -> None:
    found: list[Item] = []
    query: dict[str, object] = {"limit": limit, **({} if sort is None else {"sort": sort})}
    while True:
        page, following = sorted_by(values.items(), **query)
        assert len(page) <= limit
        found += page
        if following is None:
            break
        assert re.fullmatch(r"[A-Za-z0-9_-]+", following)
        query["after"] = following
    assert found == sorted(values.items(), key=expected, reverse=sort != "value")


def test_items_that_come_and_go_move_no_other_item_to_another_page() -> None:
    page, following = sorted_by([("a", 9), ("b", 7), ("c", 5), ("d", 3)], limit=2)
    assert page == [("a", 9), ("b", 7)]
    changed = [("e", 8), ("c", 5), ("f", 4), ("d", 3)]
    assert sorted_by(changed, limit=9, after=following) == ([("c", 5), ("f", 4), ("d", 3)], None)


def test_a_cursor_of_another_order_is_refused() -> None:
    _, following = sorted_by([("a", 1), ("b", 2)], limit=1)
    for sort in ("value", "name"):
        with pytest.raises(SoapFault, match="in the same order"):
            sorted_by([], sort=sort, after=following)


@pytest.mark.parametrize("sort", ["", "-", "--value", "size"])
def test_an_unknown_order_is_refused_with_the_known_ones(sort: str) -> None:
    with pytest.raises(SoapFault, match="give value, name, with -"):
        sorted_by([], sort=sort)


@given(st.from_regex(r"[A-Za-z0-9_-]*", fullmatch=True) | st.binary().map(lambda data: cursor_of(data.hex())))
def test_a_forged_cursor_of_a_sorted_list_is_refused(cursor: str) -> None:
    with pytest.raises(SoapFault, match="after is"):
        sorted_by([("a", 1)], after=cursor)


@pytest.mark.parametrize("content", ["[" * 3000, '["-value", {}, "a"]', '["-value", 1]', "1" * 5000, "null"])
def test_a_cursor_with_other_content_is_refused(content: str) -> None:
    with pytest.raises(SoapFault, match="after is"):
        sorted_by([("a", 1)], after=cursor_of(content))
