"""A running service: its queries, its locked checkpoint, its registration at the node, and its figures.

The figures come from Spark's progress report of the last batch, and from the failures of the run. `/streams`
and `/metrics` list them, and `progress_line` formats them for the terminal. A backlog is the events that wait
for the service. Its size is the most that waited since the service last had processed everything, so that the
line can say how much of it is done.
"""

from __future__ import annotations

import fcntl
import json
import socket
from collections.abc import Mapping
from typing import IO, Any

from pyspark.sql.streaming.query import StreamingQuery

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.definition import input_sources
from hpwsn.streams.plan.plan import Plan
from hpwsn.streams.plan.plan_drawing import operator_list
from hpwsn.streams.registry.service import MAX_ENTRIES
from hpwsn.streams.spark.history import folder_name
from hpwsn.streams.spark.publishing.rerun import (
    NO_RERUN,
    Rerun,
    find_rerun,
    last_begun,
    local_folder,
    record_committed,
)
from hpwsn.streams.spark.reading.broker_link import BrokerLink

Figures = dict[str, float]


QUERY, HISTORY = "query", "history"
PUBLISHED = "published"
"""The name under which Spark's progress reports the rows that the tasks of a batch have published."""


class RunningService:
    """One running service.

    `local_checkpoint` is None if the checkpoint is not on a local disk. `restarts` counts the restarts since
    the last complete batch. `ui` is the address of Spark's own page, empty if there is none.
    """

    def __init__(self, plan: Plan, checkpoint: str, ui: str = "") -> None:
        self.plan, self.definition = plan, plan.definition
        self.figures: Figures = {}
        self.queries: dict[str, StreamingQuery] = {}
        self.restarts = 0
        self.ui = ui
        self._operators = operator_list(plan)
        self._failures = {"failures": 0, "restarts": 0}
        self._backlog = 0
        self._batch = -1
        self._recorded = -1
        self.checkpoint = f"{checkpoint.rstrip('/')}/{folder_name(self.definition.uri)}"
        self.local_checkpoint = local_folder(self.checkpoint)
        self._lock: IO[str] | None = None

    @property
    def instance(self) -> str:
        """Identifies the run by its checkpoint, so that a restart from the checkpoint is the same run."""
        return f"{socket.gethostname()}:{self.local_checkpoint}" if self.local_checkpoint else self.checkpoint

    def lock(self) -> None:
        """Lock the checkpoint; HpwsnError if another job uses it."""
        if self.local_checkpoint is None:
            return
        self.local_checkpoint.mkdir(parents=True, exist_ok=True)
        self._lock = (self.local_checkpoint / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise HpwsnError(
                f"another job runs from the checkpoint {self.local_checkpoint}; stop it first"
            ) from None

    def unlock(self) -> None:
        """Unlock the checkpoint."""
        if self._lock is not None:
            self._lock.close()

    def prepare_start(self, link: BrokerLink) -> Rerun:
        """The epoch that the query runs again; call it before every start of the query."""
        if self.local_checkpoint is None:
            return NO_RERUN
        checkpoint, state = self.local_checkpoint / QUERY, self.local_checkpoint / "published"
        found, begun = find_rerun(checkpoint, state), last_begun(checkpoint)
        record_committed(state, -1 if begun is None else begun, link.end(self.definition.topic))
        return found

    @property
    def shuffle_partitions(self) -> int | None:
        """The partitions with which the checkpoint was made, which Spark keeps; None if it is new."""
        epoch = None if self.local_checkpoint is None else last_begun(self.local_checkpoint / QUERY)
        if epoch is None or self.local_checkpoint is None:
            return None
        try:
            lines = (self.local_checkpoint / QUERY / "offsets" / str(epoch)).read_text("utf-8").splitlines()
            return int(json.loads(lines[1])["conf"]["spark.sql.shuffle.partitions"])
        except (OSError, LookupError, ValueError, TypeError):
            return None

    def record_progress(self, link: BrokerLink) -> None:
        """Record where the log ends, once for each completed batch.

        The end is asked for before the batch: of the batches after the next one, none can have begun then.
        """
        if self.local_checkpoint is None or QUERY not in self.queries:
            return
        progress = self.queries[QUERY].lastProgress
        if progress is None or progress["batchId"] == self._recorded:
            return
        end = link.end(self.definition.topic)
        progress = self.queries[QUERY].lastProgress
        assert progress is not None
        self._recorded = progress["batchId"]
        record_committed(self.local_checkpoint / "published", self._recorded + 1, end)

    def document(self, state: str) -> dict[str, Any]:
        """The registration that is sent to the node."""
        return {
            "topic": self.definition.topic,
            "description": self.definition.description,
            "instance": self.instance,
            "state": state,
            "attributes": {name: str(kind) for name, kind in self.plan.output.schema},
            "constraints": self.definition.ranges,
            "inputs": input_sources(self.definition),
            "figures": self.figures | self._failures,
            **({"ui": self.ui} if self.ui and state == "running" else {}),
            **({"plan": self._operators} if len(self._operators) <= MAX_ENTRIES else {}),
        }

    def count_failure(self, restarts: bool) -> None:
        """Count a failed batch, and whether its query is started again."""
        self._failures["failures"] += 1
        if restarts:
            self.restarts += 1
            self._failures["restarts"] += 1

    def update_figures(self) -> bool:
        """Read the figures of the last batch; return True if it is a new batch."""
        progress = self.queries[QUERY].lastProgress if QUERY in self.queries else None
        if progress is None:
            return False
        found: Mapping[str, Any] = progress if isinstance(progress, dict) else progress.jsonDict
        figures = progress_figures(found)
        waited = figures["lag"] + figures["rows_in"]
        self._backlog = int(max(self._backlog, waited)) if figures["lag"] else 0
        self.figures = figures | {"backlog": self._backlog}
        new = self.figures["batch"] != self._batch
        self.restarts = 0 if new else self.restarts
        self._batch = int(self.figures["batch"])
        return new


def progress_figures(progress: Mapping[str, Any]) -> Figures:
    """The figures of the last batch: rows, rows per second, lag, duration and the size of the state."""
    seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
    rows = progress.get("numInputRows", 0)
    published = progress.get("observedMetrics", {}).get(PUBLISHED)
    return {
        "batch": progress.get("batchId", 0),
        "rows_in": rows,
        # The metrics of a batch are a row of Spark, or null if no task published anything.
        "rows_out": (published and published["rows"]) or 0,
        "rows_per_second": round(rows / seconds, 1) if seconds else 0.0,
        "lag": sum(map(_lag, progress.get("sources", ()))),
        "batch_seconds": seconds,
        "state_rows": _total(progress, "numRowsTotal"),
        "state_bytes": _total(progress, "memoryUsedBytes"),
    }


def _total(progress: Mapping[str, Any], name: str) -> int:
    """The sum of a figure over the stateful operators of the query."""
    return sum(max(0, one.get(name) or 0) for one in progress.get("stateOperators") or ())


def _lag(source: Mapping[str, Any]) -> int:
    """The number of events of a topic that the batch did not read yet, as counted by the data source."""
    latest = source.get("latestOffset")
    if isinstance(latest, str):
        try:
            latest = json.loads(latest)
        except ValueError:
            return 0
    found = latest.get("waiting") if isinstance(latest, dict) else None
    return found if isinstance(found, int) else 0


def progress_line(uri: str, figures: Mapping[str, float]) -> str:
    """The figures as one line for the terminal."""
    return (
        f"{uri}  batch {figures['batch']:.0f}: {figures['rows_in']:,.0f} in, {figures['rows_out']:,.0f} out,"
        f" {figures['rows_per_second']:,.0f} rows/s, lag {figures['lag']:,.0f}{_backlog(figures)},"
        f" {figures['batch_seconds']:.2f} s{_state(figures)}"
    )


def _backlog(figures: Mapping[str, float]) -> str:
    """How far the backlog is; empty if no more than another batch of this size waits."""
    lag, backlog, rate = figures["lag"], figures.get("backlog", 0), figures["rows_per_second"]
    if lag <= figures["rows_in"] or not backlog:
        return ""
    left = f", about {_duration(lag / rate)} left" if rate else ""
    return f" ({100 * (1 - lag / backlog):.0f} % of the backlog done{left})"


def _state(figures: Mapping[str, float]) -> str:
    if not figures.get("state_rows"):
        return ""
    return f", state {figures['state_rows']:,.0f} rows, {figures['state_bytes'] / 1e6:,.1f} MB"


def _duration(seconds: float) -> str:
    """A duration in the unit in which it has one to three digits."""
    for unit, factor in (("h", 3600), ("min", 60)):
        if seconds >= 2 * factor:
            return f"{seconds / factor:.0f} {unit}"
    return f"{seconds:.0f} s"
