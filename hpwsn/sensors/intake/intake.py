"""The intake: raw readings from any gateway are checked, published as events, counted, and kept if rejected.

`take` returns once the accepted readings are committed. If they cannot be stored, none is taken, nothing is
counted, and a repetition is not a duplicate. A reading is a duplicate if one of its sensor and time was
accepted before, or came by another way, such as another node. While a reading is being stored, others of the
same sensor and time wait for the outcome. Work of many readings is cut into slices, so that the node goes on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hpwsn.broker.admission.admission import Source
from hpwsn.listeners import Listeners
from hpwsn.notification import ROW_MEMBERS, Run
from hpwsn.sensors.intake.rejected_readings import Rejected, RejectedReadings
from hpwsn.sensors.intake.request_checks import RequestChecks, in_turns
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn.sensors.readings.checks import DUPLICATE, MALFORMED, REASONS, Checked, ReadingChecks, Rejection
from hpwsn.sensors.readings.formats import RawReading, ReadingsTooMany, Unparsed
from hpwsn.sensors.readings.known_times import KnownTimes
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import SensorRuns
from hpwsn.sensors.readings.reading_times import time_text

SENSORS = Source(door="sensors")
"""Who publishes readings, unless a gateway shows its registration."""

Key = tuple[str, int]
"""A sensor and a time."""
LookUp = Callable[[Sequence[Key]], Awaitable[set[Key]]]


class Sensors(Protocol):
    """The part of the registry that the intake needs."""

    changed: Listeners[str, PhysicalSensor | None]

    def get(self, id: str) -> PhysicalSensor | None:  # noqa: A002
        """The sensor with this id, or None."""

    async def put(self, sensors: Sequence[PhysicalSensor]) -> None:
        """Register sensors, all or none."""

    def heard(self, id: str, now: float) -> None:  # noqa: A002
        """Note that a reading of a sensor was accepted."""


class Publish(Protocol):
    """Publishes runs: returns once they are stored, and raises a fault if none is."""

    def __call__(self, runs: Sequence[Run], source: Source) -> Awaitable[object]: ...


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """Which readings are accepted; times in seconds."""

    max_age: float
    max_ahead: float
    at_once: int
    auto_register: bool


class Taken(NamedTuple):
    """What became of the readings of one request; errors have their index and the reason."""

    accepted: int
    errors: list[tuple[int, str]]

    @property
    def rejected(self) -> int:
        """How many were rejected."""
        return len(self.errors)


class Intake:
    """Takes readings in from every gateway."""

    def __init__(
        self,
        sensors: Sensors,
        publish: Publish,
        *,
        limits: IntakeLimits,
        times: KnownTimes,
        rejected: RejectedReadings,
        clock: Callable[[], float],
    ) -> None:
        self._sensors = sensors
        self._publish = publish
        self._limits = limits
        self._times = times
        self._clock = clock
        self._checks = ReadingChecks(
            sensors.get,
            max_age=round(limits.max_age * 1000),
            max_ahead=round(limits.max_ahead * 1000),
            auto_register=limits.auto_register,
        )
        self._requests = RequestChecks(self._checks, sensors.put, clock)
        sensors.changed.add(self._changed)
        self._claims: dict[Key, asyncio.Future[None]] = {}
        """Readings that are being stored."""
        self.look_up: LookUp | None = None
        """Which of some keys the history has; None without a history: older readings are then accepted."""
        self.rejected = rejected
        self.accepted = 0
        self.reasons: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        """Rejected readings by reason."""

    async def take(
        self,
        raw: Sequence[RawReading],
        source: str,
        *,
        sensor: str | None = None,
        publisher: Source = SENSORS,
    ) -> Taken:
        """Take readings that came by a source such as `http`; `sensor` is the id in their address.

        ReadingsTooMany for more than the limit. Busy if they cannot be stored now, and other faults if their
        topics cannot be used; nothing was taken then.
        """
        if len(raw) > self._limits.at_once:
            raise ReadingsTooMany(self._limits.at_once)
        checked = await self._requests.check_all(raw, sensor)
        # What is claimed must be released, even if the client does not wait any longer.
        storing = asyncio.ensure_future(self._store(raw, checked, sensor, source, publisher))
        return await asyncio.shield(storing)

    async def _store(
        self,
        raw: Sequence[RawReading],
        checked: list[Checked],
        sensor: str | None,
        source: str,
        publisher: Source,
    ) -> Taken:
        """Publish what is good and no duplicate, and count everything."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        claimed = await self._claim(raw, checked, done)
        try:
            await self._reject_older(checked, claimed)
            good = [each for each in checked if type(each) is Reading]
            if good:
                runs: list[Run] = []
                await in_turns(self._make_runs(good, runs), len(good))
                await self._publish(runs, publisher)
            now = self._clock()
            for name in {reading.sensor for reading in good}:
                self._sensors.heard(name, now)
            for reading in good:
                self._times.note(reading.sensor, reading.time)
        finally:
            for key in claimed:
                del self._claims[key]
            done.set_result(None)
        self.accepted += len(good)
        return Taken(len(good), await self._keep_rejected(raw, checked, sensor, source))

    async def _claim(
        self, raw: Sequence[RawReading], checked: list[Checked], done: asyncio.Future[None]
    ) -> dict[Key, int]:
        """Reject duplicates, as far as they are known here, and claim all others, with their index.

        Nothing is claimed while readings of another request are waited for, so that no two wait for each
        other.
        """
        claims = self._claims
        while others := {
            claims[key]
            for reading in checked
            if type(reading) is Reading and (key := (reading.sensor, reading.time)) in claims
        }:
            await asyncio.wait(others)
        claimed: dict[Key, int] = {}
        given: dict[str, int] = {}
        """The time that the last reading of each sensor without one got."""
        for at, reading in enumerate(checked):
            if type(reading) is not Reading:
                continue
            if (key := (reading.sensor, reading.time)) in claimed or self._times.has(*key):
                if "time" in raw[at]:
                    checked[at] = _duplicate(reading)
                    continue
                # A reading without a time is not the same as another one of this millisecond.
                name, time = key[0], given.get(key[0], key[1]) + 1
                while (key := (name, time)) in claimed or key in claims or self._times.has(*key):
                    time += 1
                given[name] = time
                checked[at] = reading._replace(time=time)
            claimed[key] = at
        for key in claimed:
            claims[key] = done
        return claimed

    async def _reject_older(self, checked: list[Checked], claimed: dict[Key, int]) -> None:
        """Reject duplicates that only the history knows."""
        if self.look_up is None:
            return
        has = self._times.has
        unknown = [key for key in claimed if has(*key) is None]
        if unknown:
            for key in await self.look_up(unknown):
                reading = checked[claimed[key]]
                assert isinstance(reading, Reading)
                checked[claimed[key]] = _duplicate(reading)

    def _make_runs(self, readings: Iterable[Reading], runs: list[Run]) -> Iterator[None]:
        """Add the readings as runs, those of a sensor together; no run is longer than a row of the log."""
        by_sensor: dict[str, list[Reading]] = {}
        for reading in readings:
            if (several := by_sensor.get(reading.sensor)) is None:
                by_sensor[reading.sensor] = [reading]
            else:
                several.append(reading)
        for name, several in by_sensor.items():
            known = self._checks.known(name)
            # A sensor that was removed while its readings were checked is still published.
            maker = known.runs if known is not None else SensorRuns.of(several[0])
            if len(several) <= ROW_MEMBERS:
                runs.append(maker.run(tuple(several)))
            else:
                starts = range(0, len(several), ROW_MEMBERS)
                runs += [maker.run(tuple(several[at : at + ROW_MEMBERS])) for at in starts]
            yield

    async def _keep_rejected(
        self, raw: Sequence[RawReading], checked: Sequence[Checked], sensor: str | None, source: str
    ) -> list[tuple[int, str]]:
        errors: list[tuple[int, str]] = []
        kept: list[Rejected] = []
        for at, each in enumerate(checked):
            if isinstance(each, Rejection):
                errors.append((at, each.reason))
                self.reasons[each.reason] += 1
                kept.append(Rejected(_sensor_of(raw[at], sensor), each, raw[at]))
        if kept:
            await self.rejected.add(kept, source)
        return errors

    async def reject_whole(self, text: str, problem: str, source: str, sensor: str | None = None) -> Taken:
        """Count and keep data in which no readings can be told apart, as one malformed reading."""
        rejection = Rejection(MALFORMED, problem)
        self.reasons[MALFORMED] += 1
        await self.rejected.add([Rejected(sensor, rejection, Unparsed(text, problem))], source)
        return Taken(0, [(0, MALFORMED)])

    def committed(self, upto: int, readings: Iterable[tuple[int, Reading]]) -> None:
        """Note committed readings, also those that came by another way; the offsets are not used."""
        known, note = self._sensors.get, self._times.note
        for _, reading in readings:
            if known(reading.sensor) is not None:
                note(reading.sensor, reading.time)

    def _changed(self, sensor: str, now: PhysicalSensor | None) -> None:
        self._checks.forget(sensor)
        if now is None:
            self._times.forget(sensor)


def _duplicate(reading: Reading) -> Rejection:
    told = f"{reading.sensor} has a reading of {time_text(reading.time)} already"
    return Rejection(DUPLICATE, told)


def _sensor_of(raw: RawReading, sensor: str | None) -> str | None:
    if isinstance(raw, Unparsed):
        return raw.sensor or sensor
    named = raw.get("sensor") if isinstance(raw, dict) else None
    return named if isinstance(named, str) and sensor is None else sensor
