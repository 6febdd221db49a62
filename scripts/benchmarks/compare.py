"""Compare: the CPU time that the nodes of two checkouts take for a notification, in alternating rounds.

    scripts/compare --before DIR --after DIR [--rounds 20] [--seconds 1] [--only NAME…] [--json FILE]

DIR is a checkout, such as `git worktree add ../before main` makes. Its node runs as `python -m hpwsn serve`
with PYTHONPATH=DIR:DIR/client:DIR/admin, a free port and a temporary data directory. This script's own Python
runs both, so that they have the same packages. `scripts/compare --help` lists the workloads; all of them take
about fifteen minutes.

- The nodes of a workload stay idle over the rounds, while one of them at a time has a load. They start anew
  every five rounds, since one process may be faster than the next by its layout in memory and its hash seed.
- A warm-up finds how many notifications the slowest node takes in `--seconds`, and all get that number.
- Each round measures each node once, and every second round goes backwards: before, after, after, before, ….
  So a disturbance of the machine, or a drift, hits both checkouts. Ratios are taken within a round.
- A sample is the node's user and system time from the first request to 50 ms after the last answer and
  receipt, divided by the notifications. Start-up, subscribing, connecting and the load are not in it.
- The run ends with an error if a request is not answered with 202, or if a push consumer or a reader does not
  get every notification exactly once.
- `cluster` compares a node whose admin node knows no other node with the same node alone.

`--json` writes each sample: `cpu_us` is per notification, `seconds` is how long the load took, and values of
one index are of one round. A checkout compared with itself shows the noise of the machine. Data directories
are in TMPDIR: one in memory, such as `TMPDIR=/dev/shm`, keeps waits for the disk out of the rounds.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TypeVar

import uvloop

from benchmarks.tools.checkouts import Checkout, CompareError, Process, running
from benchmarks.tools.cores import on_load_core, pinning_notes
from benchmarks.tools.raw_load import (
    Load,
    LoadError,
    Receipts,
    Sample,
    add_consumers,
    add_readers,
    event_requests,
    exchange,
    measure,
    notify_requests,
    request,
    traced_requests,
)

ROUNDS = 20
SECONDS = 1.0
RESTART = 5
"""Rounds after which nodes are started anew: one process may be faster than the next of the same code."""
BEFORE, AFTER = "before", "after"
ALONE, MEMBER = "alone", "in a cluster of one"
_ERROR = "hpwsn: error: "
_EXAMPLES = """
examples:
  git worktree add ../before main
  scripts/compare --before ../before --after .
  scripts/compare --before ../before --after . --only notify notify-100 --rounds 40
  scripts/compare --before . --after . --rounds 2 --json noise.json
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Workload:
    """What a node has to do: the requests, who receives, and the settings and kinds of nodes."""

    about: str
    requests: Callable[[int], tuple[bytes, ...]]
    messages: int = 1
    consumers: int = 0
    readers: int = 0
    settings: tuple[str, ...] = ()
    kinds: tuple[str, ...] = (ALONE,)

    def load(self) -> Load:
        """The load; readers get one event after another, so that none share a write."""
        requests = self.requests(self.messages)
        return Load(requests, self.messages, 1, 1, 1) if self.readers else Load(requests, self.messages)


