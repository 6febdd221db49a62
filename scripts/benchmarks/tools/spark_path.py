"""Spark in the path: rows a second from the broker through a job and back to a consumer, and where the time
goes.

The job is `hpwsn streams run` in local mode. What an event waited for in Spark is the time from when the node
took the input to when it took the output, by the node's own clock; the rest, until the consumer has it, is
the broker's.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

from benchmarks.frame import Options, Row, progress
from benchmarks.tools.nodes import running
from hpwsn.streams.spark.reading.broker_link import BrokerLink
from hpwsn_client import SyncClient

ROWS = 20_000
TRICKLE = 200
"""Single events, to see how long one takes."""
WITHIN = 240.0
DEFINITION = """
uri = "urn:bench:copy"
topic = "bench:out"

[inputs.events]
source = "topic"
topic = "bench:in"
schema = "n BIGINT, speed DOUBLE"

[[ops]]
op = "filter"
where = "speed >= 0"
"""


def spark_rows(options: Options) -> list[tuple[Row, ...]]:
    """How much goes through, and how long one event takes where."""
    rows = options.sized(ROWS, 1000)
    with running() as base, _consumer() as (url, came), tempfile.TemporaryDirectory() as folder:
        with SyncClient(f"{base}/wsn") as client:
            client.subscribe("bench:out", url)
        with _job(Path(folder), base):
            link = BrokerLink(base)
            progress("Spark starts")
            _publish(link, range(1))
            _wait(lambda: 0 in came)
            progress(f"{rows:,} rows through Spark")
            began = time.perf_counter()
            _publish(link, range(1, rows + 1))
            _wait(lambda: len(came) > rows)
            through = rows / (time.perf_counter() - began)
            progress(f"{TRICKLE} events, one at a time")
            last = rows + 1 + TRICKLE
            for number in range(rows + 1, last):
                _publish(link, range(number, number + 1))
                time.sleep(0.02)
            _wait(lambda: len(came) >= last)
            batch = json.load(urlopen(f"{base}/streams"))["items"][0]["figures"]["batch_seconds"]
            return [*_split(link, came, range(rows + 1, last), through, batch)]


def _split(
    link: BrokerLink, came: dict[int, float], numbers: range, through: float, batch: float
) -> Iterator[tuple[Row, ...]]:
    taken, given = (_times(link, topic) for topic in ("bench:in", "bench:out"))
    in_spark = [1e3 * (given[n] - taken[n]) for n in numbers]
    in_broker = [max(0.01, 1e3 * (came[n] - given[n])) for n in numbers]
    yield (Row("Spark, rows/s · through the job · broker to consumer", through),)
    yield (
        Row("Spark, ms · one event · in Spark", statistics.mean(in_spark), f"p99 {_p99(in_spark):,.0f}"),
        Row(
            "Spark, ms · one event · in the broker", statistics.mean(in_broker), f"p99 {_p99(in_broker):,.1f}"
        ),
        Row("Spark, ms · one batch · as reported by Spark", 1e3 * batch),
    )


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99) - 1]


def _times(link: BrokerLink, topic: str) -> dict[int, float]:
    """When the node took each event, by its number."""
    found: dict[int, float] = {}
    after, end = 0, link.end(topic)
    while after < end:
        page = link.read(topic, after)
        for event in page.events:
            found[event["data"]["n"]] = datetime.fromisoformat(event["time"]).timestamp()
        after = page.upto
    return found


def _publish(link: BrokerLink, numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, 1000):
        some = range(first, min(first + 1000, numbers.stop))
        lines = b"\n".join(b'{"n": %d, "speed": %d.5}' % (n, n % 120) for n in some)
        link.publish("bench:in", lines, f"in-{first}")


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"Spark gave nothing within {WITHIN:g} s")
        time.sleep(0.02)


@contextmanager
def _job(folder: Path, base: str) -> Iterator[None]:
    file = folder / "copy.toml"
    file.write_text(DEFINITION)
    command = [sys.executable, "-m", "hpwsn", "streams", "run", str(file), "--url", f"{base}/wsn"]
    with (folder / "job.log").open("wb") as log:
        process = subprocess.Popen([*command, "--checkpoint", str(folder / "at")], stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def _consumer() -> Iterator[tuple[str, dict[int, float]]]:
    """A consumer that notes when each numbered event came."""
    came: dict[int, float] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body, now = self.rfile.read(int(self.headers["Content-Length"])), time.time()
            for part in body.split(b"<n>")[1:]:
                came.setdefault(int(part[: part.index(b"<")]), now)
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", came
    finally:
        server.shutdown()
        server.server_close()
