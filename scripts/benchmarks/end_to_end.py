"""End to end: notifications from a publisher through the broker to one consumer, in a second."""

from benchmarks.frame import Check, Options, Row, Table
from benchmarks.tools.arena import COMMIT, FLOOR, LIMIT, NONE, SPYNE, Arena, Candidate
from benchmarks.tools.load import UNDER_WAY

TAKES_ONLY = "limit that delivers nothing"


def run(options: Options) -> Table:
    """The references forward what they take, as little as one can; one more takes in only."""
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
        (*arena.notes(), f"at most {UNDER_WAY} notifications under way between publisher and consumer"),
    )


def _kind(name: str) -> str:
    return name.removeprefix("HPwsn, ")


def _checks(rows: dict[str, Row]) -> list[Check]:
    targets = {NONE: 75, COMMIT: 60}
    return [
        Check.ratio(f"{_kind(name)}, against the {other}", rows[name], rows[against], target, "%")
        for against, other in ((LIMIT, "limit that delivers too"), (TAKES_ONLY, TAKES_ONLY))
        for name, target in targets.items()
    ]
