"""`hpwsn sensors simulate`: readings of an invented network, printed or sent to a node in real time.

With `--json` alone, all readings are printed at once, from a fixed start. To a node the readings go when
their time has come: by HTTP in batches, or by MQTT, one message a reading. The sensors are registered first,
for which MQTT needs the address of the node too; or each reading describes its sensor.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from hpwsn.commands.operations.operator_api import add_ca_option, add_command
from hpwsn.commands.sensors.physical_actions import register
from hpwsn.commands.sensors.reading_post import Progress, ReadingPost
from hpwsn.commands.sensors.sensor_options import (
    add_registration_option,
    instant,
    positive_seconds,
    share,
    whole_number,
)
from hpwsn.errors import BadArguments
from hpwsn.sensors.readings.reading_times import time_text
from hpwsn_client.commands.completion import print_warning
from hpwsn_client.environment import URL

if TYPE_CHECKING:
    from hpwsn.sensors.readings.reading import Reading
    from hpwsn.sensors.simulation.simulated_network import SimulatedNetwork

KINDS = ("weather", "earthquake")
BATCH = 1000
"""Most readings in one request."""
TURN = 0.25
"""Seconds between two turns in which what is due is sent."""
PATIENCE = 60.0
NDJSON = "application/x-ndjson"
LineOf = Callable[["Reading"], str]
_EXAMPLES = """\
  hpwsn sensors simulate weather --sensors 20 --seconds 60
  hpwsn sensors simulate earthquake --sensors 5 --seconds 600 --seed 7 --speed max
  hpwsn sensors simulate weather --sensors 20 --seconds 60 --mqtt mqtt://127.0.0.1:1883 \\
      --url http://127.0.0.1:8080/wsn
  hpwsn sensors simulate weather --sensors 3 --seconds 10 --seed 7 --spikes 0.05 --json >readings.json
