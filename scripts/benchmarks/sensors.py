"""Sensors: readings of 10,000 physical sensors over HTTP and MQTT into 500 virtual sensors on one node.

    scripts/bench sensors [--part http|mqtt|arrays|ramp …] [--seconds 60] [--quick] [--page]

- http: each sensor sends one reading a second, 100 to a request, over a few kept-alive connections.
- mqtt: the same, each reading as a message of its own with QoS 1, through a real Mosquitto.
- arrays: the same, each message with an array of 100 readings.
- ramp: for each of these the rate rises, in steps of --step seconds, until a load is not sustained twice.

Senders, and the subscriber of all results, are processes of their own. Every reading that was answered for
must be in the node's counter, in the log, and once in the history after the node has stopped. Every window
of every virtual sensor must have a result with the count and the mean of exactly its readings. Lag runs from
the due closing of a window until its result has come; the latency of an answer from the time at which the
request was due. A load is sustained if all this is so, and neither grew.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.field.schedule import Schedule
from benchmarks.field.sensor_tables import body_of, checks_of, notes_of, rows_of, told
from benchmarks.field.trial import Kept, Load, Trial, trial
from benchmarks.frame import Options, Table, progress
from benchmarks.page import update_page
from benchmarks.report import as_text, with_pictures, write
from benchmarks.tools import mosquitto
from benchmarks.tools.cores import pinning_notes
from benchmarks.tools.levels import as_panels
from hpwsn_client.commands.completion import CommandParser, print_error

HTTP, MQTT, ARRAYS = "HTTP", "MQTT", "MQTT, arrays"
DOORS = {"http": HTTP, "mqtt": MQTT, "arrays": ARRAYS}
PARTS = (*DOORS, "ramp")
MODULES = {HTTP: "http_gateways", MQTT: "mqtt_gateways", ARRAYS: "mqtt_gateways"}
TOPICS = "sensors.mqtt_topics=sensors/{sensor}/readings,gateways/+/readings"
FACTOR = 1.25
"""From one step of the ramp to the next."""
NODE = "node"
"""The name of the picture."""
WARM_UP = 3.0
"""Seconds of a first load that is not measured, but counted."""


class Measured(NamedTuple):
    """All loads of one door, and what the history has of them."""

    steady: Load | None
    ramp: Sequence[Load]
    every: Sequence[Load]
    kept: Kept
    start: tuple[float, float]
    """Seconds until all virtual sensors ran, and the longest stall meanwhile."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost or counted twice, in the history neither."""
        counted = sum(load.counted for load in self.every)
        return counted == self.kept.readings == self.kept.keys and all(load.is_whole for load in self.every)


def measure(door: str, asked: argparse.Namespace) -> Measured:
    """The steady load and the ramp on one node."""
    with _sources(door, asked) as (node, given):
        steady, ramp = None, list[Load]()
        progress(f"{door}: {asked.sensors:,} sensors and {asked.virtual:,} virtual sensors")
        with node.watched():
            every = [node.load(f"{door}, warm-up", asked.rate, asked.warm_up, MODULES[door], **given)]
            if asked.steady:
                progress(f"{door}: {asked.rate:,.0f} readings/s for {asked.seconds:g} s")
                steady = node.load(door, asked.rate, asked.seconds, MODULES[door], **given)
                every.append(steady)
                progress(told(steady))
            for load in _ramp(door, node, given, asked) if "ramp" in asked.part else ():
                every.append(load)
                if ramp and ramp[-1].schedule.rate == load.schedule.rate:
                    ramp.pop()
                ramp.append(load)
        kept = node.kept()
        progress(f"{door}: {kept.readings:,} readings and {kept.results:,} results in the history")
        return Measured(steady, ramp, every, kept, node.start)


@contextmanager
def _sources(door: str, asked: argparse.Namespace) -> Iterator[tuple[Trial, dict[str, Any]]]:
    """A node, and what its senders need to know."""
    like = Schedule(
        asked.sensors, asked.virtual, asked.together, asked.rate, round(asked.every * 1000), 0, asked.seconds
    )
    if door == HTTP:
        with trial(like) as node:
            yield node, {"port": node.port, "connections": asked.connections}
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hpwsn-bench-"))
        port = stack.enter_context(mosquitto.running(Path(folder)))
        settings = [f"sensors.mqtt_url=mqtt://127.0.0.1:{port}", TOPICS]
        node = stack.enter_context(trial(like, settings))
        yield node, {"port": port, "arrays": door == ARRAYS}


