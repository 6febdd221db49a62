"""Simulated networks: the same for the same seed, plausible values, and faults as often as asked for."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise

import pytest

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, Place, parse_sensor
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.simulation.chance import Chance
from hpwsn.sensors.simulation.earthquakes import PERIOD_MS, Earthquakes
from hpwsn.sensors.simulation.sensor_faults import SILENCE_MS, SensorFaults
from hpwsn.sensors.simulation.simulated_network import (
    AREA,
    KINDS,
    MOST_SENSORS,
    START,
    SimulatedNetwork,
    Simulation,
)


def readings_of(simulation: Simulation, seconds: int, start: int = START) -> list[Reading]:
    return list(SimulatedNetwork(simulation).readings(start, seconds * 1000))


def outside(sensor: PhysicalSensor, reading: Reading) -> bool:
    """Whether a node would reject the reading for the range of one of its values."""
    return any(
        not (quantity.low is not None and quantity.high is not None)
        or not quantity.low <= reading.values[name] <= quantity.high
        for name, quantity in sensor.quantities.items()
    )


@pytest.mark.parametrize("kind", KINDS)
class TestEachNetwork:
    def test_is_the_same_for_the_same_seed_and_another_for_another(self, kind: str) -> None:
        faults = SensorFaults(0.1, 0.1, 0.1, 0.1)
        one, same, other = (readings_of(Simulation(kind, 20, seed, faults=faults), 30) for seed in (7, 7, 8))
        assert one == same
        assert one != other

    def test_registers_its_sensors_as_any_owner_does(self, kind: str) -> None:
        sensors = SimulatedNetwork(Simulation(kind, 50)).sensors
        assert len({sensor.id for sensor in sensors}) == 50
        assert [parse_sensor(sensor.document()) for sensor in sensors] == list(sensors)
        assert all(AREA.holds(sensor.place) for sensor in sensors)

    def test_has_a_reading_of_each_sensor_in_each_interval(self, kind: str) -> None:
        found = readings_of(Simulation(kind, 10, interval=500), 30)
        assert Counter(reading.sensor for reading in found) == {f"{kind}-{n}": 60 for n in range(1, 11)}
        times = [reading.time for reading in found]
        assert times == sorted(times)
        assert times[0] >= START
        assert times[-1] < START + 30_000

    def test_stays_within_the_ranges_of_its_sensors(self, kind: str) -> None:
        sensors = {each.id: each for each in SimulatedNetwork(Simulation(kind, 20)).sensors}
        hours = [readings_of(Simulation(kind, 20), 5, START + hour * 3_600_000) for hour in range(24)]
        assert not [r for found in hours for r in found if outside(sensors[r.sensor], r)]

    def test_goes_on_for_ever_without_a_length(self, kind: str) -> None:
        network = SimulatedNetwork(Simulation(kind, 2))
        assert len(list(islice(network.readings(), 1000))) == 1000

    def test_does_not_change_the_other_sensors_when_one_is_added(self, kind: str) -> None:
        few, more = (readings_of(Simulation(kind, count), 5) for count in (3, 4))
        assert [reading for reading in more if reading.sensor != f"{kind}-4"] == few


class TestFaults:
    def test_a_silent_sensor_misses_whole_periods(self) -> None:
        found = readings_of(Simulation("weather", 50, faults=SensorFaults(silence=0.3)), 400)
        assert 0.6 < len(found) / (50 * 400) < 0.8
        times = [reading.time for reading in found if reading.sensor == "weather-1"]
        gaps = [after - before for before, after in pairwise(times) if after - before > 1000]
        # A gap lasts a number of periods, and the second between two readings.
        assert gaps
        assert all(gap % SILENCE_MS in (0, 1000, SILENCE_MS - 1000) for gap in gaps)

    def test_a_sensor_that_is_always_silent_says_nothing(self) -> None:
        assert not readings_of(Simulation("weather", 5, faults=SensorFaults(silence=1)), 60)

    def test_a_duplicate_is_the_same_reading_again(self) -> None:
        plain = readings_of(Simulation("weather", 20), 50)
        found = readings_of(Simulation("weather", 20, faults=SensorFaults(duplicates=0.2)), 50)
        assert list(dict.fromkeys((r.sensor, r.time) for r in found)) == [(r.sensor, r.time) for r in plain]
        assert 0.1 < len(found) / len(plain) - 1 < 0.3

    def test_a_drifting_sensor_moves_away_steadily(self) -> None:
        plain = readings_of(Simulation("weather", 1), 600)
        found = readings_of(Simulation("weather", 1, faults=SensorFaults(drift=1)), 600)
        away = [
            one.values["pressure"] - other.values["pressure"] for one, other in zip(found, plain, strict=True)
        ]
        steps = [abs(after) - abs(before) for before, after in pairwise(away[::60])]
        assert abs(away[0]) < 0.3
        assert all(step > 0 for step in steps)

    def test_half_of_the_spikes_are_outside_the_range(self) -> None:
        sensors = {each.id: each for each in SimulatedNetwork(Simulation("weather", 20)).sensors}
        plain = readings_of(Simulation("weather", 20), 100)
        found = readings_of(Simulation("weather", 20, faults=SensorFaults(spikes=0.1)), 100)
        spikes = [one for one, other in zip(found, plain, strict=True) if one != other]
        assert 0.07 < len(spikes) / len(plain) < 0.13
        assert 0.35 < sum(outside(sensors[r.sensor], r) for r in spikes) / len(spikes) < 0.65

    @pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
    def test_a_share_that_is_none_is_named(self, share: float) -> None:
        with pytest.raises(ValueError, match=r"spikes is .*; give a number from 0 to 1"):
            SensorFaults(spikes=share)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"kind": "tides"}, "no simulation of 'tides'; choose one of weather, earthquake"),
        ({"sensors": 0}, "0 sensors cannot be simulated; give 1 to 1000000"),
        ({"sensors": MOST_SENSORS + 1}, "1000001 sensors cannot be simulated"),
        ({"interval": 0}, "the interval is 0 ms; give at least 1 ms"),
    ],
)
def test_a_simulation_that_makes_no_sense_is_named(wrong: dict[str, object], why: str) -> None:
    arguments: dict[str, object] = {"kind": "weather", "sensors": 1, **wrong}
    with pytest.raises(ValueError, match=why):
        Simulation(**arguments)  # type: ignore[arg-type]


def test_an_earthquake_is_felt_later_at_a_greater_distance_and_fades() -> None:
    earthquakes = Earthquakes(3, AREA)
    quake = earthquakes.earthquake(START // PERIOD_MS)
    near, far = (
        next(
            at
            for at in range(quake.at, quake.at + 60_000, 100)
            if earthquakes._felt(quake, Place(quake.longitude + degrees, quake.latitude), at)
        )
        for degrees in (0, 0.5)
    )
    assert near == quake.at
    assert far > near + 5000
    here = Place(quake.longitude, quake.latitude)
    assert earthquakes._felt(quake, here, quake.at) == quake.magnitude
    assert earthquakes._felt(quake, here, quake.at - 1) == 0
    assert 0 < earthquakes._felt(quake, here, quake.at + 30_000) < quake.magnitude / 10


def test_random_numbers_depend_on_their_purpose_alone() -> None:
    chance = Chance(1)
    first = chance.uniforms("a", 1)
    chance.uniforms("b", 1)
    assert chance.uniforms("a", 1) == first
    assert chance.uniforms("a", 2) != first
    assert Chance(2).uniforms("a", 1) != first


def test_random_numbers_have_the_mean_and_the_deviation_of_their_distribution() -> None:
    chance = Chance(5)
    flat = [value for n in range(2000) for value in chance.uniforms("flat", n)]
    bell = [value for n in range(4000) for value in chance.normals("bell", n)]
    assert all(0 < value < 1 for value in flat)
    assert sum(flat) / len(flat) == pytest.approx(0.5, abs=0.02)
    assert sum(bell) / len(bell) == pytest.approx(0, abs=0.04)
    assert sum(value**2 for value in bell) / len(bell) == pytest.approx(1, abs=0.06)
