"""Rows, checks, tables, and the page that they are written to."""

import json
import math
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from benchmarks.frame import Check, Options, Row, Table, take_turns
from benchmarks.matching_engines import PLACES, REQUESTS
from benchmarks.page import places, update_page, update_summary
from benchmarks.report import as_json, as_markdown, as_svg, as_text, read_checks, write
from benchmarks.tools import paper_curves
from benchmarks.tools.curves import pictures_of, tables_of
from lxml import etree

FAST, SLOW = Row.of("fast", [90, 100, 140], "server 99 %"), Row.of("slow", [30, 50, 40])
RATIO = Check.ratio("fast, against slow", FAST, SLOW, 2.5)
TABLE = Table("race", "laps/s", ((SLOW, FAST),), (RATIO,), ("on one track",))


def test_a_row_has_the_median_and_the_spread_of_its_samples():
    assert (FAST.value, FAST.spread) == (100, "90.0–140")
    assert Row("once", 3.0).spread == ""


def test_a_ratio_is_that_of_each_round_and_not_of_the_medians():
    assert RATIO.values == (3.0, 2.0, 3.5)
    assert (RATIO.value, RATIO.met, RATIO.wanted) == (3.0, True, "≥ 2.5 ×")
    assert not Check.ratio("", FAST, SLOW, 301, "%").met


def test_a_check_may_want_little_instead_of_much():
    assert Check("memory", (29.0,), 30, "MB", at_most=True).met
    assert not Check("memory", (31.0,), 30, "MB", at_most=True).met


def test_candidates_take_turns_and_each_round_begins_with_another():
    seen = []
    calls = {name: lambda name=name: seen.append(name) or float(len(seen)) for name in "abc"}
    assert take_turns(calls, 2) == {"a": [1.0, 6.0], "b": [2.0, 4.0], "c": [3.0, 5.0]}
    assert "".join(seen) == "abcbca"


def test_a_quick_run_makes_large_things_small():
    assert Options().sized(10_000, 500) == 10_000
    assert Options(quick=True).sized(10_000, 500) == 500


def test_the_text_shows_ratios_spread_targets_and_notes():
    text = as_text(TABLE)
    assert "2.50  90.0–140; server 99 %" in text
    assert "3.00 × (2.00–3.50)  target: ≥ 2.5 ×" in text
    assert text.endswith("(on one track)")
    assert "NOT MET" not in text
    assert "NOT MET" in as_text(Table("", "", ((FAST,),), (Check("", (1.0,), 2),)))


def test_the_json_holds_all_that_was_measured():
    data = json.loads(as_json(TABLE, Options(0.5, 3)))
    assert [row["samples"] for row in data["rows"]] == [[30, 50, 40], [90, 100, 140]]
    assert (data["checks"][0]["value"], data["checks"][0]["met"]) == (3.0, True)
    assert (data["seconds"], data["rounds"], data["quick"]) == (0.5, 3, False)


def test_the_plot_is_well_formed_even_with_nothing_to_show():
    for row in (FAST, Row("<none> & nothing", 0.0)):
        etree.fromstring(as_svg(Table("a < b", "µs", ((row,),))).encode())


def test_a_ratio_to_nothing_is_no_number():
    assert math.isnan(Table("", "", ((Row("none", 0.0), FAST),)).ratios()[1][1])


