"""What scripts/soak says of its samples: level, not level, or too few to tell."""

import json
from pathlib import Path

import pytest
from benchmarks.soak import Soak, sample_line, summary, write
from benchmarks.tools.levels import ProcessSample, as_panels, levels
from lxml import etree

COUNT = 12


def series(**growing: float) -> list[ProcessSample]:
    """Samples, one a minute, each quantity the same but for those that grow by so much a minute."""
    return [
        ProcessSample(
            minutes=float(minute),
            mps=20_000.0,
            cpu=40.0 + growing.get("cpu", 0.0) * minute,
            memory=140.0 + growing.get("memory", 0.0) * minute,
            threads=4 + int(growing.get("threads", 0.0) * minute),
            descriptors=27 + int(growing.get("descriptors", 0.0) * minute),
        )
        for minute in range(1, COUNT + 1)
    ]


def judged(samples: list[ProcessSample], lost: int = 0) -> tuple[str, int]:
    soak = Soak("http://n/wsn", 1, 500, 5, samples=samples, lost=lost, received=1000)
    lines, status = summary(soak, levels(samples))
    return lines[-1], status


def test_level_samples_are_level() -> None:
    assert judged(series()) == ("the node was level", 0)


@pytest.mark.parametrize(
    ("quantity", "growth", "name"),
    [
        ("memory", 3.0, "memory"),
        ("threads", 0.5, "threads"),
        ("descriptors", 2.0, "descriptors"),
        ("cpu", 4.0, "CPU per message"),
    ],
)
def test_what_grows_beyond_its_tolerance_is_named(quantity: str, growth: float, name: str) -> None:
    assert judged(series(**{quantity: growth})) == (f"not level: {name}", 1)
    assert judged(series(**{quantity: -growth / 2})) == ("the node was level", 0)


def test_growth_at_the_tolerance_is_level_and_above_it_is_not() -> None:
    # After the warm-up of three samples, nine remain, which span eight minutes; 16 MB are allowed.
    assert [level.is_level for level in levels(series(memory=1.99))] == [True] * 4
    assert [level.name for level in levels(series(memory=2.01)) if not level.is_level] == ["memory"]


def test_growth_in_the_warm_up_does_not_count() -> None:
    samples = series()
    samples[0] = ProcessSample(1.0, 20_000.0, 400.0, 20.0, 1, 1)
    assert judged(samples) == ("the node was level", 0)


def test_a_lost_message_is_worse_than_anything_level() -> None:
    assert judged(series(), lost=3) == ("3 messages that the node accepted were not received", 1)


def test_too_few_samples_say_nothing() -> None:
    assert judged(series()[:4]) == ("4 samples are too few to say whether the node was level", 2)
    assert judged([])[1] == 2


def test_all_samples_are_written_with_the_verdict_and_a_plot(tmp_path: Path) -> None:
    soak = Soak("http://n/wsn", 1, 500, 5, samples=series(memory=3.0))
    found = levels(soak.samples)
    json_file, plot = write(tmp_path / "new", soak, found, ["text"])
    data = json.loads(json_file.read_text())
    assert len(data["samples"]) == COUNT
    assert {level["name"]: level["level"] for level in data["levels"]}["memory"] is False
    titles = [text.text for text in etree.parse(plot).iter("{*}text")]
    assert {"MPS", "CPU, % of a core", "memory, MB", "threads", "descriptors"} < set(titles)


def test_a_plot_of_no_samples_is_empty_and_no_error() -> None:
    assert etree.fromstring(as_panels([]).encode()).tag.endswith("svg")


def test_a_sample_is_one_line() -> None:
    assert sample_line(series()[0]) == (
        "[   1.0 min] MPS 20,000, CPU 40 %, memory 140.0 MB, threads 4, descriptors 27"
    )
