"""A service as it runs: its queries, its checkpoint (for one job at a time), and what the node is told."""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pyspark.sql.streaming.query import StreamingQuery

from hpwsn.errors import HpwsnError
from hpwsn.streams.plan import Plan
from hpwsn.streams.progress import Figures, figures_of
from hpwsn.streams.spark.history import folder_of

QUERY, HISTORY = "query", "history"


class Running:
    """One service as it runs."""

    def __init__(self, plan: Plan, checkpoint: str) -> None:
        self.plan, self.definition = plan, plan.definition
        self.figures: Figures = {}
        self.queries: dict[str, StreamingQuery] = {}
        self.restarts = 0
        self._batch = -1
        self.place = f"{checkpoint.rstrip('/')}/{folder_of(self.definition.uri)}"
        self.local = None if "://" in self.place else Path(self.place).resolve()
        self._lock: IO[str] | None = None

    @property
    def instance(self) -> str:
        """The run: wherever its checkpoint is, so that a restart from it is the same run."""
        return f"{socket.gethostname()}:{self.local}" if self.local else self.place

    def lock(self) -> None:
        """Take the checkpoint, which is for one job at a time."""
        if self.local is None:
            return
        self.local.mkdir(parents=True, exist_ok=True)
        self._lock = (self.local / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise HpwsnError(f"another job runs from the checkpoint {self.local}; stop it first") from None

    def unlock(self) -> None:
        """Give the checkpoint free."""
        if self._lock is not None:
            self._lock.close()

    def document(self, state: str) -> dict[str, Any]:
        """What the node is told."""
        inputs = {
            one.name: f"{one.source} {one.text('topic') or one.text('path')}".strip()
            for one in self.definition.inputs.values()
        }
        return {
            "topic": self.definition.topic,
            "description": self.definition.description,
            "instance": self.instance,
            "state": state,
            "attributes": {name: str(kind) for name, kind in self.plan.output.schema},
            "constraints": self.definition.ranges,
            "inputs": inputs,
            "figures": self.figures,
        }

    def look(self) -> bool:
        """Take up the figures of the last batch; True where there is a new one."""
        progress = self.queries[QUERY].lastProgress if QUERY in self.queries else None
        if progress is None:
            return False
        found: Mapping[str, Any] = progress if isinstance(progress, dict) else progress.jsonDict
        self.figures = figures_of(found)
        new = self.figures["batch"] != self._batch
        self.restarts = 0 if new else self.restarts
        self._batch = int(self.figures["batch"])
        return new
