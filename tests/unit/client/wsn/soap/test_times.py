"""Times and durations in every spelling of XML Schema, and in none besides."""

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.soap.times import Duration, format_time, parse_time

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
OFFSETS = st.builds(lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-840, 840))
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=OFFSETS)
MICROS = st.integers(0, 10**13)


@st.composite
def durations(draw: st.DrawFn) -> Duration:
    sign = draw(st.sampled_from([1, -1]))
    return Duration(sign * draw(st.integers(0, 9999)), sign * draw(MICROS) / 1_000_000)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2030-01-31T12:00:00Z", NOW),
        ("2030-01-31T12:00:00", NOW),
        (" \n2030-01-31T12:00:00Z\t", NOW),
        ("2030-01-31T14:30:00+02:30", NOW),
        ("2030-01-30T22:00:00-14:00", NOW),
        ("2030-01-31T12:00:00.000Z", NOW),
        ("2030-01-31T12:00:00.5Z", NOW.replace(microsecond=500_000)),
        ("2030-01-31T12:00:00.1234567899Z", NOW.replace(microsecond=123_456)),
        ("2030-01-30T24:00:00Z", datetime(2030, 1, 31, tzinfo=UTC)),
        ("2029-12-31T24:00:00.00+01:00", datetime(2029, 12, 31, 23, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ],
)
def test_date_times_are_read_as_utc(text: str, time: datetime) -> None:
    parsed = parse_time(text)
    assert parsed == time
    assert isinstance(parsed, datetime)
    assert parsed.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("text", "months", "seconds"),
    [
        ("PT1H", 0, 3600),
        ("P1D", 0, 86400),
        ("P1Y2M3DT4H5M6.7S", 14, 3 * 86400 + 4 * 3600 + 5 * 60 + 6.7),
        ("PT0S", 0, 0),
        ("PT36H", 0, 129_600),
        ("P0Y", 0, 0),
        ("-P1M", -1, 0),
        ("-PT0.5S", 0, -0.5),
        (" PT1M ", 0, 60),
        ("P1M", 1, 0),
        ("PT0.0000009S", 0, 0),
    ],
)
def test_durations_are_months_and_seconds(text: str, months: int, seconds: float) -> None:
    assert parse_time(text) == Duration(months, seconds)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "soon", "2030-01-31", "12:00:00", "2030-01-31 12:00:00Z", "2030-1-31T12:00:00Z",
        "2030-02-30T12:00:00Z", "2030-01-31T12:00Z", "2030-01-31T12:00:00z", "2030-01-31T12:00:00+0100",
        "2030-01-31T12:00:00+14:01", "2030-01-31T12:00:00+01:60", "2030-01-31T12:00:60Z",
        "2030-01-31T24:00:01Z", "2030-01-31T24:00:00.1Z", "2030-01-31T25:00:00Z", "2030-01-31T12:00:00.Z",
        "0000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "12030-01-31T12:00:00Z", "9999-12-31T24:00:00Z",
        "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "２０３０-01-31T12:00:00Z",
        "2030-01-31T12:00:00Z\0", "P", "PT", "P1", "1D", "P1H", "PT1D", "P1DT", "PT1.S", "PT.5S", "P1.5D",
        "P-1D", "+P1D", "P1D1Y", "p1d", "P1W", "P1S", "P 1D", "P١D", "P10000Y", "P9999999999D",
        "P" + "9" * 50 + "Y", "PT" + "9" * 5000 + "S", "2030-01-31T12:00:00." + "0" * 5000 + "Z",
    ],
)  # fmt: skip
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time|too long"):
        parse_time(text)


@given(st.text() | st.from_regex(r"\A-?P?[0-9TYMDHS:.Z+-]{0,40}\Z"))
def test_garbage_gives_nothing_but_value_errors(text: str) -> None:
    with suppress(ValueError):
        assert parse_time(format_time(parse_time(text))) == parse_time(text)


@given(TIMES)
def test_times_survive_writing_and_reading(time: datetime) -> None:
    assert parse_time(format_time(time)) == time
    assert parse_time(time.isoformat()) == time


@given(durations())
def test_durations_survive_writing_and_reading(duration: Duration) -> None:
    assert parse_time(format_time(duration)) == duration


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (NOW, "2030-01-31T12:00:00Z"),
        (NOW.replace(tzinfo=None), "2030-01-31T12:00:00Z"),
        (NOW.astimezone(timezone(timedelta(hours=8))), "2030-01-31T12:00:00Z"),
        (NOW.replace(microsecond=70_000), "2030-01-31T12:00:00.070Z"),
        (NOW.replace(microsecond=70_001), "2030-01-31T12:00:00.070001Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
        (Duration(0, 0), "PT0S"),
        (Duration(0, 90_061.5), "P1DT1H1M1.500S"),
        (Duration(-14, -60), "-P1Y2MT1M"),
        (Duration(0, 0.25), "PT0.250S"),
    ],
)
def test_times_are_written_in_z_with_the_fraction_they_have(value: datetime | Duration, text: str) -> None:
    assert format_time(value) == text


@pytest.mark.parametrize(
    ("duration", "later"),
    [
        (Duration(0, 1.5), datetime(2030, 1, 31, 12, 0, 1, 500_000)),
        (Duration(1), datetime(2030, 2, 28, 12)),
        (Duration(25), datetime(2032, 2, 29, 12)),
        (Duration(3, 86400), datetime(2030, 5, 1, 12)),
        (Duration(-1, -60), datetime(2029, 12, 31, 11, 59)),
        (Duration(-11), datetime(2029, 2, 28, 12)),
        (Duration(12 * 70 + 1), datetime(2100, 2, 28, 12)),
        (Duration(0, -86400), datetime(2030, 1, 30, 12)),
    ],
)
def test_duration_leads_to_the_calendar_day(duration: Duration, later: datetime) -> None:
    assert duration.after(NOW) == later.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["P9000Y", "-P2030Y", "-P2029Y1M", "P3000000D", "-PT99999999999S", "P7969Y11M1D"]
)
def test_times_beyond_the_calendar_are_refused(text: str) -> None:
    duration = parse_time(text)
    assert isinstance(duration, Duration)
    with pytest.raises(ValueError, match="is outside the years 1 to 9999"):
        duration.after(NOW)


@given(durations(), TIMES)
def test_after_gives_a_time_or_a_value_error(duration: Duration, now: datetime) -> None:
    with suppress(ValueError):
        later = duration.after(now)
        assert (later >= now) == (duration.months > 0 or duration.seconds >= 0 == duration.months)


@pytest.mark.parametrize(
    ("months", "seconds"), [(1, -1.0), (-1, 1.0), (0, math.inf), (0, math.nan), (10**9, 0.0), (0, -1e18)]
)
def test_spans_that_no_duration_can_say_are_refused(months: int, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"^duration of "):
        Duration(months, seconds)
