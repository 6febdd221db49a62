"""`hpwsn streams generate`: writes invented sensor events for trying services, as JSON lines or CSV."""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TextIO

from hpwsn.commands.operations.operator_api import add_command
from hpwsn.errors import HpwsnError

KINDS = ("anpr", "gps")
_EXAMPLES = """\
  hpwsn streams generate anpr 1000 --seed 1 --output anpr.json
  hpwsn streams generate gps 500 --fleet bus --vehicles 20 --output buses.csv
  hpwsn streams generate anpr 1000 | curl -s -H 'Content-Type: application/x-ndjson' --data-binary @- \\
      http://127.0.0.1:8080/topics/traffic:anpr/events
"""


def add_generate_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the action `generate`."""
    about = "generate sensor events; the same seed gives the same events"
    parser = add_command(actions, "generate", about, _EXAMPLES, asks_node=False)
    parser.add_argument("kind", choices=KINDS, help="number plates at cameras, or positions of vehicles")
    parser.add_argument("count", type=_count, metavar="COUNT", help="number of events")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="random seed (default: 1)")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to this file, as CSV if it ends in .csv"
    )
    parser.add_argument("--cameras", type=_count, default=40, metavar="N", help="anpr: cameras (default: 40)")
    parser.add_argument("--fleet", default="taxi", metavar="NAME", help="gps: the fleet (default: taxi)")
    parser.add_argument("--vehicles", type=_count, metavar="N", help="vehicles (default: anpr 5000, gps 200)")
    parser.set_defaults(handler=_generate)


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 10**12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _generate(arguments: argparse.Namespace) -> int:
    from hpwsn.streams.definition.schema import json_of
    from hpwsn.streams.generator import Traffic, anpr, gps

    if arguments.kind == "anpr":
        events = anpr(arguments.seed, Traffic(arguments.cameras, arguments.vehicles or 5000))
    else:
        events = gps(arguments.seed, arguments.fleet, arguments.vehicles or 200)
    rows = ({name: json_of(value) for name, value in one.items()} for one in islice(events, arguments.count))
    file: Path | None = arguments.output
    try:
        with file.open("w", encoding="utf-8", newline="") if file else nullcontext(sys.stdout) as out:
            (_write_csv if file and file.suffix == ".csv" else _write_json)(out, rows)
    except OSError as error:
        if file is None:
            raise
        raise HpwsnError(
            f"{file} cannot be written: {error.strerror}; choose another file with --output"
        ) from None
    return 0


def _write_json(out: TextIO, rows: Iterable[Mapping[str, object]]) -> None:
    for row in rows:
        out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_csv(out: TextIO, rows: Iterable[Mapping[str, object]]) -> None:
    writer = csv.writer(out)
    for number, row in enumerate(rows):
        if not number:
            writer.writerow(row)
        writer.writerow(row.values())
