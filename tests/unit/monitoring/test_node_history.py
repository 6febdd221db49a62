"""The history of a node: steps are what their samples say, gaps stay gaps, and files come back whole."""

import json
import math
from array import array
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.monitoring.node_history import (
    FIGURES,
    MOST_RESTARTS,
    RANGES,
    DamagedHistory,
    History,
    decode_history,
)

START = 1_700_000_000.0
"""A multiple of 60 s plus 20 s."""

values = st.floats(0, 1e9, width=32)
gaps = st.integers(1, 400)
samples = st.lists(st.tuples(gaps, st.none() | values), min_size=1, max_size=80)


def read(history: History, range_: str, now: float, *metrics: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(history.answer(range_, metrics or history.figures, now))
    return answer


def narrow(value: float) -> float:
    """The value in four bytes, with the digits that an answer has."""
    return float(f"{array('f', [value])[0]:.7g}")


@given(samples, st.sampled_from(list(RANGES)))
def test_each_step_has_the_least_the_mean_and_the_greatest_of_its_samples(
    taken: list[tuple[int, float | None]], range_: str
) -> None:
    history, now = History(["load"]), START
    by_step: dict[int, list[float]] = defaultdict(list)
    step, length = RANGES[range_]
    for gap, value in taken:
        now += gap
        history.add(now, {"load": value})
        if value is not None:
            by_step[int(now // step)].append(value)
    series = read(history, range_, now)["series"]["load"]
    last = int(now // step)
    for place, number in enumerate(range(last - length + 1, last + 1)):
        found = by_step.get(number)
        if not found:
            assert series["min"][place] is series["mean"][place] is series["max"][place] is None
            continue
        assert series["min"][place] == narrow(min(found))
        assert series["max"][place] == narrow(max(found))
        assert series["mean"][place] == pytest.approx(sum(found) / len(found), rel=1e-6, abs=1e-30)
        assert series["min"][place] <= series["mean"][place] <= series["max"][place]


@given(samples, st.integers(0, 80))
def test_a_history_that_was_stored_goes_on_as_if_it_had_not_been(
    taken: list[tuple[int, float | None]], stored_after: int
) -> None:
    kept, stored, now = History(["a", "b"]), History(["a", "b"]), START
    for number, (gap, value) in enumerate(taken):
        now += gap
        if number == stored_after:
            stored = decode_history(stored.encode("n"), ["a", "b"])[1]
        for each in (kept, stored):
            each.add(now, {"a": value, "b": 1.0})
    for range_ in RANGES:
        before, after = read(kept, range_, now), read(stored, range_, now)
        assert before["from"] == after["from"]
        for name in ("a", "b"):
            for which in ("min", "max"):
                assert before["series"][name][which] == after["series"][name][which]
            pairs = zip(before["series"][name]["mean"], after["series"][name]["mean"], strict=True)
            assert all(x == y or x == pytest.approx(y, rel=1e-5) for x, y in pairs)


@pytest.mark.parametrize(("range_", "step", "length"), [("5m", 1, 300), ("1h", 5, 720), ("24h", 60, 1440)])
def test_a_range_has_all_its_steps_and_begins_with_the_oldest(range_: str, step: int, length: int) -> None:
    history = History(["load"])
    history.add(START, {"load": 1.0})
    answer = read(history, range_, START)
    assert answer["step"] == step
    assert [len(answer["series"]["load"][which]) for which in ("min", "mean", "max")] == [length] * 3
    assert answer["series"]["load"]["mean"][-1] == 1.0
    oldest = read(history, range_, START + (length - 1) * step)["series"]["load"]["mean"]
    assert oldest == [1.0] + [None] * (length - 1)
    assert read(history, range_, START + length * step)["series"]["load"]["mean"] == [None] * length


def test_the_first_step_begins_at_a_multiple_of_its_length() -> None:
    history = History(["load"])
    assert read(history, "24h", 1_700_000_000.0)["from"] == "2023-11-13T22:14:00+00:00"


def test_a_pause_longer_than_the_range_leaves_nothing_of_what_was_before() -> None:
    history = History(["load"])
    for second in range(400):
        history.add(START + second, {"load": 1.0})
    history.add(START + 10_000, {"load": 2.0})
    assert read(history, "5m", START + 10_000)["series"]["load"]["mean"] == [None] * 299 + [2.0]


@pytest.mark.parametrize("back", [1, 5, 100, 299, 300, 5000])
def test_steps_after_the_time_to_which_a_clock_is_set_back_are_removed(back: int) -> None:
    history = History(["load"])
    for second in range(300):
        history.add(START + second, {"load": 1.0})
    now = START + 299 - back
    history.add(now, {"load": 2.0})
    found = read(history, "5m", now)["series"]["load"]["mean"]
    assert found == [None] * back + [1.0] * (299 - back) + [2.0] if back < 300 else found[-1] == 2.0
    assert len(found) == 300
    assert read(history, "5m", now + 10)["series"]["load"]["mean"][-10:] == [None] * 10


def test_what_is_no_number_is_a_gap() -> None:
    history = History(["load"])
    history.add(START, {"load": math.nan})
    history.add(START + 1, {"other": 1.0})
    history.add(START + 2, {"load": math.inf})
    assert read(history, "5m", START + 2)["series"]["load"]["mean"] == [None] * 300


def test_only_the_figures_that_were_asked_for_are_in_an_answer() -> None:
    history = History()
    history.add(START, dict.fromkeys(FIGURES, 1.0))
    assert set(read(history, "1h", START, "cpu", "waiting")["series"]) == {"cpu", "waiting"}
    assert set(read(history, "1h", START)["series"]) == set(FIGURES)


def test_the_first_start_is_not_a_restart_and_old_restarts_are_forgotten() -> None:
    history = History(["load"])
    history.restarted(START)
    assert history.restarts == []
    history.add(START, {"load": 1.0})
    for number in range(MOST_RESTARTS + 1):
        history.restarted(START + number)
    assert history.restarts == [START + 1 + number for number in range(MOST_RESTARTS)]
    assert read(history, "5m", START + 399.0)["restarts"][0] == "2023-11-14T22:15:00+00:00"


def test_a_history_takes_four_bytes_a_value() -> None:
    size = 4 * len(FIGURES) * (300 + 3 * 720 + 3 * 1440)
    assert size < len(History().encode("n")) < size + 4096


def test_a_file_of_a_version_with_other_figures_keeps_those_that_are_known() -> None:
    old = History(["gone", "kept"])
    old.add(START, {"gone": 1.0, "kept": 2.0})
    node, new = decode_history(old.encode("n"), ["new", "kept"])
    new.add(START + 1, {"new": 3.0, "kept": 4.0})
    series = read(new, "1h", START + 1)["series"]
    assert node == "n"
    assert series["kept"] == {
        "min": [None] * 719 + [2],
        "mean": [None] * 719 + [3],
        "max": [None] * 719 + [4],
    }
    assert series["new"]["mean"][-1] == 3.0


@given(st.data())
def test_damaged_bytes_are_told_and_nothing_else(data: st.DataObject) -> None:
    whole = History(["load"]).encode("n")
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from([whole[:place], whole[:place] + b"\xff" + whole[place + 1 :], whole[place + 1 :]])
    )
    if damaged == whole:
        return
    try:
        decode_history(damaged, ["load"])
    except DamagedHistory:
        return
    assert damaged.partition(b"\n")[2] == whole.partition(b"\n")[2]  # only the head's text has changed


@pytest.mark.parametrize("data", [b"", b"\n", b"[]\n", b"{}\n", b'{"format": 2}\n', b"\x00\xff" * 50])
def test_what_is_no_history_is_told(data: bytes) -> None:
    with pytest.raises(DamagedHistory):
        decode_history(data)
