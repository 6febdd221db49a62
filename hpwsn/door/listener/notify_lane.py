"""The Notify lane: from the bytes of an ordinary Notify to the intake, with no tree, no Spyne and no task.

Whatever it does not know, and whatever is to be refused, it leaves alone: the full lane then does all of it,
and has the words for the fault. So both give the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpwsn.broker.admission.admission import Publisher
from hpwsn.broker.admission.batching import Intake, Stored
from hpwsn.door.notify.scan import NotifyScan
from hpwsn.notification import PARTIAL, RELIABLE, Batch, EncodedRun, Notification
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import Limits


class NotifyLane:
    """Takes notifications in for the broker's own address."""

    def __init__(self, publisher: Publisher, limits: Limits) -> None:
        self._publisher = publisher
        self._scan = NotifyScan(limits)
        self._intake = Intake(publisher.send_ready)

    def offer(self, bodies: Sequence[bytes], stored: Stored) -> int:
        """Publish Notifies in UTF-8, up to the first that is not for here; how many, all of one fate."""
        return (len(bodies) > 1 and self._offer_alike(bodies, stored)) or self._offer_each(bodies, stored)

    def _offer_alike(self, bodies: Sequence[bytes], stored: Stored) -> int:
        """Those that differ in their payloads only are one run, as if one Notify had brought them."""
        run = self._scan.read_alike(bodies)
        if run is None:
            return 0
        try:
            notifications = self._publisher.ready(run)
        except SoapFault:
            return 0
        self._intake.put(notifications, len(run.payloads), stored)
        return len(run)

    def _offer_each(self, bodies: Sequence[bytes], stored: Stored) -> int:
        parts: list[Sequence[Notification]] = []
        taken = size = 0
        for data in bodies:
            messages = self._scan.read(data)
            if messages is None:
                break
            id_ = messages.message_id if isinstance(messages, EncodedRun) else messages[0].message_id
            # What is a repetition has the fate of another, and so is taken alone.
            if taken and id_ is not None and self._publisher.knows(id_):
                break
            try:
                reliable, partial = self._scan.routing
                notifications = self._publisher.ready(messages, RELIABLE * reliable + PARTIAL * partial)
            except SoapFault:
                break
            first = None if id_ is None else self._publisher.take_once(id_, notifications)
            if first is not None:
                first.add_done_callback(lambda end: stored(not end.cancelled() and end.exception() is None))
                return 1
            parts.append(notifications)
            taken += 1
            size += len(data)
        if taken:
            self._intake.put(parts[0] if len(parts) == 1 else Batch(parts), size, stored)
        return taken
