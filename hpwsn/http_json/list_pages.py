"""Lists in pages: `{"items": […], "next": cursor or null, "total": n}`, with `limit` and `after`.

`page_of` is for lists of names in their own order, `page_of_sorted` for names that are in order already, and
`sorted_page` for lists in the order of the parameter `sort`. A cursor is the place of the last item in base64
for URLs, so that it needs no escaping: its name, or its sort value and its name. A page begins with the first
place after it, whether or not the item of the cursor still exists. So no item is skipped or repeated because
others come, go or change; an item whose own sort value changes between two pages may move past the cursor.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from typing import TypeVar

from aiohttp import web

from hpwsn.http_json.responses import bad
from hpwsn_client.wsn.topics.topic import shown

T = TypeVar("T")
Sortable = str | float | None
"""A value to sort by. None comes before numbers, and numbers before texts."""
Place = tuple[int, str | float, str]
"""The kind of a value, the value, and the name, which is unique."""

_is_cursor = re.compile(r"[A-Za-z0-9_-]*").fullmatch
PAGE, LARGEST_PAGE = 100, 1000
"""Items of a page without `limit`, and the most; a higher limit gets this many."""


def cursor_of(name: str) -> str:
    """The cursor of the item with this name."""
    return _written(_key(name))


def key_of(cursor: str) -> bytes:
    """The key in a cursor; any text of its characters is one. ValueError if it has other characters."""
    if not _is_cursor(cursor):
        raise ValueError(f"{cursor!r} has characters that a cursor never has")
    whole = cursor if len(cursor) % 4 != 1 else cursor[:-1]
    return urlsafe_b64decode(whole + "=" * (-len(whole) % 4))


def page_of(request: web.Request, names: Iterable[str]) -> tuple[list[str], str | None]:
    """The names of the requested page in their order, and the cursor of the next page; None if it is last."""
    limit = limit_of(request)
    after = request.query.get("after")
    if after is not None:
        try:
            last = key_of(after)
        except ValueError:
            raise bad_cursor(after) from None
        names = (name for name in names if _key(name) > last)
    found = nsmallest(limit + 1, names, key=_key)
    return found[:limit], cursor_of(found[limit - 1]) if len(found) > limit else None


def page_of_sorted(request: web.Request, names: Sequence[str]) -> tuple[Sequence[str], str | None]:
    """Like `page_of`, for names in their order: it looks at no others than those of the page."""
    limit, after = limit_of(request), request.query.get("after")
    start = 0
    if after is not None:
        try:
            start = bisect_right(names, key_of(after), key=_key)
        except ValueError:
            raise bad_cursor(after) from None
    found = names[start : start + limit]
    return found, cursor_of(found[-1]) if start + limit < len(names) else None


def sorted_page(
    request: web.Request,
    items: Iterable[T],
    name: Callable[[T], str],
    orders: Mapping[str, Callable[[T], Sortable]],
    default: str,
) -> tuple[list[T], str | None]:
    """The items of the requested page, and the cursor of the next page; None if it is last.

    The parameter `sort` is a key of `orders`, descending with `-` before it; without it, `default` holds.
    Items with equal values are in the order of their unique names.
    """
    sort = request.query.get("sort", default)
    descending, value = sort.startswith("-"), orders.get(sort.removeprefix("-"))
    if value is None:
        raise bad(f"sort is {shown(sort)}; give {', '.join(orders)}, with - before it for the reverse order")
    limit, after = limit_of(request), request.query.get("after")
    placed = ((_place(value(item), name(item)), item) for item in items)
    if after is not None:
        last = _last_place(after, sort)
        placed = (each for each in placed if (each[0] < last if descending else each[0] > last))
    choose = nlargest if descending else nsmallest
    found = choose(limit + 1, placed, key=_place_of)
    following = None
    if len(found) > limit:
        kind, last_value, last_name = found[limit - 1][0]
        following = _written(json.dumps([sort, last_value if kind else None, last_name]).encode())
    return [item for _, item in found[:limit]], following


def _place(value: Sortable, name: str) -> Place:
    if value is None:
        return 0, 0, name
    return (2 if isinstance(value, str) else 1), value, name


def _place_of(placed: tuple[Place, T]) -> Place:
    return placed[0]


def _last_place(after: str, sort: str) -> Place:
    """The place in a cursor, which must be of the same order."""
    try:
        match json.loads(key_of(after)):
            case [str(cursor_sort), (None | str() | int() | float()) as value, str(name)]:
                if cursor_sort == sort:
                    return _place(value, name)
    except (ValueError, RecursionError):
        pass
    raise bad_cursor(after)


def limit_of(request: web.Request) -> int:
    """The requested number of items of a page, at most LARGEST_PAGE."""
    text = request.query.get("limit", str(PAGE))
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not int(text):
        raise bad(f"limit is {shown(text)}; give a number of items, from 1 to {LARGEST_PAGE}")
    return min(int(text), LARGEST_PAGE)


def _key(name: str) -> bytes:
    """The bytes by which names are sorted; the order is that of their characters."""
    return name.encode("utf-8", "surrogatepass")


def _written(key: bytes) -> str:
    return urlsafe_b64encode(key).decode().rstrip("=")


def bad_cursor(after: str) -> Exception:
    """The fault for a parameter `after` that is not a cursor of the list."""
    return bad(f"after is {shown(after)}; give the value of next from the page before, in the same order")