"""


class Channel(Protocol):
    """Where readings go."""

    def send(self, readings: list[Reading]) -> None: ...
    def finish(self) -> int: ...
    def hint(self) -> None: ...
    def summary(self) -> str: ...


def add_simulate_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action `simulate`."""
    about = "send or print the readings of an invented network; the same seed gives the same readings"
    parser = add_command(actions, "simulate", about, _EXAMPLES)
    parser.add_argument("kind", choices=KINDS, help="the network")
    parser.add_argument("--sensors", type=whole_number, default=10, metavar="N", help="sensors (default: 10)")
    parser.add_argument(
        "--seconds", type=positive_seconds, default=60.0, metavar="S", help="simulated time (default: 60)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="X", help="random seed (default: 1)")
    parser.add_argument(
        "--interval",
        type=positive_seconds,
        default=1.0,
        metavar="S",
        help="between two readings (default: 1)",
    )
    parser.add_argument(
        "--start",
        type=instant,
        metavar="TIME",
        help="of the first reading (default: now; printed: a fixed time)",
    )
    _add_target_options(parser)
    faults = parser.add_argument_group("faults, from 0 (never, the default) to 1 (always)")
    faults.add_argument(
        "--silence", type=share, default=0.0, metavar="PART", help="of the time without readings"
    )
    faults.add_argument("--drift", type=share, default=0.0, metavar="PART", help="of the sensors that drift")
    faults.add_argument("--spikes", type=share, default=0.0, metavar="PART", help="of the readings far off")
    faults.add_argument(
        "--duplicates", type=share, default=0.0, metavar="PART", help="of the readings sent twice"
    )
    parser.set_defaults(handler=_simulate)


def _add_target_options(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("where the readings go")
    target.add_argument("--url", help="to the node at this address; its sensors are registered first")
    target.add_argument(
        "--mqtt", metavar="URL", help="to this MQTT broker: mqtt://HOST:PORT or mqtts://HOST:PORT"
    )
    target.add_argument(
        "--mqtt-topic",
        default="sensors/{sensor}/readings",
        metavar="TOPIC",
        help="as the node's sensors.mqtt_topics (default: %(default)s)",
    )
    target.add_argument("--mqtt-user", metavar="NAME", help="user at the MQTT broker")
    target.add_argument("--mqtt-password-file", metavar="FILE", help="file with its password")
    add_registration_option(target)  # type: ignore[arg-type]  # as below
    add_ca_option(target)  # type: ignore[arg-type]  # a group has add_argument too
    target.add_argument(
        "--speed", type=speed, default=1.0, metavar="X", help="times real time, or max (default: 1)"
    )
    target.add_argument(
        "--describe",
        action="store_true",
        help="register no sensors; each reading has kind, place and units, for sensors.auto_register",
    )
    target.add_argument("--json", action="store_true", help="print a line for each reading")


def speed(text: str) -> float:
    """A factor above 0; infinite for `max`."""
    try:
        found = float("inf") if text == "max" else float(text)
    except ValueError:
        found = 0.0
    if not found > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0; write such as 10, or max")
    return found


def _simulate(arguments: argparse.Namespace) -> int:
    from hpwsn.sensors.simulation.sensor_faults import SensorFaults
    from hpwsn.sensors.simulation.simulated_network import START, SimulatedNetwork, Simulation

    faults = SensorFaults(arguments.silence, arguments.drift, arguments.spikes, arguments.duplicates)
    try:
        simulation = Simulation(
            arguments.kind, arguments.sensors, arguments.seed, round(arguments.interval * 1000), faults
        )
    except ValueError as error:
        raise BadArguments(str(error)) from None
    network = SimulatedNetwork(simulation)
    line = describing_lines(network) if arguments.describe else line_of
    length = round(arguments.seconds * 1000)
    if arguments.json and arguments.url is None and arguments.mqtt is None:
        start = START if arguments.start is None else _milliseconds(arguments.start.timestamp())
        for reading in network.readings(start, length):
            print(line(reading))
        return 0
    return _send(arguments, network, line, length)


def line_of(reading: Reading) -> str:
    """A reading as a node takes it, on one line."""
    return json.dumps({"sensor": reading.sensor, "time": time_text(reading.time), **reading.values})


def describing_lines(network: SimulatedNetwork) -> LineOf:
    """Lines of readings with which a node can register the sensors by itself (`sensors.auto_register`)."""
    quantities = network.sensors[0].quantities

    def line(reading: Reading) -> str:
        values = {
            name: {"value": value, "unit": quantities[name].unit} for name, value in reading.values.items()
        }
        place = {"longitude": reading.longitude, "latitude": reading.latitude}
        head = {"sensor": reading.sensor, "kind": reading.kind, "time": time_text(reading.time)}
        return json.dumps({**head, **place, **values})

    return line


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _send(arguments: argparse.Namespace, network: SimulatedNetwork, line: LineOf, length: int) -> int:
    with ExitStack() as stack:
        channel = _channel(arguments, line, stack)
        if arguments.describe:
            pass  # The readings register their sensors.
        elif arguments.mqtt is None or arguments.url is not None or os.environ.get(URL):
            register(arguments, [sensor.document() for sensor in network.sensors])
        else:
            print_warning(
                "the sensors are not registered, and a node rejects readings of unknown ones;"
                f" give --url, or ${URL}, to register them, or --describe for sensors.auto_register"
            )
        start, progress = _start(arguments, length), Progress()
        try:
            for batch in _due(network.readings(start, length), start, arguments.speed):
                channel.send(batch)
                if arguments.json:
                    print(*map(line, batch), sep="\n", flush=True)
                simulated = (batch[-1].time - start) // 1000
                progress.say(f"{simulated} s of {length // 1000} s simulated")
            status = channel.finish()
        finally:
            print(channel.summary(), file=sys.stderr if arguments.json else sys.stdout, flush=True)
            channel.hint()
    return status


def _start(arguments: argparse.Namespace, length: int) -> int:
    """The time of the first reading: with a higher speed so early that no reading is in the future."""
    if arguments.start is not None:
        return _milliseconds(arguments.start.timestamp())
    factor: float = arguments.speed
    ahead = length * (1 - 1 / factor)
    return _milliseconds(time.time()) - max(0, round(ahead))


def _due(readings: Iterator[Reading], start: int, factor: float) -> Iterator[list[Reading]]:
    """Batches of readings, each as soon as the last of it is due."""
    begins, until = time.monotonic(), start
    batch: list[Reading] = []

    def wait(moment: int) -> None:
        if factor != float("inf"):
            time.sleep(max(0.0, begins + (moment - start) / 1000 / factor - time.monotonic()))

    turn = max(1, round(TURN * 1000 * min(factor, 1e6)))
    for reading in readings:
        while reading.time > until:
            if batch:
                wait(until)
                yield batch
                batch = []
            until += turn
        batch.append(reading)
        if len(batch) == BATCH:
            wait(reading.time)
            yield batch
            batch = []
    if batch:
        wait(batch[-1].time)
        yield batch


def _channel(arguments: argparse.Namespace, line: LineOf, stack: ExitStack) -> Channel:
    if arguments.mqtt is None:
        return _Http(ReadingPost(arguments, None, PATIENCE), line)
    from hpwsn.commands.sensors.mqtt_channel import MqttChannel

    return stack.enter_context(
        MqttChannel(
            arguments.mqtt,
            arguments.mqtt_topic,
            arguments.mqtt_user,
            arguments.mqtt_password_file,
            arguments.ca,
            line,
        )
    )


class _Http:
    """Readings in requests to the node."""

    def __init__(self, post: ReadingPost, line_of: LineOf) -> None:
        self._post = post
        self._line_of = line_of

    def send(self, readings: list[Reading]) -> None:
        self._post.post("\n".join(map(self._line_of, readings)).encode(), NDJSON)

    def finish(self) -> int:
        """The exit status; every batch is answered already."""
        return 1 if self._post.failed else 0

    def summary(self) -> str:
        return self._post.summary()

    def hint(self) -> None:
        self._post.hint()
