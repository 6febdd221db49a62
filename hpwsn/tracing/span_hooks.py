"""Where the broker and routing report their work to tracing. It imports nothing of OpenTelemetry.

A part has `spans`, which is None unless `tracing.enabled` is set. A method gets traces as notifications have
them (hpwsn_client.wsn.soap.trace_context) and gives the trace of its span, by which the next step continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hpwsn.notification import Notification, Run

EndDelivery = Callable[[str, int | None], None]
"""Ends the span of a delivery: with the reason of a failure, empty for success, and the HTTP status."""


class Spans(Protocol):
    """Makes the spans of one node."""

    def received(self, runs: Sequence[Run], *, from_node: bool = False) -> None:
        """Begin the spans of runs that a publisher or another node has sent; sets their traces."""

    def stored(self, runs: Sequence[Run], problem: str = "") -> None:
        """End the spans of received runs, which are stored, or not because of a problem."""

    def forwarded(self, notification: Notification) -> Notification:
        """The notification with the trace of the span of its way to another node."""

    def delivering(
        self, notifications: Sequence[Notification], subscription: str, url: str
    ) -> tuple[str, EndDelivery]:
        """Begin the span of a push in which at least one notification has a trace; its trace, and its end."""

    def close(self) -> None:
        """Export the last spans; blocks for some seconds if no collector answers."""
