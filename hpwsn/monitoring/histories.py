"""The histories of many nodes, each in a file of one folder: read at start, saved each minute.

A file is replaced as a whole, so that a crash loses at most the last minute. A damaged file is set aside
under a name that ends in `.damaged`, told, and begun anew. The number of nodes is limited; beyond it, the
node whose last sample is oldest is forgotten.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpwsn.durable_files import write_atomically
from hpwsn.monitoring.node_history import FIGURES, DamagedHistory, History, decode_history

log = logging.getLogger(__name__)

MOST_NODES = 1000
"""Nodes of which one process keeps a history."""
SAVE_EVERY = 60.0
"""Seconds between two saves."""
_END = ".history"


class Histories:
    """The histories that one process keeps, by the name of the node."""

    def __init__(self, folder: Path, figures: Sequence[str] = FIGURES, limit: int = MOST_NODES) -> None:
        self._folder = folder
        self._figures = tuple(figures)
        self._limit = limit
        self._known: dict[str, History] = {}
        self._failing = False

    def load(self) -> list[str]:
        """Read the folder; the result tells of each file that could not be read."""
        problems = []
        for path in sorted(self._folder.glob(f"*{_END}")):
            try:
                node, history = decode_history(path.read_bytes(), self._figures)
            except OSError as error:
                problems.append(f"the history in {path} cannot be read: {error.strerror}")
            except DamagedHistory as error:
                problems.append(f"the history in {path} is damaged: {error}; a new one is begun")
                path.replace(path.with_suffix(".damaged"))
            else:
                self._known[node] = history
        self._keep_within_limit()
        return problems

    def of(self, node: str) -> History:
        """The history of a node, begun if there is none."""
        history = self._known.get(node)
        if history is None:
            history = self._known[node] = History(self._figures)
            self._keep_within_limit(node)
        return history

    def find(self, node: str) -> History | None:
        """The history of a node, or None."""
        return self._known.get(node)

    def forget(self, node: str) -> None:
        """Remove the history of a node, and its file."""
        if self._known.pop(node, None) is not None:
            self._path(node).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._known))

    def __len__(self) -> int:
        return len(self._known)

    async def save(self) -> None:
        """Write every history; a failure is logged once, and tried again with the next save."""
        for node, history in list(self._known.items()):
            try:
                await asyncio.to_thread(self._write, node, history.encode(node))
            except OSError as error:
                if not self._failing:
                    log.warning("the history cannot be saved in %s: %s", self._folder, error)
                self._failing = True
                return
        self._failing = False

    def _write(self, node: str, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self._path(node), data, mode=0o600)

    def _path(self, node: str) -> Path:
        # A hash, since a name may be longer than that of a file, and may have any characters.
        return self._folder / f"{hashlib.sha256(node.encode()).hexdigest()[:32]}{_END}"

    def _keep_within_limit(self, newcomer: str | None = None) -> None:
        while len(self._known) > self._limit:
            others = (name for name in self._known if name != newcomer)
            self.forget(min(others, key=lambda name: self._known[name].newest))
