"""Sensors on demand, from outside: they are told to start and to stop as users come and go."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.harness import environment
from tests.mosquitto import Field, Mosquitto, field
from tests.patience import eventually, holds, patience, until
from tests.producer import Producer, register
from tests.raw_soap import FULL, SIMPLE, call, subscribe
from tests.sensor_node import SensorNode, ago, sensor

TOPIC = "sensors:weather:s1"
QUICK = ("registrations.linger=0", "delivery.retry_first=0.02", "subscriptions.grace=0")
NORTH = {"kind": "weather", "quantity": "t", "combine": "mean", "every": "1 s"}


class DemandNode(SensorNode):
    """A node with the sensor s1 on demand, that stops soon what has no user."""

    def __init__(self, data: Path, **settings: object) -> None:
        given = [f"--set={each}" for each in QUICK]
        super().__init__(data, *given, sensors={"linger": 0.05, **settings})

    def is_wanted(self) -> bool:
        return bool(self.get("/sensors/s1")["wanted"])

    def virtual(self) -> None:
        """Define a virtual sensor over s1."""
        assert self.ask("PUT", "/virtual/north", NORTH).status in (200, 201)


@pytest.fixture
def node(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[DemandNode]:
    """One that gives its commands over Mosquitto."""
    with DemandNode(tmp_path / "data", mqtt_url=mosquitto.url) as running:
        running.register(sensor("s1", on_demand=True), sensor("always"))
        yield running


@pytest.fixture
def listening(mosquitto: Mosquitto) -> Iterator[Field]:
    """A client that hears all commands."""
    with field(mosquitto) as client:
        client.listen("sensors/+/wanted")
        yield client


def told(client: Field, *commands: str) -> None:
    """Wait until s1 was told exactly this, and nobody else anything."""
    expected = [("sensors/s1/wanted", each) for each in commands]
    until(lambda: len(client.commands) >= len(expected), lambda: str(client.commands))
    assert client.commands == expected


Using = Callable[[SensorNode], AsyncIterator[None]]


def subscription(topic: str, dialect: str) -> Using:
    async def using(node: SensorNode) -> AsyncIterator[None]:
        point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        reply = await call(node.url, subscribe(point, topic, dialect=dialect))
        assert reply.status == 200, reply.body
        yield
        await call(reply.text("w:SubscriptionReference/a:Address"), "<w:Unsubscribe/>")

    return using


def stream(topic: str) -> Using:
    async def using(node: SensorNode) -> AsyncIterator[None]:
        accept = {"Accept": "text/event-stream"}
        url = f"{node.base}/topics/{topic}/events"
        async with aiohttp.ClientSession() as session, session.get(url, headers=accept) as response:
            assert response.status == 200
            yield

    return using


def webhook(topic: str) -> Using:
    async def using(node: SensorNode) -> AsyncIterator[None]:
        hook = {"callback": "http://127.0.0.1:9/", "topic": topic}
        async with aiohttp.ClientSession(node.base) as session:
            async with session.post("/subscriptions", json=hook) as response:
                assert response.status == 201, await response.text()
                id_ = (await response.json())["id"]
            yield
            await session.delete(f"/subscriptions/{id_}")

    return using


USERS = {
    "the topic": subscription(TOPIC, SIMPLE),
    "the kind": subscription("sensors/weather//.", FULL),
    "all sensors": subscription("sensors//.", FULL),
    "a stream of the topic": stream(TOPIC),
    "a stream of all sensors": stream("sensors"),
    "a webhook": webhook(TOPIC),
    "a stream of a virtual sensor": stream("virtual:north"),
    "all virtual sensors": subscription("virtual//.", FULL),
    "a webhook of a virtual sensor": webhook("virtual:north"),
}


async def wanted(node: DemandNode, expected: bool) -> None:
    async def asked() -> bool:
        return await asyncio.to_thread(node.is_wanted) is expected

    await eventually(asked)


@pytest.mark.parametrize("user", USERS)
async def test_commands_follow_the_users(
    node: DemandNode, listening: Field, user: str, tmp_path: Path
) -> None:
    node.virtual()
    told(listening, "false")
    assert node.get("/sensors/s1")["wanted"] is False
    assert node.get("/sensors/always")["wanted"] is None
    using = asynccontextmanager(USERS[user])
    async with using(node):
        told(listening, "false", "true")
        async with using(node):
            await wanted(node, True)
        await wanted(node, True)
    told(listening, "false", "true", "false")
    figures = node.figures
    assert (figures["on_demand"], figures["wanted"]) == (1, 0)


async def test_who_subscribes_to_something_else_wants_nothing(node: DemandNode, listening: Field) -> None:
    told(listening, "false")
    for topic in ("sensors:weather:always", "hall", "sensors:quake"):
        async with asynccontextmanager(stream(topic))(node):
            await wanted(node, False)
    # A subscription to everything is no user of a sensor.
    point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    assert (await call(node.url, subscribe(point))).status == 200
    async with asynccontextmanager(stream(TOPIC))(node):
        await holds(lambda: len(listening.commands) == 2)
    told(listening, "false", "true")


@pytest.mark.parametrize("end", ["terminate", "kill"])
async def test_commands_are_right_after_a_restart(
    node: DemandNode, mosquitto: Mosquitto, listening: Field, end: str
) -> None:
    point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
    await call(node.url, subscribe(point, TOPIC))
    until(lambda: listening.commands[-1:] == [("sensors/s1/wanted", "true")])
    getattr(node, end)()
    node.start()
    # The subscription is still there, and nobody is told to stop.
    until(lambda: node.figures["mqtt"]["connected"] and not node.figures["mqtt"]["commands_waiting"])
    assert node.is_wanted()
    with field(mosquitto) as late:
        late.listen("sensors/+/wanted")
        told(late, "true")
    (found,) = node.get("/subscriptions")["items"]
    getattr(node, end)()
    node.start()
    assert node.ask("DELETE", f"/subscriptions/{found['id']}").status == 204
    until(lambda: listening.commands[-1:] == [("sensors/s1/wanted", "false")])
    getattr(node, end)()
    node.start()
    until(lambda: node.figures["mqtt"]["connected"])
    with field(mosquitto) as late:
        late.listen("sensors/+/wanted")
        until(lambda: late.commands)
        assert set(late.commands) == {("sensors/s1/wanted", "false")}


async def test_users_that_come_while_the_broker_is_away_are_told_once_it_is_back(
    node: DemandNode, mosquitto: Mosquitto
) -> None:
    with field(mosquitto) as client:
        client.listen("sensors/+/wanted")
        told(client, "false")
    mosquitto.stop()
    async with asynccontextmanager(stream(TOPIC))(node):
        await wanted(node, True)
        mosquitto.start()
        with field(mosquitto) as client:
            client.listen("sensors/+/wanted")
            until(lambda: client.commands[-1:] == [("sensors/s1/wanted", "true")], node.log)


def test_a_sensor_that_is_no_longer_on_demand_has_no_command(
    node: DemandNode, mosquitto: Mosquitto, listening: Field
) -> None:
    told(listening, "false")
    node.register(sensor("s1"))
    until(lambda: listening.commands[-1:] == [("sensors/s1/wanted", "")])
    node.register(sensor("s1", on_demand=True))
    until(lambda: listening.commands[-1:] == [("sensors/s1/wanted", "false")])
    assert node.ask("DELETE", "/sensors/s1").status == 204
    until(lambda: listening.commands[-1:] == [("sensors/s1/wanted", "")])
    until(lambda: node.figures["mqtt"]["commands_waiting"] == 0)
    with field(mosquitto) as late:
        late.listen("sensors/+/wanted")
        late.publish("sensors/last/wanted", b"end")
        until(lambda: late.commands)
        assert late.commands == [("sensors/last/wanted", "end")]


def test_without_a_topic_for_commands_nobody_is_told(tmp_path: Path, mosquitto: Mosquitto) -> None:
    with DemandNode(tmp_path / "data", mqtt_url=mosquitto.url, mqtt_commands="") as node:
        node.register(sensor("s1", on_demand=True))
        with field(mosquitto) as client:
            client.listen("#")
            client.publish("sensors/s1/readings", {"t": 1})
            until(lambda: node.figures["readings"] == 1)
            assert [topic for topic, _ in client.commands] == ["sensors/s1/readings"]


# Gateways that are registered with Demand


@pytest.mark.parametrize(
    ("topic", "dialect"), [(TOPIC, SIMPLE), ("sensors/weather//.", FULL), ("sensors//.", FULL)]
)
@pytest.mark.parametrize("user", ["a stream of the topic", "a stream of a virtual sensor"])
async def test_a_soap_gateway_is_paused_and_resumed(
    tmp_path: Path, topic: str, dialect: str, user: str
) -> None:
    using = asynccontextmanager(USERS[user])
    with DemandNode(tmp_path / "data") as node:
        node.register(sensor("s1"))
        node.virtual()
        async with Producer() as gateway:
            reply = await call(node.url, register(gateway.url, topic, demand=True, dialect=dialect))
            assert reply.status == 200, reply.body
            async with using(node):
                await gateway.wait(lambda g: g.active() == [topic])
            await gateway.wait(lambda g: g.operations == ["Subscribe", "PauseSubscription"])
            async with using(node):
                await gateway.wait(lambda g: g.active() == [topic])
            await gateway.wait(lambda g: g.operations[2:] == ["ResumeSubscription", "PauseSubscription"])
            node.kill()
            node.start()
            async with using(node):
                await gateway.wait(lambda g: g.active() == [topic])
            await gateway.wait(lambda g: g.active() == [])
            assert gateway.operations.count("Subscribe") == 1


async def test_a_gateway_of_a_sensor_that_becomes_a_member_is_resumed(tmp_path: Path) -> None:
    with DemandNode(tmp_path / "data") as node:
        node.virtual()
        async with Producer() as gateway:
            reply = await call(node.url, register(gateway.url, TOPIC, demand=True))
            assert reply.status == 200, reply.body
            async with asynccontextmanager(stream("virtual:north"))(node):
                node.register(sensor("s1", "quake"))
                node.register(sensor("s1"))
                await gateway.wait(lambda g: g.active() == [TOPIC])
                assert node.ask("DELETE", "/sensors/s1").status == 204
                await gateway.wait(lambda g: g.active() == [])


# A command as a gateway


async def test_a_feed_on_demand_runs_its_command_only_for_users(tmp_path: Path) -> None:
    station = tmp_path / "station.py"
    station.write_text(
        "import datetime, itertools, json, time\n"
        "for n in itertools.count():\n"
        "    now = datetime.datetime.now(datetime.UTC).isoformat(timespec='microseconds')\n"
        "    print(json.dumps({'time': now, 't': 1}), flush=True)\n"
        "    time.sleep(0.05)\n"
    )
    with DemandNode(tmp_path / "data") as node:
        node.register(sensor("s1", on_demand=True))
        command = (
            *(sys.executable, "-m", "hpwsn", "sensors", "feed", "--url", node.url),
            *("--command", f"{sys.executable} {station}", "--sensor", "s1", "--on-demand"),
        )
        piped = asyncio.subprocess.PIPE
        feed = await asyncio.create_subprocess_exec(*command, env=environment(), stdout=piped, stderr=piped)
        assert feed.stderr is not None
        try:
            async with patience():
                assert b"stands still" in await feed.stderr.readline()
                assert node.figures["readings"] == 0
                async with asynccontextmanager(stream(TOPIC))(node):
                    assert b"the source runs" in await feed.stderr.readline()
                    await holds(lambda: node.figures["readings"] > 2)
                assert b"stands still" in await feed.stderr.readline()
                before = node.figures["readings"]
                async with asynccontextmanager(stream(TOPIC))(node):
                    assert b"the source runs" in await feed.stderr.readline()
                    await holds(lambda: node.figures["readings"] > before)
                feed.terminate()
                out, _ = await feed.communicate()
                assert b"accepted" in out
        finally:
            if feed.returncode is None:
                feed.kill()
                await feed.wait()
        assert node.figures["rejected"]["duplicate"] == 0
        assert node.events(TOPIC)[0]["time"] >= ago(600)[:19]
