"""What a client, a publisher and a receiver count while they talk to a real node."""

from __future__ import annotations

import pytest

from hpwsn_client import Client, HpwsnClientError, Receiver, SyncClient, SyncReceiver
from hpwsn_client.notification import Notification
from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually


async def test_client_publisher_and_receiver_count_what_they_send_and_get(shared_node: NodeProcess) -> None:
    async with Client(shared_node.url, batch=2) as client, Receiver() as receiver:
        await client.subscribe("figures", receiver)
        pull_point = await client.create_pull_point()
        await client.subscribe("figures", pull_point)
        await client.notify("figures", "<n>1</n>")
        await client.notify_many(("figures", f"<n>{n}</n>") for n in range(2, 7))
        async with client.publisher(batch=5) as publisher:
            for n in range(7, 17):
                await publisher.put("figures", f"<n>{n}</n>")
            await publisher.flush()
            streamed = publisher.figures()
        for _ in range(16):
            await receiver.get(PATIENCE)
        fetched = 0

        async def all_fetched() -> bool:
            nonlocal fetched
            fetched += len(await pull_point.get_messages())
            return fetched == 16

        await eventually(all_fetched)
        sent, got = client.figures(), receiver.figures()
    assert (sent.published, sent.requests, sent.failed) == (6, 4, 0)
    assert sent.received == 16
    assert 0 < sent.slowest <= sent.seconds
    assert (streamed.published, streamed.failed, streamed.repeated) == (10, 0, 0)
    assert 2 <= streamed.requests <= 10
    assert (got.received, got.refused) == (16, 0)
    assert 0 < got.deliveries <= 16


async def test_what_a_broker_did_not_take_counts_as_failed() -> None:
    async with Client("http://127.0.0.1:9/wsn", timeout=PATIENCE) as client:
        with pytest.raises(HpwsnClientError):
            await client.notify("figures", "<n/>")
        assert (client.figures().failed, client.figures().published) == (1, 0)


async def test_a_delivery_whose_callback_fails_counts_as_refused(shared_node: NodeProcess) -> None:
    calls: list[str] = []

    def fail_once(notification: Notification) -> None:
        calls.append(str(notification.topic))
        if len(calls) == 1:
            raise ValueError("not yet")

    async with Client(shared_node.url) as client, Receiver(callback=fail_once) as receiver:
        await client.subscribe("figures:refused", receiver)
        await client.notify("figures:refused", "<n/>")

        async def delivered() -> bool:
            return receiver.figures().received == 1

        await eventually(delivered)
        assert receiver.figures().refused == 1


def test_the_blocking_classes_have_the_figures_too(shared_node: NodeProcess) -> None:
    with SyncClient(shared_node.url) as client, SyncReceiver() as receiver:
        client.subscribe("figures:sync", receiver)
        with client.publisher() as publisher:
            publisher.put("figures:sync", "<n/>")
            publisher.flush()
            assert publisher.figures().published == 1
        receiver.get(PATIENCE)
        assert client.figures().published == 0
        assert receiver.figures().deliveries == 1
