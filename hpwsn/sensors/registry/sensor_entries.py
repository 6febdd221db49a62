"""Physical sensors as entries of LDAP: parsing, encoding, and a mirror that turns entries into sensors.

The schema is ldap_schema/hpwsn-sensors.schema. Pure. A quantity is one value `name; unit; min; max`, whose
last parts may be missing. An entry that is not valid is skipped with the reason until it is corrected, and a
sensor whose entry becomes so stays as it was. Of two entries for one sensor, the one that came first counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, Quantity, SensorRefused, parse_sensor
from hpwsn.topics.directory.entry_directory import Attributes, EntryKind
from hpwsn.topics.ldap.entries.dn import escape_value

CLASS = "hpwsnSensor"
_ID = "hpwsnSensorId"
_QUANTITY = "hpwsnSensorQuantity"
_TAG = "hpwsnSensorTag"
_LONGITUDE, _LATITUDE = "hpwsnSensorLongitude", "hpwsnSensorLatitude"
_INTERVAL = "hpwsnSensorInterval"
_ON_DEMAND = "hpwsnSensorOnDemand"
_TEXTS = {"kind": "hpwsnSensorKind", "owner": "hpwsnSensorOwner", "gateway": "hpwsnSensorGateway"}
ATTRIBUTES = (_ID, _QUANTITY, _TAG, _LONGITUDE, _LATITUDE, _INTERVAL, _ON_DEMAND, *_TEXTS.values())
_BOOLEANS = {"TRUE": True, "FALSE": False}


class SensorEntry(NamedTuple):
    """One entry: a sensor, or the fault because of which it is none; `name` is the id of the sensor."""

    id: str
    dn: str
    name: str | None
    sensor: PhysicalSensor | None = None
    fault: str | None = None


class SensorChange(NamedTuple):
    """New or changed sensors, and the ids of removed ones."""

    changed: tuple[PhysicalSensor, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed)


def parse_entry(id_: str, dn: str, attributes: Attributes) -> SensorEntry:
    """Parse an entry as the server sends it."""
    named = next((each for name, each in attributes.items() if name.lower() == _ID.lower()), ())
    name = named[0].decode("utf-8", "replace") if named else None
    try:
        return SensorEntry(id_, dn, name, parse_sensor(_document(attributes)))
    except ValueError as error:  # SensorRefused and UnicodeDecodeError are such
        return SensorEntry(id_, dn, name, fault=" ".join(str(error).split()))


SENSORS = EntryKind(CLASS, ATTRIBUTES, parse_entry)


def _document(attributes: Attributes) -> dict[str, Any]:
    """The JSON form of a sensor."""
    values = {name.lower(): [value.decode() for value in each] for name, each in attributes.items()}

    def first(name: str) -> str | None:
        return next(iter(values.get(name.lower(), ())), None)

    found: dict[str, Any] = {"id": first(_ID)}
    found |= {field: text for field, name in _TEXTS.items() if (text := first(name)) is not None}
    found["quantities"] = dict(map(_parse_quantity, values.get(_QUANTITY.lower(), ())))
    found["tags"] = sorted(values.get(_TAG.lower(), ()))
    place = _LONGITUDE, _LATITUDE
    if any(first(name) is not None for name in place):
        longitude, latitude = (_number(name, first(name)) for name in place)
        found["place"] = {"longitude": longitude, "latitude": latitude}
    if (interval := first(_INTERVAL)) is not None:
        found["interval"] = _number(_INTERVAL, interval)
    if (on_demand := first(_ON_DEMAND)) is not None:
        found["on_demand"] = _BOOLEANS.get(on_demand, on_demand)
    return found


def _parse_quantity(text: str) -> tuple[str, dict[str, Any]]:
    name, *rest = (part.strip() for part in text.split(";"))
    if not 1 <= len(rest) <= 3:
        raise SensorRefused(f"{_QUANTITY} is {text!r}; write name; unit; min; max, or name; unit")
    description: dict[str, Any] = {"unit": rest[0]}
    for end, value in zip(("min", "max"), rest[1:], strict=False):
        if value:
            description[end] = _number(f"{end} of {name}", value)
    return name, description


def _number(name: str, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise SensorRefused(f"{name} is {text!r}; write a number such as 12.5") from None


def dn_of(sensor_id: str, base: str) -> str:
    """The DN of a new entry."""
    return f"{_ID}={escape_value(sensor_id)},{base}"


def attributes_of(sensor: PhysicalSensor) -> Mapping[str, list[str]]:
    """All attributes of a sensor's entry; those without a value are to be removed from an existing one."""
    place = sensor.place
    return {
        "objectClass": [CLASS],
        _ID: [sensor.id],
        _QUANTITY: [_encode_quantity(name, each) for name, each in sensor.quantities.items()],
        _TAG: list(sensor.tags),
        _LONGITUDE: [] if place is None else [repr(place.longitude)],
        _LATITUDE: [] if place is None else [repr(place.latitude)],
        _INTERVAL: [] if sensor.interval is None else [repr(sensor.interval)],
        _ON_DEMAND: ["TRUE"] if sensor.on_demand else [],
        **{name: [text] if (text := getattr(sensor, field)) else [] for field, name in _TEXTS.items()},
    }


