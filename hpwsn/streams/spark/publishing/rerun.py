"""The epoch that a restarted query runs again, and the part of it that is already published.

Spark records in the checkpoint what an epoch reads before it begins, and that the epoch is complete when it
ends. After a restart, Spark runs an incomplete epoch again, however late. A record beside the checkpoint says
after which offset of the log an epoch publishes. Events that the incomplete epoch has already published are
in the topic after that offset; their message ids identify them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hpwsn.streams.spark.reading.broker_link import BrokerLink

KEPT = 8
"""Epochs whose offsets are kept: a restarted query runs one of the last two again."""
PAGE = 50_000
"""Maximum events per request; without columns, a page has only their offsets and ids."""
_RECORD = "published.json"


@dataclass(frozen=True, slots=True)
class Rerun:
    """`epoch` is run again, None if there is none; its earlier publications are after the offset `after`.

    `run` is the run of the query in which the epoch before ended; in the same run nothing is run again.
    """

    epoch: int | None = None
    after: int = 0
    run: str = ""

    def applies_to(self, epoch: str | None, run: str | None) -> bool:
        """Whether this epoch, in this run of the query, is the one that is run again."""
        return self.epoch is not None and epoch == str(self.epoch) and (not self.run or run != self.run)

    def known(self, link: BrokerLink, topic: str, prefix: str) -> frozenset[str]:
        """The message ids with the prefix that are already in the log."""
        found: set[str] = set()
        after, end = self.after, link.end(topic)
        while after < end:
            page = link.rows([topic], after, end, limit=PAGE)
            found.update(id_ for *_, id_ in page.runs if id_ is not None and id_.startswith(prefix))
            after = page.upto
        return frozenset(found)


NO_RERUN = Rerun()
"""Nothing is run again."""


def local_folder(location: str) -> Path | None:
    """The folder of a checkpoint on this machine or a shared path; None for other file systems."""
    if location.startswith("file:"):
        return Path(unquote(urlsplit(location).path))
    return None if not location or "://" in location else Path(location).resolve()


def last_begun(checkpoint: Path) -> int | None:
    """The last epoch that has begun, None if there is none."""
    return _last(checkpoint / "offsets")


def find_rerun(checkpoint: Path | None, state: Path | None) -> Rerun:
    """The epoch that a query from this checkpoint runs again."""
    if checkpoint is None or state is None:
        return NO_RERUN
    begun, done = last_begun(checkpoint), _last(checkpoint / "commits")
    if begun is None or begun == done:
        return NO_RERUN
    before = [one for one in _recorded(state) if one[0] < begun]
    after = max((offset for _, offset, _ in before), default=0)
    return Rerun(begun, after, before[-1][2] if before and before[-1][0] == begun - 1 else "")


def has_record(state: Path) -> bool:
    """Whether anything was recorded."""
    return (state / _RECORD).exists()


def record_committed(state: Path, epoch: int, offset: int, run: str = "") -> None:
    """Record that all epochs after this one publish after the offset; `run` as in Rerun.

    Spark records the end of an epoch only afterwards, so the last recorded epoch may be run again.
    """
    state.mkdir(parents=True, exist_ok=True)
    before = [one for one in _recorded(state) if one[0] < epoch][-KEPT:]
    fresh = state / f"{_RECORD}.new"
    fresh.write_text(json.dumps([*before, (epoch, offset, run)]), "utf-8")
    fresh.replace(state / _RECORD)


def _recorded(state: Path) -> list[tuple[int, int, str]]:
    """The recorded epochs with their offsets and runs; empty if there is no readable record."""
    try:
        return [
            (int(epoch), int(offset), str(run[0]) if run else "")
            for epoch, offset, *run in json.loads((state / _RECORD).read_text("utf-8"))
        ]
    except (OSError, ValueError, TypeError):
        return []


def _last(folder: Path) -> int | None:
    try:
        return max((int(file.name) for file in folder.iterdir() if file.name.isdecimal()), default=None)
    except OSError:
        return None