WORKLOADS = {
    "notify": Workload("one notification to a Notify, fast lane", notify_requests),
    "notify-100": Workload("100 notifications to a Notify, fast lane", notify_requests, 100),
    "traced": Workload("one notification to a Notify, each with another traceparent", traced_requests),
    "json": Workload("one JSON object to a POST", event_requests),
    "json-100": Workload("an array of 100 JSON objects to a POST", event_requests, 100),
    "fan-out": Workload("one notification to a Notify, 10 push consumers", notify_requests, consumers=10),
    "fan-out-traced": Workload(
        "the same, each with another traceparent, 10 push consumers", traced_requests, consumers=10
    ),
    "cluster": Workload(
        "one to a Notify, alone and in a cluster of one", notify_requests, kinds=(ALONE, MEMBER)
    ),
    "cluster-100": Workload(
        "100 to a Notify, alone and in a cluster of one", notify_requests, 100, kinds=(ALONE, MEMBER)
    ),
    "sse": Workload(
        "one JSON object after another, 50 readers of server-sent events", event_requests, readers=50
    ),
    "full-lane": Workload(
        "one notification to a Notify, fast lane off", notify_requests, settings=("server.fast_lane=false",)
    ),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that takes turns with others."""

    name: str
    process: Process
    load: Load
    receipts: Receipts

    async def sample(self, notifications: int) -> Sample:
        """One measurement."""
        try:
            return await measure(self.process.pid, self.process.port, self.load, notifications, self.receipts)
        except LoadError as error:
            raise CompareError(f"{self.name}: {error}{self.process.last_words()}") from error


@dataclass(frozen=True, slots=True)
class Result:
    """The samples of a workload by candidate, such as `before` and `after, in a cluster of one`."""

    name: str
    notifications: int
    samples: Mapping[str, Sequence[Sample]]

    def costs(self, candidate: str) -> list[float]:
        """CPU microseconds per notification, by round."""
        return [1e6 * each.cpu / self.notifications for each in self.samples[candidate]]

    def rows(self) -> list[tuple[str, str, str]]:
        """The label of each row of the table with its two candidates."""
        kinds = WORKLOADS[self.name].kinds
        return [
            (
                self.name if len(kinds) == 1 else f"{self.name}, {kind}",
                candidate_name(BEFORE, kind),
                candidate_name(AFTER, kind),
            )
            for kind in kinds
        ]

    def cluster_ratios(self, checkout: str) -> list[float]:
        """What a checkout's node costs in a cluster of one against alone, by round."""
        member, alone = candidate_name(checkout, MEMBER), candidate_name(checkout, ALONE)
        return paired_ratios(self.costs(member), self.costs(alone))


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values, and the quartiles around it."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(low, median, high)

    def __str__(self) -> str:
        digits = 0 if self.median >= 1000 else 1 if self.median >= 100 else 2 if self.median >= 2 else 3
        low, median, high = (f"{each:,.{digits}f}" for each in (self.low, self.median, self.high))
        return f"{median} ({low} to {high})"


def candidate_name(checkout: str, kind: str) -> str:
    """How a candidate is called in results."""
    return checkout if kind == ALONE else f"{checkout}, {kind}"


def in_turn(candidates: Sequence[T], number: int) -> list[T]:
    """The order of a round, counted from 0: every second one goes backwards."""
    return list(candidates) if number % 2 == 0 else list(reversed(candidates))


def paired_ratios(values: Sequence[float], against: Sequence[float]) -> list[float]:
    """The ratio within each round."""
    return [one / other for one, other in zip(values, against, strict=True)]


def notifications_for(rates: Iterable[float], seconds: float, messages: int) -> int:
    """How many the slowest takes in so many seconds, in whole requests, and at least one request."""
    return max(1, int(min(rates) * seconds / messages)) * messages


def as_text(results: Sequence[Result]) -> str:
    """The table of both checkouts, and that of clusters where there is one."""
    costs = [["CPU µs per notification", BEFORE, AFTER, f"{AFTER}/{BEFORE}"]]
    clusters = [["cluster of one/alone", BEFORE, AFTER]]
    for result in results:
        for label, before, after in result.rows():
            old, new = result.costs(before), result.costs(after)
            costs.append([label, *(str(Spread.of(each)) for each in (old, new, paired_ratios(new, old)))])
        if MEMBER in WORKLOADS[result.name].kinds:
            ratios = (result.cluster_ratios(checkout) for checkout in (BEFORE, AFTER))
            clusters.append([result.name, *(str(Spread.of(each)) for each in ratios)])
    return _aligned(costs) + ("\n\n" + _aligned(clusters) if len(clusters) > 1 else "")


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def as_json(results: Sequence[Result], checkouts: Sequence[Checkout], rounds: int) -> str:
    """All samples, with what they were measured on."""
    head = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "python": platform.python_version(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
        },
        "pinning": " ".join(pinning_notes()),
        "rounds": rounds,
        **{each.name: {"folder": str(each.folder), "version": each.version()} for each in checkouts},
    }
    workloads = {
        result.name: {
            "about": WORKLOADS[result.name].about,
            "notifications": result.notifications,
            "cpu_us": {name: result.costs(name) for name in result.samples},
            "seconds": {name: [each.seconds for each in taken] for name, taken in result.samples.items()},
        }
        for result in results
    }
    return json.dumps({**head, "workloads": workloads}, indent=2, ensure_ascii=False) + "\n"


@asynccontextmanager
async def _candidate(checkout: Checkout, workload: Workload, kind: str) -> AsyncIterator[Candidate]:
    """A node with its receivers, and with an admin node of its own where it is in a cluster."""
    name = candidate_name(checkout.name, kind)
    arguments = [part for setting in workload.settings for part in ("--set", setting)]
    receipts, admin = Receipts(), None
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-compare-")))
        if kind == MEMBER:
            admin = await stack.enter_async_context(running(checkout, folder, "admin"))
            arguments += ["--name", "one", "--admin", f"http://127.0.0.1:{admin.port}"]
        node = await stack.enter_async_context(running(checkout, folder, "serve", *arguments))
        try:
            if admin is not None:
                await _check_member(admin)
            for server in await add_consumers(node.port, workload.consumers, receipts):
                stack.callback(server.close)
            for transport in await add_readers(node.port, workload.readers, receipts):
                stack.callback(transport.abort)
        except LoadError as error:
            raise CompareError(f"{name}: {error}{node.last_words()}") from error
        yield Candidate(name, node, workload.load(), receipts)


async def _check_member(admin: Process) -> None:
    """Raise a LoadError unless the admin node knows one node."""
    status = await exchange(admin.port, request("GET", "/api/status", "Accept: application/json"), b"200 ")
    if json.loads(status)["nodes"]["alive"] != 1:
        raise LoadError(f"the admin node does not have the one node: {status.decode()}")


