"""The example services, generated input for them, and what they must give, computed without operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice

from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.schema import Event
from hpwsn.streams.definition_files import load
from hpwsn.streams.generator import LATITUDES, LONGITUDES, Traffic, anpr, gps
from tests.harness import ROOT

EXAMPLES = ROOT / "hpwsn" / "streams" / "examples"
NAMES = ("genTrafficFlow", "busiest", "getANPR", "companionVehicles", "inteGPS")
"""The files, each after those that it reads from."""
FLEETS = ("buses", "taxis", "lorries")
TRAFFIC = Traffic(cameras=20, vehicles=2000, companions=0.1)
OLD = datetime(2009, 12, 31, 23, 59, tzinfo=UTC)
"""A time before all constraints."""


def examples() -> dict[str, Definition]:
    """The services of all example files by the last part of their uris."""
    loaded = load(*(EXAMPLES / f"{name}.toml" for name in NAMES))
    return {one.uri.rpartition(":")[2]: one for one in loaded}


def plates(number: int) -> list[Event]:
    """Records of cameras, the first two outside the constraints; the last two, a pair, end all windows."""
    events = list(islice(anpr(5, TRAFFIC), number))
    wrong: list[Event] = [{**events[0], "time": OLD}, {**events[1], "vid": None}]
    later = {**events[-1], "time": time_of(events[-1]) + timedelta(hours=1)}
    return [*wrong, *events, later, {**later, "vid": "京Z00000"}]


def positions(number: int) -> dict[str, list[Event]]:
    """Positions of three fleets, each with one from before 2010."""
    found = {fleet: list(islice(gps(5, fleet), number)) for fleet in FLEETS}
    return {fleet: [{**some[0], "time": OLD, "speed": 5.0}, *some] for fleet, some in found.items()}


def time_of(event: Event) -> datetime:
    """The time of an event."""
    time = event["time"]
    assert isinstance(time, datetime)
    return time


def counted(events: Iterable[Event]) -> Counter[tuple[object, ...]]:
    """How often each combination of values occurs, to compare events in any order."""
    return Counter(tuple(one.values()) for one in events)


def recent(events: Iterable[Event]) -> list[Event]:
    """The events that satisfy the constraint on time."""
    return [one for one in events if time_of(one) > datetime(2010, 1, 1, tzinfo=UTC)]


def expected_flows(records: list[Event]) -> list[Event]:
    """What genTrafficFlow gives."""
    flows = Counter((one["cid"], time_of(one).replace(second=0, microsecond=0)) for one in recent(records))
    return [{"cid": cid, "flow": flow, "time": minute} for (cid, minute), flow in flows.items()]


def expected_plates(records: list[Event]) -> list[Event]:
    """What getANPR gives."""
    return [one for one in recent(records) if one["cid"] is not None and one["vid"] is not None]


def expected_positions(fleets: dict[str, list[Event]]) -> list[Event]:
    """What inteGPS gives."""
    return [
        one
        for fleet in FLEETS
        for one in recent(fleets[fleet])
        if LONGITUDES[0] < float(str(one["longitude"])) < LONGITUDES[1]
        and LATITUDES[0] < float(str(one["latitude"])) < LATITUDES[1]
        and float(str(one["speed"])) > 0
    ]


def expected_pairs(records: list[Event]) -> set[tuple[str, str, str, datetime]]:
    """What vehiclesTogether gives, each pair at a camera once, by comparing all records with each other."""
    known = [(str(one["cid"]), str(one["vid"]), time_of(one)) for one in recent(records) if one["vid"]]
    return {
        (vid, companion, cid, max(time, other))
        for cid, vid, time in known
        for camera, companion, other in known
        if cid == camera and vid < companion and abs(time - other) <= timedelta(seconds=5)
    }


def expected_companions(records: list[Event]) -> list[Event]:
    """What companionVehicles gives."""
    cameras: dict[tuple[str, str, datetime], set[str]] = {}
    for vid, companion, cid, time in expected_pairs(records):
        begins = time.replace(minute=time.minute // 10 * 10, second=0, microsecond=0)
        cameras.setdefault((vid, companion, begins), set()).add(cid)
    return [
        {"vid": vid, "companion": companion, "cameras": len(seen), "time": begins}
        for (vid, companion, begins), seen in cameras.items()
        if len(seen) >= 3
    ]
