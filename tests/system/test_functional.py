"""The original's functional tests for one node, by the names that its author gave them."""

from hpwsn_client import Client, Receiver
from tests.harness import NodeProcess
from tests.patience import PATIENCE


async def test_functional_01_one_node_subscribe_all_publish_all_received(node: NodeProcess) -> None:
    async with Client(node.url) as client, Receiver() as receiver:
        await client.subscribe("ALL", receiver)
        await client.notify("ALL", "<reading>21.5</reading>")
        received = await receiver.get(timeout=PATIENCE)
    assert (received.topic, received.payload) == ("ALL", b"<reading>21.5</reading>")


async def test_functional_05_an_ancestors_subscriber_gets_both_and_a_descendants_one(
    node: NodeProcess,
) -> None:
    async with Client(node.url) as client, Receiver() as ancestor, Receiver() as descendant:
        await client.subscribe("ALL", ancestor)
        await client.subscribe("ALL:ALARM", descendant)
        await client.notify("ALL", "<m>1</m>")
        await client.notify("ALL:ALARM", "<m>2</m>")
        await client.notify("ALL:OTHER", "<m>3</m>")
        got = [(await ancestor.get(timeout=PATIENCE)).topic for _ in range(3)]
        only = await descendant.get(timeout=PATIENCE)
        await client.notify("ALL:ALARM", "<m>4</m>")
        after = await descendant.get(timeout=PATIENCE)
    assert got == ["ALL", "ALL:ALARM", "ALL:OTHER"]
    assert (only.topic, only.payload, after.payload) == ("ALL:ALARM", b"<m>2</m>", b"<m>4</m>")
