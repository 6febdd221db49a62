"""Listeners: functions that are called in order when something happens. Only builders connect them.

A listener that fails is logged with its traceback, and the rest are called all the same. A change takes
effect with the next call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVarTuple

log = logging.getLogger(__name__)

Arguments = TypeVarTuple("Arguments")


class Listeners(Generic[*Arguments]):
    """The listeners to one kind of event, which the log calls by `event`; calling this calls each of them."""

    __slots__ = ("_event", "_listeners")

    def __init__(self, event: str) -> None:
        self._event = event
        self._listeners: list[Callable[[*Arguments], object]] = []

    def add(self, listener: Callable[[*Arguments], object]) -> None:
        """Call this function too, after those that were added before."""
        self._listeners = [*self._listeners, listener]

    def remove(self, listener: Callable[[*Arguments], object]) -> None:
        """Call this function no more (ValueError if it was not added)."""
        left = self._listeners.copy()
        left.remove(listener)
        self._listeners = left

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def __call__(self, *arguments: *Arguments) -> None:
        for listener in self._listeners:
            try:
                listener(*arguments)
            except Exception:
                log.exception("a listener to %s failed: %r", self._event, listener)
