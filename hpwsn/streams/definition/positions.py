"""Finds the line of each table and key in a TOML text, because tomllib does not report lines.

The module scans for lines that begin a table or a key. It reads only texts that tomllib accepted, so it does
not check the syntax. The position of a multi-line value is its first line.
"""

import re
from collections.abc import Mapping

Path = tuple[str | int, ...]
"""Keys and the numbers of array elements, from the root: `("ops", 1, "window")`."""

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)
_PART = re.compile(r"[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'")
_QUOTES = ('"""', "'''")


def positions_of(text: str) -> Mapping[Path, int]:
    """The line, counted from 1, of each table and key."""
    found: dict[Path, int] = {}
    elements: dict[Path, int] = {}
    table: Path = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        if header := _HEADER.match(line):
            table = _table(header[2], header[1] == "[[", elements)
            found[table] = number
        elif key := _KEY.match(line):
            found.setdefault((*table, *_parts(key[1])), number)
            quote = _opened(line)
    return found


def line_of(positions: Mapping[Path, int], path: Path) -> int:
    """The line of the path or of the innermost enclosing table; 0 if neither is known."""
    while path and path not in positions:
        path = path[:-1]
    return positions.get(path, 0)


def _parts(name: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(name)]


def _table(name: str, is_element: bool, elements: dict[Path, int]) -> Path:
    """The path of a table header, with the index of each array element in it."""
    path: Path = ()
    *outer, last = _parts(name)
    for part in outer:
        path = (*path, part)
        if path in elements:
            path = (*path, elements[path])
    path = (*path, last)
    if is_element:
        elements[path] = elements.get(path, -1) + 1
        path = (*path, elements[path])
    return path


def _opened(line: str) -> str:
    """The quotes of a multi-line text that begins on this line and ends on a later one; empty if none."""
    for quote in _QUOTES:
        if line.count(quote) == 1:
            return quote
    return ""
