"""The simulation of many nodes, on a small scale."""

from benchmarks.scale import Figures, _drawing, held, measure


def test_a_small_network_is_driven_through_its_whole_life():
    found = measure(3, 3)
    assert found.name == "9 nodes in 3" and all(value > 0 for value in found.rows.values())
    assert found.rows["start: converged, s"] < 1
    # Each node is told once, and nobody tells it twice.
    assert found.rows["one subscription: messages"] == 8
    drawing = _drawing([found, Figures(6, 18, 0.0, found.rows)])
    assert drawing.startswith("<svg") and "representative" in drawing


def test_what_is_held_counts_each_thing_once():
    text = "x" * 1000
    assert 1000 < held([text, {"a": text}]) < 2000
