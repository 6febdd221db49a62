"""Sensors on demand: which of them are wanted, and who is told when one is to start or to stop.

A sensor on demand is wanted while a user names its topic `sensors:KIND:ID` or one above it, or while a
running virtual sensor has it as a member. When the last user has gone it is wanted for `linger` seconds
longer. A subscription without a topic filter is no user. After a start of the node, nobody is told to stop
before `linger` seconds are over, since users may be about to come back.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Iterable

from hpwsn.broker.registrations.interest_follower import InterestFollower
from hpwsn.listeners import Listeners
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn_client.wsn.soap.names import DIALECT_CONCRETE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression


class _Demanded:
    """A sensor on demand; `idle` is its latest wait for users that may come back."""

    __slots__ = ("idle", "topic", "wanted")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.wanted = False
        self.idle: object = None


class WantedSensors:
    """Follows the registry, the users of topics, and the running virtual sensors."""

    def __init__(self, linger: float, simple_subtree: bool) -> None:
        self._linger = linger
        self._sensors: dict[str, _Demanded] = {}
        self._members: dict[str, frozenset[str]] = {}
        self._needed: Counter[str] = Counter()
        self._idle: deque[tuple[float, str, object]] = deque()
        """Sensors without a user, in the order in which they stop; entries of an earlier wait are skipped."""
        self._timer: asyncio.TimerHandle | None = None
        self.users: InterestFollower[str] = InterestFollower(
            self._update, simple_subtree, without_topics=False
        )
        """Who uses the topics of sensors on demand; the builder connects it."""
        self.changed: Listeners[str, bool | None] = Listeners("wanted sensors")
        """Called when a sensor is to start or to stop; None when it is no longer on demand."""

    def begin(self, sensors: Iterable[PhysicalSensor]) -> None:
        """Follow the sensors that are known at the start; call it once users are known too."""
        for sensor in sensors:
            self.sensor_changed(sensor.id, sensor)
        self.users.begin()

    def sensor_changed(self, id_: str, sensor: PhysicalSensor | None) -> None:
        """Called when a sensor was registered or removed."""
        before = self._sensors.get(id_)
        topic = sensor.topic if sensor is not None and sensor.on_demand else None
        if before is not None and before.topic != topic:
            del self._sensors[id_]
            self.users.discard(id_)
        if topic is not None and (before is None or before.topic != topic):
            after = self._sensors[id_] = _Demanded(topic)
            self.users.add(id_, TopicExpression.of(topic, DIALECT_CONCRETE))
            if self._is_used(id_):
                self._update(id_)
            else:
                self._wait(id_, after)
        if before is not None and topic is None:
            self.changed(id_, None)

    def use(self, user: str, sensors: Collection[str]) -> None:
        """A virtual sensor has these members now: none once it is idle."""
        before, after = self._members.pop(user, frozenset()), frozenset(sensors)
        if after:
            self._members[user] = after
        for id_ in after - before:
            self._needed[id_] += 1
            self._update(id_)
        for id_ in before - after:
            self._needed[id_] -= 1
            if not self._needed[id_]:
                del self._needed[id_]
            self._update(id_)

    def wanted(self, id_: str) -> bool | None:
        """Whether a sensor on demand is wanted; None for any other."""
        demanded = self._sensors.get(id_)
        return None if demanded is None else demanded.wanted

    @property
    def counts(self) -> dict[str, int]:
        """How many sensors are on demand, and how many of them are wanted."""
        return {
            "on_demand": len(self._sensors),
            "wanted": sum(1 for each in self._sensors.values() if each.wanted),
        }

    async def close(self) -> None:
        """Tell nobody anything more."""
        if self._timer is not None:
            self._timer.cancel()
        await self.users.close()

    def _is_used(self, id_: str) -> bool:
        return self._needed[id_] > 0 or self.users.wanted(id_)

    def _update(self, id_: str) -> None:
        demanded = self._sensors.get(id_)
        if demanded is None:
            return
        if not self._is_used(id_):
            if demanded.wanted and demanded.idle is None:
                self._wait(id_, demanded)
            return
        demanded.idle = None
        if not demanded.wanted:
            demanded.wanted = True
            self.changed(id_, True)

    def _wait(self, id_: str, demanded: _Demanded) -> None:
        loop = asyncio.get_running_loop()
        demanded.idle = object()
        self._idle.append((loop.time() + self._linger, id_, demanded.idle))
        if self._timer is None:
            self._timer = loop.call_later(self._linger, self._stop_idle)

    def _stop_idle(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._idle:
            at, id_, wait = self._idle[0]
            if at > loop.time():
                self._timer = loop.call_at(at, self._stop_idle)
                return
            self._idle.popleft()
            demanded = self._sensors.get(id_)
            if demanded is not None and demanded.idle is wait:
                demanded.idle = None
                demanded.wanted = False
                self.changed(id_, False)
