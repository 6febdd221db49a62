"""`hpwsn sensors history`, `plot` and `rejected`: readings that a node keeps, and those that it rejected."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hpwsn.commands.operations.operator_api import (
    add_command,
    add_node_options,
    address,
    download,
    dump,
    items,
    table,
)
from hpwsn.commands.sensors.sensor_options import add_selection_options, instant, whole_number
from hpwsn.errors import BadArguments, HpwsnError

PLOT_TIMEOUT = 120.0
"""Seconds to wait for a plot, whose node may have to read a year of readings."""
AT_ONCE = 1000
"""Readings of a page, the most that a node gives."""
PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
REASONS = ("unknown-sensor", "unknown-quantity", "unit", "range", "time", "duplicate", "malformed")
_HISTORY = """\
  hpwsn sensors history --sensor weather-1
  hpwsn sensors history --kind weather --area 116,39,117,40 --from 2026-01-31T00:00:00Z --out day.csv
  hpwsn sensors history --virtual warmth --filter 'value > 30' --json
"""
_PLOT = """\
  hpwsn sensors plot --sensor weather-1
  hpwsn sensors plot --sensor weather-1 --sensor weather-2 --quantity wind --out wind.png
  hpwsn sensors plot --virtual warmth --out warmth.svg
  hpwsn sensors plot --kind weather --quantity temperature --from 2026-01-31T00:00:00Z --out day.png
"""
_REJECTED = """\
  hpwsn sensors rejected
  hpwsn sensors rejected --sensor weather-1 --reason range --json
"""


def add_reading_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the actions `history`, `plot` and `rejected`."""
    history = add_command(actions, "history", "print kept readings in the order of time", _HISTORY)
    _add_query_options(history)
    history.add_argument("--limit", type=whole_number, metavar="N", help="print at most N readings")
    form = history.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV")
    history.add_argument(
        "--out", type=Path, metavar="FILE", help="write to a .csv or .json file; draw a .png or .svg file"
    )
    add_node_options(history)
    history.set_defaults(handler=_history, quantity=None)
    plot = add_command(actions, "plot", "draw kept readings", _PLOT)
    _add_query_options(plot)
    plot.add_argument("--quantity", metavar="NAME", help="draw this quantity only")
    plot.add_argument("--out", type=Path, metavar="FILE", help="a .png or .svg file (default: NAME.png)")
    add_node_options(plot)
    plot.set_defaults(handler=_plot)
    rejected = add_command(actions, "rejected", "list rejected readings with the reasons", _REJECTED)
    rejected.add_argument("--sensor", metavar="ID", help="readings of this sensor")
    rejected.add_argument("--reason", choices=REASONS, help="rejected for this reason")
    rejected.add_argument("--limit", type=whole_number, metavar="N", help="list at most N readings")
    add_node_options(rejected)
    rejected.set_defaults(handler=_rejected)


def _add_query_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sensor", action="append", metavar="ID", help="readings of this sensor; may be repeated"
    )
    parser.add_argument(
        "--virtual", action="append", metavar="NAME", help="results of this virtual sensor; may be repeated"
    )
    add_selection_options(parser)
    parser.add_argument("--from", dest="since", type=instant, metavar="TIME", help="at this time or later")
    parser.add_argument("--to", dest="until", type=instant, metavar="TIME", help="before this time")
    parser.add_argument(
        "--filter", metavar="EXPR", help="a predicate on the fields, such as 'temperature > 30'"
    )


def _query(arguments: argparse.Namespace) -> dict[str, str | list[str] | None]:
    """The parameters of GET /readings."""
    return {
        **{name: getattr(arguments, name) for name in ("sensor", "virtual", "kind", "area", "filter")},
        "from": _text(arguments.since),
        "to": _text(arguments.until),
    }


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")


def _history(arguments: argparse.Namespace) -> int:
    out: Path | None = arguments.out
    if out is not None and out.suffix in PICTURES:
        return _plot(arguments)
    form = out.suffix if out else ".json" if arguments.json else ".csv" if arguments.csv else ""
    if form not in (".json", ".csv", ""):
        raise BadArguments(f"--out {out}: name a .csv, .json, .png or .svg file")
    answer = items(arguments, "readings", most=arguments.limit, at_once=AT_ONCE, **_query(arguments))
    found = answer["items"]
    if form == ".json":
        shown = dump(answer)
    elif form == ".csv":
        shown = csv_of(found)
    else:
        shown = table(found, columns_of(found), "no readings")
    if out is None:
        print(shown)
    else:
        _write(out, f"{shown}\n".encode())
        print(f"wrote {len(found)} readings to {out}", file=sys.stderr)
    return 0


def columns_of(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields of all readings, in the order in which they occur."""
    return list(dict.fromkeys(name for each in found for name in each))


def csv_of(found: Sequence[Mapping[str, Any]]) -> str:
    """The readings as CSV with a header, as the node writes it; lists are joined by spaces."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns_of(found), lineterminator="\n")
    writer.writeheader()
    for each in found:
        writer.writerow({name: _cell(value) for name, value in each.items()})
    return text.getvalue().rstrip("\n")


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _plot(arguments: argparse.Namespace) -> int:
    names = [*(arguments.sensor or ()), *(arguments.virtual or ()), arguments.kind or "readings"]
    out: Path = arguments.out or Path(f"{names[0]}.png")
    if out.suffix not in PICTURES:
        raise BadArguments(f"--out {out}: name a .png or .svg file")
    url = address(
        arguments, "readings", **_query(arguments), quantity=arguments.quantity, format=out.suffix[1:]
    )
    picture = download(url, PICTURES[out.suffix], timeout=PLOT_TIMEOUT, ca=arguments.ca)
    _write(out, picture)
    print(dump({"plot": str(out), "bytes": len(picture)}) if arguments.json else f"wrote {out}")
    return 0


def _write(out: Path, data: bytes) -> None:
    try:
        out.write_bytes(data)
    except OSError as error:
        raise HpwsnError(
            f"{out} cannot be written: {error.strerror}; choose another file with --out"
        ) from None


def _rejected(arguments: argparse.Namespace) -> int:
    answer = items(
        arguments,
        "readings",
        "rejected",
        most=arguments.limit,
        sensor=arguments.sensor,
        reason=arguments.reason,
    )
    if arguments.json:
        print(dump(answer))
    else:
        print(table(answer["items"], columns_of(answer["items"]), "no rejected readings"))
    return 0
