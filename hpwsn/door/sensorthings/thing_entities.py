"""Things, Datastreams and Observations as SensorThings has them, made from sensors and their readings.

A sensor is a Thing with its id. Each of its quantities is a Datastream `SENSOR:QUANTITY`, and each value of
one an Observation `SENSOR:QUANTITY:PLACE`, whose place is that of the reading in the history.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from hpwsn.sensors.history.history_query import Place
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn.sensors.readings.reading_times import time_text

MEASUREMENT = "http://www.opengis.net/def/observationType/OGC-OM/2.0/OM_Measurement"
PROPERTIES = ("kind", "tags", "owner", "gateway", "interval")


class ThingEntities:
    """Encodes entities with links below one address."""

    def __init__(self, base: str) -> None:
        self._base = base

    def link(self, kind: str, name: str, rest: str = "") -> str:
        """The address of an entity, or of what belongs to it."""
        return f"{self._base}/{kind}('{quote(name)}')" + (f"/{rest}" if rest else "")

    def thing(self, sensor: PhysicalSensor) -> dict[str, Any]:
        """A sensor."""
        known = sensor.document()
        return {
            "@iot.id": sensor.id,
            "@iot.selfLink": self.link("Things", sensor.id),
            "name": sensor.id,
            "description": f"a sensor of the kind {sensor.kind}",
            "properties": {name: known[name] for name in PROPERTIES if name in known},
            "Datastreams@iot.navigationLink": self.link("Things", sensor.id, "Datastreams"),
        }

    def datastream(self, sensor: PhysicalSensor, quantity: str) -> dict[str, Any]:
        """A quantity of a sensor."""
        name, unit = f"{sensor.id}:{quantity}", sensor.quantities[quantity].unit
        found = {
            "@iot.id": name,
            "@iot.selfLink": self.link("Datastreams", name),
            "name": name,
            "description": f"{quantity} of {sensor.id}",
            "observationType": MEASUREMENT,
            "unitOfMeasurement": {"name": unit, "symbol": unit, "definition": None},
            "Thing@iot.navigationLink": self.link("Datastreams", name, "Thing"),
            "Observations@iot.navigationLink": self.link("Datastreams", name, "Observations"),
        }
        if sensor.place is not None:
            point = [sensor.place.longitude, sensor.place.latitude]
            found["observedArea"] = {"type": "Point", "coordinates": point}
        return found

    def observation(self, datastream: str, place: Place, result: float) -> dict[str, Any]:
        """A value of a quantity, from the reading at a place."""
        name = f"{datastream}:{place.cursor()}"
        return {
            "@iot.id": name,
            "@iot.selfLink": self.link("Observations", name),
            **measured(place.time, result),
            "Datastream@iot.navigationLink": self.link("Observations", name, "Datastream"),
        }


def measured(time: int, result: float) -> dict[str, Any]:
    """The properties of an Observation by which it can be filtered; times are those of readings."""
    text = time_text(time)
    return {"phenomenonTime": text, "resultTime": text, "result": result}
