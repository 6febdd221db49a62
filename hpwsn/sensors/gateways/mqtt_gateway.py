"""The MQTT gateway: messages of a broker are readings, and commands start and stop sensors on demand.

A message is acknowledged after its readings are stored or rejected, so a crash loses none. One that the
broker sends again is taken once while this process lives; after a crash the times of its readings tell that
they are duplicates. All messages that wait are stored together. A message that is not readable is a rejected
reading `malformed`, and is acknowledged. While the node cannot store, messages stay at the broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from hpwsn.background import in_thread
from hpwsn.broker.lifetimes.retry import RetryPolicy
from hpwsn.errors import BackboneUnavailable, JournalUnavailable
from hpwsn.sensors.gateways.mqtt_address import MqttAddress
from hpwsn.sensors.gateways.mqtt_commands import MqttCommands
from hpwsn.sensors.gateways.mqtt_link import IN_FLIGHT, MqttLink, MqttListener, MqttMessage
from hpwsn.sensors.gateways.mqtt_readings import MessageReadings, read_message, unreadable
from hpwsn.sensors.gateways.mqtt_session import MqttSession
from hpwsn.sensors.gateways.mqtt_topics import TopicTemplate
from hpwsn.sensors.readings.formats import RawReading
from hpwsn_client.wsn.soap.faults import Busy, SoapFault

log = logging.getLogger(__name__)

BATCH = 1000
"""Most readings that are stored together, unless one message has more or fewer are allowed at once."""
REMEMBERED = 2 * IN_FLIGHT
"""Finished messages that are recognized when the broker sends them again."""
CLOSING = 5.0
"""Seconds that a store may take while the node stops."""
PAUSES = RetryPolicy(first=0.2, maximum=10.0)
TEMPORARY = (JournalUnavailable, BackboneUnavailable, Busy)

Take = Callable[[Sequence[RawReading]], Awaitable[object]]
"""Stores readings, or rejects them, until it returns."""


class Link(Protocol):
    """The part of MqttLink that the gateway needs."""

    @property
    def in_flight(self) -> int: ...

    def start(self) -> None: ...

    def close(self) -> None: ...

    def finish(self, message: MqttMessage) -> None: ...

    def publish(self, topic: str, payload: bytes) -> int | None: ...


class MqttGateway:
    """Takes the readings of one broker, and tells its sensors whether they are wanted."""

    def __init__(
        self,
        address: MqttAddress,
        session: MqttSession,
        templates: Sequence[TopicTemplate],
        commands: TopicTemplate | None,
        take: Take,
        *,
        readings_limit: int,
        link: Callable[[MqttAddress, MqttSession, tuple[str, ...], MqttListener], Link] = MqttLink,
    ) -> None:
        """`take` gets at most `readings_limit` readings; `link` makes the connection."""
        self._address = address
        self._templates = tuple(templates)
        self._take = take
        self._readings_limit = readings_limit
        filters = tuple(dict.fromkeys(template.filter for template in templates))
        self._link = link(address, session, filters, _Bridge(self))
        self.commands = None if commands is None else MqttCommands(commands, self._link.publish)
        self._waiting: deque[MqttMessage] = deque()
        self._parsed: deque[MessageReadings] = deque()
        """The first of the waiting messages, if it did not fit into the batch before."""
        self._open: dict[int, MqttMessage] = {}
        """Messages that are not finished, by their numbers."""
        self._repeats: dict[MqttMessage, MqttMessage] = {}
        """For an open message, the same as the broker sent it again."""
        self._finished: dict[int, int] = {}
        """Hashes of the finished messages, by their numbers, the oldest first."""
        self._arrived = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self.problem: str | None = "not connected yet"
        """Why there is no connection; None if there is one."""
        self.messages = 0
        """Messages that are finished."""
        self.unreadable = 0
        """Those of them that were not readable."""

    def start(self) -> None:
        """Connect in the background, and take what comes."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._link.start()

    async def close(self) -> None:
        """Finish what is being stored, and disconnect; the session stays at the broker."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSING)
            self._task.cancel()
            await asyncio.wait([self._task])
        await in_thread(self._link.close)

    def warnings(self) -> list[str]:
        """What an operator must see to."""
        found = []
        if self.problem is not None:
            found.append(f"no connection to the MQTT broker {self._address.words}: {self.problem}")
        if self.commands is not None and self.commands.refused is not None:
            topic = self.commands.template.text
            found.append(f"the MQTT broker refuses commands on {topic}: {self.commands.refused}")
        return found

    def figures(self) -> dict[str, Any]:
        """The figures of /status."""
        return {
            "connected": self.problem is None,
            "messages": self.messages,
            "unreadable": self.unreadable,
            "waiting": self._link.in_flight,
            "commands_waiting": 0 if self.commands is None else self.commands.unconfirmed,
        }

    # Events of the link, in the event loop

    def up(self, session: bool) -> None:
        """Connected; without a session the broker counts its messages anew."""
        if not session:
            self._open.clear()
            self._finished.clear()
        self.problem = None
        kept = "with its session" if session else "with a new session"
        log.info("connected to the MQTT broker %s, %s", self._address.words, kept)
        if self.commands is not None:
            self.commands.up(session)

    def down(self, reason: str) -> None:
        """The connection has ended, or could not be made."""
        if reason != self.problem:
            log.warning("no connection to the MQTT broker %s: %s; retrying", self._address.words, reason)
        self.problem = reason

    def received(self, messages: Sequence[MqttMessage]) -> None:
        """Messages have come."""
        for message in messages:
            if message.again and not message.acknowledged and self._is_known(message):
                continue
            if not message.acknowledged:
                self._open[message.number] = message
            self._waiting.append(message)
        self._arrived.set()

    def published(self, number: int, refused: str | None) -> None:
        """The broker has taken a command, or refused it."""
        if self.commands is None:
            return
        before = self.commands.refused
        self.commands.published(number, refused)
        if refused is not None and before is None:
            log.warning("the MQTT broker refuses commands on %s: %s", self.commands.template.text, refused)

    def _is_known(self, message: MqttMessage) -> bool:
        """Whether a message that was sent again is being stored, or is stored and only to be acknowledged."""
        if self._finished.get(message.number) == _hash(message):
            self._link.finish(message)
            return True
        before = self._open.get(message.number)
        if before is None or _hash(before) != _hash(message):
            return False
        self._repeats[before] = self._open[message.number] = message
        return True

    # Storing

    async def _run(self) -> None:
        while not self._closing:
            self._arrived.clear()
            while (self._parsed or self._waiting) and not self._closing:
                await self._store(await self._next_batch())
            if not self._closing:
                await self._arrived.wait()

    async def _next_batch(self) -> list[MessageReadings]:
        batch: list[MessageReadings] = []
        size, most = 0, min(BATCH, self._readings_limit)
        while self._parsed or self._waiting:
            if not self._parsed:
                self._parsed.append(await self._read(self._waiting.popleft()))
            size += len(self._parsed[0].readings)
            if batch and size > most:
                break
            batch.append(self._parsed.popleft())
        return batch

    async def _read(self, message: MqttMessage) -> MessageReadings:
        # A command of this node, on a topic that it also reads, has no readings.
        if self.commands is not None and self.commands.template.matches(message.topic):
            return MessageReadings(message, [], True)
        found = await read_message(message, self._templates, self._readings_limit)
        self.unreadable += not found.readable
        return found

    async def _store(self, batch: Sequence[MessageReadings]) -> None:
        """Store the readings of messages however long that takes, then finish the messages."""
        readings = [raw for each in batch for raw in each.readings]
        attempt = 0
        while readings:
            try:
                await self._take(readings)
                break
            except TEMPORARY as error:
                if not attempt:
                    log.warning("readings over MQTT are not stored, and wait: %s", error)
            except Exception as error:
                if len(batch) > 1:
                    for each in batch:
                        await self._store([each])
                    return
                problem = f"the node did not take it: {error}"
                if not isinstance(error, SoapFault):
                    log.exception("readings over MQTT on %s could not be taken", batch[0].message.topic)
                    problem = "the node failed to take it; its log has the error"
                # One that cannot even be rejected is tried again.
                readings = [unreadable(batch[0].message, None, problem)]
            await asyncio.sleep(PAUSES.pause(attempt, random.random()))
            attempt += 1
        for each in batch:
            self._finish(each.message)

    def _finish(self, message: MqttMessage) -> None:
        self.messages += 1
        if not message.acknowledged and self._open.pop(message.number, None) is not None:
            self._finished.pop(message.number, None)
            self._finished[message.number] = _hash(message)
            if len(self._finished) > REMEMBERED:
                del self._finished[next(iter(self._finished))]
        found: MqttMessage | None = message
        while found is not None:
            self._link.finish(found)
            found = self._repeats.pop(found, None)


class _Bridge:
    """A link listener that runs its callbacks in the event loop; many messages need one callback."""

    def __init__(self, gateway: MqttGateway) -> None:
        self._gateway = gateway
        self._loop = asyncio.get_running_loop()
        self._arriving: deque[MqttMessage] = deque()
        self._called = False

    def up(self, session: bool) -> None:
        self._call(self._gateway.up, session)

    def down(self, reason: str) -> None:
        self._call(self._gateway.down, reason)

    def message(self, message: MqttMessage) -> None:
        self._arriving.append(message)
        if not self._called:
            self._called = True
            self._call(self._hand_over)

    def published(self, number: int, refused: str | None) -> None:
        self._call(self._gateway.published, number, refused)

    def _hand_over(self) -> None:
        self._called = False  # before the loop, so that a later message schedules another call
        batch = []
        while self._arriving:
            batch.append(self._arriving.popleft())
        if batch:
            self._gateway.received(batch)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)


def _hash(message: MqttMessage) -> int:
    return hash((message.topic, message.payload))
