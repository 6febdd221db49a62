"""The pages of lists, as the doors import them; hpwsn.http_json.list_pages has the code."""

from hpwsn.http_json.list_pages import (
    LARGEST_PAGE,
    PAGE,
    Sortable,
    bad_cursor,
    cursor_of,
    key_of,
    limit_of,
    page_of,
    sorted_page,
)

__all__ = [
    "LARGEST_PAGE",
    "PAGE",
    "Sortable",
    "bad_cursor",
    "cursor_of",
    "key_of",
    "limit_of",
    "page_of",
    "sorted_page",
]
