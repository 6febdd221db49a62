"""When each physical sensor last reported, how often it does, and whether it is silent.

Kept in memory only, since every reading costs a call here. After a restart, the time of a sensor's current
message stands for its last report. Pure: times are arguments, in seconds since 1970.
"""

from __future__ import annotations

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor

SILENT_AFTER = 3
"""Intervals without a report after which a sensor is silent."""
SHORTEST_SILENCE = 2.0
"""Seconds for which no sensor is called silent, however often it reports."""
MOST_GAPS = 32
"""Reports that the mean interval counts; older ones count less and less."""


class SensorReports:
    """The reports of one sensor that is registered since a time."""

    __slots__ = ("_gaps", "_measured_from", "known", "last")

    def __init__(self, known: float) -> None:
        self.known = known
        self.last: float | None = None
        """The time of the last report; None if there was none."""
        self._measured_from = 0.0
        self._gaps = 0

    def heard(self, now: float) -> None:
        """Note a report; several readings at the same time, as of one request, are one report."""
        if not self._measured_from:
            self._measured_from = now
        elif now <= self.last:  # type: ignore[operator]
            return
        else:
            self._gaps += 1
            if self._gaps == MOST_GAPS:
                self._gaps //= 2
                self._measured_from = now - (now - self._measured_from) / 2
        self.last = now

    def reported_before(self, time: float) -> None:
        """Note the last report before a restart, which counts for no interval."""
        if self.last is None:
            self.last = time

    @property
    def interval(self) -> float | None:
        """The mean seconds between two reports; None before the second one."""
        return (self.last - self._measured_from) / self._gaps if self._gaps and self.last else None

    def is_silent(self, sensor: PhysicalSensor, now: float) -> bool:
        """Whether a report is overdue, by the longer of the declared and the seen interval."""
        interval = max(sensor.interval or 0.0, self.interval or 0.0)
        if not interval:
            return False
        since = max(self.known, self.last or 0.0)
        return now - since > max(SILENT_AFTER * interval, SHORTEST_SILENCE)
