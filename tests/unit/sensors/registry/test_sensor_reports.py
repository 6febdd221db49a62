"""Reports of a sensor: the last one, the mean interval, and when silence begins."""

import pytest

from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, parse_sensor
from hpwsn.sensors.registry.sensor_reports import (
    MOST_GAPS,
    SHORTEST_SILENCE,
    SILENT_AFTER,
    SensorReports,
)


def sensor(interval: float | None = None) -> PhysicalSensor:
    document = {"id": "s", "kind": "k", "quantities": {"t": {"unit": "K"}}}
    return parse_sensor(document | ({} if interval is None else {"interval": interval}))


def test_the_interval_is_known_from_the_second_report_on() -> None:
    reports = SensorReports(100.0)
    assert (reports.last, reports.interval) == (None, None)
    reports.heard(110.0)
    assert (reports.last, reports.interval) == (110.0, None)
    reports.heard(114.0)
    assert (reports.last, reports.interval) == (114.0, 4.0)


def test_readings_at_the_same_time_are_one_report() -> None:
    reports = SensorReports(100.0)
    for time in (110.0, 110.0, 110.0, 120.0, 120.0, 130.0):
        reports.heard(time)
    assert reports.interval == 10.0


def test_a_clock_that_goes_back_changes_nothing() -> None:
    reports = SensorReports(100.0)
    for time in (110.0, 120.0, 50.0):
        reports.heard(time)
    assert (reports.last, reports.interval) == (120.0, 10.0)


def test_the_interval_follows_a_sensor_that_becomes_slower() -> None:
    reports, now = SensorReports(0.0), 1.0
    for gap in [1.0] * 5 * MOST_GAPS + [10.0] * 5 * MOST_GAPS:
        reports.heard(now)
        now += gap
    assert reports.interval == pytest.approx(10.0, rel=0.01)


def test_silence_begins_after_three_declared_intervals_and_ends_with_a_report() -> None:
    reports, each = SensorReports(0.0), sensor(10.0)
    reports.heard(100.0)
    assert not reports.is_silent(each, 100.0 + SILENT_AFTER * 10)
    assert reports.is_silent(each, 100.1 + SILENT_AFTER * 10)
    reports.heard(200.0)
    assert not reports.is_silent(each, 200.0)


def test_a_sensor_that_never_reported_is_silent_three_intervals_after_its_registration() -> None:
    reports = SensorReports(100.0)
    assert not reports.is_silent(sensor(10.0), 130.0)
    assert reports.is_silent(sensor(10.0), 130.1)


def test_a_sensor_without_an_interval_is_measured_by_the_one_that_was_seen() -> None:
    reports = SensorReports(0.0)
    reports.heard(100.0)
    assert not reports.is_silent(sensor(), 10_000.0)
    reports.heard(105.0)
    assert not reports.is_silent(sensor(), 120.0)
    assert reports.is_silent(sensor(), 120.1)


def test_a_gateway_that_sends_less_often_than_declared_does_not_make_its_sensor_silent() -> None:
    reports = SensorReports(0.0)
    for time in (100.0, 110.0, 120.0):
        reports.heard(time)
    assert not reports.is_silent(sensor(1.0), 130.0)


def test_no_silence_is_shorter_than_the_shortest() -> None:
    reports = SensorReports(100.0)
    reports.heard(100.0)
    assert not reports.is_silent(sensor(0.01), 100.0 + SHORTEST_SILENCE)
    assert reports.is_silent(sensor(0.01), 100.1 + SHORTEST_SILENCE)


def test_a_report_before_the_restart_makes_no_sensor_silent_at_once() -> None:
    reports = SensorReports(1000.0)
    reports.reported_before(500.0)
    assert (reports.last, reports.is_silent(sensor(10.0), 1010.0)) == (500.0, False)
    assert reports.is_silent(sensor(10.0), 1031.0)
