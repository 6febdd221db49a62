"""Lists in pages: `{"items": […], "next": cursor or null}`, with the parameters `limit` and `after`.

A cursor is the name of the last item in base64 for URLs, so that it needs no escaping. A page begins with the
first name after it, whether or not the item of the cursor still exists.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from heapq import nsmallest

from aiohttp import web

from hpwsn.door.rest.json_answers import bad
from hpwsn_client.wsn.topics.topic import shown

_is_cursor = re.compile(r"[A-Za-z0-9_-]*").fullmatch
PAGE, LARGEST_PAGE = 100, 1000
"""Items of a page without `limit`, and the most; a higher limit gets this many."""


def cursor_of(name: str) -> str:
    """The cursor of the item with this name."""
    return urlsafe_b64encode(_key(name)).decode().rstrip("=")


def key_of(cursor: str) -> bytes:
    """The key in a cursor; any text of its characters is one. ValueError if it has other characters."""
    if not _is_cursor(cursor):
        raise ValueError(f"{cursor!r} has characters that a cursor never has")
    whole = cursor if len(cursor) % 4 != 1 else cursor[:-1]
    return urlsafe_b64decode(whole + "=" * (-len(whole) % 4))


def _key(name: str) -> bytes:
    """The bytes by which names are sorted; the order is that of their characters."""
    return name.encode("utf-8", "surrogatepass")


def page_of(request: web.Request, names: Iterable[str]) -> tuple[list[str], str | None]:
    """The names of the requested page in their order, and the cursor of the next page; None if it is last."""
    limit = limit_of(request)
    after = request.query.get("after")
    if after is not None:
        try:
            last = key_of(after)
        except ValueError:
            raise bad(f"after is {shown(after)}; give the value of next from the page before") from None
        names = (name for name in names if _key(name) > last)
    found = nsmallest(limit + 1, names, key=_key)
    return found[:limit], cursor_of(found[limit - 1]) if len(found) > limit else None


def limit_of(request: web.Request) -> int:
    """The parameter `limit`: the most items of a page."""
    text = request.query.get("limit", str(PAGE))
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not int(text):
        raise bad(f"limit is {shown(text)}; give a number of items, from 1 to {LARGEST_PAGE}")
    return min(int(text), LARGEST_PAGE)
