"""What one session of Spark can show: operators mean there what they mean in plain Python, over past data and
over a stream that is stopped and goes on; and jobs, from each source, by the door or by ActiveMQ out, kept,
and queried again.

One file, since a session takes longer to start than most of this takes. All cases of operators are one query,
whose rows carry the name of their case: a query has more to set up than to do here.
"""

from __future__ import annotations

import json
import os
import socketserver
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.schema import Event, event_of, json_of, parse_schema
from hpwsn.streams.definition_files import load
from hpwsn.streams.plan.plan import build_plan, compute, watermark
from hpwsn.streams.spark.columns import spark_schema
from hpwsn.streams.spark.dataframes import apply
from hpwsn.streams.spark.history import json_lines, query_history
from hpwsn.streams.spark.inputs import register_sources
from hpwsn.streams.spark.job import RESTARTS, Job, Options
from hpwsn_client import SyncClient
from tests import stream_examples
from tests.activemq import ActiveMQ, BackedNode
from tests.harness import ROOT, NodeProcess
from tests.patience import PATIENCE, until
from tests.spark import events_of, spark_session
from tests.stream_cases import CASES, DATA, EACH, FILES, FUNCTIONS, LIVE, SCHEMA, START, definition
from tests.stream_examples import counted, examples, plates, positions

EXAMPLES = ROOT / "hpwsn" / "streams" / "examples"
READINGS = """
uri = "urn:test:readings"
topic = "readings"

[inputs.files]
source = "files"
path = "in"
format = "csv"
schema = "place STRING, n BIGINT, time TIMESTAMP"

[[ops]]
op = "filter"
where = "n != 3"

[constraints]
n = ">= 0"
"""
LARGEST = """
uri = "urn:test:largest"
topic = "largest"

[inputs.readings]
source = "service"
service = "urn:test:readings"
file = "readings.toml"

[[ops]]
op = "incrMax"
attribute = "n"
by = "place"
emit = "row"
as = "largest"
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("warehouse")) as session:
        register_sources(session)
        yield session


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Definition]]:
    """The cases, and the module of their functions, which only this process can import."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "operators_of_a_test.py").write_text(FUNCTIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield {name: definition(ops) for name, ops in CASES.items()}
    sys.modules.pop("operators_of_a_test", None)


