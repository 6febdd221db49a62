"""The pipeline benchmark's own judgement: what it calls equal, missing, repeated and out of order."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.tools.pipeline_job import Batch, JobProcess, cpu_by_part, tree_seconds
from benchmarks.tools.pipeline_latency import Latency, means
from benchmarks.tools.pipeline_records import (
    COUNT,
    FILTER,
    JOBS,
    ByKey,
    Output,
    Records,
    Verdict,
    judge,
    output,
)
from benchmarks.tools.pipeline_tables import (
    AFTER,
    BEFORE,
    CPU_PARTS,
    KAFKA,
    Run,
    latency_table,
    throughput_table,
)

WANTED: ByKey = {"a": [("1", "x"), ("2", "y"), ("1", "x")], "b": [("3", "z")]}
RIGHT: list[tuple[str, Output]] = [("a", ("1", "x")), ("b", ("3", "z")), ("a", ("2", "y")), ("a", ("1", "x"))]


def test_outputs_in_order_by_key_are_equal() -> None:
    verdict = judge(WANTED, RIGHT)
    assert verdict.is_equal
    assert str(verdict) == "equal to the reference, in order, nothing twice"


@pytest.mark.parametrize(
    ("came", "verdict"),
    [
        (RIGHT[:-1], Verdict(missing=1, repeated=0, wrong=0, unordered=0)),
        ([*RIGHT, RIGHT[1]], Verdict(missing=0, repeated=1, wrong=0, unordered=0)),
        ([*RIGHT, ("a", ("9", "x"))], Verdict(missing=0, repeated=0, wrong=1, unordered=0)),
        ([RIGHT[2], RIGHT[0], RIGHT[3], RIGHT[1]], Verdict(missing=0, repeated=0, wrong=0, unordered=1)),
        ([], Verdict(missing=4, repeated=0, wrong=0, unordered=0)),
    ],
)
def test_every_difference_from_the_reference_is_counted(
    came: list[tuple[str, Output]], verdict: Verdict
) -> None:
    assert judge(WANTED, came) == verdict
    assert not verdict.is_equal


def test_the_reference_is_what_the_records_say() -> None:
    records = Records(2000)
    assert len(records.all) == 2000
    passed = [one for one in records.all if one.cid < "cam-100"]
    assert 800 < len(passed) == records.outputs(FILTER)
    came = [output(FILTER, {"cid": one.cid, "vid": one.vid, "time": one.time}) for one in passed]
    assert judge(records.wanted[FILTER], came).is_equal
    minutes = Counter((one.cid, one.time[:16]) for one in records.all[:-1])
    counts = [
        output(COUNT, {"cid": cid, "flow": count, "time": f"{minute}:00.000Z"})
        for (cid, minute), count in sorted(minutes.items())
    ]
    assert judge(records.wanted[COUNT], counts).is_equal
    assert records.outputs(COUNT) == len(minutes)


def progress(number: int) -> str:
    found = {
        "timestamp": f"2026-01-01T00:00:0{number}.000Z",
        "batchId": number,
        "numInputRows": 7,
        "durationMs": {"addBatch": 40, "triggerExecution": 50 + number},
    }
    return f"Streaming query made progress: {json.dumps(found, indent=2)}\n"


def test_batches_are_read_from_the_log_of_spark_up_to_a_line_that_is_not_complete(tmp_path: Path) -> None:
    job = JobProcess(["true"], {}, tmp_path, "job")
    assert job.batches() == []
    (tmp_path / "job.progress").write_text(f"Other\n{progress(0)}{progress(1)}{progress(2)[:70]}")
    batches = job.batches()
    assert [(one.number, one.rows, one.parts["triggerExecution"]) for one in batches] == [
        (0, 7, 50),
        (1, 7, 51),
    ]
    assert means(batches)["triggerExecution"] == 50.5


def test_cpu_time_is_that_of_a_process_with_its_children() -> None:
    assert 0 < cpu_by_part(os.getpid())["driver"] <= tree_seconds(os.getpid())


def test_the_tables_have_a_column_for_each_system_and_targets() -> None:
    def runs(seconds: float, verdict: Verdict) -> list[Run]:
        batch = Batch(0, 1.0, 100, {"addBatch": 5.0})
        return [Run(100, 0.0, 1.0, 2.0, 1.0 + seconds, dict.fromkeys(CPU_PARTS, 0.5), [batch], verdict)]

    equal, bad = Verdict(0, 0, 0, 0), Verdict(0, 3, 0, 1)
    found = {
        (job, name): runs(seconds, verdict)
        for job in JOBS
        for name, seconds, verdict in ((KAFKA, 4, bad), (AFTER, 2, equal), (BEFORE, 8, equal))
    }
    table = throughput_table(JOBS, found, ("a note",))
    assert "| rows/s | 25.0 | 50.0 | 12.5 |" in table.body
    assert "3 repeated, 1 keys out of order" in table.body
    assert all(check.met for check in table.checks)
    assert {check.value for check in table.checks if "rows/s" in check.what} == {2.0, 4.0}
    floor = Latency((100.0,), means([]))
    latency = latency_table([FILTER], {(FILTER, AFTER): Latency((160.0,), means([]))}, [floor, floor], 1)
    (check,) = latency.checks
    assert (check.value, check.met) == (1.6, False)
