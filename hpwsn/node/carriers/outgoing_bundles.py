"""The bundles that wait to be downloaded: files in DATA/dtn, each until its carrier has it.

A carrier counts as having taken a bundle only when it says so, after it has written the file. So a download
that breaks, or a node that is killed, loses nothing: the next bundle has the same events again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hpwsn.background import in_thread
from hpwsn.dtn.bundles.bundle import Origin
from hpwsn.durable_files import write_atomically

END = ".bundle"


@dataclass(frozen=True, slots=True)
class OutgoingBundle:
    """One file; `upto` are the last numbers of its events, and `digest` is its SHA-256 in hexadecimal."""

    id: str
    path: Path
    to: str
    carrier: str
    events: int
    bytes: int
    left: int
    digest: str
    upto: Mapping[Origin, int]


class OutgoingBundles:
    """The files of a node; at most `limit`, of more the oldest goes."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._bundles: dict[str, OutgoingBundle] = {}

    def open(self) -> None:
        """Remove what an earlier life left: nobody can ask for it any more."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for path in self._folder.iterdir():
            if END in path.suffixes:
                path.unlink()

    async def add(
        self, data: bytes, to: str, carrier: str, events: int, left: int, upto: Mapping[Origin, int]
    ) -> OutgoingBundle:
        """Write a file."""
        id_ = secrets.token_hex(16)
        path = self._folder / (id_ + END)
        digest = await in_thread(_write, path, data)
        bundle = OutgoingBundle(id_, path, to, carrier, events, len(data), left, digest, dict(upto))
        self._bundles[id_] = bundle
        while len(self._bundles) > self._limit:
            self.remove(next(iter(self._bundles)))
        return bundle

    def find(self, id_: str) -> OutgoingBundle | None:
        """A bundle that was not taken yet."""
        return self._bundles.get(id_)

    def remove(self, id_: str) -> None:
        """Remove a bundle and its file; a download that is under way still gets the whole file."""
        bundle = self._bundles.pop(id_, None)
        if bundle is not None:
            bundle.path.unlink(missing_ok=True)

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(bundle.bytes for bundle in self._bundles.values())

    def __len__(self) -> int:
        return len(self._bundles)


def _write(path: Path, data: bytes) -> str:
    write_atomically(path, data, mode=0o600)
    return sha256(data).hexdigest()
