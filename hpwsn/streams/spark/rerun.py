"""The epoch that a restarted query runs again, and what of it is in the log already.

Spark writes down what an epoch reads before it begins and that it is done when it ends, in the checkpoint.
Where the last has begun and is not done it is run again, however much later. What it had published stands in
its topic behind the end of the epoch before, which the sink notes beside the checkpoint; the ids there say
which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hpwsn.streams.spark.broker_link import BrokerLink

_COMMIT_FILE = "published.json"


@dataclass(frozen=True, slots=True)
class Rerun:
    """The epoch, None where there is none to run again, and the offset behind which it may have published."""

    epoch: int | None = None
    after: int = 0

    def __str__(self) -> str:
        return "" if self.epoch is None else f"{self.epoch} {self.after}"

    @classmethod
    def parse(cls, text: str) -> Rerun:
        """What `str` gives."""
        return cls(*map(int, text.split())) if text else cls()

    def applies_to(self, epoch: str | None) -> bool:
        """Whether this epoch may have published before."""
        return self.epoch is not None and epoch == str(self.epoch)

    def known(self, link: BrokerLink, topic: str, prefix: str) -> frozenset[str]:
        """The ids beginning so that are in the log."""
        found: set[str] = set()
        after, end = self.after, link.end(topic)
        while after < end:
            page = link.read(topic, after)
            found.update(event["id"] for event in page.events if (event["id"] or "").startswith(prefix))
            after = page.upto
        return frozenset(found)


def find_rerun(checkpoint: Path, state: Path) -> Rerun:
    """The epoch that a query on this checkpoint runs again."""
    begun, done = _last(checkpoint / "offsets"), _last(checkpoint / "commits")
    if begun is None or begun == done:
        return Rerun()
    return Rerun(begun, max((offset for epoch, offset in _recorded(state) if epoch < begun), default=0))


def record_committed(state: Path, epoch: int, offset: int) -> None:
    """Write down where an epoch ends in the log, beside the one before it.

    Spark itself notes that the epoch is done only after this, so the last may be one that is run again.
    """
    state.mkdir(parents=True, exist_ok=True)
    before = [one for one in _recorded(state) if one[0] < epoch][-1:]
    fresh = state / f"{_COMMIT_FILE}.new"
    fresh.write_text(json.dumps([*before, (epoch, offset)]), "utf-8")
    fresh.replace(state / _COMMIT_FILE)


def _recorded(state: Path) -> list[tuple[int, int]]:
    """Epochs and where they end; none where nothing was noted that can be read."""
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
