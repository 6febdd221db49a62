"""The Notify lane: passes the bytes of ordinary Notify requests to admission, without an XML tree or a task.

Requests that it does not know, or that admission refuses, are left to the full lane, which also writes the
faults. So both lanes give the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from hpwsn.broker.admission.admission import CLIENT, Admission
from hpwsn.broker.admission.batching import Batching, Stored
from hpwsn.door.notify.scan import NotifyScan
from hpwsn.notification import END, LARGE, Run, split_payloads
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import Limits


class NotifyLane:
    """Accepts notifications that are sent to the broker's own address."""

    def __init__(self, admission: Admission, limits: Limits) -> None:
        self._admission = admission
        self._scan = NotifyScan(limits)
        self._batching = Batching(admission.append_batch)

    def offer(self, bodies: Sequence[bytes], stored: Stored, traces: Sequence[str | None] = ()) -> int:
        """Publish UTF-8 Notifies up to the first that needs the full lane; return how many, one outcome.

        `traces` has the trace of each body in its HTTP headers, or nothing; a SOAP header goes before it.
        """
        several = len(bodies) > 1
        return (several and self._offer_alike(bodies, stored, traces)) or self._offer_each(
            bodies, stored, traces
        )

    def _offer_alike(self, bodies: Sequence[bytes], stored: Stored, traces: Sequence[str | None]) -> int:
        """Publish requests that differ only in their payloads as one run, or one for each trace."""
        run = self._scan.read_alike(bodies)
        if run is None:
            return 0
        runs = _split_by_trace(run, traces) if traces else (run,)
        try:
            self._admission.admit(CLIENT, runs)
        except SoapFault:
            return 0
        self._batching.put(runs, len(run.payloads), stored)
        return run.size

    def _offer_each(self, bodies: Sequence[bytes], stored: Stored, traces: Sequence[str | None]) -> int:
        runs: list[Run] = []
        taken = size = 0
        for data in bodies:
            # Any other operation is not worth a scan, and a large body would hold the event loop.
            found = self._scan.read(data) if len(data) < LARGE and b"Notify" in data else None
            if found is None:
                break
            if traces and found[0].trace is None:
                for run in found:
                    run.trace = traces[taken]
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


def _split_by_trace(run: Run, traces: Sequence[str | None]) -> list[Run]:
    """The payloads of a run, each with its trace; neighbours of one trace stay together."""
    pairs = zip(split_payloads(run.payloads), traces, strict=False)
    runs = []
    for trace, group in groupby(pairs, key=itemgetter(1)):
        payloads = [payload for payload, _ in group]
        runs.append(
            Run(run.topic, run.before, END.join((*payloads, b"")), len(payloads), 0.0, None, None, 0, trace)
        )
    return runs
