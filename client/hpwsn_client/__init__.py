"""Client library for WS-Notification brokers: publish, subscribe and receive without handling SOAP.

`__all__` is the API. Each name is imported on first use, so importing `hpwsn_client.wsn`, as the broker node
does, does not load an HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpwsn_client.client import Client, PullPoint, Registration, Subscription
    from hpwsn_client.errors import (
        BadReply,
        Closed,
        ConnectionFailed,
        FailedBatch,
        HpwsnClientError,
        PublishFailed,
        TimedOut,
    )
    from hpwsn_client.facades.demand import DemandPublisher
    from hpwsn_client.facades.sync import (
        SyncClient,
        SyncPublisher,
        SyncPullPoint,
        SyncReceiver,
        SyncRegistration,
        SyncSubscription,
    )
    from hpwsn_client.figures import Figures
    from hpwsn_client.notification import Notification
    from hpwsn_client.pipelined_publisher import Publisher
    from hpwsn_client.receiver import Receiver
    from hpwsn_client.wsn import (
        ContentFilter,
        DeliveryPolicy,
        EndpointReference,
        NotificationMessage,
        SoapFault,
        SoapVersion,
        Topic,
        TopicExpression,
    )

__version__ = "0.1.0"

__all__ = [
    "BadReply",
    "Client",
    "Closed",
    "ConnectionFailed",
    "ContentFilter",
    "DeliveryPolicy",
    "DemandPublisher",
    "EndpointReference",
    "FailedBatch",
    "Figures",
    "HpwsnClientError",
    "Notification",
    "NotificationMessage",
    "PublishFailed",
    "Publisher",
    "PullPoint",
    "Receiver",
    "Registration",
    "SoapFault",
    "SoapVersion",
    "Subscription",
    "SyncClient",
    "SyncPublisher",
    "SyncPullPoint",
    "SyncReceiver",
    "SyncRegistration",
    "SyncSubscription",
    "TimedOut",
    "Topic",
    "TopicExpression",
    "__version__",
]

_EXPORTS = {
    "client": ("Client", "PullPoint", "Registration", "Subscription"),
    "facades.demand": ("DemandPublisher",),
    "errors": (
        "BadReply",
        "Closed",
        "ConnectionFailed",
        "FailedBatch",
        "HpwsnClientError",
        "PublishFailed",
        "TimedOut",
    ),
    "figures": ("Figures",),
    "notification": ("Notification",),
    "pipelined_publisher": ("Publisher",),
    "receiver": ("Receiver",),
    "facades.sync": (
        "SyncClient",
        "SyncPublisher",
        "SyncPullPoint",
        "SyncReceiver",
        "SyncRegistration",
        "SyncSubscription",
    ),
    "wsn": (
        "ContentFilter",
        "DeliveryPolicy",
        "EndpointReference",
        "NotificationMessage",
        "SoapFault",
        "SoapVersion",
        "Topic",
        "TopicExpression",
    ),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
