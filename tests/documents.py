"""The project's documents as tests read them: fenced blocks, links and headings, and what a block prints.

Markdown in the little that we use: fences of backticks with an info string, ATX headings, inline links. The
info string of a block is its language, then marks for the test that runs it: `output` (what the block before
it prints, with … for what differs from run to run) and `fails` (it ends with an error).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (*sorted(ROOT.glob("*.md")), ROOT / "client" / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_FENCE = re.compile(r"^(`{3,})(.*)$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.*)$")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it begins, its language and marks, and its text."""

    path: Path
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        """The document and the line, as a person looks it up."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """The fenced blocks of a document, in order; an open fence at its end is an error."""
    found: list[Block] = []
    opened: tuple[int, str, str] | None = None
    text: list[str] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, text = (number, fence[1], fence[2].strip()), []
        elif opened is not None and line == opened[1]:
            language, *marks = opened[2].split() or [""]
            found.append(Block(path, opened[0], language, tuple(marks), "\n".join([*text, ""])))
            opened = None
        else:
            text.append(line)
    if opened is not None:
        raise ValueError(f"{path}:{opened[0]}: the fence is never closed")
    return found


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a document outside of its fenced blocks."""
    fence = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        mark = _FENCE.match(line)
        if not fence and mark:
            fence = mark[1]
        elif fence:
            fence = "" if line == fence else fence
        else:
            yield number, line


def links_of(path: Path) -> Iterator[tuple[int, str]]:
    """The targets of a document's inline links and pictures, with their lines."""
    for number, line in prose_of(path):
        yield from ((number, target) for target in _LINK.findall(line))


def anchors_of(path: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    headings = (found[1] for _, line in prose_of(path) if (found := _HEADING.match(line)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def prints(expected: Block, output: str) -> bool:
    """Whether an output is as the block shows it: JSON by its shape, text by its lines."""
    if expected.language == "json":
        try:
            return same_shape(json.loads(expected.text), json.loads(output))
        except ValueError:
            return False
    pattern = "".join(map(_line_pattern, _lines(expected.text)))
    return re.fullmatch(pattern, "".join(_lines(output))) is not None


def _lines(text: str) -> list[str]:
    """The lines that say something, with one blank for any number of them."""
    return [" ".join(line.split()) + "\n" for line in text.splitlines() if line.strip()]


def _line_pattern(line: str) -> str:
    """Anything where … stands; alone on its line, any number of lines."""
    return r"(?:.*\n)*" if line == "…\n" else re.escape(line).replace("…", ".*")


def same_shape(shown: object, found: object) -> bool:
    """Whether all keys of a JSON value are found in another, with values of their types.

    A list is as its first element; one without any, and null, are like whatever is found.
    """
    if shown is None or found is None:
        return True
    if isinstance(shown, dict) and isinstance(found, dict):
        return shown.keys() <= found.keys() and all(same_shape(shown[key], found[key]) for key in shown)
    if isinstance(shown, list) and isinstance(found, list):
        return all(same_shape(shown[0], each) for each in found) if shown else True
    if isinstance(shown, int | float) and isinstance(found, int | float):
        return isinstance(shown, bool) == isinstance(found, bool)
    return type(shown) is type(found)