def _encode_quantity(name: str, quantity: Quantity) -> str:
    parts = [
        name,
        quantity.unit,
        *("" if end is None else repr(end) for end in (quantity.low, quantity.high)),
    ]
    while len(parts) > 2 and not parts[-1]:
        parts.pop()
    return "; ".join(parts).rstrip()


class SensorMirror:
    """The entries of a directory, and their sensors."""

    def __init__(self) -> None:
        self._entries: dict[str, SensorEntry] = {}
        self._of_sensor: dict[str, dict[str, None]] = {}
        """The entries of each sensor, the oldest first."""
        self._told: dict[str, PhysicalSensor] = {}
        self._touched: dict[str, None] = {}

    def put(self, entry: SensorEntry) -> None:
        """Add an entry, or update a changed or renamed one."""
        before = self._entries.get(entry.id)
        if before == entry:
            return
        if before is not None and before.name != entry.name:
            self._drop(before)
        self._entries[entry.id] = entry
        if entry.name is not None:
            self._of_sensor.setdefault(entry.name, {})[entry.id] = None
            self._touched[entry.name] = None

    def discard(self, ids: Iterable[str]) -> None:
        """Remove deleted entries."""
        for id_ in ids:
            entry = self._entries.pop(id_, None)
            if entry is not None:
                self._drop(entry)

    def keep(self, ids: Iterable[str]) -> None:
        """Remove all entries except these."""
        self.discard(self._entries.keys() - set(ids))

    def changes(self) -> SensorChange:
        """The change of sensors since the last call."""
        changed, removed = [], []
        for name in self._touched:
            sensor = self._sensor(name)
            if name not in self._of_sensor:
                if self._told.pop(name, None) is not None:
                    removed.append(name)
            elif sensor is not None and self._told.get(name) != sensor:
                self._told[name] = sensor
                changed.append(sensor)
        self._touched.clear()
        return SensorChange(tuple(changed), tuple(removed))

    def skipped(self) -> tuple[str, ...]:
        """The entries that are not sensors, each with the reason."""
        wrong = [f"{each.dn}: {each.fault}" for each in self._entries.values() if each.fault is not None]
        for name, several in self._of_sensor.items():
            first, *others = several
            for id_ in others:
                owner = self._entries[first].dn
                wrong.append(f"{self._entries[id_].dn}: {name} already is {owner}; remove one of them")
        return tuple(wrong)

    def dn_of(self, sensor_id: str) -> str | None:
        """The DN of a sensor's entry; None if it has none."""
        # The thread that follows the directory may change both meanwhile.
        for id_ in tuple(self._of_sensor.get(sensor_id, ())):
            if (entry := self._entries.get(id_)) is not None:
                return entry.dn
        return None

    def names(self) -> frozenset[str]:
        """The ids of all sensors with an entry, valid or not."""
        return frozenset(self._of_sensor)

    def _sensor(self, name: str) -> PhysicalSensor | None:
        for id_ in self._of_sensor.get(name, ()):
            return self._entries[id_].sensor
        return None

    def _drop(self, entry: SensorEntry) -> None:
        if entry.name is not None:
            several = self._of_sensor[entry.name]
            del several[entry.id]
            if not several:
                del self._of_sensor[entry.name]
            self._touched[entry.name] = None
