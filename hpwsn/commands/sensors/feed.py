"""`hpwsn sensors feed`: posts readings of a file, a pipe or a command to a node, as a gateway does.

Each line is a reading: a JSON object, or a row of CSV under a header. A line without a time has that at which
it was read. With `--on-demand` the source runs only while somebody uses its sensors.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

from hpwsn.commands.operations.operator_api import add_command, add_node_options, dump
from hpwsn.commands.sensors.line_source import LineSource
from hpwsn.commands.sensors.line_times import ObjectTimes, RowTimes
from hpwsn.commands.sensors.reading_post import MOST_SHOWN, Progress, ReadingPost
from hpwsn.commands.sensors.sensor_options import add_registration_option, positive_seconds, whole_number
from hpwsn.errors import BadArguments
from hpwsn_client.commands.broker_command import sigterm_as_interrupt
from hpwsn_client.commands.completion import print_warning

FORMATS = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
PATIENCE = 60.0
_EXAMPLES = """\
  hpwsn sensors feed readings.json
  hpwsn sensors feed readings.csv --sensor roof-1
  hpwsn sensors feed /var/log/station.csv --follow
  read-station | hpwsn sensors feed -
  hpwsn sensors feed --command 'read-station --every 1' --sensor roof-1 --on-demand
"""


def add_feed_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action `feed`."""
    about = "post readings of a file, a pipe or a command, a line each"
    parser = add_command(actions, "feed", about, _EXAMPLES)
    parser.add_argument("file", nargs="?", metavar="FILE", help="JSON lines or CSV; - is standard input")
    parser.add_argument("--command", metavar="COMMAND", help="run this command, and post what it prints")
    parser.add_argument(
        "--format", choices=tuple(FORMATS), help="default: csv for a file named .csv, else ndjson"
    )
    parser.add_argument("--sensor", metavar="ID", help="all readings are of this sensor")
    parser.add_argument("--follow", action="store_true", help="wait for more lines at the end of the file")
    parser.add_argument(
        "--on-demand",
        action="store_true",
        help="read only while somebody uses --sensor, or a sensor of --kind",
    )
    parser.add_argument("--kind", metavar="KIND", help="with --on-demand: the kind of the sensors")
    parser.add_argument(
        "--batch",
        type=whole_number,
        default=1000,
        metavar="N",
        help="most readings in a request (default: 1000)",
    )
    parser.add_argument(
        "--patience",
        type=positive_seconds,
        default=PATIENCE,
        metavar="SECONDS",
        help=f"how long to try again while the node is away (default: {PATIENCE:g})",
    )
    add_registration_option(parser)
    add_node_options(parser)
    parser.set_defaults(handler=_feed)


def _feed(arguments: argparse.Namespace) -> int:
    if (arguments.file is None) == (arguments.command is None):
        raise BadArguments("give a file of readings, - for standard input, or --command")
    if arguments.on_demand and (arguments.sensor is None) == (arguments.kind is None):
        raise BadArguments("--on-demand needs --sensor or --kind: whose users start and stop the source")
    if arguments.follow and arguments.file in (None, "-"):
        raise BadArguments("--follow is for files; standard input and a command are read to their end")
    post = ReadingPost(arguments, arguments.sensor, arguments.patience)
    form = arguments.format or ("csv" if Path(arguments.file or "").suffix == ".csv" else "ndjson")
    change = RowTimes() if form == "csv" else ObjectTimes()
    source = LineSource(arguments.file, arguments.command, arguments.follow, change)
    with sigterm_as_interrupt(), _demand(arguments, source):
        source.open()
        try:
            _post_all(form, arguments.batch, post, source)
        except KeyboardInterrupt:
            if not (arguments.follow or arguments.on_demand):
                raise
        finally:
            source.stop()
            print(dump(post.figures()) if arguments.json else post.summary(), flush=True)
            post.hint()
    return 1 if post.failed else 0


def _demand(arguments: argparse.Namespace, source: LineSource) -> AbstractContextManager[object]:
    """With --on-demand, the source follows its users within this context."""
    if not arguments.on_demand:
        return nullcontext()
    from hpwsn.commands.sensors.source_demand import SourceDemand

    demand = SourceDemand(arguments, source)
    demand.open()
    return closing(demand)


def _post_all(form: str, most: int, post: ReadingPost, source: LineSource) -> None:
    header = b""
    line, shown, progress = 0, 0, Progress()
    for lines in source.batches(most):
        if form == "csv":
            if not header:
                header = lines[0]
            # A file that was replaced begins with the header again.
            lines = [each for each in lines if each != header]
        if not lines:
            continue
        body = b"\n".join([header, *lines] if form == "csv" else lines)
        for index, reason in post.post(body, FORMATS[form]):
            shown += 1
            if shown <= MOST_SHOWN:
                print_warning(f"reading {line + index + 1} is rejected: {reason}")
            elif shown == MOST_SHOWN + 1:
                print_warning("more readings are rejected")
        line += len(lines)
        progress.say(post.summary())
    sys.stderr.flush()
