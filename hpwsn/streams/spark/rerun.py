"""The epoch that a restarted query runs again, and the part of it that is already published.

Spark records in the checkpoint what an epoch reads before it begins, and that the epoch is complete when it
ends. After a restart, Spark runs an incomplete epoch again, however late. The sink records the end offset of
each epoch beside the checkpoint. Events that the incomplete epoch has already published are in the topic
after the end of the preceding epoch; their message ids identify them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hpwsn.streams.spark.reading.broker_link import BrokerLink

PAGE = 50_000
"""Maximum events per request; without columns, a page has only their offsets and ids."""
_COMMIT_FILE = "published.json"


@dataclass(frozen=True, slots=True)
class Rerun:
    """`epoch` is run again, None if there is none; its earlier publications are after the offset `after`."""

    epoch: int | None = None
    after: int = 0

    def __str__(self) -> str:
        return "" if self.epoch is None else f"{self.epoch} {self.after}"

    @classmethod
    def parse(cls, text: str) -> Rerun:
        """Parse the text that `str` returns."""
        return cls(*map(int, text.split())) if text else cls()

    def applies_to(self, epoch: str | None) -> bool:
        """Whether this epoch is the one that is run again."""
        return self.epoch is not None and epoch == str(self.epoch)

    def known(self, link: BrokerLink, topic: str, prefix: str) -> frozenset[str]:
        """The message ids with the prefix that are already in the log."""
        found: set[str] = set()
        after, end = self.after, link.end(topic)
        while after < end:
            page = link.rows([topic], after, end, limit=PAGE)
            found.update(id_ for *_, id_ in page.runs if id_ is not None and id_.startswith(prefix))
            after = page.upto
        return frozenset(found)


def find_rerun(checkpoint: Path, state: Path) -> Rerun:
    """The epoch that a query from this checkpoint runs again."""
    begun, done = _last(checkpoint / "offsets"), _last(checkpoint / "commits")
    if begun is None or begun == done:
        return Rerun()
    return Rerun(begun, max((offset for epoch, offset in _recorded(state) if epoch < begun), default=0))


def record_committed(state: Path, epoch: int, offset: int) -> None:
    """Record the end offset of an epoch, and keep the record of the preceding epoch.

    Spark records the end of the epoch only afterwards, so the last recorded epoch may be run again.
    """
    state.mkdir(parents=True, exist_ok=True)
    before = [one for one in _recorded(state) if one[0] < epoch][-1:]
    fresh = state / f"{_COMMIT_FILE}.new"
    fresh.write_text(json.dumps([*before, (epoch, offset)]), "utf-8")
    fresh.replace(state / _COMMIT_FILE)


def _recorded(state: Path) -> list[tuple[int, int]]:
    """The recorded epochs with their end offsets; empty if there is no readable record."""
    try:
        return [
            (int(epoch), int(offset))
            for epoch, offset in json.loads((state / _COMMIT_FILE).read_text("utf-8"))
        ]
    except (OSError, ValueError, TypeError):
        return []


def _last(folder: Path) -> int | None:
    try:
        return max((int(file.name) for file in folder.iterdir() if file.name.isdecimal()), default=None)
    except OSError:
        return None