def _all(definitions: Mapping[str, Definition], frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of all cases, each as the name of its case and JSON."""
    options = {"ignoreNullFields": "false"}
    rows = [
        apply(one, frames).select(
            fn.lit(name).alias("case"), fn.to_json(fn.struct("*"), options).alias("row")
        )
        for name, one in definitions.items()
    ]
    return reduce(DataFrame.unionAll, rows)


def _by_case(
    frame: DataFrame, definitions: Mapping[str, Definition]
) -> dict[str, Counter[tuple[object, ...]]]:
    found: dict[str, Counter[tuple[object, ...]]] = {name: Counter() for name in definitions}
    schemas = {name: build_plan(one).output.schema for name, one in definitions.items()}
    for row in frame.collect():
        event = event_of(json.loads(row["row"]), schemas[row["case"]])
        found[row["case"]][tuple(event.values())] += 1
    return found


@pytest.fixture(scope="module")
def past(spark: SparkSession, definitions: dict[str, Definition]) -> dict[str, Counter[tuple[object, ...]]]:
    """What Spark gives for past data."""
    arrow = to_arrow_schema(spark_schema(parse_schema(SCHEMA)), timezone="UTC")
    frames = {
        name: spark.createDataFrame(pa.Table.from_pylist(events, schema=arrow))
        for name, events in DATA.items()
    }
    return _by_case(_all(definitions, frames), definitions)


@pytest.fixture(scope="module")
def live(
    spark: SparkSession, definitions: dict[str, Definition], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Counter[tuple[object, ...]]]:
    """What it gives for a stream of files, one a batch; before the last one it is stopped."""
    folder = tmp_path_factory.mktemp("stream")
    frames = {name: _stream(spark, folder / name) for name in DATA}
    cases = {name: definitions[name] for name in LIVE}
    for batches in (range(FILES - 1), range(FILES - 1, FILES)):
        for number in batches:
            for name, events in DATA.items():
                _write(folder / name / f"{number}.json", events[number * EACH : (number + 1) * EACH], number)
        _run(_all(cases, frames), folder)
    return _by_case(spark.read.parquet(str(folder / "out")), cases)


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir()
    kind = spark_schema(parse_schema(SCHEMA))
    return spark.readStream.schema(kind).option("maxFilesPerTrigger", 1).json(str(folder))


def _write(file: Path, events: Sequence[Event], order: int) -> None:
    lines = [json.dumps({name: json_of(value) for name, value in one.items()}) for one in events]
    hidden = file.with_name(f".{file.name}")
    hidden.write_text("\n".join(lines))
    # The source goes by the time of change.
    os.utime(hidden, (1_700_000_000 + order, 1_700_000_000 + order))
    hidden.rename(file)


def _run(frame: DataFrame, folder: Path) -> None:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    assert query.awaitTermination(240)


@pytest.mark.parametrize("case", CASES)
def test_past_data_gives_what_the_reference_gives(
    case: str, definitions: dict[str, Definition], past: dict[str, Counter[tuple[object, ...]]]
) -> None:
    wanted = Counter(tuple(one.values()) for one in compute(definitions[case], DATA))
    assert wanted
    assert past[case] == wanted


@pytest.mark.parametrize("case", LIVE)
def test_a_stream_gives_what_the_reference_gives_until_its_watermark(
    case: str, definitions: dict[str, Definition], live: dict[str, Counter[tuple[object, ...]]]
) -> None:
    until = watermark(definitions["merge"], DATA)
    wanted = Counter(tuple(one.values()) for one in compute(definitions[case], DATA, until))
    assert wanted
    assert live[case] == wanted


def test_an_event_later_than_the_lateness_is_left_out_and_one_within_it_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    (one,) = load(EXAMPLES / "genTrafficFlow.toml")
    kind = spark_schema(parse_schema(one.inputs["anpr"].schema))
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema(kind).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    # The watermark, 5 s behind, closes the third minute; Spark leaves out by that of the batch before.
    for number, seconds in enumerate(([30, 185], [185], [150, 184], [400])):
        events = [{"cid": "a", "vid": "v", "time": START + timedelta(seconds=one)} for one in seconds]
        _write(tmp_path / "in" / f"{number}.json", events, number)
    _run(apply(one, {"anpr": frame}), tmp_path)
    found = events_of(spark.read.parquet(str(tmp_path / "out")))
    assert {((one["time"] - START).total_seconds(), one["flow"]) for one in found} == {(0, 1), (180, 3)}


# Jobs


@pytest.fixture
def services(tmp_path: Path) -> list[Definition]:
    (tmp_path / "in").mkdir()
    add_file(tmp_path, "a", range(-1, 6))
    (tmp_path / "readings.toml").write_text(READINGS)
    (tmp_path / "largest.toml").write_text(LARGEST)
    return load(tmp_path / "readings.toml", tmp_path / "largest.toml")


def add_file(folder: Path, name: str, numbers: range) -> None:
    rows = [f"{'ab'[n % 2]},{n},2026-01-01T00:00:{n % 60:02}Z\n" for n in numbers]
    (folder / "in" / f"{name}.csv").write_text("place,n,time\n" + "".join(rows))


def run(spark: SparkSession, services: list[Definition], folder: Path, at: NodeProcess, **more: Any) -> str:
    said: list[str] = []
    options = Options(url=at.url, checkpoint=str(folder / "checkpoints"), once=True, **more)
    Job(spark, services, options, said.append).run()
    return "\n".join(said)


def events(node: NodeProcess, topic: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    url, page = f"{node.base}/topics/{topic}/events?max=1000&after=", [{"offset": 0}]
    while page:
        with urlopen(f"{url}{page[-1]['offset']}", timeout=PATIENCE) as answer:
            page = json.load(answer)
        found += [event["data"] for event in page]
    return found


def numbers(node: NodeProcess) -> list[int]:
    return [event["n"] for event in events(node, "readings")]


def post(node: NodeProcess, topic: str, given: list[dict[str, Any]]) -> None:
    body = "\n".join(map(json.dumps, given)).encode()
    headers = {"Content-Type": "application/x-ndjson"}
    with urlopen(Request(f"{node.base}/topics/{topic}/events", body, headers), timeout=PATIENCE) as answer:
        assert answer.status == 202


def as_json(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: json_of(value) for name, value in event.items()} for event in given]


def test_files_are_published_once_taken_in_by_another_service_kept_and_queried_again(
    spark: SparkSession, services: list[Definition], tmp_path: Path
) -> None:
    history = str(tmp_path / "history")
    with NodeProcess(tmp_path / "node") as node:
        said = run(spark, services, tmp_path, node)
        assert "urn:test:readings  batch 0: 7 in, 5 out" in said
        assert numbers(node) == [0, 1, 2, 4, 5]
        add_file(tmp_path, "b", range(6, 9))
        run(spark, services, tmp_path, node, history=history)
        assert numbers(node) == [0, 1, 2, 4, 5, 6, 7, 8]
        expected = compute(services[1], {"readings": events(node, "readings")})
        found = events(node, "largest")
        assert sorted(map(str, found)) == sorted(map(str, as_json(expected)))
    past = [json.loads(line) for line in json_lines(query_history(spark, services[1], history))]
    assert sorted(map(str, past)) == sorted(map(str, found))
    again = [
        json.loads(line)
        for line in json_lines(query_history(spark, services[0], "", {"files": str(tmp_path / "in")}))
    ]
    assert [event["n"] for event in again] == [0, 1, 2, 4, 5, 6, 7, 8]
    with pytest.raises(HpwsnError, match="there are no past events of the input readings"):
        query_history(spark, services[1], str(tmp_path / "nowhere"))


def test_the_examples_give_on_spark_what_a_direct_computation_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    records, fleets = plates(600), positions(100)
    inputs = {"traffic:anpr": records} | {f"fleet:{fleet}": some for fleet, some in fleets.items()}
    with NodeProcess(tmp_path / "node") as node:
        for topic, some in inputs.items():
            post(node, topic, as_json(some))
        run(spark, list(examples().values()), tmp_path, node)
        found = {
            topic: events(node, f"traffic:{topic}")
            for topic in ("flow", "plates", "gps", "together", "companions")
        }
    # A count is published once its window is over, which the last record is not.
    late = json_of(records[-1]["time"])[:15]
    flows = [one for one in as_json(stream_examples.expected_flows(records)) if one["time"][:15] < late]
    assert counted(found["flow"]) == counted(flows)
    assert counted(found["plates"]) == counted(as_json(stream_examples.expected_plates(records)))
    assert counted(found["gps"]) == counted(as_json(stream_examples.expected_positions(fleets)))
    pairs = {tuple(one.values()) for one in found["together"]}
    assert pairs == {(*names, json_of(time)) for *names, time in stream_examples.expected_pairs(records)}
    assert found["companions"]
    assert counted(found["companions"]) == counted(as_json(stream_examples.expected_companions(records)))


def test_by_activemq_each_event_comes_once_whatever_is_run_again(
    spark: SparkSession, services: list[Definition], tmp_path: Path, activemq: ActiveMQ
) -> None:
    with BackedNode(tmp_path / "node", activemq.url) as node:
        node.wait()
        more = {"backbone": activemq.url, "node": node.name}
        run(spark, services[:1], tmp_path, node, **more)
        until(lambda: numbers(node) == [0, 1, 2, 4, 5])
        for commit in (tmp_path / "checkpoints").glob("*/query/commits/*0*"):
            commit.unlink()
        add_file(tmp_path, "b", range(6, 8))
        run(spark, services[:1], tmp_path, node, **more)
        until(lambda: numbers(node)[-1:] == [7])
        assert numbers(node) == [0, 1, 2, 4, 5, 6, 7]


def test_what_ends_a_job_is_said_in_a_line(
    spark: SparkSession, services: list[Definition], tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "node") as node:
        run(spark, services, tmp_path, node)
    with NodeProcess(tmp_path / "another") as node:
        with pytest.raises(
            HpwsnError, match=r"urn:test:largest has failed: .* belongs to another log; restore"
        ):
            run(spark, services[1:], tmp_path, node)
        job = Job(spark, services, Options(url=node.url, checkpoint=str(tmp_path / "else")))
        job.stop()
        job.run()
        (tmp_path / "in" / "c.json").write_text("{")
        (tmp_path / "readings.toml").write_text(READINGS.replace('"csv"', '"json"'))
        with pytest.raises(HpwsnError, match=r"c\.json:1 is not JSON"):
            run(spark, load(tmp_path / "readings.toml"), tmp_path / "third", node)


TICKS = """
uri = "urn:test:ticks"
topic = "ticks"

[inputs.ticks]
source = "rate"
rate = 50

[[ops]]
op = "filter"
where = "value >= 3"
"""
SAID = """
uri = "urn:test:said"
topic = "said"

[inputs.lines]
source = "socket"
host = "127.0.0.1"
port = {port}
schema = "place STRING, n BIGINT"
"""


@contextmanager
def speaker(*said: str) -> Iterator[int]:
    """The port of a server that says these lines to whoever comes, and then nothing."""
    silent = threading.Event()

    class Speaks(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write("".join(f"{line}\n" for line in said).encode())
            silent.wait()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Speaks) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        silent.set()
        server.shutdown()


def run_until(spark: SparkSession, services: list[Definition], options: Options, holds: Any) -> None:
    """Run a job that would go on for ever, until something holds."""
    job = Job(spark, services, options)
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05) and not holds():
            pass
        job.stop()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        job.run()
    finally:
        ended.set()
        watcher.join()


def test_the_sources_for_trials_give_ticks_and_the_lines_of_a_server(
    spark: SparkSession, tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "node") as node, speaker('{"place": "a", "n": 1}', "?", '{"n": "x"}') as port:
        (tmp_path / "ticks.toml").write_text(TICKS)
        (tmp_path / "said.toml").write_text(SAID.format(port=port))
        services = load(tmp_path / "ticks.toml", tmp_path / "said.toml")
        run_until(
            spark,
            services,
            Options(url=node.url, checkpoint=str(tmp_path / "checkpoints")),
            lambda: len(events(node, "ticks")) >= 10 and len(events(node, "said")) >= 3,
        )
        assert [one["value"] for one in events(node, "ticks")][:10] == list(range(3, 13))
        nothing = {"place": None, "n": None}
        assert events(node, "said") == [{"place": "a", "n": 1}, nothing, nothing]


def test_a_process_of_python_that_does_not_start_is_started_again_and_not_for_ever(
    spark: SparkSession, services: list[Definition], tmp_path: Path
) -> None:
    for name, failures in (("once", 1), ("always", 9999)):
        python, context = tmp_path / name, spark.sparkContext
        python.write_text(
            f"#!/bin/sh\necho >>{python}.log\n"
            f'test $(wc -l <{python}.log) -gt {failures} || exit 1\nexec {sys.executable} "$@"\n'
        )
        python.chmod(0o755)
    usual = context.pythonExec
    try:
        with NodeProcess(tmp_path / "node") as node:
            context.pythonExec = str(tmp_path / "once")
            register_sources(spark)
            said = run(spark, services[:1], tmp_path, node)
            assert "Spark could not start Python" in said
            assert f"retry 1 of {RESTARTS}" in said
            assert numbers(node) == [0, 1, 2, 4, 5]
            context.pythonExec = str(tmp_path / "always")
            register_sources(spark)
            with pytest.raises(HpwsnError, match=r"urn:test:readings has failed: .*pyspark\.daemon"):
                run(spark, services[:1], tmp_path / "second", node)
    finally:
        context.pythonExec = usual
        register_sources(spark)


def test_a_node_that_wants_registered_publishers_is_given_the_registration_and_refuses_what_xml_cannot_hold(
    spark: SparkSession, services: list[Definition], tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "node", "--set", "registrations.required=true") as node:
        with pytest.raises(HpwsnError, match="only registered publishers may publish here"):
            run(spark, services[:1], tmp_path, node)
        with SyncClient(node.url) as client:
            registration = client.register_publisher("readings").epr.address
            run(spark, services[:1], tmp_path, node, registration=registration)
        assert numbers(node) == [0, 1, 2, 4, 5]
        (tmp_path / "in" / "b.csv").write_text("place,n,time\n\x01,6,2026-01-01T00:00:00Z\n")
        with pytest.raises(HpwsnError, match=r"urn:test:readings has failed: .*the node rejected POST"):
            run(spark, services[:1], tmp_path, node, registration=registration)
