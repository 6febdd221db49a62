"""The client's side of registrations: publishers that register, and one that publishes on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hpwsn_client import Client, ConnectionFailed, DemandPublisher, Receiver, SyncClient
from hpwsn_client.facades import demand as demand_module
from hpwsn_client.wsn.soap.faults import (
    PublisherRegistrationFailedFault,
    PublisherRegistrationRejectedFault,
    ResourceUnknownFault,
)
from tests.harness import NodeProcess
from tests.patience import PATIENCE, patience
from tests.raw_soap import XPATH, call, notify, send, subscribe

QUICK = ("--set", "registrations.linger=0", "--set", "delivery.retry_first=0.02")


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node at which only registered publishers may publish."""
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "registrations.required=true") as running:
        yield running


async def test_a_registered_publisher_publishes_and_ends_its_registration(strict: NodeProcess) -> None:
    async with Client(strict.url) as client, Receiver() as receiver:
        await client.subscribe("A", receiver)
        with pytest.raises(PublisherRegistrationRejectedFault, match="RegisterPublisher"):
            await client.notify("A", "<n>0</n>")
        registration = await client.register_publisher("A", expires=timedelta(hours=1))
        await registration.notify("A:B", "<n>1</n>", message_id="once")
        await registration.notify("A:B", "<n>1</n>", message_id="once")
        with pytest.raises(PublisherRegistrationRejectedFault, match="not registered for C"):
            await registration.notify("C", "<n/>")
        assert (await receiver.get(timeout=PATIENCE)).element.text == "1"
        await registration.destroy()
        with pytest.raises(ResourceUnknownFault):
            await registration.notify("A", "<n/>")
        with pytest.raises(ResourceUnknownFault):
            await client.destroy_registration(registration)


async def test_a_publisher_is_known_by_its_reference(strict: NodeProcess) -> None:
    async with Client(strict.url) as client:
        await client.register_publisher(
            publisher="http://127.0.0.1:1/me", expires=datetime(2999, 1, 1, tzinfo=UTC)
        )
        await client.notify("A", "<n/>", producer="http://127.0.0.1:1/me")


def test_code_without_asyncio_registers_too(strict: NodeProcess) -> None:
    with SyncClient(strict.url) as client:
        registration = client.register_publisher("A", "{urn:example}B")
        registration.notify("{urn:example}B", "<n/>")
        assert registration.epr == registration.consumer
        registration.destroy()
        with pytest.raises(PublisherRegistrationFailedFault, match="PublisherReference"):
            client.register_publisher("A", demand=True)


async def test_a_publisher_on_demand_sends_while_it_is_wanted(tmp_path: Path) -> None:
    changes: list[int] = []
    with NodeProcess(tmp_path / "data", *QUICK) as node:
        async with (
            Client(node.url) as client,
            DemandPublisher(on_change=lambda: changes.append(1)) as publisher,
            Receiver() as receiver,
        ):
            await client.register_publisher("A", "B", publisher=publisher, demand=True)
            assert await publisher.notify("A", "<n>0</n>") == 0
            subscription = await client.subscribe("A:below", receiver)
            await asyncio.wait_for(publisher.wait_until_wanted("A:below"), PATIENCE)
            assert (publisher.wanted("A"), publisher.wanted("B"), publisher.wanted(None)) == (
                True,
                False,
                False,
            )
            assert await publisher.notify("A:below", "<n>1</n>") == 1
            found = await receiver.get(timeout=PATIENCE)
            assert (found.topic, found.element.text, found.producer) == ("A:below", "1", publisher.epr)
            before = len(changes)
            await subscription.unsubscribe()
            async with patience():
                while publisher.wanted("A"):
                    await publisher._changed.wait()
                    publisher._changed.clear()
            assert len(changes) > before
            await client.subscribe("A", receiver)
            await asyncio.wait_for(publisher.wait_until_wanted("A"), PATIENCE)


async def test_a_publisher_that_starts_again_registers_again_and_is_wanted_again(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK) as node:
        async with Client(node.url) as client, Receiver() as receiver:
            await client.subscribe("A", receiver)
            async with DemandPublisher() as publisher:
                registration = await client.register_publisher("A", publisher=publisher, demand=True)
                await asyncio.wait_for(publisher.wait_until_wanted("A"), PATIENCE)
                port = publisher._port
            async with DemandPublisher(port=port) as again:
                repeated = await client.register_publisher("A", publisher=again, demand=True)
                assert repeated.epr == registration.epr
                await asyncio.wait_for(again.wait_until_wanted("A"), PATIENCE)
                assert await again.notify("A", "<n>1</n>") == 1
                assert (await receiver.get(timeout=PATIENCE)).element.text == "1"


def until(time: str) -> str:
    return subscribe("http://c/", "A", more=f"<w:InitialTerminationTime>{time}</w:InitialTerminationTime>")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (until("2001-01-01T00:00:00Z"), "UnacceptableInitialTerminationTimeFault"),
        (until("P9999999Y"), "UnacceptableInitialTerminationTimeFault"),
        (
            subscribe("http://c/", filters=f'<w:MessageContent Dialect="{XPATH}">a</w:MessageContent>'),
            "InvalidFilterFault",
        ),
    ],
)
async def test_what_a_publisher_on_demand_cannot_do_is_the_standards_fault(body: str, fault: str) -> None:
    async with DemandPublisher() as publisher:
        assert (await call(publisher.epr.address, body)).fault == fault
        assert not publisher.wanted("A")


async def test_a_publisher_on_demand_survives_what_nobody_should_send(monkeypatch: Any) -> None:
    monkeypatch.setattr(demand_module, "MOST_SUBSCRIBERS", 2)
    async with DemandPublisher(path="/deep/er") as publisher:
        url = publisher.epr.address
        assert url.endswith("/deep/er")
        for path, body in (("", b"garbage"), ("", b""), ("/none", b"<x/>")):
            assert (await send(url + path, body)).status in (400, 500)
        assert (await call(url, notify("A", "<n/>"))).status == 500
        assert (await call(f"{url}/none", "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
        same = [await call(url, subscribe("http://c/1", "A")) for _ in range(2)]
        assert len({reply.text("w:SubscriptionReference/a:Address") for reply in same}) == 1
        assert (await call(url, subscribe("http://c/2", "A"))).status == 200
        assert (await call(url, subscribe("http://c/3", "A"))).fault == "SubscribeCreationFailedFault"
        address = same[0].text("w:SubscriptionReference/a:Address")
        assert (await call(address, subscribe("http://c/", "A"))).status == 500
        with pytest.raises(ConnectionFailed, match="cannot listen"):
            await DemandPublisher(port=publisher._port).open()
