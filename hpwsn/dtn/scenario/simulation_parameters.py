"""The parameters of a simulated run: those of the CET paper with its defaults, and the readings of its text.

A reading is a choice where the paper's text allows several. docs/dtn.md has the effect of each one. Fields
carry their description and their limits, from which the command line makes its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

PATH, CONNECTION, ONCE = "path", "connection", "once"
MATCHING, ALL = "matching", "all"
CELL, NEIGHBOURS = "cell", "neighbours"
SECOND, ENTRY = "second", "entry"
SENSOR, MOBILE = "sensor", "mobile"
ON, OFF = "on", "off"

MOST_CELLS: Final = 100_000_000
"""Limit of events multiplied by nodes, and of seconds multiplied by subscribers: a run's largest tables."""


class WrongParameter(ValueError):
    """A parameter is out of its limits; `name` is the field."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} {reason}")
        self.name = name
        self.reason = reason


def _number(default: float, least: float, most: float, about: str) -> Any:
    return field(default=default, metadata={"about": about, "least": least, "most": most})


def _choice(default: str, choices: tuple[str, ...], about: str) -> Any:
    return field(default=default, metadata={"about": about, "choices": choices})


@dataclass(frozen=True, slots=True)
class Parameters:
    """Everything that shapes a run, apart from its seed and protocol; WrongParameter if out of limits."""

    area: float = _number(200.0, 1, 1e6, "side of the square, m")
    grid: int = _number(15, 1, 500, "cells along a side")
    sensors: int = _number(100, 1, 5000, "sensors")
    mobiles: int = _number(10, 1, 500, "mobile subscribers")
    energy: float = _number(10.0, 1e-9, 1e9, "energy of a sensor, J")
    event_bits: int = _number(250, 1, 10**9, "size of an event, bits")
    bandwidth: float = _number(10_000.0, 1, 1e12, "bandwidth, bits/s; limits the events per second too")
    rate: int = _number(20, 1, 10**6, "events per second that a node can send, and a subscriber take")
    electronics: float = _number(50e-9, 0, 1, "energy of the electronics, J/bit")
    amplifier: float = _number(10e-12, 0, 1, "energy of the amplifier in free space, J/bit/m2")
    multipath: float = _number(0.0013e-12, 0, 1, "energy of the amplifier beyond free space, J/bit/m4")
    speed_min: float = _number(1.0, 0, 1e4, "lowest speed of a subscriber, m/s; the paper's table says 0")
    speed_max: float = _number(5.0, 1e-3, 1e4, "highest speed, m/s")
    pause: float = _number(120.0, 0, 1e6, "longest pause, s")
    queue: int = _number(200, 1, 100_000, "events that a sensor can store")
    alpha: int = _number(20, 1, 10**6, "transmissions after which an event is dropped")
    beta: float = _number(2000.0, 1, 1e9, "survival time after which an event is dropped, s")
    theta: float = _number(5.0, 0, 1e9, "energy of a head under which another one is elected, J")
    gamma: int = _number(4, 0, 10**6, "size in cells of communities whose events are given back")
    interval: float = _number(100.0, 1e-3, 1e9, "mean time between two events of a sensor, s")
    duration: int = _number(7200, 2, 10**7, "length of a run, s")
    quiet: float = _number(200.0, 0, 1e7, "time at the end without new events, s")
    attribute_max: int = _number(10, 0, 10**6, "largest value of the attributes of events and subscriptions")

    travel: str = _choice(MATCHING, (MATCHING, ALL), "CET: which events go to a subscriber")
    resend: str = _choice(PATH, (PATH, CONNECTION, ONCE), "CET: an owner sends an event once for each")
    giving_back: str = _choice(ON, (ON, OFF), "CET: subscribers give events back")
    give_home: str = _choice(ON, (ON, OFF), "CET: events are also given back to their own community")
    give_loners: str = _choice(ON, (ON, OFF), "CET: events of loners are given back")
    levels: str = _choice("drop", ("drop", "rebuild"), "CET: what becomes of levels that lose a contact")

    dg_contact: str = _choice(CELL, (CELL, NEIGHBOURS), "DG: cells in which a sensor meets a subscriber")
    dg_repeat: str = _choice(SECOND, (SECOND, ENTRY, ONCE), "DG: a sensor sends its newest events each")
    dg_budget: str = _choice(SENSOR, (SENSOR, MOBILE), "DG: the rate limits each")
    dg_expiry: str = _choice(OFF, (ON, OFF), "DG: sensors drop events by beta, as with CET")

    spray: int = _number(8, 1, 10_000, "Spray-and-Wait: copies of an event")
    hello: int = _number(10, 1, 10**6, "Epidemic, Spray-and-Wait, PRoPHET: time between two exchanges, s")
    meeting: float = _number(0.75, 0, 1, "PRoPHET: predictability after a meeting")
    transitivity: float = _number(0.25, 0, 1, "PRoPHET: weight of transitivity")
    ageing: float = _number(0.98, 0, 1, "PRoPHET: factor of ageing")
    ageing_unit: int = _number(30, 1, 10**6, "PRoPHET: time unit of ageing, s")

    def __post_init__(self) -> None:
        for one in fields(self):
            check(one.name, getattr(self, one.name), one.metadata)
        if self.speed_min > self.speed_max:
            raise WrongParameter("speed_min", f"is {self.speed_min:g}, above speed_max {self.speed_max:g}")
        if self.quiet >= self.duration:
            raise WrongParameter("quiet", f"is {self.quiet:g} s, the whole duration of {self.duration} s")
        nodes = self.sensors + self.mobiles
        cells = max(
            self.sensors * self.duration / self.interval * nodes,
            self.duration * self.mobiles,
            self.sensors * self.queue * self.mobiles,
        )
        if cells > MOST_CELLS:
            raise WrongParameter(
                "duration",
                f"is too long for so many events and nodes: {cells:.3g} table cells, at most "
                f"{MOST_CELLS:.3g}; choose a shorter duration, a longer interval or fewer nodes",
            )

    @property
    def cell(self) -> float:
        """The side of a cell in metres."""
        return self.area / self.grid

    @property
    def events_per_second(self) -> int:
        """What a node can send in a second: the rate, or what the bandwidth carries if that is less."""
        return max(1, min(self.rate, int(self.bandwidth // self.event_bits)))


def check(name: str, value: Any, limits: Mapping[str, Any]) -> None:
    """Raise WrongParameter if the value is outside of the limits of its field."""
    if "choices" in limits:
        if value not in limits["choices"]:
            raise WrongParameter(name, f"is {value!r}; choose {' or '.join(limits['choices'])}")
    elif not limits["least"] <= value <= limits["most"]:
        raise WrongParameter(name, f"is {value:g}; it must be {limits['least']:g} to {limits['most']:g}")


DEFAULTS: Final = Parameters()
HONEST_DG: Final[Mapping[str, str]] = MappingProxyType(
    {"dg_contact": NEIGHBOURS, "dg_repeat": ONCE, "dg_budget": SENSOR}
)
"""The readings of direct gathering by sensors that remember what they sent, within the range of CET."""
