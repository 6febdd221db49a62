"""Notify: notifications accepted per second, 1 and 100 per request, without subscribers."""

import subprocess
import sys

from benchmarks.frame import Check, Options, Row, Table, take_turns
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, NONE, SPYNE, Arena
from benchmarks.tools.cores import pin_server
from benchmarks.tools.load import BUSY

MANY = 100
IN_PROCESS = "Spyne without HTTP"


def run(options: Options) -> Table:
    """All candidates take turns, with one notification to a request, then with many."""
    with Arena(options) as arena:
        candidates = arena.start(LIMIT, NONE, COMMIT, FLOOR, SPYNE)
        single = arena.contest(candidates, "1 per Notify")
        many = arena.contest(candidates, f"{MANY} per Notify", messages=MANY)
    in_process = Row.of(
        IN_PROCESS, take_turns({"": lambda: _in_process(options)}, options.rounds, IN_PROCESS)[""]
    )
    return Table(
        "notify",
        "notifications/s",
        (tuple(single.values()), tuple(_named(row) for row in (*many.values(), in_process))),
        tuple(_checks(single, many, in_process)),
        arena.notes(),
        BUSY,
    )


def _named(row: Row) -> Row:
    return Row(f"{row.name}, × {MANY}", row.value, row.note, row.samples)


def _checks(single: dict[str, Row], many: dict[str, Row], in_process: Row) -> list[Check]:
    found = []
    for name in (NONE, COMMIT):
        kind = name.removeprefix("HPwsn, ")
        found += [
            Check.ratio(f"1 per Notify, {kind}, against {FLOOR}", single[name], single[FLOOR], 2),
            Check.ratio(f"1 per Notify, {kind}, against {SPYNE}", single[name], single[SPYNE], 12),
            Check.ratio(f"{MANY} per Notify, {kind}, against {IN_PROCESS}", many[name], in_process, 30),
        ]
    return found


def _in_process(options: Options) -> float:
    command = [sys.executable, "-m", "benchmarks.tools.spyne_path", str(MANY), str(options.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=pin_server)
    return float(done.stdout)
