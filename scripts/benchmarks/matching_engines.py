"""Every engine that `matching.engine` can name, in the broker's own groups: CPU time per event.

A payload is read, matched with all filters of a topic, and gives the subscribers, as in a node; nothing is
delivered. Filters are all different. All engines must find the same subscribers.
"""

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice

from benchmarks.frame import Check, Options, Row, Table, figure, progress, take_turns
from benchmarks.report import as_tables
from benchmarks.tools.content import places
from benchmarks.tools.paper_curves import pictures_of
from benchmarks.tools.stream_figures import gps_event, gps_request
from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn.matching.content.content_index import Engines
from hpwsn.matching.engine.default_engine import DefaultEngine, fast_kernel
from hpwsn.matching.language.predicates import Conjunction, Event
from hpwsn.matching.language.reference_engine import Engine
from hpwsn.matching.language.values import scalar_text
from hpwsn.node.engine_choice import DEFAULT, PaperEngines
from hpwsn.settings.broker import ENGINES
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES

EVENTS = 200
REQUESTS, PLACES = "requests of six predicates", "a rectangle and words"
NOTES = (
    "CPU time to read a payload and find its subscribers; in brackets: µs to add one filter",
    "the default engine runs with numba, if that is installed",
    "requests: six random comparisons of a GPS event's seven attributes; places: as in the default engine's"
    " table",
)

Filters = tuple[ContentFilter, ...]


@dataclass(frozen=True)
class Load:
    """Filters that the broker accepts, and payloads."""

    filters: ContentFilters
    wanted: Sequence[Filters]
    payloads: Sequence[bytes]


class CompiledEngines:
    """Default engines with the compiled kernel from the start; a node has it after some seconds."""

    def make(self) -> Engine:
        """A new engine."""
        return DefaultEngine(fast_kernel())

    def prepare(self) -> None:
        """Do nothing: the kernel is compiled."""


def run(options: Options) -> Table:
    """Requests and places, over the number of filters."""
    fast_kernel()
    counts = (100, 300) if options.quick else (100, 1_000, 10_000)
    groups = [
        _compared(kind, count, load_of(kind, count), options)
        for kind in (REQUESTS, PLACES)
        for count in counts
    ]
    rows = [row for group in groups for row in group]
    return Table(
        "matching-engines",
        "µs per event",
        tuple(groups),
        tuple(_checks(groups)),
        (
            *NOTES,
            f"{_rounds(options)} samples, each at least {options.seconds / 10:g} s and 20 events",
        ),
        body=body_of(rows),
        pictures=pictures_of([asdict(row) for row in rows]),
    )


def _rounds(options: Options) -> int:
    return min(options.rounds, 3)


def body_of(rows: Sequence[Row]) -> str:
    """A table for each kind: a line for each engine, a column for each number of filters."""
    cells = []
    for row in rows:
        title, filters, engine = row.name.split(" · ")
        cells.append((title, f"`{engine}`", filters, f"{figure(row.value)} ({row.note})"))
    return as_tables(cells)


def _checks(groups: Sequence[Sequence[Row]]) -> Iterator[Check]:
    for group in groups:
        first, *others = group
        fastest = min(others, key=lambda row: row.value)
        what = " · ".join(first.name.split(" · ")[:2])
        yield Check.ratio(f"{what}: {fastest.name.split(' · ')[2]} vs {DEFAULT}", fastest, first, 1.0)


def load_of(kind: str, count: int) -> Load:
    """Random filters, all different, in the language of the broker."""
    filters, wanted = ContentFilters(), dict[Filters, None]()
    conjunctions, events = _gps(count) if kind == REQUESTS else _places(count)
    for conjunction in conjunctions:
        each = (ContentFilter(DIALECT_PREDICATES, " and ".join(map(str, conjunction))),)
        try:
            filters.acquire(each)
        except InvalidMessageContentExpressionFault:
            continue  # two of its comparisons contradict each other
        wanted[each] = None
        if len(wanted) == count:
            break
    return Load(filters, list(wanted), [_payload(event) for event in events])


def _gps(count: int) -> tuple[Iterator[Conjunction], list[Event]]:
    chance = random.Random(count)
    events = [gps_event(chance) for _ in range(EVENTS)]
    return (gps_request(chance, 6)[0] for _ in range(10 * count)), events


def _places(count: int) -> tuple[Iterator[Conjunction], list[Event]]:
    load = places(count, EVENTS)
    return (request[0] for request in load.requests), load.events


def _payload(event: Event) -> bytes:
    leaves = (
        f"<{name}>{scalar_text(one)}</{name}>"
        for name, value in event.items()
        for one in (value if isinstance(value, tuple) else (value,))
    )
    return f"<event>{''.join(leaves)}</event>".encode()


def _compared(kind: str, count: int, load: Load, options: Options) -> tuple[Row, ...]:
    progress(f"{kind}, {count:,} filters")
    gc.disable()
    groups, adding = {}, {}
    for name, engines in _engines().items():
        start = time.process_time()
        groups[name] = _filled(engines, load)
        adding[name] = (time.process_time() - start) / len(load.wanted) * 1e6
    _agree(groups, load)
    samples = take_turns(
        {name: _sampler(group, load, options.seconds / 10) for name, group in groups.items()},
        _rounds(options),
        f"{kind}, {count:,} filters",
    )
    gc.enable()
    return tuple(
        Row.of(f"{kind}, µs per event · filters {count} · {name}", taken, f"{adding[name]:.0f}")
        for name, taken in samples.items()
    )


def _engines() -> Mapping[str, Engines]:
    return {name: CompiledEngines() if name == DEFAULT else PaperEngines(name) for name in ENGINES}


def _filled(engines: Engines, load: Load) -> ContentGroup[int]:
    group: ContentGroup[int] = ContentGroup(engines)
    for number, each in enumerate(load.wanted):
        compiled = load.filters.find(each)
        assert compiled is not None
        group.add(number, compiled)
    return group


def _agree(groups: Mapping[str, ContentGroup[int]], load: Load) -> None:
    """Match some events with every engine: indexes are made and orders learned before the measurement."""
    found: dict[str, list[list[int]]] = {}
    for name, group in groups.items():
        answers = (group.match([load.filters.evaluation(payload)])[0] for payload in load.payloads[:20])
        found[name] = [sorted(answer) for answer in answers]
    for name, answer in found.items():
        if answer != found[DEFAULT]:
            raise ValueError(f"{name} and {DEFAULT} find different subscribers")


def _sampler(group: ContentGroup[int], load: Load, seconds: float) -> Callable[[], float]:
    payloads = cycle(load.payloads)

    def sample() -> float:
        """The µs of CPU time for one event, over at least so many seconds and twenty events."""
        count, start = 0, time.process_time()
        while not count or time.process_time() - start < seconds:
            for payload in islice(payloads, 20):
                group.match([load.filters.evaluation(payload)])
            count += 20
        return (time.process_time() - start) / count * 1e6

    return sample
