"""Times of readings: RFC 3339 and milliseconds."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.sensors.readings.reading_times import parse_any_time, parse_time, time_text

MOMENTS = st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29))


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01t00:00:00.5z", 500),
        ("1970-01-01 00:00:01.0009Z", 1000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999-00:00", -1),
        ("1990-12-31T23:59:60Z", 662688000000),
        ("2026-11-19T02:03:04.567891234Z", 1795053784567),
    ],
)
def test_an_rfc_3339_time_is_read_to_the_millisecond(text: str, time: int) -> None:
    assert parse_time(text) == time


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-19",
        "2026-11-19T02:03Z",
        "2026-11-19T02:03:04",
        "20261119T020304Z",
        "2026-W47-4T02:03:04Z",
        "2026-02-30T02:03:04Z",
        "2026-11-19T24:00:01Z",
        "2026-11-19T02:03:04.Z",
        "2026-11-19T02:03:04,5Z",
        "2026-11-19T02:03:04+24:00",
        "2026-11-19T02:03:04+0100",
        " 2026-11-19T02:03:04Z",
        "2026-11-19T02:03:04Z\n",
        "٢٠٢٦-11-19T02:03:04Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00Z",
    ],
)
def test_any_other_text_is_no_time(text: str) -> None:
    assert parse_time(text) is None


@given(MOMENTS, st.integers(-1439, 1439))
def test_every_time_is_read_as_the_library_reads_it(moment: datetime, zone: int) -> None:
    moment = moment.replace(tzinfo=timezone(timedelta(minutes=zone)))
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert parse_time(moment.isoformat()) == expected


@given(st.integers(-62135596800000, 253402300799999))
def test_a_written_time_is_read_back(time: int) -> None:
    assert parse_time(time_text(time)) == time


@given(st.text())
def test_garbage_never_raises(text: str) -> None:
    assert parse_time(text) is None or text[:4].isdigit()


@given(
    st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{3}[Zz]", fullmatch=True
    )
    | MOMENTS.map(lambda moment: f"{moment.isoformat(timespec='milliseconds')}Z")
    | st.tuples(MOMENTS, st.integers(0, 23), st.characters()).map(
        lambda each: "".join(
            each[2] if at == each[1] else char
            for at, char in enumerate(f"{each[0].isoformat(timespec='milliseconds')}Z")
        )
    )
)
def test_the_fast_way_reads_a_time_as_the_other_one_does(text: str) -> None:
    assert parse_time(text) == parse_any_time(text)
