"""Retention: what is old goes, and with it open topics; what somebody waits for stays."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hpwsn.broker.housekeeping import Housekeeping, RetentionPolicy
from hpwsn.node import Node
from hpwsn.settings import Config
from hpwsn_client import Client
from hpwsn_client.wsn.soap.faults import NoCurrentMessageOnTopicFault
from tests.consumer import Consumer


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node in this process, whose housekeeping a test can call."""
    default = Config()
    config = replace(
        default,
        server=replace(default.server, port=0, drain_timeout=0.2),
        data=replace(default.data, dir=str(tmp_path / "data")),
        journal=replace(default.journal, retention_age=0.0),
    )
    running = Node(config)
    await running.start()
    yield running
    await running.close()


async def test_old_notifications_go_and_take_their_open_topics_along(node: Node) -> None:
    async with Client(node.port.listening_url) as client:
        for number in range(20):
            await client.notify(f"old:t{number}", "<n/>")
        assert len(node.parts.tree) == 21
        await Housekeeping(node.parts.broker, RetentionPolicy.of(node.config)).tidy()
        assert len(node.parts.tree) == 0
        with pytest.raises(NoCurrentMessageOnTopicFault):
            await client.get_current_message("old:t1")


async def test_what_a_subscription_waits_for_stays_and_is_delivered(node: Node) -> None:
    async with Client(node.port.listening_url) as client, Consumer() as consumer:
        subscription = await client.subscribe("wanted", consumer.url)
        await subscription.pause()
        for number in range(10):
            await client.notify("wanted", f"<n>{number}</n>")
            await client.notify("unwanted", "<n/>")
        await Housekeeping(node.parts.broker, RetentionPolicy.of(node.config)).tidy()
        assert [stored.offset for stored in await node.parts.journal.read(range(1, 21))] == list(
            range(1, 21, 2)
        )
        await subscription.resume()
        await consumer.wait(lambda c: len(c.messages()) >= 10)
        assert consumer.payloads() == [str(number) for number in range(10)]


async def test_a_pull_point_that_nobody_empties_keeps_its_newest_messages(tmp_path: Path) -> None:
    default = Config()
    config = replace(
        default,
        server=replace(default.server, port=0),
        data=replace(default.data, dir=str(tmp_path / "full")),
        pull_points=replace(default.pull_points, queue_limit=5),
    )
    node = Node(config)
    await node.start()
    async with Client(node.port.listening_url) as client:
        point = await client.create_pull_point()
        await client.subscribe("A", point)
        await client.notify_many([("A", f"<n>{number}</n>") for number in range(12)])
        await node.parts.delivery.settle(node.parts.broker.subscriptions)
        await Housekeeping(node.parts.broker, RetentionPolicy.of(node.config)).tidy()
        kept = [notification.text for notification in await point.get_messages()]
    await node.close()
    assert kept == [f"<n>{number}</n>" for number in range(7, 12)]