async def run_workload(name: str, checkouts: Sequence[Checkout], rounds: int, seconds: float) -> Result:
    """Measure the candidates of a workload in turns, with new processes every so many rounds."""
    workload, notifications = WORKLOADS[name], 0
    samples: dict[str, list[Sample]] = {
        candidate_name(checkout.name, kind): [] for checkout in checkouts for kind in workload.kinds
    }
    for first in range(0, rounds, RESTART):
        _progress(f"{name}: starting nodes")
        async with _candidates(workload, in_turn(checkouts, first // RESTART)) as candidates:
            rates = [await _warm_up(each, seconds) for each in candidates.values()]
            notifications = notifications or notifications_for(rates, seconds, workload.messages)
            for number in range(first, min(first + RESTART, rounds)):
                _progress(f"{name}: {notifications:,} notifications each, round {number + 1} of {rounds}")
                for each in in_turn(list(samples), number):
                    samples[each].append(await candidates[each].sample(notifications))
    return Result(name, notifications, samples)


@asynccontextmanager
async def _candidates(
    workload: Workload, checkouts: Sequence[Checkout]
) -> AsyncIterator[dict[str, Candidate]]:
    """The candidates by name while the block runs, started in this order."""
    async with AsyncExitStack() as stack:
        pairs = [(checkout, kind) for checkout in checkouts for kind in workload.kinds]
        found = [await stack.enter_async_context(_candidate(each, workload, kind)) for each, kind in pairs]
        yield {each.name: each for each in found}


async def _warm_up(candidate: Candidate, seconds: float) -> float:
    """Notifications a second, once a load takes long enough to tell."""
    notifications = 16 * candidate.load.messages
    while (sample := await candidate.sample(notifications)).seconds < seconds / 2:
        notifications *= 4 if sample.seconds < seconds / 8 else 2
    return notifications / sample.seconds


def _progress(text: str) -> None:
    print(f"  {text} …", file=sys.stderr, flush=True)


async def _run_all(asked: argparse.Namespace, checkouts: Sequence[Checkout], results: list[Result]) -> None:
    """Run workloads one after another; SIGINT and SIGTERM cancel, so that all processes are stopped."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    for name in asked.only or WORKLOADS:
        result = await run_workload(name, checkouts, asked.rounds, asked.seconds)
        results.append(result)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and report the workloads that were measured to the end."""
    asked = _parser().parse_args(arguments)
    checkouts = (Checkout(BEFORE, asked.before), Checkout(AFTER, asked.after))
    results: list[Result] = []
    status = 0
    try:
        for checkout in checkouts:
            checkout.check()
        with on_load_core(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run_all(asked, checkouts, results))
    except (CompareError, OSError) as error:
        print(f"{_ERROR}{error}", file=sys.stderr)
        status = 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        print(f"{_ERROR}interrupted; all nodes were stopped", file=sys.stderr)
        status = 130
    if results:
        _report(asked, checkouts, results)
    return status


def _report(asked: argparse.Namespace, checkouts: Sequence[Checkout], results: Sequence[Result]) -> None:
    for each in checkouts:
        print(f"{each.name:6}  {each.folder}  {each.version()}")
    print(f"median (quartiles) of {asked.rounds} rounds; {' '.join(pinning_notes())}\n\n{as_text(results)}")
    if asked.json is not None:
        asked.json.write_text(as_json(results, checkouts, asked.rounds), "utf-8")


class _Parser(argparse.ArgumentParser):
    """Says errors with the same words as every command of HPwsn, of which nothing is imported here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{_ERROR}{message}\n")


def _parser() -> argparse.ArgumentParser:
    workloads = "\n".join(f"  {name:12} {workload.about}" for name, workload in WORKLOADS.items())
    parser = _Parser(
        prog="scripts/compare",
        description="Compares the CPU time that the nodes of two checkouts take for a notification.",
        epilog=f"workloads:\n{workloads}\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, about in ((BEFORE, "the checkout to compare against"), (AFTER, "the checkout with the change")):
        parser.add_argument(f"--{name}", type=_checkout_folder, required=True, metavar="DIR", help=about)
    parser.add_argument(
        "--rounds", type=_rounds, default=ROUNDS, help="how often each is measured (default: 20)"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=SECONDS, help="about how long each load takes (default: 1)"
    )
    parser.add_argument(
        "--only", nargs="+", choices=WORKLOADS, metavar="NAME", help="workloads to run (default: all)"
    )
    parser.add_argument("--json", type=_output_file, metavar="FILE", help="write all samples to this file")
    return parser


def _checkout_folder(text: str) -> Path:
    folder = Path(text).resolve()
    if not (folder / "hpwsn" / "__main__.py").is_file():
        raise argparse.ArgumentTypeError(
            f"{text} is not a checkout: it has no hpwsn/__main__.py; name another"
        )
    return folder


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of rounds; give at least 1, such as 20")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 10:
        raise argparse.ArgumentTypeError(f"{text} is not a time for a load; give 10 s at most, such as 0.5")
    return value


def _output_file(text: str) -> Path:
    file = Path(text)
    if file.is_dir() or not file.resolve().parent.is_dir():
        raise argparse.ArgumentTypeError(f"cannot write the file {text}; name one in a folder that exists")
    return file


if __name__ == "__main__":
    sys.exit(main())
