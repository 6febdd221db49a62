"""Subscription policies that this node cannot grant in its configuration, with the standard's faults.

WS-BaseNotification 1.3, section 4.2. The request is already parsed and valid.
"""

from __future__ import annotations

from hpwsn.broker.queueing.cet_rules import CET
from hpwsn.broker.subscriptions.webhook import webhook_of
from hpwsn_client.wsn.operations.messages import DeliveryPolicy, Subscribe
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.names import hp


def check_grantable(request: Subscribe, pull_point: str | None, *, raw_only: bool) -> None:
    """Raise the fault for a request whose policies this node does not support."""
    if raw_only and pull_point is None and not request.policy.use_raw and webhook_of(request) is None:
        raise faults.NotifyMessageNotSupportedFault(
            "this node sends only raw payloads, without Notify (delivery.raw_only): request the policy"
            " wsnt:UseRaw, or subscribe a pull point"
        )
    if request.policy.delivery is not None:
        _check_delivery(request.policy.delivery, pull_point)


def _check_delivery(delivery: DeliveryPolicy, pull_point: str | None) -> None:
    if delivery.discipline != CET and (delivery.alpha or delivery.beta):
        raise _unsupported(f'alpha and beta need discipline="{CET}"; add it, or omit them')
    if pull_point is not None and (delivery.max_queue or delivery.overflow):
        raise _unsupported(
            "a pull point has its own limit (pull_points.queue_limit): omit maxQueue and overflow"
        )


def _unsupported(reason: str) -> faults.UnsupportedPolicyRequestFault:
    return faults.UnsupportedPolicyRequestFault(reason, unsupported=(hp("Delivery"),))
