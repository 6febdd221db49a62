"""Which running virtual sensors a physical sensor may belong to, found without looking at all of them.

Each virtual sensor is filed under one thing that all its members have: a tag, else the kind, else nothing. So
the registration of a sensor costs a look at those that share a tag or the kind with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn.sensors.physical.selection import Selection


class _Shelf(NamedTuple):
    """What all members have: a tag or a kind; both are None for a virtual sensor of all sensors."""

    tag: str | None = None
    kind: str | None = None


_ALL = _Shelf()


class SelectionIndex:
    """The names of virtual sensors by what they select."""

    def __init__(self) -> None:
        self._shelves: dict[_Shelf, dict[str, Selection]] = {}
        self._shelf_of: dict[str, _Shelf] = {}

    def add(self, name: str, selection: Selection) -> None:
        """File a virtual sensor, in place of an earlier one of this name."""
        self.discard(name)
        shelf = _Shelf(tag=selection.tags[0]) if selection.tags else _Shelf(kind=selection.kind)
        self._shelves.setdefault(shelf, {})[name] = selection
        self._shelf_of[name] = shelf

    def discard(self, name: str) -> None:
        """Forget a virtual sensor, if it is filed."""
        shelf = self._shelf_of.pop(name, None)
        if shelf is None:
            return
        filed = self._shelves[shelf]
        del filed[name]
        if not filed:
            del self._shelves[shelf]

    def selecting(self, sensor: PhysicalSensor) -> Iterator[str]:
        """The names of those that select a sensor, each once."""
        for shelf in (_ALL, _Shelf(kind=sensor.kind), *(_Shelf(tag=tag) for tag in sensor.tags)):
            for name, selection in self._shelves.get(shelf, {}).items():
                if selection.selects(sensor):
                    yield name