def _ramp(door: str, node: Trial, given: dict[str, Any], asked: argparse.Namespace) -> Iterator[Load]:
    """Rising rates, until one is not sustained twice in a row; each attempt is a load."""
    rate = asked.rate
    while rate < asked.most:
        rate = min(asked.most, _round(rate * FACTOR))
        for _ in range(2):
            progress(f"{door}: {rate:,.0f} readings/s for {asked.step:g} s")
            load = node.load(f"{door}, {rate:,.0f}/s", rate, asked.step, MODULES[door], **given)
            progress(told(load))
            yield load
            if not load.problem:
                break
        else:
            return


def _round(rate: float) -> float:
    """The rate with two digits that say something."""
    unit: float = 10 ** max(0, int(math.log10(rate)) - 1)
    return unit * round(rate / unit)


def table_of(found: dict[str, Measured]) -> Table:
    """All loads in one table; the picture has the node under the first steady load."""
    steady = [each.steady for each in found.values() if each.steady is not None]
    loads = [load for each in found.values() for load in (each.steady, *each.ramp) if load is not None]
    first = [*steady, *loads][0]
    notes = (*pinning_notes(), *notes_of(loads))
    for door, each in found.items():
        seconds, stall = each.start
        notes += (
            f"{door}: all virtual sensors ran {seconds:.1f} s after the subscriber came, longest stall"
            f" {1000 * stall:.0f} ms",
        )
        if sustained := [load for load in each.ramp if not load.problem]:
            rate = sustained[-1].schedule.rate
            notes += (f"{door}: sustained up to {rate:,.0f} readings/s",)
    return Table(
        "sensors",
        "mixed units",
        tuple(rows_of(load) for load in loads),
        checks_of(steady, [(each.every, each.kept) for each in found.values()]) if steady else (),
        notes,
        body=with_pictures(body_of(loads), "sensors", [NODE]),
        pictures={NODE: as_panels(first.samples)},
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 if something was lost or counted twice at the wanted rate."""
    asked = _parse(arguments)
    doors = [door for name, door in DOORS.items() if name in asked.part or asked.part == ["ramp"]]
    if doors != [HTTP] and mosquitto.find_mosquitto() is None:
        print_error("sensors: there is no Mosquitto; apt-get install mosquitto, or give --part http")
        return 1
    began = time.monotonic()
    try:
        found = {door: measure(door, asked) for door in doors}
    except RuntimeError as error:
        print_error(f"sensors: {error}")
        return 1
    table = table_of(found)
    options = Options(asked.seconds, 1, asked.quick)
    print(as_text(table), end="\n\n", flush=True)
    files = write(asked.output, table.title, table, options)
    files += update_page(table.title, table, options) if asked.page else []
    print(f"  {time.monotonic() - began:.0f} s; wrote " + ", ".join(map(str, files)), file=sys.stderr)
    return int(not all(each.is_whole for each in found.values()))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    asked = _parser().parse_args(arguments)
    quick = asked.quick
    asked.part = asked.part or list(PARTS[:2] if quick else PARTS)
    asked.steady = asked.part != ["ramp"]
    asked.sensors = asked.sensors or (200 if quick else 10_000)
    asked.virtual = asked.virtual or max(1, asked.sensors // 20)
    asked.together = min(asked.together, asked.sensors)
    asked.sensors -= asked.sensors % asked.together
    asked.rate = asked.rate or float(asked.sensors)
    asked.seconds = asked.seconds or (2.0 if quick else 60.0)
    asked.warm_up = min(WARM_UP, asked.seconds)
    return asked


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="scripts/bench sensors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="one part; may be repeated (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="200 sensors for 2 s, without a ramp")
    parser.add_argument("--seconds", type=float, help="time of the steady load (default: 60)")
    parser.add_argument("--sensors", type=int, help="physical sensors (default: 10000)")
    parser.add_argument("--virtual", type=int, help="virtual sensors (default: one for 20 physical ones)")
    parser.add_argument("--rate", type=float, help="readings a second (default: one of each sensor)")
    parser.add_argument("--together", type=int, default=100, help="readings in a request (default: 100)")
    parser.add_argument("--every", type=float, default=1.0, help="seconds of a window (default: 1)")
    parser.add_argument("--connections", type=int, default=4, help="connections of senders (default: 4)")
    parser.add_argument("--step", type=float, default=10.0, help="seconds of a step (default: 10)")
    parser.add_argument("--most", type=float, default=200_000.0, help="where the ramp ends (default: 200000)")
    parser.add_argument("--rounds", type=int, help="accepted as for other benchmarks; each load has one")
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder for JSON and plots")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md, too")
    return parser
