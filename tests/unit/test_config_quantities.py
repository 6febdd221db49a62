"""The kinds of value: every form that a person may write, and none that means nothing."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.settings.quantities import (
    Boolean,
    Choice,
    Duration,
    Integer,
    OriginList,
    Size,
    Text,
    TextList,
    Url,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 10),
        ("0.5", 0.5),
        ("500 ms", 0.5),
        ("2s", 2),
        ("10 min", 600),
        ("24 h", 86400),
        (" 7 D ", 7 * 86400),
        ("PT1H", 3600),
        ("PT1M30.5S", 90.5),
        ("P1DT2H", 93600),
    ],
)
def test_durations_take_numbers_units_and_iso_8601(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "min", "-5", "5 weeks", "1,5 s", "P", "PT", "P1M", "1 h 30 min", None, 5, True]
)
def test_anything_else_is_no_duration(text: object) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("65536", 65536),
        ("16 MiB", 16 * 1024**2),
        ("64KB", 64000),
        ("1.5 gib", 3 * 512 * 1024**2),
        ("10 B", 10),
    ],
)
def test_sizes_take_numbers_and_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "5 potatoes", "1e3", None, 5])
def test_anything_else_is_no_size(text: object) -> None:
    assert parse_size(text) is None


@given(st.integers(0, 2**50))
def test_a_size_reads_back_as_it_is_written(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 10**8))
def test_a_duration_reads_back_as_it_is_written(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("value", [True, 1.5, "1.5", "", "x", -1, 11, "11", None, [1], "9" * 5000])
def test_whole_numbers_stay_within_their_bounds(value: object) -> None:
    with pytest.raises(ValueError, match="from 0 to 10"):
        Integer(0, 10).parse(value)


def test_whole_numbers_take_digits_with_underscores() -> None:
    assert (Integer(0, 10**6).parse("100_000"), Integer(-5, 5).parse(" -5 ")) == (100_000, -5)


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), -1, "1 ms", None])
def test_seconds_stay_within_their_bounds(value: object) -> None:
    with pytest.raises(ValueError, match="a duration from 1 s"):
        Duration(1.0).parse(value)


@pytest.mark.parametrize("value", [True, 1.5, 1023, "1 KB", "2 GiB", None])
def test_sizes_stay_within_their_bounds(value: object) -> None:
    with pytest.raises(ValueError, match="a size from 1 KiB to 1 GiB"):
        Size(1024, 2**30).parse(value)


@pytest.mark.parametrize(
    ("value", "flag"), [(True, True), ("Yes", True), ("on", True), ("0", False), ("false", False)]
)
def test_flags_take_the_usual_words(value: object, flag: bool) -> None:
    assert Boolean().parse(value) is flag


@pytest.mark.parametrize("value", [1, "", "maybe", None])
def test_flags_take_no_other_words(value: object) -> None:
    with pytest.raises(ValueError, match="true or false"):
        Boolean().parse(value)


def test_choices_are_taken_in_any_case() -> None:
    kind = Choice(choices=("text", "json"))
    assert kind.parse(" JSON ") == "json"
    with pytest.raises(ValueError, match="text or json"):
        kind.parse("xml")


@pytest.mark.parametrize("value", ["stomp://", "stomp:///", "http://h", "host:61613", 5, "stomp://h\n"])
def test_a_url_has_a_scheme_of_ours_and_a_host(value: object) -> None:
    with pytest.raises(ValueError, match="a stomp URL"):
        Url("a stomp URL", schemes=("stomp",)).parse(value)


def test_text_may_be_empty_unless_it_must_not() -> None:
    assert Text().parse("") == ""
    with pytest.raises(ValueError, match="a directory"):
        Text("a directory", empty=False).parse("")


def test_text_is_written_so_that_toml_reads_it_back() -> None:
    assert Text().format('a "b" \\c') == r'"a \"b\" \\c"'


@pytest.mark.parametrize(
    ("value", "texts"),
    [("", ()), ("A", ("A",)), (" A:B , C ,", ("A:B", "C")), (["A", " B "], ("A", "B")), ([], ())],
)
def test_several_texts_are_a_list_or_have_commas_between_them(value: object, texts: tuple[str, ...]) -> None:
    kind = TextList("a list of topics")
    assert kind.parse(value) == texts
    assert tomllib.loads(f"x = {kind.format(texts)}")["x"] == list(texts)


@pytest.mark.parametrize("value", [5, None, [1], {"A": 1}])
def test_anything_else_is_no_list_of_texts(value: object) -> None:
    with pytest.raises(ValueError, match="a list of topics"):
        TextList("a list of topics").parse(value)


def test_origins_are_as_browsers_write_them() -> None:
    kind = OriginList("a list of origins, or *")
    assert kind.parse("https://Maps.example, http://[::1]:9000") == (
        "https://maps.example",
        "http://[::1]:9000",
    )
    assert kind.parse(["*"]) == ("*",)


@pytest.mark.parametrize("value", ["maps.example", "https://maps.example/", "ftp://maps.example", "null", 1])
def test_an_origin_that_no_browser_sends_is_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="a list of origins"):
        OriginList("a list of origins, or *").parse(value)
