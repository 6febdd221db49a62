"""The sync face over real sockets."""

import threading
from datetime import UTC, datetime

import pytest

from hpwsn_client import Closed, EndpointReference, SoapFault, SyncClient, SyncReceiver, TimedOut
from hpwsn_client.arguments import notification_message
from hpwsn_client.facades.sync import _background
from hpwsn_client.wsn.operations.messages import (
    CreatePullPoint,
    CreatePullPointResponse,
    GetMessages,
    GetMessagesResponse,
    Renew,
    RenewResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from tests.patience import PATIENCE
from tests.system.scripted_broker import ScriptedBroker

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def broker():
    """A scripted broker on the loop that the sync objects share."""
    scripted = ScriptedBroker()
    _background.acquire()
    _background.run(scripted.__aenter__())
    there = EndpointReference(f"{scripted.base}/there")
    scripted.script = {
        Subscribe: SubscribeResponse(there, NOW, NOW),
        Renew: RenewResponse(None, NOW),
        Unsubscribe: UnsubscribeResponse(),
        CreatePullPoint: CreatePullPointResponse(there),
        GetMessages: GetMessagesResponse((notification_message("A", "x"),)),
    }
    yield scripted
    _background.run(scripted.__aexit__())
    _background.release()


def threads():
    return [t for t in threading.enumerate() if t.name == "hpwsn-client"]


def test_a_publisher_and_a_subscriber_share_one_thread_which_ends_with_them():
    with SyncReceiver() as receiver, SyncClient(receiver.url) as client:
        client.notify("A", "1")
        assert client.notify_many([("A", "2"), ("A", "3")]) == 2
        assert [n.text for n in receiver.notifications(timeout=0.1)] == ["1", "2", "3"]
        assert len(threads()) == 1
    assert threads() == []


def test_handles_have_a_sync_face_and_serve_as_arguments(broker):
    with SyncClient(broker.url) as client, SyncReceiver() as receiver:
        subscription = client.subscribe("A", receiver)
        assert subscription.terminates == NOW
        assert client.renew(subscription) is None
        assert subscription.terminates is None
        subscription.unsubscribe()
        point = client.create_pull_point()
        client.subscribe("A", consumer=point)
        assert [n.text for n in point.get_messages()] == [n.text for n in client.get_messages(point)] == ["x"]
    consumers = [a.message.consumer for a in broker.asked if isinstance(a.message, Subscribe)]
    assert consumers == [receiver.epr, point.epr]


def test_a_callback_may_block_and_use_the_client():
    with SyncReceiver() as final, SyncClient(final.url) as onward:
        with (
            SyncReceiver(callback=lambda n: onward.notify("B", n.text)) as first,
            SyncClient(first.url) as client,
        ):
            client.notify("A", "x")
        assert final.get(PATIENCE).text == "x"


def test_a_callback_that_fails_is_a_fault_to_the_sender():
    def fail(notification):
        raise ValueError("no")

    with (
        SyncReceiver(callback=fail) as receiver,
        SyncClient(receiver.url) as client,
        pytest.raises(SoapFault, match="callback failed"),
    ):
        client.notify("A", "x")


def test_waiting_in_vain_is_timed_out_and_iteration_with_a_timeout_ends():
    with SyncReceiver() as receiver:
        with pytest.raises(TimedOut):
            receiver.get(0.01)
        assert list(receiver.notifications(timeout=0.01)) == []


def test_closing_from_another_thread_ends_the_iteration():
    receiver = SyncReceiver()
    with SyncClient(receiver.url) as client:
        client.notify("A", "x")
        seen = []
        for notification in receiver:
            seen.append(notification.text)
            threading.Thread(target=receiver.close).start()
    assert seen == ["x"]


def test_a_closed_client_says_so_and_may_be_closed_again():
    client = SyncClient("http://127.0.0.1:9/")
    client.close()
    client.close()
    with pytest.raises(Closed):
        client.notify("A", "x")
    assert threads() == []


def test_wrong_options_leave_no_thread_behind():
    with pytest.raises(ValueError, match="public_url"):
        SyncReceiver("0.0.0.0")
    with pytest.raises(ValueError, match="http"):
        SyncClient("here")
    assert threads() == []


def test_a_publisher_and_a_subscriber_are_five_lines_at_most(broker):
    publisher = f"""
from hpwsn_client import SyncClient
with SyncClient({broker.url!r}) as client:
    client.notify("ALL:ALARM", "fire in the hall")
"""
    subscriber = f"""
from hpwsn_client import SyncClient
with SyncClient({broker.url!r}) as client:
    client.subscribe("ALL", point := client.create_pull_point())
    for notification in point.get_messages():
        print(notification.topic, notification.text)
"""
    for source in (publisher, subscriber):
        assert len(source.strip().splitlines()) <= 5
        exec(source, {})
    assert broker.notified() == [["fire in the hall"]]
