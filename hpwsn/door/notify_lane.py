"""The Notify lane: from the bytes of an ordinary Notify to the intake, with no tree, no Spyne and no task.

Whatever it does not know, and whatever is to be refused, it leaves alone: the full lane then does all of it,
and has the words for the fault. So both give the same answers.
"""

from __future__ import annotations

from hpwsn.broker.intake import Intake, Stored
from hpwsn.broker.publisher import Publisher
from hpwsn.notification import PARTIAL, RELIABLE
from hpwsn_client.wsn.notify_scan import EncodedRun, NotifyScan
from hpwsn_client.wsn.soap_faults import SoapFault
from hpwsn_client.wsn.xml import Limits


class NotifyLane:
    """Takes notifications in for the broker's own address."""

    def __init__(self, publisher: Publisher, limits: Limits) -> None:
        self._publisher = publisher
        self._scan = NotifyScan(limits)
        self._intake = Intake(publisher.send_ready)

    def offer(self, data: bytes, stored: Stored) -> bool:
        """Publish a Notify in UTF-8, with `stored` told what became of it; False if that is not for here."""
        messages = self._scan.read(data)
        if messages is None:
            return False
        try:
            reliable, partial = self._scan.routing
            notifications = self._publisher.ready(messages, RELIABLE * reliable + PARTIAL * partial)
        except SoapFault:
            return False
        message_id = messages.message_id if isinstance(messages, EncodedRun) else messages[0].message_id
        first = None if message_id is None else self._publisher.take_once(message_id, notifications)
        if first is None:
            self._intake.put(notifications, len(data), stored)
        else:
            first.add_done_callback(lambda ended: stored(not ended.cancelled() and ended.exception() is None))
        return True
