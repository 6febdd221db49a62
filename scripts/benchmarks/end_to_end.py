"""End to end: notifications per second from publishers through the broker to one consumer."""

from benchmarks.frame import Check, Options, Row, Table
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, NONE, SPYNE, Arena, Candidate
from benchmarks.tools.load import BUSY

TAKES_ONLY = f"{LIMIT}, ingest only"


def run(options: Options) -> Table:
    """The references forward each notification; one more accepts notifications and drops them."""
    with Arena(options) as arena:
        candidates = arena.start(LIMIT, NONE, COMMIT, FLOOR, SPYNE, consumers=1)
        (bare,) = arena.start(LIMIT)
        candidates.append(Candidate(TAKES_ONLY, bare.url, bare.pid))
        rows = arena.contest(candidates)
    return Table(
        "end-to-end",
        "notifications/s",
        (tuple(rows.values()),),
        tuple(_checks(rows)),
        arena.notes(),
        BUSY,
    )


def _kind(name: str) -> str:
    return name.removeprefix("HPwsn, ")


def _checks(rows: dict[str, Row]) -> list[Check]:
    targets = {NONE: 75, COMMIT: 60}
    return [
        Check.ratio(f"{_kind(name)}, against {against}", rows[name], rows[against], target, "%")
        for against in (LIMIT, TAKES_ONLY)
        for name, target in targets.items()
    ]
