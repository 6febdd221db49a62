"""Generates sensor streams of a city: number plates read by cameras, and positions of vehicles.

The same seed gives the same events, without end, in the order of their arrival. Vehicles make trips past
several cameras, some of them together with a companion. Traffic has the peaks of a working day. Some cameras
see more vehicles than others, and some vehicles drive more. Records arrive a little late. Positions follow a
vehicle that turns, accelerates and stops, and some positions are wrong. Plates and places are invented.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from math import cos, radians, sin
from random import Random

from hpwsn.streams.definition.schema import Event

START = datetime(2024, 3, 4, 6, 0, tzinfo=UTC)
"""A Monday morning."""

# Trips that begin in each hour of the day, relative to the busiest hour.
_HOURS = (
    0.10, 0.07, 0.05, 0.05, 0.08, 0.20, 0.50, 0.95, 1.00, 0.75, 0.62, 0.63,
    0.65, 0.62, 0.63, 0.70, 0.85, 1.00, 0.95, 0.70, 0.50, 0.38, 0.28, 0.18,
)  # fmt: skip
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
LONGITUDES, LATITUDES = (115.25, 117.30), (39.26, 41.03)
_CENTRE = (116.39, 39.91)
_METRES_A_DEGREE = 111_320.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Cameras on a ring road; `trips` per second at the peak, `latest` is the maximum delay in seconds.

    `companions` is the share of trips on which a second vehicle follows, at most 4 seconds behind. A vehicle
    is always followed by the same one, which makes no trips alone.
    """

    cameras: int = 40
    vehicles: int = 5_000
    trips: float = 5.0
    latest: float = 3.0
    start: datetime = START
    companions: float = 0.02


def anpr(seed: int, traffic: Traffic | None = None) -> Iterator[Event]:
    """Endless records {cid, vid, time} in order of arrival, each delayed by less than `latest` seconds."""
    traffic, random = traffic or Traffic(), Random(seed)
    # Companions have a random sequence of their own, so that they do not change the other records.
    chance = Random(f"{seed} companions")
    waiting: list[tuple[float, int, str, str, float]] = []
    number = count()
    for begins in _departures(random, traffic):
        while waiting and waiting[0][0] <= begins:
            _, _, cid, vid, at = heapq.heappop(waiting)
            yield {"cid": cid, "vid": vid, "time": traffic.start + timedelta(seconds=round(at, 3))}
        vehicle = _random_vehicle(random, traffic.vehicles)
        follows = chance.random() < traffic.companions
        for at, camera in _trip(random, traffic, begins):
            arrives = at + traffic.latest * random.random() ** 4
            entry = (arrives, next(number), f"cam-{camera:03}", plate_of(vehicle), at)
            heapq.heappush(waiting, entry)
            if follows:
                behind = at + chance.uniform(1, 4)
                arrives = behind + traffic.latest * chance.random() ** 4
                plate = plate_of(companion_of(vehicle, traffic))
                heapq.heappush(waiting, (arrives, next(number), f"cam-{camera:03}", plate, behind))


def _departures(random: Random, traffic: Traffic) -> Iterator[float]:
    """The start times of trips, in seconds: a Poisson process with the rate of the hour."""
    at = 0.0
    while True:
        at += random.expovariate(traffic.trips)
        hour = (traffic.start + timedelta(seconds=at)).hour
        if random.random() < _HOURS[hour]:
            yield at


def _trip(random: Random, traffic: Traffic, begins: float) -> Iterator[tuple[float, int]]:
    """The cameras that a trip passes, with the times: along the ring in one direction."""
    # The square makes some cameras much busier than others.
    camera, way = int(random.random() ** 2 * traffic.cameras), random.choice((-1, 1))
    at = begins
    for _ in range(random.randint(1, 6)):
        yield at, camera % traffic.cameras
        at += 20 + random.lognormvariate(3.3, 0.5)
        camera += way


def _random_vehicle(random: Random, vehicles: int) -> int:
    """A random vehicle; a few vehicles drive much more than the others."""
    return int(random.random() ** 2 * vehicles)


def companion_of(vehicle: int, traffic: Traffic) -> int:
    """The vehicle that follows this one on some trips."""
    return traffic.vehicles + vehicle


def plate_of(vehicle: int) -> str:
    """The plate of a vehicle number; different numbers have different plates."""
    letter, rest = _LETTERS[vehicle // 100_000 % len(_LETTERS)], vehicle % 100_000
    # A multiplier that is coprime to 100,000 spreads consecutive numbers over all plates.
    return f"京{letter}{rest * 38_447 % 100_000:05}"


@dataclass(slots=True)
class _Vehicle:
    name: str
    longitude: float
    latitude: float
    direction: float
    speed: float = 0.0
    stands: int = 0
    top: float = field(default=70.0)

    def drive(self, random: Random, seconds: float) -> None:
        """Move for some seconds: a turn, a change of speed, sometimes a stop."""
        if self.stands:
            self.stands -= 1
            self.speed = 0.0
            return
        if random.random() < 0.06:
            self.stands = random.randint(1, 8)
        self.direction = (self.direction + random.gauss(0, 12)) % 360
        self.speed = min(self.top, max(3.0, self.speed + random.gauss(2, 8)))
        metres = self.speed / 3.6 * seconds
        north, east = cos(radians(self.direction)), sin(radians(self.direction))
        self.latitude += metres * north / _METRES_A_DEGREE
        self.longitude += metres * east / (_METRES_A_DEGREE * cos(radians(self.latitude)))
        inside = (
            LONGITUDES[0] < self.longitude < LONGITUDES[1] and LATITUDES[0] < self.latitude < LATITUDES[1]
        )
        if not inside:
            self.direction = (self.direction + 180) % 360


def gps(seed: int, fleet: str = "taxi", vehicles: int = 200, every: float = 10.0) -> Iterator[Event]:
    """Endless positions of a fleet, from each vehicle every `every` seconds with its own offset."""
    # The fleet is part of the seed, so that fleets with the same seed differ.
    random = Random(f"{seed} {fleet}")
    ready = [(random.random() * every, number, _new(random, fleet, number)) for number in range(vehicles)]
    heapq.heapify(ready)
    while True:
        at, number, vehicle = ready[0]
        vehicle.drive(random, every)
        heapq.heapreplace(ready, (at + every, number, vehicle))
        yield _position(random, vehicle, START + timedelta(seconds=round(at, 3)))


def _new(random: Random, fleet: str, number: int) -> _Vehicle:
    longitude, latitude = random.gauss(_CENTRE[0], 0.15), random.gauss(_CENTRE[1], 0.12)
    top = random.uniform(45, 110)
    return _Vehicle(f"{fleet}-{number:05}", longitude, latitude, random.uniform(0, 360), top=top)


def _position(random: Random, vehicle: _Vehicle, time: datetime) -> Event:
    # One position in a hundred is a bad fix from few satellites, far from the vehicle.
    lost = random.random() < 0.01
    return {
        "vid": vehicle.name,
        "time": time,
        "longitude": 0.0 if lost else round(vehicle.longitude + random.gauss(0, 5e-5), 6),
        "latitude": 0.0 if lost else round(vehicle.latitude + random.gauss(0, 5e-5), 6),
        "speed": round(vehicle.speed, 1),
        "direction": round(vehicle.direction, 1),
        "satelliteNum": random.randint(0, 3) if lost else random.randint(5, 12),
    }
