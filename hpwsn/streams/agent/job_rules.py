"""The rules of the service agent: when a job is started again, when it has failed, and which state it is in.

A job that ends without a request to stop has crashed, whatever its exit status. It is started again after a
pause, which doubles with each crash. It has failed when it crashes more often than `restarts` times within
`within` seconds; crashes before that are forgotten. Pure: times are arguments, in seconds on any clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before the first restart, and the longest pause."""


class JobState(StrEnum):
    """The state of a service whose job the node runs."""

    STARTING = "starting"
    """Its process runs, and has not sent a heartbeat yet."""
    RUNNING = "running"
    SILENT = "silent"
    """Its process runs, but its heartbeats have stopped."""
    RESTARTING = "restarting"
    """It has crashed, and its next process has not sent a heartbeat yet."""
    FAILED = "failed"
    """It has crashed too often, and is not started again."""
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How often a job may crash: `restarts` times within `within` seconds."""

    restarts: int
    within: float

    def recent(self, crashes: Sequence[float], now: float) -> list[float]:
        """The crashes that still count."""
        return [crash for crash in crashes if crash > now - self.within]

    def pause(self, crashes: Sequence[float], now: float) -> float | None:
        """Seconds until the next start after the last of these crashes; None if the job has failed."""
        count = len(self.recent(crashes, now))
        if count > self.restarts:
            return None
        return min(FIRST_PAUSE * 2.0 ** max(0, count - 1), LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known about a job.

    `launched` is when its process was started or adopted, `heard` when its last heartbeat came; None if there
    was none.
    """

    alive: bool
    launched: float
    heard: float | None
    crashes: int
    failed: bool = False
    stopping: bool = False


def job_state(seen: Observation, now: float, silent_after: float) -> JobState:
    """The state of a job; a heartbeat from before the process was started belongs to an earlier process."""
    if seen.stopping:
        return JobState.STOPPING
    if seen.failed:
        return JobState.FAILED
    if not seen.alive or seen.heard is None or seen.heard < seen.launched:
        return JobState.RESTARTING if seen.crashes else JobState.STARTING
    return JobState.RUNNING if now < seen.heard + silent_after else JobState.SILENT
