"""Lists in pages: every item once, whatever the limit, and cursors that need no escaping."""

import re
from typing import cast
from urllib.parse import urlencode

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.door.rest.list_pages import LARGEST_PAGE, cursor_of, key_of, page_of
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
