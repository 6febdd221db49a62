"""Rejected readings: the newest are kept, page by page, also after a restart and a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpwsn.sensors.intake.rejected_readings import (
    LONGEST,
    LONGEST_DETAIL,
    Rejected,
    RejectedReadings,
    beginning,
)
from hpwsn.sensors.readings.checks import Rejection
from hpwsn.sensors.readings.formats import Unparsed


def rejected(number: int, sensor: str | None = "s1", reason: str = "range") -> Rejected:
    return Rejected(sensor, Rejection(reason, f"number {number}"), {"t": number})


def opened(folder: Path, kept: int = 5) -> RejectedReadings:
    return RejectedReadings(folder / "rejected.jsonl", kept=kept, clock=lambda: 1_795_000_000.0)


async def numbers(found: RejectedReadings, limit: int = 100, **more: Any) -> list[int]:
    items, _ = await found.page(limit, **more)
    return [item["reading"]["t"] for item in items]


async def only(found: RejectedReadings) -> dict[str, Any]:
    (item,), following = await found.page(10)
    assert following is None
    return item


async def test_a_rejected_reading_is_kept_with_its_reason(tmp_path: Path) -> None:
    found = opened(tmp_path)
    await found.add([rejected(1)], "http")
    assert await only(found) == {
        "sensor": "s1",
        "reason": "range",
        "detail": "number 1",
        "rejected": "2026-11-18T11:06:40.000+00:00",
        "source": "http",
        "reading": {"t": 1},
    }
    assert (tmp_path / "rejected.jsonl").stat().st_mode & 0o777 == 0o600


async def test_it_is_in_the_file_when_add_returns(tmp_path: Path) -> None:
    found = opened(tmp_path)
    await found.add([rejected(1), rejected(2)], "http")
    assert await numbers(opened(tmp_path)) == [2, 1]


async def test_as_many_as_allowed_are_kept_and_not_one_more(tmp_path: Path) -> None:
    found = opened(tmp_path)
    for number in range(1, 31):
        await found.add([rejected(number)], "http")
        assert await numbers(found) == list(range(number, max(0, number - 5), -1))
        assert len((tmp_path / "rejected.jsonl").read_bytes().splitlines()) <= 10
        assert await numbers(opened(tmp_path)) == await numbers(found)
    await found.add([rejected(number) for number in range(100, 120)], "http")
    assert await numbers(found) == await numbers(opened(tmp_path)) == [119, 118, 117, 116, 115]


async def test_none_are_kept_if_none_are_allowed(tmp_path: Path) -> None:
    found = opened(tmp_path, kept=0)
    await found.add([rejected(1)], "http")
    assert (await found.page(10), len(found), list(tmp_path.iterdir())) == (([], None), 0, [])


async def test_pages_follow_each_other_though_more_are_rejected(tmp_path: Path) -> None:
    found = opened(tmp_path, kept=100)
    await found.add([rejected(n, sensor="s1" if n % 2 else "s2") for n in range(1, 11)], "http")
    seen: list[int] = []
    before: int | None = None
    while True:
        items, before = await found.page(3, before, sensor="s1")
        seen += [item["reading"]["t"] for item in items]
        if before is None:
            break
        await found.add([rejected(1000)], "http")
    assert seen == [9, 7, 5, 3, 1]
    assert await numbers(found, sensor="s2", reason="range") == [10, 8, 6, 4, 2]
    assert await numbers(found, reason="unit") == []
    assert await numbers(found, sensor="nobody") == []
    assert await found.page(3, 1) == ([], None)
    assert len((await found.page(3, 10**18))[0]) == 3


async def test_a_last_page_that_is_full_has_no_next_one(tmp_path: Path) -> None:
    found = opened(tmp_path)
    await found.add([rejected(n) for n in range(4)], "http")
    _, following = await found.page(4)
    assert following is None
    _, following = await found.page(3)
    assert following is not None


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (b'{"n": 9, "sen', [2, 1]),
        (b"\x00\xff\n", [2, 1]),
        (b"[]\n1\n{}\n" + b"[" * 100_000 + b"\n", [2, 1]),
    ],
)
async def test_lines_that_a_crash_has_damaged_are_left_out(
    tmp_path: Path, damage: bytes, left: list[int]
) -> None:
    await opened(tmp_path).add([rejected(1), rejected(2)], "http")
    with (tmp_path / "rejected.jsonl").open("ab") as file:
        file.write(damage)
    found = opened(tmp_path)
    assert await numbers(found) == left
    await found.add([rejected(3)], "http")
    assert await numbers(opened(tmp_path)) == [3, *left]


async def test_a_file_that_cannot_be_used_is_logged_and_nothing_is_lost_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "rejected.jsonl").mkdir()
    found = opened(tmp_path)
    await found.add([rejected(1)], "http")
    await found.add([rejected(2)], "http")
    assert await numbers(found) == [2, 1]
    assert [record.getMessage().partition(" to ")[0] for record in caplog.records][1:] == [
        "rejected readings cannot be written"
    ]


@pytest.mark.parametrize(
    ("reading", "kept"),
    [
        ("x" * (LONGEST - 2), "x" * (LONGEST - 2)),
        ("x" * (LONGEST - 1), "x" * (LONGEST - 1)),
        ("x" * (LONGEST + 1), "x" * LONGEST + "…"),
        (Unparsed("x" * 100_000, "wrong"), "x" * LONGEST + "…"),
        (Unparsed('{"t": \ud800}', "wrong"), '{"t": ?}'),
        ({"t": float("nan")}, '{"t": NaN}'),
        ([1, None, True], [1, None, True]),
    ],
)
async def test_a_reading_of_any_kind_is_kept_as_far_as_it_fits(
    tmp_path: Path, reading: Any, kept: object
) -> None:
    found = opened(tmp_path)
    await found.add([Rejected("s1", Rejection("malformed", "wrong"), reading)], "http")
    assert (await only(found))["reading"] == (await only(opened(tmp_path)))["reading"] == kept


async def test_a_reading_nested_beyond_all_bounds_is_kept_as_a_remark(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    found = opened(tmp_path)
    await found.add([Rejected("s1", Rejection("malformed", "wrong"), {"t": deep})], "http")
    assert "nested too deeply" in (await only(found))["reading"]


async def test_halves_of_characters_are_replaced_so_that_the_readings_can_be_sent(tmp_path: Path) -> None:
    found = opened(tmp_path)
    await found.add([Rejected("\udc00", Rejection("unknown-sensor", "é"), {"a\ud800": "\udfff☂"})], "http")
    for kept in (found, opened(tmp_path)):
        item = await only(kept)
        assert (item["sensor"], item["detail"], item["reading"]) == ("?", "é", {"a?": "?☂"})


async def test_a_large_object_is_kept_as_the_beginning_of_its_text(tmp_path: Path) -> None:
    found = opened(tmp_path)
    large = {f"q{n}": n for n in range(10_000)}
    await found.add([Rejected("s1", Rejection("malformed", "wrong"), large)], "http")
    assert (await only(found))["reading"] == json.dumps(large)[:LONGEST] + "…"


async def test_long_ids_and_details_are_cut(tmp_path: Path) -> None:
    found = opened(tmp_path)
    await found.add([Rejected("s" * 10**6, Rejection("malformed", "d" * 10**6), {})], "http")
    item = await only(found)
    assert item["sensor"] == "s" * LONGEST_DETAIL + "…"
    assert item["detail"] == "d" * LONGEST_DETAIL + "…"


@pytest.mark.parametrize("data", [b"x" * 3, b"x" * 100_000, "€".encode() * 100_000, b"\xff" * 100_000])
def test_the_beginning_of_data_is_what_is_kept_and_one_character_more(data: bytes) -> None:
    assert beginning(data) == data.decode("utf-8", "replace")[: LONGEST + 1]
