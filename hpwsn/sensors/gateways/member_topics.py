"""The topics of physical sensors that running virtual sensors need.

A virtual sensor takes readings from the commits and not by a subscription. So a publisher on demand of
`sensors:KIND:ID`, such as a gateway that is registered by WS-BrokeredNotification, would never learn of it.
Each topic here counts like one that a reader waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from hpwsn.listeners import Listeners
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn_client.wsn.topics.topic_expressions import Topic


class MemberTopics:
    """Follows the members of virtual sensors; iterating gives each topic that is needed once."""

    def __init__(self, sensor_of: Callable[[str], PhysicalSensor | None]) -> None:
        self._sensor_of = sensor_of
        self._members: dict[str, frozenset[str]] = {}
        self._needed: Counter[str] = Counter()
        self._topics: dict[str, Topic] = {}
        self.changed: Listeners[Topic, bool] = Listeners("topics of members")
        """Called when the first virtual sensor needs a topic, and when the last one no longer does."""

    def __iter__(self) -> Iterator[Topic]:
        return iter(tuple(self._topics.values()))

    def use(self, user: str, sensors: Collection[str]) -> None:
        """A virtual sensor has these members now: none once it is idle."""
        before, after = self._members.pop(user, frozenset()), frozenset(sensors)
        if after:
            self._members[user] = after
        self._needed.update(after - before)
        for id_ in before - after:
            self._needed[id_] -= 1
            if not self._needed[id_]:
                del self._needed[id_]
        for id_ in before ^ after:
            self._follow(id_, self._sensor_of(id_))

    def sensor_changed(self, id_: str, sensor: PhysicalSensor | None) -> None:
        """Called when a sensor was registered, maybe with another kind, or removed."""
        self._follow(id_, sensor)

    def _follow(self, id_: str, sensor: PhysicalSensor | None) -> None:
        topic = sensor.topic if sensor is not None and id_ in self._needed else None
        before = self._topics.get(id_)
        if topic == before:
            return
        if topic is not None:
            self._topics[id_] = topic
            self.changed(topic, True)
        else:
            del self._topics[id_]
        if before is not None:
            self.changed(before, False)
