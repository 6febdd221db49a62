"""Committed readings: a commit listener that tells others of the readings in each commit.

It is told of every commit, whichever way a reading came: through the intake, from another node, over
ActiveMQ, or as an event that a publisher wrote. So the history and the virtual sensors see the same readings
in the same order as every subscriber. On a node without sensors it looks at the root of each topic.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpwsn.listeners import Listeners
from hpwsn.notification import Run
from hpwsn.sensors.physical.physical_sensor import ROOT
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import ReadingRun, readings_of, sensor_names

Numbered = tuple[int, Reading]
"""A reading and its offset in the log."""


class CommittedReadings:
    """Finds the readings of each commit."""

    def __init__(self) -> None:
        self.taken: Listeners[int, Sequence[Numbered]] = Listeners("committed readings")
        """Called for each commit, also for one without readings, in the order of the log: the offset after
        the commit, and the readings in it with their offsets."""

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Look at the runs of one commit; what is on an internal topic is passed over."""
        found: list[Numbered] = []
        for run in runs:
            size, topic = run.size, run.topic
            # For all other topics this is all that a commit costs.
            if topic is not None and topic.path[0] == ROOT and run.target is None:
                if type(run) is ReadingRun and size == 1:
                    (reading,) = run.readings
                    if reading is not None:
                        found.append((first, reading))
                elif sensor_names(topic) is not None:
                    found += [
                        (offset, reading)
                        for offset, reading in enumerate(readings_of(run), first)
                        if reading is not None
                    ]
            first += size
        self.taken(first, found)
