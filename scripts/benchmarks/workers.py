"""Workers: notifications that are taken in a second by one process, and by a core with two doors."""

import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import Check, Options, Row, Table, progress, take_turns
from benchmarks.tools.load import Load, Sample
from benchmarks.tools.messages import READING, TOPIC, envelope, request
from benchmarks.tools.nodes import Process, await_ready, launch, node_arguments, stop

DOORS = 2
SIZES = (1, 100)
TARGET = 1.4
ONE, SEVERAL = "one process", f"{DOORS} workers"
_NOTE = (
    "every process of a node may run on any core, the load too: what the load needs is missing to"
    " several processes more than to one"
)


@dataclass(frozen=True, slots=True)
class _Node:
    url: str
    pid: int


def run(options: Options) -> Table:
    """With each durability and size of Notify, one process and several take turns."""
    groups, checks = [], []
    with ExitStack() as stack:
        load = stack.enter_context(Load(options))
        for durability in ("none", "commit"):
            nodes = _start(stack, durability)
            for messages in SIZES:
                what = f"durability {durability}, {messages} to a Notify"
                one, several = _contest(load, nodes, what, messages, options)
                groups.append((one, several))
                checks.append(Check.ratio(what, several, one, TARGET))
    return Table("workers", "notifications/s", tuple(groups), tuple(checks), (_NOTE,))


def _start(stack: ExitStack, durability: str) -> dict[str, _Node]:
    progress(f"starting {ONE} and {SEVERAL}, durability {durability}")
    settings = ["log.level=error", f"journal.durability={durability}"]
    processes = {
        ONE: _launch(stack, settings),
        SEVERAL: _launch(stack, [*settings, f"server.workers={DOORS}"]),
    }
    return {name: _Node(await_ready(process), process.pid) for name, process in processes.items()}


def _launch(stack: ExitStack, settings: Sequence[str]) -> Process:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-")))
    process = launch(node_arguments(folder / "data", settings))
    stack.callback(stop, process)
    return process


def _contest(
    load: Load, nodes: dict[str, _Node], what: str, messages: int, options: Options
) -> tuple[Row, Row]:
    samples: dict[str, list[Sample]] = {name: [] for name in nodes}

    def measure(name: str) -> float:
        node = nodes[name]
        data = request(node.url, envelope(TOPIC, READING, messages))
        sample = load.saturate(node.url, node.pid, [data], messages)
        samples[name].append(sample)
        return sample.rate

    rates = take_turns(
        {name: lambda name=name: measure(name) for name in nodes},  # type: ignore[misc]
        options.rounds,
        what,
    )
    one, several = (Row.of(f"{what}, {name}", rates[name], _note(samples[name])) for name in (ONE, SEVERAL))
    return one, several


def _note(samples: Sequence[Sample]) -> str:
    server = statistics.mean(sample.server for sample in samples)
    load = statistics.mean(sample.load for sample in samples)
    each = statistics.median(sample.server / sample.rate for sample in samples) * 1e6
    return f"server {server:.0%} of a core, {each:,.1f} µs each; load {load:.0%}"
