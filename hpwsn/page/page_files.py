"""The files of the page, read from the installed package on first use and then kept in memory.

A file is read and compressed in a thread, once, and again after it has changed, so that a checkout can be
edited under a running node. Only plain names of known types are looked up: no request can lead to a file
outside the folder.

Own scripts are sent without their comments, a fifth of their compressed size. Lines keep their numbers, and
released files of others are sent as they are. The style sheets that every view needs are one answer.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from hpwsn.background import in_thread

FOLDERS = ("app", "styles", "vendor")
"""The folders whose files have addresses of their own."""
INDEX = "index.html"
TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}
"""The type of a file by the end of its name; a file of another type is not served."""
COMPRESSED = frozenset({"png", "woff2"})
"""Types that are compressed as they are."""
LONGEST_NAME = 200
JOINED = {
    "styles/start.css": tuple(
        f"styles/{name}.css" for name in ("base", "shell", "controls", "lists", "panels")
    )
}
"""Names of answers that are several files, one after another."""
OWN_SCRIPTS = "app/"
"""The folder whose scripts are sent without comments."""

_NAME = re.compile(r"(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.([a-z0-9]+)")
"""Folders and a file, separated by single slashes; no name begins with a dot or holds two in a row."""
_COMMENT = re.compile(rb"^[ \t]*(?://[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*)$", re.MULTILINE)
"""A comment that has its lines to itself; all others are sent."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is answered; `compressed` is its gzip form, None if that is not smaller."""

    content: bytes
    compressed: bytes | None
    type: str
    digest: str


class PageFiles:
    """The files below one folder, by default that of the package."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[str, tuple[tuple[tuple[int, int], ...], PageFile]] = {}

    async def find(self, name: str) -> PageFile | None:
        """The file of that name, such as `app/main.js`; None if there is none that may be served."""
        matched = _NAME.fullmatch(name) if len(name) <= LONGEST_NAME else None
        if matched is None or matched[1] not in TYPES:
            return None
        paths = [self._root() / part for part in JOINED.get(name, (name,))]
        try:
            found = [path.stat() for path in paths]
        except OSError:
            return None
        if not all(stat.S_ISREG(each.st_mode) for each in found):
            return None
        version = tuple((each.st_mtime_ns, each.st_size) for each in found)
        known = self._known.get(name)
        if known is None or known[0] != version:
            known = self._known[name] = (version, await in_thread(load, paths, name))
        return known[1]

    def _root(self) -> Path:
        if self._folder is None:
            self._folder = Path(str(files("hpwsn.page") / "static"))
        return self._folder


def without_comments(script: bytes) -> bytes:
    """A script of the page with empty lines in the place of its comments."""
    return _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), script)


def load(paths: Sequence[Path], name: str) -> PageFile:
    """Read and compress files of a known type, which are served by this name."""
    # Few nodes are ever asked for the page.
    import gzip
    import hashlib

    ending = name.rpartition(".")[2]
    content = b"".join(path.read_bytes() for path in paths)
    if name.startswith(OWN_SCRIPTS) and ending == "js":
        content = without_comments(content)
    # Without a time the compressed bytes depend on the content only.
    compressed = None if ending in COMPRESSED else gzip.compress(content, mtime=0)
    if compressed is not None and len(compressed) >= len(content):
        compressed = None
    return PageFile(content, compressed, TYPES[ending], hashlib.sha256(content).hexdigest()[:32])
