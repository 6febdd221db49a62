"""`scripts/soak`: a node at full load, and whether its CPU, memory, threads and descriptors stay level.

This is stability-01 of the thesis: one node, one subscriber and one publisher on ALL, without a pause. Beside
them somebody subscribes and unsubscribes all the time. Whatever the node accepted must arrive. The end says
whether the node was level; the exit status is 0 if it was, 1 if it was not or a message was lost, and 2 if
the run was too short to tell. Ctrl-C ends the run early, with the summary so far.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import uvloop

from benchmarks.report import machine
from benchmarks.tools.cores import cpu_seconds
from benchmarks.tools.levels import Level, ProcessSample, as_panels, levels
from benchmarks.tools.load import Flow, connect
from benchmarks.tools.messages import READING, requests
from benchmarks.tools.mps import EVERY, MpsMeter, mps_line
from benchmarks.tools.nodes import start, stop
from benchmarks.tools.sink import Sink, Tally
from hpwsn_client import Client

TOPIC, CHURNED = "ALL", "ALL:ALARM"
SETTINGS = ("log.level=error", "journal.retention_bytes=67108864")
"""A small log, so that retention works from the first minutes on."""
SAMPLES = 20
"""A run shorter than so many minutes is sampled so often."""
CONNECTIONS = 4


@dataclass
class Soak:
    """One run: what it is asked for, and what it has seen."""

    url: str
    pid: int
    every: int
    churn: float
    samples: list[ProcessSample] = field(default_factory=list)
    rounds: int = 0
    lost: int = 0
    received: int = 0

    async def run(self, seconds: float, pause: float, ended: asyncio.Event) -> None:
        """Load the node until the time is over or somebody ends it, and wait for what it still has."""
        tally, meter = Tally(), MpsMeter(self.every)
        consumer = await asyncio.get_running_loop().create_server(lambda: Sink(tally), "127.0.0.1", 0)
        address = f"http://127.0.0.1:{consumer.sockets[0].getsockname()[1]}/"
        async with Client(self.url) as client:
            await client.subscribe(TOPIC, address)
            flow = Flow(requests(self.url, TOPIC, READING, 1), 1, [tally])
            await connect(self.url, flow, CONNECTIONS)
            meter.start(0)
            tally.on_change = lambda: self._progress(flow, meter)
            flow.pump()
            churning = asyncio.create_task(self._churn(client, address, ended))
            await self._watch(flow, seconds, pause, ended)
            ended.set()
            await churning
            with suppress(TimeoutError):
                await flow.drain()
            self.received, self.lost = flow.received, flow.accepted - flow.received
            flow.finish()
        consumer.close()

    def _progress(self, flow: Flow, meter: MpsMeter) -> None:
        if self.every and meter.note(flow.received):
            show(mps_line(*meter.points.pop()), passing=True)
        flow.pump()

    async def _churn(self, client: Client, address: str, ended: asyncio.Event) -> None:
        """Subscribe and unsubscribe until the end."""
        while not ended.is_set():
            subscription = await client.subscribe(CHURNED, f"{address}{self.rounds}")
            await subscription.unsubscribe()
            self.rounds += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), 1 / self.churn)

    async def _watch(self, flow: Flow, seconds: float, pause: float, ended: asyncio.Event) -> None:
        node, began = psutil.Process(self.pid), time.monotonic()
        before, count, used = began, flow.received, cpu_seconds(self.pid)
        while not (flow.failure or ended.is_set()) and before < began + seconds:
            with suppress(TimeoutError):
                left = max(0.0, began + seconds - time.monotonic())
                await asyncio.wait_for(ended.wait(), min(pause, left))
            now, received, cpu = time.monotonic(), flow.received, cpu_seconds(self.pid)
            taken = now - before
            # What is left of the last interval may be too short to measure.
            if taken > pause / 2:
                self.samples.append(
                    ProcessSample(
                        (now - began) / 60,
                        (received - count) / taken,
                        100 * (cpu - used) / taken,
                        node.memory_info().rss / 1e6,
                        node.num_threads(),
                        node.num_fds(),
                    )
                )
                show(sample_line(self.samples[-1]))
            before, count, used = now, received, cpu


def show(line: str, passing: bool = False) -> None:
    """Print a line; on a terminal a passing one is overwritten by the next."""
    if sys.stdout.isatty():
        print(f"\r{line:78}", end="" if passing else "\n", flush=True)
    else:
        print(line, flush=not passing)


def sample_line(sample: ProcessSample) -> str:
    """A sample for a person."""
    return (
        f"[{sample.minutes:6.1f} min] MPS {sample.mps:,.0f}, CPU {sample.cpu:.0f} %,"
        f" memory {sample.memory:.1f} MB, threads {sample.threads}, descriptors {sample.descriptors}"
    )


def summary(soak: Soak, found: Sequence[Level]) -> tuple[list[str], int]:
    """The last lines of a run, and its exit status."""
    minutes = soak.samples[-1].minutes if soak.samples else 0.0
    mps = soak.received / minutes / 60 if minutes else 0.0
    lines = [
        f"{soak.received:,} messages received in {minutes:.1f} minutes, MPS {mps:,.0f}; lost: {soak.lost};"
        f" subscribed and unsubscribed {soak.rounds:,} times",
        *(level.line() for level in found),
    ]
    if soak.lost:
        return [*lines, f"{soak.lost} messages that the node accepted were not received"], 1
    if not found:
        return [*lines, f"{len(soak.samples)} samples are too few to say whether the node was level"], 2
    rising = [level.name for level in found if not level.is_level]
    return [*lines, f"not level: {', '.join(rising)}" if rising else "the node was level"], int(bool(rising))


def write(folder: Path, soak: Soak, found: Sequence[Level], lines: Sequence[str]) -> list[Path]:
    """Write all samples as JSON, and a plot."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "machine": machine(),
        "received": soak.received,
        "lost": soak.lost,
        "rounds": soak.rounds,
        "summary": list(lines),
        "levels": [{**asdict(level), "level": level.is_level} for level in found],
        "samples": [asdict(sample) for sample in soak.samples],
    }
    files = [folder / "soak.json", folder / "soak.svg"]
    files[0].write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    files[1].write_text(as_panels(soak.samples), "utf-8")
    return files


