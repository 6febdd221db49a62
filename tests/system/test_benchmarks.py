"""Every benchmark runs in its shortest form and gives figures that can be read; nobody promises how large."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from benchmarks.services.methods import ALONE, METHODS, THIS
from lxml import etree

from tests.harness import ROOT, environment
from tests.needs import need
from tests.patience import PATIENCE, until

NAMES = (
    "notify", "push", "end-to-end", "fan-out", "latency", "topics", "fragments", "growth", "matching",
    "matching-engines", "matching-papers", "long-connections", "memory", "delivery-modes", "wire",
    "large-messages", "monitor", "monitoring", "scrapes",
)  # fmt: skip
WITH_TARGETS = set(NAMES) - {"latency", "delivery-modes", "wire"}
REFERENCES = ("bare Protocol", "aiohttp", "Spyne")


def bench(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT / "scripts"), environment()["PYTHONPATH"]])
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        env={**environment(), "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_measures_itself_and_what_it_is_measured_against(name: str, tmp_path: Path):
    ended = bench(name, "--quick", "--seconds", "0.05", "--rounds", "1", "--output", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    data = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
    assert data["rows"]
    assert all(math.isfinite(row["value"]) and row["value"] > 0 for row in data["rows"]), data["rows"]
    assert bool(data["checks"]) == (name in WITH_TARGETS)
    assert all(math.isfinite(check["value"]) for check in data["checks"])
    without = (
        "delivery-modes",
        "large-messages",
        "long-connections",
        "matching",
        "matching-engines",
        "matching-papers",
        "monitor",
        "monitoring",
        "push",
        "scrapes",
        "wire",
    )
    if name not in without:
        for reference in REFERENCES:
            assert any(reference in row["name"] for row in data["rows"]), reference
    assert etree.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
    assert data["title"] in ended.stdout
    assert "round" in ended.stderr or name in ("memory", "wire", "matching-papers", "delivery-modes")


@pytest.mark.parametrize("part", ["latency", "methods", "held", "spark"])
def test_a_part_of_the_stream_services_measures_every_method_and_leaves_no_process(part: str, tmp_path: Path):
    if part == "spark":
        need("Java 17 or later")
    short = ("--quick", "--seconds", "0.05", "--output", str(tmp_path))
    ended = bench("streams", "--part", part, *short, RUN_OF_BENCHMARK=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    data = json.loads((tmp_path / f"streams-{part}.json").read_text("utf-8"))
    assert all(math.isfinite(row["value"]) and row["value"] > 0 for row in data["rows"]), data["rows"]
    methods = {"latency": {"broker"}, "methods": set(METHODS), "held": {THIS, ALONE}, "spark": {"Spark"}}
    assert {row["name"].partition(" · ")[0] for row in data["rows"]} == methods[part]
    assert bool(data["checks"]) == (part in ("latency", "held"))
    assert "requests" in ended.stderr
    until(lambda: not [each for each in psutil.process_iter() if _run(each) == str(tmp_path)])


@pytest.mark.parametrize("part", ["http", "mqtt", "arrays"])
def test_sensors_lose_nothing_and_every_result_is_judged(part: str, tmp_path: Path):
    if part != "http":
        need("Mosquitto")
    short = ("--quick", "--sensors", "40", "--together", "20", "--seconds", "1", "--output", str(tmp_path))
    ended = bench("sensors", "--part", part, *short, RUN_OF_BENCHMARK=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    data = json.loads((tmp_path / "sensors.json").read_text("utf-8"))
    door = {"http": "HTTP", "mqtt": "MQTT", "arrays": "MQTT, arrays"}[part]
    values = {row["name"]: row["value"] for row in data["rows"]}
    assert values[f"{door} · readings/s"] == 40
    assert values[f"{door} · CPU µs per reading"] > 0
    checks = {check["what"]: check["value"] for check in data["checks"]}
    assert checks["readings lost between answer, counter and log"] == 0
    assert checks["readings that the history lacks or has twice"] == 0
    assert "results with all readings of their window" in checks
    assert "80 readings" in ended.stderr
    assert etree.parse(tmp_path / "sensors.svg").getroot().tag.endswith("svg")
    until(lambda: not [each for each in psutil.process_iter() if _run(each) == str(tmp_path)])


def _run(process: psutil.Process) -> str:
    """The run of a benchmark that has started a process; empty for others."""
    try:
        return str(process.environ().get("RUN_OF_BENCHMARK", ""))
    except psutil.Error:
        return ""


def test_mps_is_printed_as_often_as_asked_for_and_of_the_cases_of_the_thesis(tmp_path: Path):
    ended = bench(
        *("topics", "--quick", "--seconds", "0.05", "--rounds", "1", "--mps", "5", "--output", str(tmp_path))
    )
    assert ended.returncode == 0, ended.stderr
    found = re.findall(r"HPwsn, ([^:]+): [\d,]+ messages in [\d.]+ s, MPS [\d,]+\n", ended.stderr)
    assert {"two levels deep", "five levels deep", "five levels deep, last sibling"} < set(found)


def test_the_list_names_every_benchmark_with_what_it_measures():
    ended = bench("--list")
    listed = {line.split()[0] for line in ended.stdout.splitlines()}
    assert {
        *NAMES,
        "backbone",
        "backlog",
        "browser",
        "cluster",
        "directory",
        "durability",
        "json-door",
        "pipeline",
        "recovery",
        "scale",
        "sensors",
        "streams",
    } == listed
    assert all(len(line.split()) > 3 for line in ended.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no benchmark 'nothing'"),
        (["wire", "--seconds", "0"], "no time"),
        (["topics", "--mps", "-1"], "not a number of messages"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(arguments: list[str], words: str):
    ended = bench(*arguments)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("hpwsn: error: ")


def test_the_command_line_runs_the_benchmarks_of_a_checkout(tmp_path: Path):
    command = [sys.executable, "-m", "hpwsn", "bench", "wire", "--quick", "--seconds", "0.05"]
    ended = subprocess.run(
        [*command, "--output", str(tmp_path)], env=environment(), capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    assert "lxml parse" in ended.stdout
    assert (tmp_path / "wire.json").exists()
