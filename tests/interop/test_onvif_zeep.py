"""onvif-zeep-async as a foreign client: its camera, its pull point manager and its notification manager.

They find the events by way of the device service, as with any camera, sign with a UsernameToken, and renew by
their own loops. Nothing of theirs is changed; a loop is only asked to turn now and not in a minute.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import zeep
from onvif import ONVIFCamera
from onvif.managers import NotificationManager, PullPointManager
from onvif.util import is_auth_error
from zeep.exceptions import Fault

from hpwsn_client import Client
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually

TNS1 = "http://www.onvif.org/ver10/topics"
TT = "http://www.onvif.org/ver10/schema"
MOTION = f"{{{TNS1}}}RuleEngine/CellMotionDetector/Motion"
SPAN = dt.timedelta(seconds=100)


def event(value: str) -> str:
    """A message as a camera sends it."""
    return (
        f'<tt:Message xmlns:tt="{TT}" UtcTime="2030-01-01T00:00:00Z" PropertyOperation="Changed">'
        '<tt:Source><tt:SimpleItem Name="VideoSourceToken" Value="1"/></tt:Source>'
        f'<tt:Data><tt:SimpleItem Name="IsMotion" Value="{value}"/></tt:Data></tt:Message>'
    )


class Camera:
    """The client's camera at a node, and what its managers tell of lost subscriptions."""

    def __init__(self, node: NodeProcess, password: str = "secret", encrypt: bool = True) -> None:
        self.node = node
        self.lost: list[str] = []
        self.onvif = ONVIFCamera(
            "127.0.0.1", node.port, "admin", password, encrypt=encrypt, no_cache=True, adjust_time=True
        )

    async def __aenter__(self) -> Camera:
        await self.onvif.update_xaddrs()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.onvif.close()

    async def pull_point(self) -> PullPointManager:
        return await self.onvif.create_pullpoint_manager(SPAN, lambda: self.lost.append("pull"))

    async def notifications(self, address: str) -> NotificationManager:
        return await self.onvif.create_notification_manager(address, SPAN, lambda: self.lost.append("push"))

    async def publish(self, *values: str, topic: str = MOTION) -> None:
        async with Client(self.node.url) as client:
            for value in values:
                await client.notify(topic, event(value))


@pytest.fixture
async def camera(shared_node: NodeProcess) -> AsyncIterator[Camera]:
    """A camera that any password opens."""
    async with Camera(shared_node) as opened:
        yield opened


async def pulled(manager: PullPointManager, seconds: float = 10) -> list[str]:
    answer = await manager.get_service().PullMessages(
        {"Timeout": dt.timedelta(seconds=seconds), "MessageLimit": 100}
    )
    return values(answer)


def values(answer: Any) -> list[str]:
    """What the messages say, as an integration reads it."""
    return [
        item.Value
        for message in answer.NotificationMessage
        for item in message.Message._value_1.Data.SimpleItem
    ]


async def renewed(manager: Any) -> None:
    """Have the manager's own loop renew now, and wait until it has planned the next time."""
    manager.resume()
    before = manager._cancel_subscription_renew

    async def planned() -> bool:
        return manager._cancel_subscription_renew not in (None, before)

    await eventually(planned)


async def test_the_camera_finds_the_events(camera: Camera) -> None:
    base = camera.node.base
    assert camera.onvif.xaddrs["http://www.onvif.org/ver10/events/wsdl"] == f"{base}/onvif/events"
    capabilities = await camera.onvif.get_capabilities()
    assert capabilities["Events"]["WSPullPointSupport"] is True
    assert abs(camera.onvif.dt_diff) < dt.timedelta(minutes=1)
    device = await camera.onvif.create_devicemgmt_service()
    assert (await device.GetDeviceInformation()).Manufacturer == "HPwsn"


async def test_the_pull_point_manager_pulls_renews_and_ends(camera: Camera) -> None:
    manager = await camera.pull_point()
    await camera.publish("true", "false")
    assert await pulled(manager) == ["true", "false"]
    waiting = asyncio.create_task(pulled(manager, 60))
    await camera.publish("late")
    assert await waiting == ["late"]
    await renewed(manager)
    await camera.publish("renewed")
    assert await pulled(manager) == ["renewed"]
    await manager.set_synchronization_point()
    assert await pulled(manager) == ["renewed"]
    assert not camera.onvif._has_broken_relative_timestamps
    assert not camera.lost
    service = manager.get_service()
    await manager.shutdown()
    with pytest.raises(Fault, match="does not exist here"):
        await service.PullMessages({"Timeout": dt.timedelta(), "MessageLimit": 1})


