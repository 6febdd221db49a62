"""One running virtual sensor: its windows, and what the next result depends on.

A window that has no room for all its readings has a result of those that it holds; the log says so once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from hpwsn.sensors.templates.reading_windows import ReadingWindows
from hpwsn.sensors.templates.result import Before, Result, result_of
from hpwsn.sensors.templates.template import VirtualTemplate

log = logging.getLogger(__name__)


class RunningSensor:
    """A virtual sensor that somebody uses; compared by identity, since a definition can be replaced."""

    __slots__ = ("before", "closed", "ready", "template", "told_full", "unit", "windows")

    def __init__(self, template: VirtualTemplate, now: int, room: int) -> None:
        self.template = template
        self.windows = ReadingWindows(template.every, template.lateness, now, room)
        self.before: Before | None = None
        self.unit: str | None = None
        """The unit of its values; None until there is a member."""
        self.ready = False
        """Whether it has what the past had for its windows, so that they can be closed."""
        self.closed = False
        """Whether it was released or replaced."""
        self.told_full = False
        """Whether the log has that its windows had no room for all readings."""

    @property
    def name(self) -> str:
        """The name of the virtual sensor."""
        return self.template.name

    @property
    def due(self) -> int:
        """When its next window closes."""
        return self.windows.due

    def begin_anew(self, now: int) -> None:
        """Go on with the windows that are open at `now`, since the clock was set back."""
        self.windows.go_back(now)

    def close_windows(self, now: int) -> Iterator[Result]:
        """The results of the windows that are due, in order; a silent window may have none."""
        if self.windows.refused and not self.told_full:
            self.told_full = True
            words = "virtual sensor %s holds only %d readings, and its results are made of these; raise %s"
            log.warning(words, self.name, self.windows.room, "sensors.window_readings")
        for window in self.windows.close(now):
            result = result_of(self.template, self.unit or "", window, self.before)
            if result is not None:
                self.before = result.before
                yield result
