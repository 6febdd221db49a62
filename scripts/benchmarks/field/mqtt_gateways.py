"""A gateway that publishes readings at an MQTT broker with QoS 1, in a process of its own.

    python -m benchmarks.field.mqtt_gateways < JSON

The JSON line has the `port` of the broker, the `schedule`, and whether a message is an array (`arrays`). The
readings of a post are published together: as an array on the topic of its gateway, or each as a message on
the topic of its sensor. So that this process takes little of the machine, it writes MQTT 3.1.1 itself. At
most UNCONFIRMED messages wait for the broker. What is not sent GRACE seconds after the end is not sent at
all. The answer is a JSON line with what was sent.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import cast

import uvloop

from benchmarks.field.latencies import Latencies
from benchmarks.field.schedule import QUANTITY, Schedule, array_of, sensor_id, time_text

UNCONFIRMED = 20_000
GRACE = 2.0
PUBLISH, PUBACK, CONNACK = 0x32, 0x40, 0x20
_CONNECT = b"\x00\x04MQTT\x04\x02\x00\x3c"
"""The variable header: MQTT 3.1.1, a clean session, 60 s between two packets."""


class Publisher(asyncio.Protocol):
    """The connection to the broker."""

    def __init__(self) -> None:
        self._tail = b""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.room = asyncio.Event()
        self.unconfirmed = 0
        self._number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the broker."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(packet(0x10, _CONNECT + _text("bench-field")))

    def data_received(self, data: bytes) -> None:
        """Count what the broker has taken."""
        data = self._tail + data
        whole = len(data) - len(data) % 4
        # Only CONNACK and PUBACK come, which have four bytes each.
        for at in range(0, whole, 4):
            if data[at] == CONNACK:
                if data[at + 3]:
                    self.ready.set_exception(ConnectionError(f"the broker refused it: {data[at + 3]}"))
                else:
                    self.ready.set_result(None)
            else:
                assert data[at] == PUBACK, data[at : at + 4]
                self.unconfirmed -= 1
        self._tail = data[whole:]
        self.room.set()

    def publish(self, messages: list[tuple[bytes, bytes]]) -> None:
        """Publish messages, given as encoded topics and payloads."""
        packets = []
        for topic, payload in messages:
            self._number = self._number % 65_535 + 1
            packets.append(packet(PUBLISH, topic + struct.pack(">H", self._number) + payload))
        self.unconfirmed += len(packets)
        self._transport.write(b"".join(packets))


def packet(kind: int, content: bytes) -> bytes:
    """A control packet of MQTT."""
    length, size = bytearray(), len(content)
    while True:
        size, digit = size >> 7, size & 0x7F
        length.append(digit | 0x80 * bool(size))
        if not size:
            return bytes((kind,)) + bytes(length) + content


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


Messages = Callable[[int], list[tuple[bytes, bytes]]]
"""The messages of a post, by its number."""


def single_messages(schedule: Schedule) -> Messages:
    """A message for each reading."""
    topics = [_text(f"sensors/{sensor_id(number)}/readings") for number in range(schedule.sensors)]

    def messages(number: int) -> list[tuple[bytes, bytes]]:
        first, told = schedule.first_sensor(number), time_text(schedule.time(number))
        payloads = (f'{{"time":"{told}","{QUANTITY}":{text}}}'.encode() for text in schedule.texts(number))
        return list(zip(topics[first : first + schedule.together], payloads, strict=True))

    return messages


def arrays(schedule: Schedule) -> Messages:
    """A message for each post."""
    array = array_of(schedule)
    return lambda number: [(_text(f"gateways/{number % schedule.gateways}/readings"), array(number))]


async def publish_all(schedule: Schedule, messages: Messages, publisher: Publisher) -> dict[str, object]:
    """Publish everything, and wait until the broker has it."""
    samples: list[tuple[float, float]] = []
    sent = 0
    end = schedule.due(schedule.posts) + GRACE
    for number in range(schedule.posts):
        due = schedule.due(number)
        if (pause := due - time.time()) > 0:
            await asyncio.sleep(pause)
        while publisher.unconfirmed > UNCONFIRMED and time.time() < end:
            publisher.room.clear()
            await publisher.room.wait()
        if time.time() > end:
            break
        publisher.publish(messages(number))
        samples.append((due, 1000 * (time.time() - due)))
        sent += 1
    while publisher.unconfirmed and time.time() < end + 60:
        publisher.room.clear()
        await publisher.room.wait()
    readings = sent * schedule.together
    return {
        "sent": sent,
        "readings": readings,
        "accepted": 0 if publisher.unconfirmed else readings,
        "answered": False,
        "failure": "",
        "latencies": asdict(Latencies.of(samples)),
    }


async def _main() -> None:
    given = json.loads(sys.stdin.readline())
    loop = asyncio.get_running_loop()
    _, publisher = await loop.create_connection(Publisher, "127.0.0.1", given["port"])
    await publisher.ready
    schedule = Schedule(**given["schedule"])
    messages = arrays(schedule) if given["arrays"] else single_messages(schedule)
    print(json.dumps(await publish_all(schedule, messages, publisher)), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