async def test_the_pull_point_manager_starts_anew_when_its_subscription_is_gone(camera: Camera) -> None:
    manager = await camera.pull_point()
    await manager._subscription.Unsubscribe()
    await renewed(manager)
    assert camera.lost == ["pull"]
    await camera.publish("again")
    assert await pulled(manager) == ["again"]
    await manager.shutdown()


async def test_the_pull_point_manager_goes_on_after_the_node_was_killed(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    async with Camera(node) as camera:
        manager = await camera.pull_point()
        await camera.publish("before")
        node.kill()
        with node:
            await camera.publish("after")
            assert await pulled(manager) == ["before", "after"]
            await renewed(manager)
            assert not camera.lost
            await manager.shutdown()


async def test_the_notification_manager_is_pushed_to_renews_and_ends(camera: Camera) -> None:
    async with Consumer() as consumer:
        manager = await camera.notifications(consumer.url)
        await camera.publish("true")
        await consumer.wait(lambda c: len(c.requests) == 1)
        assert values(manager.process(consumer.requests[0])) == ["true"]
        await renewed(manager)
        await manager.set_synchronization_point()
        await consumer.wait(lambda c: len(c.requests) >= 2)
        assert b'Value="true"' in consumer.requests[1]
        await camera.publish("false")
        await consumer.wait(lambda c: b'Value="false"' in c.requests[-1])
        assert values(manager.process(consumer.requests[-1])) == ["false"]
        (topic,) = {m.Topic._value_1.partition(":")[2] for m in _messages(manager, consumer)}
        assert topic == "RuleEngine/CellMotionDetector/Motion"
        assert not camera.lost
        await manager.shutdown()
        seen = len(consumer.requests)
        await camera.publish("unheard")
        pull = await camera.pull_point()
        await pull.set_synchronization_point()
        assert await pulled(pull) == ["unheard"]
        assert len(consumer.requests) == seen
        await pull.shutdown()


def _messages(manager: NotificationManager, consumer: Consumer) -> list[Any]:
    return [m for body in consumer.requests for m in manager.process(body).NotificationMessage]


async def test_the_event_service_answers_all_that_its_wsdl_has(camera: Camera) -> None:
    await camera.publish("true")
    events = await camera.onvif.create_events_service()
    properties = await events.GetEventProperties()
    assert "http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet" in properties.TopicExpressionDialect
    assert f"{{{TNS1}}}RuleEngine" in {element.tag for element in properties.TopicSet._value_1}
    assert (await events.GetServiceCapabilities()).MaxPullPoints > 0
    manager = await camera.pull_point()
    with pytest.raises(Fault, match="Seek is not supported"):
        await manager.get_service().Seek({"UtcTime": dt.datetime(2030, 1, 1, tzinfo=dt.UTC)})
    with pytest.raises(Fault, match=r"onvif\.max_timeout"):
        await manager.get_service().PullMessages({"Timeout": dt.timedelta(days=1), "MessageLimit": 1})
    await manager.shutdown()


@pytest.mark.parametrize("encrypt", [True, False])
async def test_the_right_password_opens_and_another_does_not(tmp_path: Path, encrypt: bool) -> None:
    users = tmp_path / "users"
    users.write_text("admin:secret\n")
    with NodeProcess(tmp_path / "data", "--set", f"onvif.users_file={users}") as node:
        async with Camera(node, encrypt=encrypt) as camera:
            manager = await camera.pull_point()
            await camera.publish("true")
            assert await pulled(manager) == ["true"]
            await renewed(manager)
            assert not camera.lost
            await manager.shutdown()
        async with Camera(node, "guess", encrypt) as stranger:
            with pytest.raises(Fault) as refused:
                await stranger.pull_point()
            assert is_auth_error(refused.value)


def test_plain_zeep_loads_the_contract_and_uses_it(shared_node: NodeProcess) -> None:
    client = zeep.Client(f"{shared_node.base}/onvif/events?wsdl")
    events = client.bind("EventService", "EventPort")
    answer = events.CreatePullPointSubscription(InitialTerminationTime="PT60S")
    address = answer.SubscriptionReference.Address
    binding = "{http://www.onvif.org/ver10/events/wsdl}"
    pull = client.create_service(f"{binding}PullPointSubscriptionBinding", address._value_1)
    assert pull.PullMessages(Timeout=dt.timedelta(), MessageLimit=1).NotificationMessage == []
    manager = client.create_service(f"{binding}PausableSubscriptionManagerBinding", address._value_1)
    manager.PauseSubscription()
    manager.Unsubscribe()
    with pytest.raises(Fault, match="does not exist here"):
        pull.PullMessages(Timeout=dt.timedelta(), MessageLimit=1)
