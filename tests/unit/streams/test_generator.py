"""Invented sensors: the same for each seed, and like those of a city."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import islice

from hpwsn.streams.generator import LATITUDES, LONGITUDES, START, Traffic, anpr, gps, plate_of


def test_the_same_seed_gives_the_same_events_and_another_one_others() -> None:
    for stream in (anpr, gps):
        assert list(islice(stream(7), 500)) == list(islice(stream(7), 500))
        assert list(islice(stream(7), 500)) != list(islice(stream(8), 500))
    assert list(islice(gps(7, "bus"), 50)) != list(islice(gps(7, "taxi"), 50))


def test_vehicles_pass_several_cameras_and_some_cameras_see_far_more() -> None:
    records = list(islice(anpr(1), 20_000))
    cameras = Counter(one["cid"] for one in records)
    assert len(cameras) == 40
    assert cameras.most_common()[0][1] > 2 * cameras.most_common()[-1][1]
    assert max(Counter(one["vid"] for one in records).values()) > 3


def test_records_come_nearly_in_the_order_of_their_time() -> None:
    times = [one["time"] for one in islice(anpr(1), 5_000)]
    latest, behind = START, timedelta()
    for time in times:
        assert isinstance(time, datetime)
        behind, latest = max(behind, latest - time), max(latest, time)
    assert timedelta() < behind < timedelta(seconds=Traffic().latest)


def test_the_morning_is_busier_at_eight_than_at_six() -> None:
    hours = Counter(one["time"].hour for one in islice(anpr(1), 120_000))  # type: ignore[union-attr]
    assert hours[7] > 1.5 * hours[6]


def test_plates_differ() -> None:
    assert len({plate_of(number) for number in range(200_000)}) == 200_000


def test_most_positions_are_in_the_city_some_are_lost_and_some_stand() -> None:
    positions = list(islice(gps(1), 10_000))
    inside = [
        one
        for one in positions
        if LONGITUDES[0] < float(str(one["longitude"])) < LONGITUDES[1]
        and LATITUDES[0] < float(str(one["latitude"])) < LATITUDES[1]
    ]
    assert 0.97 < len(inside) / len(positions) < 0.998
    assert 0.1 < sum(one["speed"] == 0 for one in positions) / len(positions) < 0.5