async def _run(soak: Soak, seconds: float, pause: float) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await soak.run(seconds, pause, ended)


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a node, load it, and judge it."""
    asked = _parser().parse_args(arguments)
    seconds = 60 * asked.minutes
    pause = asked.sample or min(60.0, seconds / SAMPLES)
    with tempfile.TemporaryDirectory(prefix="hpwsn-soak-") as folder:
        tree = Path(folder) / "topics.toml"
        tree.write_text("[topics.ALL.ALARM]\n")
        settings = [*SETTINGS, f"topics.url={tree}", *(asked.set or ())]
        # Of a group of its own, so that Ctrl-C ends the load first, and the node by its end.
        process, base = start(Path(folder) / "data", settings, group=0)
        soak = Soak(f"{base}/wsn", process.pid, asked.mps, asked.churn)
        show(f"a node at {base}, process {process.pid}; a sample every {pause:g} s; Ctrl-C ends the run")
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_run(soak, seconds, pause))
        finally:
            stop(process)
    found = levels(soak.samples)
    lines, status = summary(soak, found)
    files = write(asked.output, soak, found, lines)
    for line in ("", *lines, "wrote " + ", ".join(map(str, files))):
        show(line)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Runs a node at full load, and says whether it stays level.",
        epilog="exit status: 0 level; 1 not level, or messages lost; 2 too short to tell",
    )
    parser.add_argument("--minutes", type=_positive, default=60, help="how long (default: 60)")
    parser.add_argument(
        "--mps",
        type=int,
        default=EVERY,
        metavar="N",
        help="print MPS every N messages (default: 500; 0 is never)",
    )
    parser.add_argument(
        "--sample",
        type=_positive,
        metavar="SECONDS",
        help=f"time between two samples of the node (default: 60, or a {SAMPLES}th of a shorter run)",
    )
    parser.add_argument(
        "--churn",
        type=_positive,
        default=5,
        metavar="N",
        help="subscribe and unsubscribe N times a second (default: 5)",
    )
    parser.add_argument(
        "--set", action="append", metavar="SECTION.KEY=VALUE", help="a setting of the node; may be repeated"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("build/soak"), help="folder for JSON and the plot (build/soak)"
    )
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be more than 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
