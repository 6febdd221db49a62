"""Figures of the node's port: open connections, and answered requests by door and class of status.

It also measures the time from a publication to its answer 202, for all doors. A request is counted when it is
answered, a stream when it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpwsn.histogram import Timings

ACCEPTED = 202
_DOORS = (
    ("/wsn/process", "original"),
    ("/wsn", "soap"),
    ("/onvif", "onvif"),
    ("/cluster/", "peer"),
)
"""The doors by the beginning of a path."""
_EVENTS = "/events"
"""The end of the paths of JSON events; any other path is an operator's."""
_OPERATOR = "operator"


class HttpStatistics:
    """Counts what the port answers; `fast` and `full` are the numbers of open connections in both lanes."""

    def __init__(self, timings: Timings) -> None:
        self.requests: dict[str, dict[str, int]] = {}
        self.refused = 0
        """Connections beyond the limit."""
        self._accept = timings.accept
        self.fast: Callable[[], int] = int
        self.full: Callable[[], int] = int
        self._soap = self.requests.setdefault("soap", {"2xx": 0})

    def accepted(self, seconds: float, count: int) -> None:
        """Notifies of the fast lane are answered with 202, each after so many seconds."""
        self._soap["2xx"] += count
        self._accept.observe(seconds, count)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """One request is answered."""
        door = _door(path)
        codes = self.requests.setdefault(door, {})
        code = f"{status // 100}xx"
        codes[code] = codes.get(code, 0) + 1
        if status == ACCEPTED and door != _OPERATOR:
            self._accept.observe(seconds)

    def figures(self) -> dict[str, Any]:
        """What /status has under `http`."""
        return {
            "connections": {"fast": self.fast(), "full": self.full(), "refused": self.refused},
            "requests": {door: dict(codes) for door, codes in self.requests.items()},
        }


def _door(path: str) -> str:
    for beginning, door in _DOORS:
        if path.startswith(beginning):
            return door
    return "json" if path.endswith(_EVENTS) else _OPERATOR
