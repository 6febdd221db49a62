"""What a node does not grant of what a Subscribe asks for, each with the fault that the standard has for it.

WS-BaseNotification 1.3, section 4.2. The wire has read the request by then: here is only what this node, as
it is set up, cannot or must not do for a subscriber.
"""

from __future__ import annotations

from hpwsn_client.wsn.operations.messages import DeliveryPolicy, Subscribe
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.names import hp


def check_grantable(request: Subscribe, pull_point: str | None, *, raw_only: bool) -> None:
    """Raise the fault for a request whose policies cannot be kept here."""
    if raw_only and pull_point is None and not request.policy.use_raw:
        raise faults.NotifyMessageNotSupportedFault(
            "this node sends payloads alone, never in a Notify (delivery.raw_only): ask for the policy"
            " wsnt:UseRaw, or subscribe a pull point"
        )
    if request.policy.delivery is not None:
        _check_delivery(request.policy.delivery, pull_point)


def _check_delivery(delivery: DeliveryPolicy, pull_point: str | None) -> None:
    if delivery.discipline not in (None, "fifo"):
        raise _unsupported(f"this version of the broker has no discipline {delivery.discipline!r}: use fifo")
    if pull_point is not None and (delivery.max_queue or delivery.overflow):
        raise _unsupported(
            "a pull point has its own limit (pull_points.queue_limit): leave maxQueue and overflow out"
        )


def _unsupported(reason: str) -> faults.UnsupportedPolicyRequestFault:
    return faults.UnsupportedPolicyRequestFault(reason, unsupported=(hp("Delivery"),))
