"""Operators that treat each window of each group: which events are in a window, and in which order they come.

A time window is complete at its end. A row window is complete with its last event, so its operator is a state
machine that gets the events of one group in order; Spark runs the same state machine.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hpwsn.streams.definition.operator import BaseStep, StateMachine
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.definition.windows import (
    Key,
    RowWindow,
    TimeWindow,
    Window,
    grouped,
    in_order,
    time_windows,
)


@dataclass(frozen=True)
class WindowedStep(BaseStep):
    """A step over the windows of each group; an operator defines `of_window`, or more if it needs more."""

    by: tuple[str, ...]
    window: Window | None
    """None only for an operator that can do without windows, and has its own `run`."""

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """The output of each complete window."""
        stream, stream_type = streams[0], self.inputs[0]
        if isinstance(self.window, TimeWindow):
            return self.of_time_windows(time_windows(stream, self.window, stream_type.time, self.by, until))
        return self.run_groups(in_order(stream, stream_type.schema, stream_type.time))

    def run_groups(self, events: Iterable[Event]) -> list[Event]:
        """The output of the state machine for each group of events."""
        machine, groups = self.state_machine(), grouped(events, self.by)
        return [event for group in groups.values() for event in machine.step(machine.start(), group)]

    def state_machine(self) -> StateMachine:
        """The state machine of one group; here, for row windows only."""
        assert isinstance(self.window, RowWindow)
        return RowWindowMachine(self.window, self.of_window)

    def of_time_windows(self, windows: Sequence[tuple[datetime, Key, list[Event]]]) -> list[Event]:
        """The output of complete time windows, each with its start, group and events."""
        return [event for _, _, events in windows for event in self.of_window(events)]

    def of_window(self, events: list[Event]) -> list[Event]:
        """The output of one complete window."""
        raise NotImplementedError


@dataclass(frozen=True)
class RowWindowMachine:
    """The row windows of one group; the state is the events of windows that are not complete yet."""

    window: RowWindow
    of_window: Callable[[list[Event]], list[Event]]

    def start(self) -> list[Any]:
        """No events yet."""
        return []

    def step(self, state: list[Any], events: Sequence[Event]) -> list[Event]:
        """The output of the windows that these events complete."""
        found: list[Event] = []
        for event in events:
            state.append(event)
            if len(state) == self.window.length:
                found += self.of_window(list(state))
                del state[: self.window.slide]
        return found
