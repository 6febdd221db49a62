"""Replays of a paused subscription: a letter stays queued once, and who no longer waits is forgotten."""

from __future__ import annotations

from pathlib import Path

from hpwsn.broker.delivery.dead_letters import DeadLetters, Selection
from hpwsn.node.node import Node
from hpwsn.settings import Config, DataSettings, ServerSettings
from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from tests.consumer import Consumer
from tests.raw_soap import call, notify


async def test_replays_that_nobody_waits_for_do_not_add_up(tmp_path: Path) -> None:
    node = Node(Config(server=ServerSettings(port=0), data=DataSettings(dir=str(tmp_path / "data"))))
    await node.start()
    parts = node.parts
    try:
        async with Consumer() as consumer:
            request = Subscribe(EndpointReference(consumer.url))
            subscription = await parts.subscriptions.subscribe(request, SoapVersion.SOAP12)
            await parts.subscriptions.pause(subscription.id)
            await call(f"{parts.base_url()}/wsn", notify("A", "<n>1</n>", "<n>2</n>"))
            offsets = [parts.delivery.head - 1, parts.delivery.head]
            await parts.journal.bury(subscription.id, offsets, "a test", 1.0)
            letters = DeadLetters(parts.journal, parts.subscriptions, parts.delivery)
            ids = [letter.id for letter in await letters.page(9, 0, Selection())]
            for wait in (0.0, 0.001, 0.0):
                replayed = await letters.replay(Selection(), wait)
                assert (replayed.sent, replayed.pending) == (2, 2)
                assert subscription.progress.replays == {id_: [] for id_ in ids}
            await parts.subscriptions.resume(subscription.id)
            await consumer.wait(lambda c: set(c.payloads()) >= {"1", "2"})
            assert len(ids) == 2
    finally:
        await node.close()
