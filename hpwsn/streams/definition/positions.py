"""Where in a TOML text each table and key stands, since the parser of the standard library does not say.

A scan of the lines that begin a table or a key, for errors that name the line. It reads only texts that the
parser took, so it need not judge them; of a value that runs over several lines it knows where it begins.
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
    """The line of the path, or of the nearest thing around it; 0 where nothing of it is known."""
    while path and path not in positions:
        path = path[:-1]
    return positions.get(path, 0)


def _parts(name: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(name)]


def _table(name: str, is_element: bool, elements: dict[Path, int]) -> Path:
    """The path of a header, with the number of the element it is in."""
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
    """The mark of a text of several lines that begins here and does not end."""
    for quote in _QUOTES:
        if line.count(quote) == 1:
            return quote
    return ""
