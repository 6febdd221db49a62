"""The simulation of many nodes, on a small scale."""

from benchmarks.frame import Row
from benchmarks.scale import Figures, _drawing, body_of, held, measure


def test_a_small_network_is_driven_through_its_whole_life():
    found = measure(3, 3)
    assert found.name == "9/3" and all(value > 0 for value in found.rows.values())
    assert found.rows["start: converged, s"] < 1
    # Each node is told once, and nobody tells it twice.
    assert found.rows["new subscription: messages"] == 8
    drawing = _drawing([found, Figures(6, 18, 0.0, found.rows)])
    assert drawing.startswith("<svg") and "representative" in drawing


def test_what_is_held_counts_each_thing_once():
    text = "x" * 1000
    assert 1000 < held([text, {"a": text}]) < 2000


def test_the_table_has_a_column_for_each_shape_and_leaves_patterns_out():
    names = ("start: converged, s", "state: ordinary node, patterns")
    rows = [
        Row(f"{name} · {shape}", value) for name in names for shape, value in (("9/3", 1), ("1,000/50", 200))
    ]
    assert body_of(rows).splitlines() == [
        "| nodes/clusters | 9/3 | 1,000/50 |",
        "|---|---|---|",
        "| start: converged, s | 1.00 | 200 |",
    ]
