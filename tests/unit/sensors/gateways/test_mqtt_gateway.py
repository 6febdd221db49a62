"""Messages of an MQTT broker become readings: stored once, then acknowledged, in every disorder of a link."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.sensors.gateways.mqtt_address import MqttAddress
from hpwsn.sensors.gateways.mqtt_gateway import BATCH, MqttGateway
from hpwsn.sensors.gateways.mqtt_link import MqttListener, MqttMessage
from hpwsn.sensors.gateways.mqtt_session import MqttSession
from hpwsn.sensors.gateways.mqtt_topics import parse_command_template, parse_templates
from hpwsn.sensors.intake.rejected_readings import LONGEST
from hpwsn.sensors.readings.formats import RawReading, Unparsed
from tests.patience import holds

URL = "mqtt://127.0.0.1:1883"
TOPICS = "sensors/{sensor}/readings, plain"
COMMANDS = "sensors/{sensor}/wanted"


class MemoryLink:
    """A link without a broker: the test says what arrives, and sees what is acknowledged."""

    def __init__(
        self, address: MqttAddress, session: MqttSession, filters: tuple[str, ...], listener: MqttListener
    ) -> None:
        self.filters = filters
        self.listener = listener
        self.in_flight = 0
        self.acknowledged: list[tuple[int, int]] = []
        self.published: list[tuple[str, bytes]] = []
        self.closed = False

    def start(self) -> None:
        self.listener.up(False)

    def close(self) -> None:
        self.closed = True

    def finish(self, message: MqttMessage) -> None:
        self.in_flight -= 1
        self.acknowledged.append((message.connection, message.number))

    def publish(self, topic: str, payload: bytes) -> int | None:
        self.published.append((topic, payload))
        return len(self.published)


class Gateway:
    """A gateway with what it stored; `store` decides what becomes of a batch."""

    def __init__(self, data: Path, readings_limit: int) -> None:
        self.stored: list[RawReading] = []
        self.batches: list[int] = []
        self.store: Callable[[Sequence[RawReading]], None] = lambda _: None
        self.room = asyncio.Event()
        self.room.set()
        made: list[MemoryLink] = []

        def link(*arguments: Any) -> MemoryLink:
            made.append(MemoryLink(*arguments))
            return made[0]

        self.gateway = MqttGateway(
            MqttAddress(URL),
            MqttSession(data, "n1", URL),
            parse_templates(TOPICS),
            parse_command_template(COMMANDS),
            self._take,
            readings_limit=readings_limit,
            link=link,
        )
        self.link = made[0]
        self._numbers = itertools.count(1)

    async def _take(self, readings: Sequence[RawReading]) -> None:
        await self.room.wait()
        self.store(readings)
        self.stored += readings
        self.batches.append(len(readings))

    def arrive(
        self,
        payload: Any,
        topic: str = "sensors/s1/readings",
        *,
        connection: int = 1,
        number: int | None = None,
        again: bool = False,
        acknowledged: bool = False,
    ) -> MqttMessage:
        number = next(self._numbers) if number is None else number
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        message = MqttMessage(connection, number, topic, data, again, acknowledged)
        self.link.in_flight += 1
        self.link.listener.message(message)
        return message

    async def is_idle(self) -> None:
        await holds(lambda: self.link.in_flight == 0)


@pytest.fixture
def readings_limit() -> int:
    return 10_000


@pytest.fixture
async def running(tmp_path: Path, readings_limit: int) -> AsyncIterator[Gateway]:
    made = Gateway(tmp_path, readings_limit)
    made.gateway.start()
    yield made
    made.room.set()
    await made.gateway.close()
    assert made.link.closed


async def test_readings_get_the_sensor_of_their_topic_and_are_acknowledged_once_stored(
    running: Gateway,
) -> None:
    assert running.link.filters == ("sensors/+/readings", "plain")
    running.room.clear()
    running.arrive({"t": 1})
    running.arrive([{"t": 2, "sensor": "s1"}, {"t": 3}])
    running.arrive(b'{"t": 4}\n{"t": 5}\n', "sensors/s2/readings")
    running.arrive({"sensor": "s3", "t": 6}, "plain")
    await holds(lambda: running.link.in_flight == 4)
    assert running.link.acknowledged == []
    running.room.set()
    await running.is_idle()
    assert running.stored == [
        {"sensor": "s1", "t": 1},
        {"sensor": "s1", "t": 2},
        {"sensor": "s1", "t": 3},
        {"sensor": "s2", "t": 4},
        {"sensor": "s2", "t": 5},
        {"sensor": "s3", "t": 6},
    ]
    assert running.link.acknowledged == [(1, number) for number in (1, 2, 3, 4)]
    assert running.gateway.figures()["messages"] == 4


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"\xff", "is not UTF-8"),
        (b"", "this is not JSON"),
        (b"[]", "there is no reading"),
        (b"[", "this is not JSON"),
        ({"t": 1, "sensor": "other"}, "the reading is of the sensor 'other', and the topic of 's1'"),
        (b"[" + b"1," * 40_000 + b"1]", "more than the 10000 readings"),
    ],
)
async def test_what_is_not_readable_is_kept_with_its_topic_and_acknowledged(
    running: Gateway, payload: Any, problem: str
) -> None:
    running.arrive(payload)
    await running.is_idle()
    (kept,) = running.stored
    assert isinstance(kept, Unparsed)
    assert kept.problem.startswith("sensors/s1/readings: ")
    assert problem in kept.problem
    assert len(kept.text) <= LONGEST + 1
    assert kept.sensor == "s1"


async def test_readings_of_many_messages_are_stored_together_within_the_batch(running: Gateway) -> None:
    running.room.clear()
    running.arrive({"t": 0})
    await asyncio.sleep(0)
    for number in range(BATCH + 10):
        running.arrive({"t": number})
    running.arrive([{"t": number} for number in range(2 * BATCH)])
    running.arrive({"t": -1})
    running.room.set()
    await running.is_idle()
    assert sum(running.batches) == 3 * BATCH + 12
    assert max(running.batches) == 2 * BATCH
    assert len(running.batches) <= 6
    assert running.stored[-1] == {"sensor": "s1", "t": -1}


@pytest.mark.parametrize("readings_limit", [7])
async def test_a_batch_has_no_more_readings_than_are_allowed_at_once(running: Gateway) -> None:
    running.room.clear()
    for size in (3, 3, 3, 7, 1):
        running.arrive([{"t": number} for number in range(size)])
    running.arrive([{"t": number} for number in range(8)])
    running.room.set()
    await running.is_idle()
    assert max(running.batches) <= 7
    assert sum(running.batches) == 18
    assert [type(each) for each in running.stored].count(Unparsed) == 1
    assert running.gateway.unreadable == 1


async def test_messages_wait_while_readings_cannot_be_stored(running: Gateway) -> None:
    failures = iter([JournalUnavailable("the disk is full"), JournalUnavailable("the disk is full")])

    def store(_: Sequence[RawReading]) -> None:
        for error in failures:
            raise error

    running.store = store
    running.arrive({"t": 1})
    await running.is_idle()
    assert running.stored == [{"sensor": "s1", "t": 1}]
    assert running.link.acknowledged == [(1, 1)]


async def test_one_message_that_the_node_fails_to_take_does_not_stop_the_others(running: Gateway) -> None:
    def store(readings: Sequence[RawReading]) -> None:
        if {"sensor": "s1", "t": 2} in readings:
            raise RuntimeError("an error of the node")

    running.store = store
    running.room.clear()
    for number in (1, 2, 3):
        running.arrive({"t": number})
    running.room.set()
    await running.is_idle()
    good = [raw for raw in running.stored if isinstance(raw, dict)]
    assert sorted(raw["t"] for raw in good) == [1, 3]
    (failed,) = (raw for raw in running.stored if isinstance(raw, Unparsed))
    assert "its log has the error" in failed.problem
    assert sorted(running.link.acknowledged) == [(1, 1), (1, 2), (1, 3)]


async def test_a_message_that_is_sent_again_while_it_is_stored_is_stored_once(running: Gateway) -> None:
    running.room.clear()
    running.arrive({"t": 1}, number=5)
    await holds(lambda: running.link.in_flight == 1)
    running.link.listener.down("the connection was lost")
    running.link.listener.up(True)
    running.arrive({"t": 1}, connection=2, number=5, again=True)
    running.link.listener.up(True)
    running.arrive({"t": 1}, connection=3, number=5, again=True)
    running.room.set()
    await running.is_idle()
    assert len(running.stored) == 1
    assert running.link.acknowledged == [(1, 5), (2, 5), (3, 5)]


async def test_a_stored_message_that_is_sent_again_is_only_acknowledged(running: Gateway) -> None:
    running.arrive({"t": 1}, number=5)
    await running.is_idle()
    running.link.listener.up(True)
    running.arrive({"t": 1}, connection=2, number=5, again=True)
    running.arrive({"t": 2}, connection=2, number=6, again=True)
    await running.is_idle()
    assert [raw["t"] for raw in running.stored] == [1, 2]
    assert running.link.acknowledged == [(1, 5), (2, 5), (2, 6)]


async def test_a_number_that_is_used_again_is_another_message(running: Gateway) -> None:
    running.arrive({"t": 1}, number=5)
    await running.is_idle()
    running.arrive({"t": 1}, number=5)
    await running.is_idle()
    running.arrive({"t": 2}, number=5, again=True)
    await running.is_idle()
    assert [raw["t"] for raw in running.stored] == [1, 1, 2]


async def test_a_new_session_has_no_message_of_the_one_before(running: Gateway) -> None:
    running.arrive({"t": 1}, number=5)
    await running.is_idle()
    running.link.listener.up(False)
    running.arrive({"t": 1}, connection=2, number=5, again=True)
    await running.is_idle()
    assert len(running.stored) == 2


async def test_messages_of_qos_0_are_taken_as_they_come(running: Gateway) -> None:
    for _ in range(2):
        running.arrive({"t": 1}, number=0, acknowledged=True)
    await running.is_idle()
    assert len(running.stored) == 2


async def test_the_gateways_own_commands_are_no_readings(running: Gateway) -> None:
    running.arrive(b"true", "sensors/s1/wanted")
    await running.is_idle()
    assert (running.stored, running.link.acknowledged) == ([], [(1, 1)])


async def test_the_state_of_the_connection_and_of_the_commands_is_shown(running: Gateway) -> None:
    await holds(lambda: running.gateway.problem is None)
    commands = running.gateway.commands
    assert commands is not None
    commands.tell("s1", True)
    assert running.link.published == [("sensors/s1/wanted", b"true")]
    assert running.gateway.figures()["commands_waiting"] == 1
    running.link.listener.published(1, "Not authorized")
    await holds(lambda: commands.refused is not None)
    assert running.gateway.warnings() == [
        "the MQTT broker refuses commands on sensors/{sensor}/wanted: Not authorized"
    ]
    running.link.listener.down("the connection was lost")
    await holds(lambda: running.gateway.problem is not None)
    assert running.gateway.warnings()[0] == (
        "no connection to the MQTT broker 127.0.0.1:1883: the connection was lost"
    )
    assert running.gateway.figures()["connected"] is False
