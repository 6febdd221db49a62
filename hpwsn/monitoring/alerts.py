"""Alerts: what an operator must see to, with the time since when and the remedy.

The owner looks at its figures about once a second and hands in its findings; this module decides which of
them are alerts. As with Prometheus, a finding must hold for `after` seconds before it is an alert (`for`
there), and an alert stays for `keep` seconds after the last finding (`keep_firing_for`), so that a value at
its threshold does not make it come and go. Durations are on a clock that nobody sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hpwsn.listeners import Listeners

Severity = Literal["critical", "warning", "info"]
_ORDER: dict[str, int] = {"critical": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong now; there is one finding of a name at a time.

    `text` says what, `remedy` what to do, `view` on which view of the page to look. `after` is in seconds.
    """

    name: str
    severity: Severity
    text: str
    remedy: str
    view: str
    after: float = 0.0


@dataclass(slots=True)
class _State:
    finding: Finding
    since: float
    first: float
    last: float
    raised: bool = False


class Alerts:
    """The alerts of one process, or of all nodes of a cluster."""

    def __init__(self, keep: float) -> None:
        """`keep` is how many seconds an alert stays after what it tells is over."""
        self._keep = keep
        self._states: dict[str, _State] = {}
        self.raised: Listeners[Finding] = Listeners("a new alert")
        self.cleared: Listeners[Finding] = Listeners("an alert that is over")

    def update(self, findings: Iterable[Finding], *, now: float, wall: float) -> bool:
        """Take what is wrong now; whether the list of alerts has changed.

        `now` is on a clock that nobody sets, `wall` is in seconds since 1970.
        """
        changed = False
        for finding in findings:
            changed |= self._found(finding, now, wall)
        for name, state in list(self._states.items()):
            if state.last == now or (state.raised and now - state.last < self._keep):
                continue
            del self._states[name]
            if state.raised:
                changed = True
                self.cleared(state.finding)
        return changed

    def _found(self, finding: Finding, now: float, wall: float) -> bool:
        state = self._states.get(finding.name)
        if state is None:
            state = self._states[finding.name] = _State(finding, wall, now, now)
        changed = state.raised and state.finding != finding
        state.finding, state.last = finding, now
        if not state.raised and now - state.first >= finding.after:
            state.raised = changed = True
            self.raised(finding)
        return changed

    def __iter__(self) -> Iterator[tuple[Finding, float]]:
        """Each alert with the time since when it holds, the most severe and then the oldest first."""
        raised = [state for state in self._states.values() if state.raised]
        raised.sort(key=lambda state: (_ORDER[state.finding.severity], state.since, state.finding.name))
        return ((state.finding, state.since) for state in raised)

    def __len__(self) -> int:
        return sum(state.raised for state in self._states.values())

    def described(self) -> list[dict[str, str]]:
        """The alerts as the API gives them, in their order."""
        return [
            {
                "name": finding.name,
                "severity": finding.severity,
                "since": datetime.fromtimestamp(since, UTC).isoformat(),
                "text": finding.text,
                "remedy": finding.remedy,
                "view": finding.view,
            }
            for finding, since in self
        ]
