"""The checks of the readings of one request, and what they have to ask for: conversions, and new sensors.

Conversions of units are learned in a thread, and remembered. With `sensors.auto_register`, a good reading of
an unknown sensor registers it; another reading of the request may then lack the kind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from hpwsn.background import in_slices, in_thread
from hpwsn.errors import HpwsnError, JournalUnavailable
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor
from hpwsn.sensors.physical.units import (
    ExactConversion,
    PintMissing,
    UnitRefused,
    check_unit,
    exact_conversion,
)
from hpwsn.sensors.readings.checks import (
    UNIT,
    UNKNOWN_SENSOR,
    Checked,
    Newcomer,
    ReadingChecks,
    Rejection,
    Unconverted,
)
from hpwsn.sensors.readings.formats import RawReading

FEW = 100
"""Readings of which all work is done in one turn of the event loop."""
MOST_CONVERSIONS = 10_000
"""Pairs of units whose conversion is remembered."""

_OPEN = frozenset({Newcomer, Unconverted})
"""What must be looked at again."""

Register = Callable[[Sequence[PhysicalSensor]], Awaitable[object]]
"""Registers sensors, all or none."""


class RequestChecks:
    """Checks the readings of requests."""

    def __init__(self, checks: ReadingChecks, register: Register, clock: Callable[[], float]) -> None:
        self._checks = checks
        self._register = register
        self._clock = clock

    async def check_all(self, raw: Sequence[RawReading], sensor: str | None) -> list[Checked]:
        """The readings, or why they are rejected; `sensor` is the id in their address.

        JournalUnavailable if new sensors cannot be stored.
        """
        now = round(self._clock() * 1000)
        checked: list[Checked] = []

        def check() -> Iterator[None]:
            for each in raw:
                checked.append(self._checks.check(each, now, sensor))
                yield

        await in_turns(check(), len(raw))
        while open_ := [at for at, each in enumerate(checked) if type(each) in _OPEN]:
            refused = await self._resolve([checked[at] for at in open_])
            # The sensor of a reading without its kind may be registered by another reading of the request.
            unknown = [at for at, each in enumerate(checked) if _is_unknown(each)]
            for at in open_ + unknown:
                found = self._checks.check(raw[at], now, sensor)
                # What was refused is final: a conversion that was dropped meanwhile is asked for again.
                checked[at] = refused.get(found.sensor.id, found) if isinstance(found, Newcomer) else found
        return checked

    async def _resolve(self, unresolved: Iterable[Checked]) -> dict[str, Rejection]:
        """Learn conversions and register new sensors; why sensors cannot be registered, by their ids."""
        newcomers: dict[str, PhysicalSensor] = {}
        pairs: set[tuple[str, str]] = set()
        for each in unresolved:
            if isinstance(each, Newcomer):
                newcomers.setdefault(each.sensor.id, each.sensor)
            elif isinstance(each, Unconverted):
                pairs.add((each.source, each.target))
        if pairs:
            if len(self._checks.conversions) + len(pairs) > MOST_CONVERSIONS:
                self._checks.conversions.clear()
            self._checks.conversions.update(await in_thread(_convert, pairs))
        if not newcomers:
            return {}
        refused: dict[str, Rejection] = await in_thread(_check_units, newcomers)
        welcome = [sensor for name, sensor in newcomers.items() if name not in refused]
        try:
            await self._register(welcome)
        except JournalUnavailable:
            raise
        except HpwsnError as error:
            refused |= {sensor.id: Rejection(UNKNOWN_SENSOR, str(error)) for sensor in welcome}
        return refused


async def in_turns(steps: Iterator[None], readings: int) -> None:
    """Run all steps, in slices if there are many readings."""
    if readings > FEW:
        await in_slices(steps)
    else:
        deque(steps, maxlen=0)


def _is_unknown(checked: Checked) -> bool:
    return type(checked) is Rejection and checked.reason == UNKNOWN_SENSOR


def _convert(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ExactConversion | None]:
    found: dict[tuple[str, str], ExactConversion | None] = {}
    for pair in pairs:
        try:
            found[pair] = exact_conversion(*pair)
        except (UnitRefused, PintMissing):
            found[pair] = None
    return found


def _check_units(sensors: dict[str, PhysicalSensor]) -> dict[str, Rejection]:
    refused = {}
    for name, sensor in sensors.items():
        try:
            for quantity in sensor.quantities.values():
                check_unit(quantity.unit)
        except UnitRefused as error:
            refused[name] = Rejection(UNIT, str(error))
        except PintMissing as error:
            refused[name] = Rejection(UNKNOWN_SENSOR, str(error))
    return refused
