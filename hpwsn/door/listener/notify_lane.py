"""The Notify lane: passes the bytes of ordinary Notify requests to admission, without an XML tree or a task.

Requests that it does not know, or that admission refuses, are left to the full lane, which also writes the
faults. So both lanes give the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpwsn.broker.admission.admission import CLIENT, Admission
from hpwsn.broker.admission.batching import Batching, Stored
from hpwsn.door.notify.scan import NotifyScan
from hpwsn.notification import LARGE, Run
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import Limits


class NotifyLane:
    """Accepts notifications that are sent to the broker's own address."""

    def __init__(self, admission: Admission, limits: Limits) -> None:
        self._admission = admission
        self._scan = NotifyScan(limits)
        self._batching = Batching(admission.append_batch)

    def offer(self, bodies: Sequence[bytes], stored: Stored) -> int:
        """Publish UTF-8 Notifies up to the first that needs the full lane; return how many, one outcome."""
        return (len(bodies) > 1 and self._offer_alike(bodies, stored)) or self._offer_each(bodies, stored)

    def _offer_alike(self, bodies: Sequence[bytes], stored: Stored) -> int:
        """Publish requests that differ only in their payloads as one run."""
        run = self._scan.read_alike(bodies)
        if run is None:
            return 0
        try:
            self._admission.admit(CLIENT, (run,))
        except SoapFault:
            return 0
        self._batching.put((run,), len(run.payloads), stored)
        return run.size

    def _offer_each(self, bodies: Sequence[bytes], stored: Stored) -> int:
        runs: list[Run] = []
        taken = size = 0
        for data in bodies:
            # Any other operation is not worth a scan, and a large body would hold the event loop.
            found = self._scan.read(data) if len(data) < LARGE and b"Notify" in data else None
            if found is None:
                break
            # A duplicate gets the outcome of its first request, not of this batch, so it goes alone.
            if taken and self._admission.knows(found[0].message_id):
                break
            try:
                first = self._admission.admit(CLIENT, found)
            except SoapFault:
                break
            if first is not None:
                first.add_done_callback(lambda end: stored(not end.cancelled() and end.exception() is None))
                return 1
            runs += found
            taken += 1
            size += len(data)
        if taken:
            self._batching.put(runs, size, stored)
        return taken
