"""The public API: `__all__` is complete, and light modules load no HTTP client and no server module."""

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
    SoapFault,
    Subscription,
    SyncClient,
    SyncPullPoint,
    SyncReceiver,
    SyncRegistration,
    SyncSubscription,
)
from hpwsn_client.wsn import faults
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


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*(_subclasses(each) for each in kind.__subclasses__()))


def test_every_fault_can_be_imported_from_the_public_module():
    public = {kind for kind in _subclasses(SoapFault) if not kind.__name__.startswith("_")}
    own = {kind for kind in public if kind.__module__.startswith("hpwsn_client.wsn.soap")}
    assert len(own) > 30
    assert {kind.__name__ for kind in own} <= set(faults.__all__)
    assert all(getattr(faults, kind.__name__) is kind for kind in own)


LIGHT_MODULES = (
    "hpwsn_client",
    "hpwsn_client.wsn",
    "hpwsn_client.wsn.faults",
    "hpwsn_client.environment",
    "hpwsn_client.commands.main",
)


def test_light_modules_load_nothing_that_only_the_server_needs():
    code = f"import sys, {', '.join(LIGHT_MODULES)}; print(*sys.modules, sep='\\n')"
    path = str(Path(hpwsn_client.__file__).parent.parent)
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=path, timeout=PATIENCE, check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"aiohttp", "hpwsn", "hpwsn_admin", "spyne"} & set(loaded)
    own = [name for name in loaded if name.split(".")[0] == "hpwsn_client"]
    assert not [name for name in own if any(word in name for word in ("scan", "shapes", "scope"))]


def test_the_package_has_no_module_that_only_the_server_needs():
    modules = Path(hpwsn_client.__file__).parent.rglob("*.py")
    assert not [str(path) for path in modules if any(w in path.stem for w in ("scan", "shapes", "scope"))]
