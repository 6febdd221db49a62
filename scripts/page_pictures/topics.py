"""What the plant of the pictures publishes: a topic file, and for each busy topic its rate and its events."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TREE = """\
[topics.ALL]
description = "Everything"
[topics.ALL.ALARM]
description = "Needs somebody at once"
routing = "tcp"
[topics.ALL.ALARM.FIRE]
description = "Fire detectors and sprinklers"
routing = "tcp"
[topics.ALL.ALARM.SMOKE]
description = "Smoke detectors, one message per change"
routing = "tcp"
[topics.ALL.ALARM.WATER]
description = "Leak detectors"
routing = "tcp"
[topics.ALL.STATE]
description = "How things are, every few seconds"
routing = "udp"
[topics.ALL.STATE.DOOR]
description = "Open or closed"
routing = "udp"
[topics.ALL.STATE.HVAC]
description = "Heating, ventilation, cooling"
routing = "udp"
[topics.ALL.STATE.HVAC.hall-1]
[topics.ALL.STATE.HVAC.hall-2]
[topics.ALL.STATE.HVAC.hall-3]
[topics.ALL.STATE.HVAC.dock]
[topics.ALL.STATE.LIGHT]
routing = "udp"
[topics.ALL.METER]
description = "Electricity and water meters, in kWh and m³"
routing = "udp"
[topics.ALL.METER.power]
[topics.ALL.METER.water]
[topics.traffic]
description = "Road traffic"
[topics.traffic.anpr]
description = "Number plates: camera, plate, speed"
[topics.traffic.flow]
description = "Vehicles a minute at each camera"
[topics.traffic.busiest]
[[namespaces]]
uri = "urn:example:weather"
[namespaces.topics.Storm]
[namespaces.topics.Storm.Hail]
"""
HALLS = ("hall 1", "hall 2", "hall 3", "dock")
Event = dict[str, Any]


def _smoke(chance: random.Random) -> Event:
    level = round(chance.betavariate(3, 3), 2)
    state = "alarm" if level > 0.75 else "warning" if level > 0.6 else "normal"
    return {"place": chance.choice(HALLS), "level": level, "state": state}


def _leak(chance: random.Random) -> Event:
    return {
        "place": chance.choice(HALLS),
        "litres": chance.randint(1, 40),
        "valve": f"V{chance.randint(1, 9)}",
    }


def _climate(chance: random.Random) -> Event:
    return {
        "celsius": round(chance.gauss(21, 0.8), 1),
        "humidity": chance.randint(35, 60),
        "fan": chance.choice(("off", "low", "high")),
    }


def _door(chance: random.Random) -> Event:
    return {"door": f"D{chance.randint(1, 12)}", "open": chance.random() < 0.3}


def _light(chance: random.Random) -> Event:
    return {"place": chance.choice(HALLS), "lux": chance.randint(120, 800)}


def _power(chance: random.Random) -> Event:
    return {"meter": f"P{chance.randint(10, 40)}", "kwh": round(chance.uniform(0.1, 9.9), 2)}


def _water(chance: random.Random) -> Event:
    return {"meter": f"W{chance.randint(1, 9)}", "m3": round(chance.uniform(0.01, 0.5), 3)}


def _plate(chance: random.Random) -> Event:
    plate = f"京B{chance.randint(0, 99):02d}C{chance.randint(0, 99):02d}"
    return {"camera": f"c{chance.randint(1, 8)}", "plate": plate, "speed": chance.randint(28, 96)}


def _flow(chance: random.Random) -> Event:
    return {"camera": f"c{chance.randint(1, 8)}", "flow": round(chance.gauss(24, 6), 1)}


@dataclass(frozen=True, slots=True)
class Source:
    """Who publishes on a topic: at which node, how many events a second, and what they are."""

    node: str
    rate: float
    event: Callable[[random.Random], Event]


SOURCES: Mapping[str, Source] = {
    "ALL:ALARM:SMOKE": Source("hall-1", 7, _smoke),
    "ALL:ALARM:WATER": Source("dock-1", 0.4, _leak),
    "ALL:STATE:DOOR": Source("hall-1", 6, _door),
    "ALL:STATE:LIGHT": Source("hall-2", 12, _light),
    "ALL:STATE:HVAC:hall-1": Source("hall-1", 40, _climate),
    "ALL:STATE:HVAC:hall-2": Source("hall-2", 30, _climate),
    "ALL:STATE:HVAC:dock": Source("dock-1", 15, _climate),
    "ALL:METER:power": Source("hall-1", 25, _power),
    "ALL:METER:water": Source("hall-2", 5, _water),
    "traffic:anpr": Source("dock-1", 20, _plate),
    "traffic:flow": Source("dock-1", 0.5, _flow),
}
