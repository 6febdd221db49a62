"""Admission of what comes by the backbone: from another process, or from an earlier life of this node.

The rules are those of a door: one topic, known where the tree is fixed, well-formed, within the limits, and a
new message id. Nobody waits for an answer, so queue limits do not apply, and what is refused goes back with
its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpwsn.backbone.interface import Screened
from hpwsn.broker.admission.admission import Admission, runs_of
from hpwsn.notification import Notification, Run
from hpwsn_client.wsn.operations.notifications import join_notification, parse_notification_message
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.xml import Limits


class Arrivals:
    """Screens what the backbone brings."""

    def __init__(self, admission: Admission, limits: Limits, clock: Callable[[], float]) -> None:
        self._admission = admission
        self._clock = clock
        self._limits = limits

    def screen(self, notifications: Sequence[Notification], *, checked: bool) -> Screened:
        """The notifications that can be stored; checked ones with the same id are one publication."""
        kept: list[Run] = []
        refused: list[tuple[Notification, str]] = []
        claimed: set[str] = set()
        repeated = 0
        for notification in notifications:
            try:
                run = Run.of(notification) if checked else self._rebuild(notification)
            except (SoapFault, ValueError) as error:
                refused.append((notification, str(error)))
                continue
            self._admission.conceal(run)
            if self._is_new(run, claimed, checked):
                kept.append(run)
            else:
                repeated += 1
        self._admission.count("backbone", "repeated", repeated)
        self._admission.count("backbone", "refused", len(refused))
        return Screened(kept, refused, repeated, lambda first: self._admission.settle_arrived(first, kept))

    def _rebuild(self, notification: Notification) -> Run:
        """Parse it as a door would; what the sender says of topic and payload counts for nothing."""
        element = parse_message_xml(join_notification(notification.content), self._limits)
        message = parse_notification_message(element)
        traces = (notification.trace,)
        (run,) = runs_of((message,), notification.message_id, notification.target, traces=traces)
        run.time = min(notification.time, self._clock())
        self._admission.check_form(run)
        return run

    def _is_new(self, run: Run, claimed: set[str], together: bool) -> bool:
        id_ = run.message_id
        if id_ is None or (together and id_ in claimed):
            return True
        if not self._admission.claim(id_):
            return False
        claimed.add(id_)
        return True
