"""The package's face: `__all__` is the API, and the wire loads without an HTTP client."""

import subprocess
import sys
from inspect import getmembers, iscoroutinefunction
from pathlib import Path

import pytest

import hpwsn_client
from hpwsn_client import (
    Client,
    PullPoint,
    Receiver,
    Registration,
    Subscription,
    SyncClient,
    SyncPullPoint,
    SyncReceiver,
    SyncRegistration,
    SyncSubscription,
)
from tests.patience import PATIENCE

API = {
    "BadReply",
    "Client",
    "Closed",
    "ConnectionFailed",
    "ContentFilter",
    "DeliveryPolicy",
    "DemandPublisher",
    "EndpointReference",
    "FailedBatch",
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
}


def test_all_is_the_api():
    assert set(hpwsn_client.__all__) == API
    assert hpwsn_client.__all__ == sorted(hpwsn_client.__all__)


@pytest.mark.parametrize("name", sorted(API))
def test_every_name_of_the_api_is_there_and_listed(name):
    assert getattr(hpwsn_client, name) is not None
    assert name in dir(hpwsn_client)


def test_a_name_outside_the_api_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Klient"):
        _ = hpwsn_client.Klient


def test_the_wire_and_the_command_line_load_no_http_client():
    code = "import sys, hpwsn_client.wsn, hpwsn_client.commands.main; sys.exit('aiohttp' in sys.modules)"
    path = str(Path(hpwsn_client.__file__).parent.parent)
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=path, timeout=PATIENCE, check=False).returncode == 0
    )


@pytest.mark.parametrize(
    ("plain", "sync"),
    [
        (Client, SyncClient),
        (Receiver, SyncReceiver),
        (Subscription, SyncSubscription),
        (PullPoint, SyncPullPoint),
        (Registration, SyncRegistration),
    ],
)
def test_the_sync_face_has_every_method_of_the_asynchronous_one(plain, sync):
    methods = {name for name, value in getmembers(plain, iscoroutinefunction) if not name.startswith("_")}
    missing = {name for name in methods if not callable(getattr(sync, name, None))}
    assert missing <= {"open"}