def test_a_table_is_put_between_its_marks_and_nothing_else_is_touched(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text(
        "before\n<!-- bench race -->\nold\n<!-- end race -->\nafter\n<!-- bench x -->\n<!-- end x -->\n"
    )
    for _ in range(2):
        written = update_page("race", TABLE, Options(), tmp_path)
    assert written == [page, tmp_path / "plots" / "race.svg"]
    before, _, rest = page.read_text().partition("<!-- bench race -->\n")
    table, _, after = rest.partition("<!-- end race -->")
    assert (before, after) == ("before\n", "\nafter\n<!-- bench x -->\n<!-- end x -->\n")
    assert as_markdown(TABLE, "plots/race.svg") in table and "Targets met: 1 of 1." in table
    assert "old" not in table


def test_a_page_with_a_summary_has_the_targets_only_there(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text("<!-- bench summary -->\n<!-- end summary -->\n<!-- bench race -->\n<!-- end race -->\n")
    update_page("race", TABLE, Options(), tmp_path)
    assert "| slow |" in page.read_text() and "Targets met" not in page.read_text()


def test_a_page_names_the_missed_targets_only() -> None:
    missed = Check("slow, against fast", (0.5,), 2)
    lines = as_markdown(Table("", "", ((FAST,),), (RATIO, missed)), "").splitlines()
    assert "Targets met: 1 of 2. Missed: slow, against fast: 0.50 ×, target ≥ 2 ×." in lines


def test_a_column_that_is_empty_in_every_row_is_left_out():
    lines = as_markdown(Table("", "MB", ((Row("idle", 66.7), Row("busy", 135.0)),)), "").splitlines()
    assert lines[:4] == [
        "| | MB | ratio |",
        "|---|---|---|",
        "| idle | 66.7 | 1.00 |",
        "| busy | 135 | 2.02 |",
    ]
    noted = Table("", "laps/s", ((FAST,),), note_title="server")
    assert as_markdown(noted, "").startswith("| | laps/s | ratio | server |\n")


def test_a_table_without_a_place_on_the_page_is_left_out(tmp_path):
    (tmp_path / "performance.md").write_text("nothing\n")
    assert update_page("race", TABLE, Options(), tmp_path) == []
    assert (tmp_path / "performance.md").read_text() == "nothing\n"


@pytest.mark.parametrize("samples", [[], [1.0, 2.0]])
def test_rounds_that_do_not_match_are_no_ratio(samples):
    with pytest.raises(ValueError, match=r"argument|shorter|longer"):
        Check.ratio("", FAST, Row("other", 1.0, samples=tuple(samples)), 1)


def test_a_drawing_of_its_own_replaces_the_bars():
    assert as_svg(Table("growth", "value", ((FAST,),), drawing="<svg/>")) == "<svg/>"


def test_a_summary_tells_of_every_target_and_of_what_failed(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("<!-- bench summary -->\n<!-- end summary -->\n<!-- bench race -->\n<!-- end race -->\n")
    assert places(tmp_path) == {"summary", "race"}
    write(tmp_path, "race", TABLE, Options())
    update_summary(read_checks(tmp_path, ["race"]), ["other"], Options(), tmp_path)
    text = page.read_text()
    assert all(f"| race | {check.what} | {check.reached} |" in text for check in TABLE.checks)
    assert "| other | | **failed** |" in text


def test_a_benchmark_that_was_measured_like_the_summary_does_not_repeat_how(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("<!-- bench summary -->\n<!-- end summary -->\n<!-- bench race -->\n<!-- end race -->\n")
    update_page("race", TABLE, Options(), tmp_path)
    update_summary({"race": TABLE.checks}, [], Options(), tmp_path)
    assert page.read_text().count("Measured ") == 1
    update_page("race", TABLE, Options(rounds=3), tmp_path)
    assert page.read_text().count("Measured ") == 2


def test_a_table_of_curves_puts_its_own_tables_and_pictures_on_its_page(tmp_path: Path) -> None:
    shown = "![](plots/matching-ranges-3.svg)\n<!-- bench matching -->\n<!-- end matching -->\n"
    (tmp_path / "matching.md").write_text(shown, "utf-8")
    rows = (
        Row("1,000 ranges, 3 %: scan", 80.0),
        Row("1,000 ranges, 3 %: ours", 20.0, "9.0 matches; 35 µs to add"),
        Row("10,000 ranges, 3 %: scan", 130.0),
        Row("10,000 topic filters: ours", 1.0),
    )
    table = Table("matching", "µs", (rows,), body=tables_of(rows), pictures=pictures_of(rows))
    written = update_page("matching", table, Options(), tmp_path)
    assert written == [tmp_path / "matching.md", tmp_path / "plots" / "matching-ranges-3.svg"]
    assert etree.parse(written[1]).getroot().tag.endswith("svg")
    page = (tmp_path / "matching.md").read_text("utf-8")
    assert "| µs per event | 1,000 | 10,000 |\n|---|---|---|\n| ranges, 3 %: scan | 80.0 | 130 |\n" in page
    assert "| ranges, 3 %: ours | 20.0 (9) |  |\n" in page
    assert "| topic filters: ours |  | 1.00 |\n" in page


def test_every_picture_of_the_matching_page_is_one_that_a_run_draws() -> None:
    page = (Path(__file__).parents[3] / "docs" / "matching.md").read_text("utf-8")
    shown = set(re.findall(r"plots/matching-(?!papers|engines)([a-z0-9-]+)\.svg", page))
    kinds = ["ranges, 0 %", "ranges, 36 %", "equalities", "places and words", "topic filters"]
    assert shown == set(pictures_of([Row(f"1,000 {kind}: ours", 1.0) for kind in kinds]))
    engines = set(re.findall(r"plots/matching-engines-([a-z0-9-]+)\.svg", page))
    names = [f"{kind}, µs per event · filters 100 · default" for kind in (REQUESTS, PLACES)]
    assert engines == set(paper_curves.pictures_of([asdict(Row(name, 1.0)) for name in names]))


def test_all_measures_what_monitoring_costs() -> None:
    assert {"monitoring", "scrapes"} <= places()
