"""The backlog of the pipeline benchmark: records of cameras, and what each of the two jobs must make of them.

The last record is of an hour later, so that it closes every window but its own.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice

from hpwsn.streams.definition.schema import json_of
from hpwsn.streams.generator import Traffic, anpr

TRAFFIC = Traffic(cameras=400, vehicles=100_000, trips=300.0)
"""A city: about 500 records a second of its own time, some cameras much busier than others."""
SEED = 17
SCHEMA = "cid STRING, vid STRING, time TIMESTAMP"
LATENESS = "20 seconds"
"""Longer than a record is late, and than two partitions of Kafka differ within a batch."""
HALF = "cam-100"
"""Cameras below this one see about half of the vehicles."""
FILTER, COUNT = "filter", "count"
JOBS = (FILTER, COUNT)

Output = tuple[str, ...]
"""What an output says beside its key: plate and time, or the count and the minute."""
ByKey = dict[str, list[Output]]


@dataclass(frozen=True)
class Record:
    """One line of JSON with its camera."""

    cid: str
    vid: str
    time: str

    @property
    def line(self) -> bytes:
        """The record as a JSON object."""
        return f'{{"cid": "{self.cid}", "vid": "{self.vid}", "time": "{self.time}"}}'.encode()


class Records:
    """So many records of cameras, the last of which closes all windows."""

    def __init__(self, number: int) -> None:
        events = islice(anpr(SEED, TRAFFIC), number - 1)
        self.all = [Record(*map(str, map(json_of, event.values()))) for event in events]
        later = datetime.fromisoformat(self.all[-1].time) + timedelta(hours=1)
        self.all.append(Record("cam-000", self.all[-1].vid, str(json_of(later))))

    @cached_property
    def wanted(self) -> Mapping[str, ByKey]:
        """The outputs of each job by camera, in the order in which they must come."""
        return {FILTER: self._passed(), COUNT: self._counts()}

    def _passed(self) -> ByKey:
        found: ByKey = defaultdict(list)
        for one in self.all:
            if one.cid < HALF:
                found[one.cid].append((one.vid, instant(one.time)))
        return found

    def _counts(self) -> ByKey:
        counts = Counter((one.cid, one.time[:16]) for one in self.all[:-1])
        found: ByKey = defaultdict(list)
        for (cid, minute), count in sorted(counts.items()):
            found[cid].append((str(count), instant(f"{minute}:00Z")))
        return found

    def outputs(self, job: str) -> int:
        """How many outputs a job must give."""
        return sum(map(len, self.wanted[job].values()))


def instant(text: str) -> str:
    """A time in one form, however it was written."""
    return datetime.fromisoformat(text).isoformat()


def output(job: str, fields: Mapping[str, object]) -> tuple[str, Output]:
    """The key of an output, and the rest of it."""
    value = "vid" if job == FILTER else "flow"
    return str(fields["cid"]), (str(fields[value]), instant(str(fields["time"])))


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the outputs of a run differ from the reference."""

    missing: int
    repeated: int
    wrong: int
    unordered: int

    @property
    def is_equal(self) -> bool:
        """Whether the outputs are those of the reference, once each, in order by key."""
        return not (self.missing or self.repeated or self.wrong or self.unordered)

    def __str__(self) -> str:
        if self.is_equal:
            return "equal to the reference, in order, nothing twice"
        found = {
            "missing": self.missing,
            "repeated": self.repeated,
            "wrong": self.wrong,
            "keys out of order": self.unordered,
        }
        return ", ".join(f"{number:,} {what}" for what, number in found.items() if number)


def judge(wanted: ByKey, came: Iterable[tuple[str, Output]]) -> Verdict:
    """Compare the outputs of a run, in order of arrival, with the reference."""
    found: ByKey = defaultdict(list)
    for key, rest in came:
        found[key].append(rest)
    missing = repeated = wrong = unordered = 0
    for key in wanted.keys() | found.keys():
        needed, got = Counter(wanted.get(key, ())), Counter(found.get(key, ()))
        missing += (needed - got).total()
        extra = got - needed
        repeated += sum(number for one, number in extra.items() if one in needed)
        wrong += sum(number for one, number in extra.items() if one not in needed)
        unordered += not _in_order(wanted.get(key, ()), found.get(key, ()))
    return Verdict(missing, repeated, wrong, unordered)


def _in_order(wanted: Sequence[Output], came: Sequence[Output]) -> bool:
    """Whether the outputs of a key came in the order of the reference, apart from missing and other ones."""
    if list(wanted) == list(came):
        return True
    places: dict[Output, list[int]] = defaultdict(list)
    for place, one in enumerate(wanted):
        places[one].append(place)
    # The first arrival of each; what came again is counted as repeated.
    seen = [places[one].pop(0) for one in came if places.get(one)]
    return seen == sorted(seen)
