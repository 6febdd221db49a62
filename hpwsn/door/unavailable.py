"""What an operation answers when the journal cannot take its change, as on a full disk.

The standard has a fault of its own for most operations that fail; it comes with the status and the header
that say that the same request may succeed later. Operations without such a fault are Busy, as Notify is.
"""

from __future__ import annotations

from hpwsn.errors import JournalUnavailable
from hpwsn_client.wsn import faults
from hpwsn_client.wsn.names import br, rl, wsnt

BUSY = 503
RETRY_AFTER = 1.0
"""Seconds that a client is asked to wait."""

_FAULTS: dict[str, type[faults.WsnFault]] = {
    wsnt("Subscribe"): faults.SubscribeCreationFailedFault,
    wsnt("Unsubscribe"): faults.UnableToDestroySubscriptionFault,
    wsnt("PauseSubscription"): faults.PauseFailedFault,
    wsnt("ResumeSubscription"): faults.ResumeFailedFault,
    wsnt("CreatePullPoint"): faults.UnableToCreatePullPointFault,
    wsnt("GetMessages"): faults.UnableToGetMessagesFault,
    wsnt("DestroyPullPoint"): faults.UnableToDestroyPullPointFault,
    br("RegisterPublisher"): faults.PublisherRegistrationFailedFault,
    br("DestroyRegistration"): faults.ResourceNotDestroyedFault,
    rl("Destroy"): faults.LifetimeResourceNotDestroyedFault,
    rl("SetTerminationTime"): faults.UnableToSetTerminationTimeFault,
}


def unavailable(operation: str, error: JournalUnavailable) -> faults.SoapFault:
    """The fault for a request, by its Clark name, that changed nothing and may be sent again."""
    reason = f"nothing was changed: {error}"
    kind = _FAULTS.get(operation)
    if kind is None:
        return faults.Busy(reason, retry_after=RETRY_AFTER)
    fault = kind(reason, code=faults.FaultCode.RECEIVER)
    fault.status = BUSY
    return fault
