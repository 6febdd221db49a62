"""Uploads of bundles in pieces: files in DATA/dtn, so that a broken connection costs one piece.

An upload is named by the SHA-256 of the whole file. Its pieces come in order. What has not grown for a day is
removed, and so is the oldest upload where there are too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from hpwsn.background import in_thread

END = ".upload"
MOST_UPLOADS = 16
KEPT = 86_400.0


class WrongPiece(ValueError):
    """A piece does not begin where the last one ended; `received` is where that is."""

    def __init__(self, received: int) -> None:
        super().__init__(f"the next piece begins at {received}; send it from there")
        self.received = received


class PartialUploads:
    """The uploads of a node, at most `largest` bytes each."""

    def __init__(self, folder: Path, largest: int, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._largest = largest
        self._clock = clock
        self._turn = asyncio.Lock()

    def received(self, digest: str) -> int:
        """How many bytes of an upload are there."""
        path = self._path(digest)
        return path.stat().st_size if path.exists() else 0

    async def add(self, digest: str, offset: int, piece: bytes) -> int:
        """Add a piece, and return how many bytes are there; WrongPiece, or ValueError beyond the limit."""
        async with self._turn:
            received = self.received(digest)
            if offset != received:
                raise WrongPiece(received)
            if received + len(piece) > self._largest:
                raise ValueError(f"a bundle has at most {self._largest} bytes here (dtn.bundle_bytes)")
            if not received:
                self._make_room()
            await in_thread(_append, self._path(digest), piece)
            return received + len(piece)

    async def read(self, digest: str) -> bytes | None:
        """The whole file; None if it is not complete."""
        if not self.received(digest):
            return None
        data = await in_thread(self._path(digest).read_bytes)
        return data if await in_thread(_digest, data) == digest else None

    def remove(self, digest: str) -> None:
        """Forget an upload."""
        self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._folder / (digest + END)

    def _make_room(self) -> None:
        found = sorted((path.stat().st_mtime, path) for path in self._folder.glob("*" + END))
        surplus = len(found) - MOST_UPLOADS + 1
        for at, (time, path) in enumerate(found):
            if at < surplus or time < self._clock() - KEPT:
                path.unlink(missing_ok=True)


def _append(path: Path, piece: bytes) -> None:
    with path.open("ab") as file:
        file.write(piece)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
