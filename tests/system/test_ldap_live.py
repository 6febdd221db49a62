"""An admin changes the topics in a real OpenLDAP server, and a running node follows."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpwsn.topics.directory.directory import Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, notify, send, subscribe
from tests.slapd import BASE, Slapd, topic


@pytest.fixture
def ldap_node(slapd: Slapd, tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url) as running:
        yield running


@pytest.fixture
async def consumer() -> AsyncIterator[Consumer]:
    async with Consumer() as running:
        yield running


async def publish(node: NodeProcess, on: str, text: str = "x") -> bool:
    """Whether a message on this topic is accepted; if not, it is since the topic is unknown."""
    reply = await call(node.url, notify(on, f"<n>{text}</n>"))
    assert reply.status == 202 or reply.fault == "TopicNotSupportedFault"
    return reply.status == 202


async def refused(node: NodeProcess, on: str) -> bool:
    return not await publish(node, on)


async def status(node: NodeProcess) -> dict[str, Any]:
    reply = await send(f"{node.base}/status", b"", method="GET")
    found: dict[str, Any] = json.loads(reply.body)
    return found


async def topic_set(node: NodeProcess) -> str:
    body = '<rp:GetResourceProperty xmlns:rp="http://docs.oasis-open.org/wsrf/rp-2" xmlns:t='
    body += '"http://docs.oasis-open.org/wsn/t-1">t:TopicSet</rp:GetResourceProperty>'
    return (await call(node.url, body)).body.decode()


async def test_a_node_starts_with_the_tree_of_the_server(ldap_node: NodeProcess) -> None:
    assert await publish(ldap_node, "ALL:ALARM:FIRE")
    assert await refused(ldap_node, "ALL:NEW")
    found = await status(ldap_node)
    assert (found["topics"], found["problems"]) == (6, [])
    assert (found["directory"]["connected"], found["directory"]["source"]) == (1, "directory")
    ready = await send(f"{ldap_node.base}/readyz", b"", method="GET")
    assert ready.status == 200


async def test_an_added_topic_is_there_for_subscriptions_from_before(
    ldap_node: NodeProcess, slapd: Slapd, consumer: Consumer
) -> None:
    assert (await call(ldap_node.url, subscribe(consumer.url, "ALL"))).status == 200
    await asyncio.to_thread(slapd.add, topic("NEW", "ALARM", "ALL") + topic("NEWER", "NEW", "ALARM", "ALL"))
    await eventually(lambda: publish(ldap_node, "ALL:ALARM:NEW:NEWER", "found"))
    await consumer.wait(lambda c: c.payloads() == ["found"])
    assert "NEWER" in await topic_set(ldap_node)


async def test_a_removed_topic_is_refused_and_gets_its_subscriptions_and_its_message_back(
    ldap_node: NodeProcess, slapd: Slapd, consumer: Consumer
) -> None:
    await call(ldap_node.url, subscribe(consumer.url, "ALL:ALARM:FIRE"))
    assert await publish(ldap_node, "ALL:ALARM:FIRE", "before")
    await asyncio.to_thread(slapd.delete, f"cn=FIRE,cn=ALARM,cn=ALL,{BASE}")
    current = "<w:GetCurrentMessage><w:Topic>ALL:ALARM:FIRE</w:Topic></w:GetCurrentMessage>"

    async def is_gone() -> bool:
        reply = await call(ldap_node.url, current)
        return reply.status != 200 and reply.fault == "TopicNotSupportedFault"

    # Asked without publishing: until the node has heard of it, a message would become the topic's last.
    await eventually(is_gone)
    assert await refused(ldap_node, "ALL:ALARM:FIRE")
    assert "FIRE" not in await topic_set(ldap_node)
    assert (await status(ldap_node))["subscriptions"] == 1
    await asyncio.to_thread(slapd.add, topic("FIRE", "ALARM", "ALL"))

    async def is_back() -> bool:
        return (await call(ldap_node.url, current)).status == 200

    await eventually(is_back)
    assert b"before" in (await call(ldap_node.url, current)).body
    assert await publish(ldap_node, "ALL:ALARM:FIRE", "after")
    await consumer.wait(lambda c: "after" in c.payloads())
    assert consumer.payloads() == ["before", "after"]


async def test_a_renamed_and_a_moved_subtree_is_found_at_its_new_place(
    ldap_node: NodeProcess, slapd: Slapd, consumer: Consumer
) -> None:
    await call(ldap_node.url, subscribe(consumer.url, "ALL:STATE"))
    await asyncio.to_thread(slapd.rename, f"cn=ALARM,cn=ALL,{BASE}", "cn=ALERT")
    await eventually(lambda: publish(ldap_node, "ALL:ALERT:FIRE"))
    assert await refused(ldap_node, "ALL:ALARM:FIRE")
    await asyncio.to_thread(slapd.rename, f"cn=ALERT,cn=ALL,{BASE}", "cn=ALERT", f"cn=STATE,cn=ALL,{BASE}")
    await eventually(lambda: publish(ldap_node, "ALL:STATE:ALERT:FIRE", "moved"))
    await consumer.wait(lambda c: "moved" in c.payloads())
    assert await refused(ldap_node, "ALL:ALERT:FIRE")


async def test_a_changed_description_is_in_the_namespace_document(
    ldap_node: NodeProcess, slapd: Slapd
) -> None:
    change = (
        f"dn: cn=STATE,cn=ALL,{BASE}\nchangetype: modify\nreplace: description\ndescription: Changed words\n"
    )
    await asyncio.to_thread(slapd.modify, change)

    async def shown() -> bool:
        reply = await send(f"{ldap_node.base}/topics/namespace?uri=urn:hpwsn:topics", b"", method="GET")
        return b"Changed words" in reply.body

    await eventually(shown)


async def test_an_entry_that_is_no_topic_is_reported_and_harms_nobody(
    ldap_node: NodeProcess, slapd: Slapd
) -> None:
    bad = topic("two words", "ALL") + topic("BELOW", "two words", "ALL")
    bad += topic("PIGEON", "ALL", hpwsnRouting="pigeon") + topic("GOOD", "ALL")
    await asyncio.to_thread(slapd.add, bad)
    await eventually(lambda: publish(ldap_node, "ALL:GOOD"))
    found = (await status(ldap_node))["directory"]
    assert found["skipped"] == 3
    assert any("hpwsnRouting is 'pigeon'" in entry for entry in found["skipped_entries"])
    assert "3 entries of the topic directory are not topics" in found["warnings"][0]
    assert f"not a topic: cn=two words,cn=ALL,{BASE}" in ldap_node.log()
    change = f"dn: cn=PIGEON,cn=ALL,{BASE}\nchangetype: modify\nreplace: hpwsnRouting\nhpwsnRouting: udp\n"
    await asyncio.to_thread(slapd.modify, change)
    await eventually(lambda: publish(ldap_node, "ALL:PIGEON"))
    await asyncio.to_thread(slapd.delete, f"cn=two words,cn=ALL,{BASE}", recursive=True)

    async def clean() -> bool:
        return (await status(ldap_node))["directory"]["skipped"] == 0

    await eventually(clean)


async def test_a_large_load_and_a_large_move_reach_the_node_while_it_serves(
    ldap_node: NodeProcess, slapd: Slapd, consumer: Consumer
) -> None:
    await call(ldap_node.url, subscribe(consumer.url, "ALL"))
    many = [Declaration(Topic.parse(f"ALL:BULK:S{number % 20}:T{number}")) for number in range(2000)]
    loading = asyncio.create_task(asyncio.to_thread(slapd.directory.replace, many, merge=True))
    served = 0
    while not loading.done():
        served += await publish(ldap_node, "ALL:ALARM:FIRE")
    await loading
    await eventually(lambda: publish(ldap_node, "ALL:BULK:S19:T1999"))
    await asyncio.to_thread(slapd.rename, f"cn=BULK,cn=ALL,{BASE}", "cn=MOVED")
    await eventually(lambda: publish(ldap_node, "ALL:MOVED:S19:T1999", "last"))
    await consumer.wait(lambda c: "last" in c.payloads())
    assert served

    async def moved() -> bool:
        return bool((await status(ldap_node))["topics"] == 6 + 1 + 20 + 2000)

    await eventually(moved)
