"""Which entries of the log came by links; carriers take them from the node of the cluster that accepted them.

The log does not say it, so this is a document for each 4096 offsets, with a bit for each. It is written in
the turn of the event loop after the commit. A node that is killed between the two takes these entries for
its own after the restart; a carrier may then bring them to another node twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from hpwsn.journal.journal import Journal
from hpwsn.notification import FOREIGN, Run

KIND = "dtn-foreign"
CHUNK = 4096
"""Offsets in one document."""


class ForeignOffsets:
    """The offsets of what came by links."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._chunks: dict[int, int] = {}
        self._changed: set[int] = set()

    def restore(self, documents: Mapping[str, bytes]) -> None:
        """Take up what the journal has."""
        self._chunks = {int(name): int.from_bytes(body, "big") for name, body in documents.items()}

    def __contains__(self, offset: int) -> bool:
        chunk, bit = divmod(offset, CHUNK)
        return bool(self._chunks.get(chunk, 0) >> bit & 1)

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Note the offsets of what came by links."""
        for run in runs:
            if run.routing & FOREIGN:
                for offset in range(first, first + run.size):
                    chunk, bit = divmod(offset, CHUNK)
                    self._chunks[chunk] = self._chunks.get(chunk, 0) | 1 << bit
                    if not self._changed:
                        asyncio.get_running_loop().call_soon(self._write)
                    self._changed.add(chunk)
            first += run.size

    def _write(self) -> None:
        documents = {str(at): self._chunks[at].to_bytes(CHUNK // 8, "big") for at in self._changed}
        self._changed.clear()
        self._journal.put_documents(KIND, documents).add_done_callback(_ignore)

    async def forget(self, before: int) -> None:
        """Forget the offsets that retention has removed."""
        gone = [chunk for chunk in self._chunks if (chunk + 1) * CHUNK <= before]
        if gone:
            await self._journal.delete_documents(KIND, [str(chunk) for chunk in gone])
            for chunk in gone:
                self._chunks.pop(chunk, None)


def _ignore(ended: asyncio.Future[None]) -> None:
    """What was not written now is written with the next change of its chunk."""
    if not ended.cancelled():
        ended.exception()
