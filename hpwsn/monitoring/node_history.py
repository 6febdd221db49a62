"""The figures of one node over time: the last 5 minutes by 1 s, the last hour by 5 s, the last day by 60 s.

A step keeps the least, the mean and the greatest value of the samples in it. Steps without a sample are gaps.
All values are in arrays of 4 bytes each, so that a process can keep the histories of many nodes: with the
usual figures, one history takes 0.5 MB in memory and on disk. Steps begin at multiples of their length since
1970. If the clock is set back, the steps after the new time are removed.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

FIGURES = (
    "published_rate",
    "delivered_rate",
    "failed_rate",
    "waiting",
    "dead_letters",
    "subscriptions",
    "pull_points",
    "topics",
    "journal_bytes",
    "cpu",
    "memory",
    "threads",
    "files",
    "connections",
    "accept_p50",
    "accept_p99",
    "deliver_p50",
    "deliver_p99",
)
"""The figures of a sample, in the order of the file."""

RANGES: Mapping[str, tuple[int, int]] = {"5m": (1, 300), "1h": (5, 720), "24h": (60, 1440)}
"""Seconds of a step and number of steps of each range."""

MOST_RESTARTS = 100
"""Restarts that are remembered; the oldest are forgotten first."""

_FORMAT = 1
_NAN = math.nan

Sample = Mapping[str, float | None]


class DamagedHistory(ValueError):
    """Stored bytes are not a history; the text says why."""


class _Ring:
    """The steps of one range; the place of a step is its number modulo the length."""

    def __init__(self, step: int, length: int, count: int) -> None:
        self.step = step
        self.length = length
        self.newest: int | None = None
        """The number of the last step with a sample: its time divided by the length of a step."""
        self.samples = [0] * count
        """How many samples of each figure the newest step has."""
        self.sums = [0.0] * count
        self.mean = [self._gaps() for _ in range(count)]
        # A step of one second has one sample, which is all three.
        self.low = self.mean if step == 1 else [self._gaps() for _ in range(count)]
        self.high = self.mean if step == 1 else [self._gaps() for _ in range(count)]

    def _gaps(self) -> array[float]:
        return array("f", [_NAN]) * self.length

    def arrays(self) -> list[array[float]]:
        """Every array once, in the order of the file."""
        return self.mean if self.step == 1 else [*self.mean, *self.low, *self.high]

    def resume(self, newest: int | None, samples: Sequence[int]) -> None:
        """Go on with a step of which the arrays have the values so far."""
        self.newest, self.samples = newest, list(samples)
        place = (newest or 0) % self.length
        means = (one[place] for one in self.mean)
        self.sums = [count * mean if count else 0.0 for count, mean in zip(samples, means, strict=True)]

    def add(self, time: float, values: Sequence[float | None]) -> None:
        number = int(time // self.step)
        if number != self.newest:
            self._move_to(number)
        place, samples, sums = number % self.length, self.samples, self.sums
        for which, value in enumerate(values):
            if value is None or value != value:
                continue
            samples[which] += 1
            sums[which] += value
            mean, low, high = self.mean[which], self.low[which], self.high[which]
            if samples[which] == 1 or self.step == 1:
                mean[place] = low[place] = high[place] = value
                continue
            if value < low[place]:
                low[place] = value
            if value > high[place]:
                high[place] = value
            # Rounding must not put the mean outside of the other two.
            mean[place] = min(max(sums[which] / samples[which], low[place]), high[place])

    def _move_to(self, number: int) -> None:
        """Make this the newest step, without samples."""
        newest = self.newest
        self.newest = number
        self.samples = [0] * len(self.samples)
        self.sums = [0.0] * len(self.samples)
        if newest is None:
            return
        first, last = (newest + 1, number) if number > newest else (number, newest)
        for place in {number % self.length for number in range(first, min(last, first + self.length) + 1)}:
            for one in self.arrays():
                one[place] = _NAN

    def window(self, one: array[float], last: int) -> list[float]:
        """The values of all steps up to a step, oldest first; NaN for a gap."""
        first = last - self.length + 1
        cut = (last + 1) % self.length
        values = [*one[cut:], *one[:cut]]
        newest = self.newest
        if newest is None or newest < first or newest - self.length + 1 > last:
            return [_NAN] * self.length
        if newest < last:
            values[newest - first + 1 :] = [_NAN] * (last - newest)
        elif newest > last:
            values[: newest - last] = [_NAN] * (newest - last)
        return values


class History:
    """The history of one node; times are seconds since 1970."""

    def __init__(self, figures: Sequence[str] = FIGURES) -> None:
        self.figures = tuple(figures)
        self.restarts: list[float] = []
        self._rings = {name: _Ring(*shape, len(self.figures)) for name, shape in RANGES.items()}

    @property
    def empty(self) -> bool:
        """Whether it never got a sample."""
        return all(ring.newest is None for ring in self._rings.values())

    @property
    def newest(self) -> int:
        """The time of the last sample; 0 if there is none."""
        return self._rings["5m"].newest or 0

    def add(self, time: float, sample: Sample) -> None:
        """Add a sample; figures that it lacks, or that are None, stay gaps."""
        values = [sample.get(name) for name in self.figures]
        for ring in self._rings.values():
            ring.add(time, values)

    def restarted(self, time: float) -> None:
        """Remember that the node has started again; the first start is not a restart."""
        if not self.empty:
            self.restarts = [*self.restarts, time][-MOST_RESTARTS:]

    def answer(self, range_: str, metrics: Sequence[str], now: float) -> str:
        """The JSON text for a reader: all steps of the range up to now, for each of the figures."""
        ring = self._rings[range_]
        last = int(now // ring.step)
        first = (last - ring.length + 1) * ring.step
        told = {
            "from": _moment(first),
            "step": ring.step,
            "restarts": [_moment(time) for time in self.restarts if time >= first],
        }
        series = ",".join(f"{json.dumps(name)}:{self._series(ring, name, last)}" for name in metrics)
        return f'{json.dumps(told)[:-1]},"series":{{{series}}}}}'

    def _series(self, ring: _Ring, name: str, last: int) -> str:
        which = self.figures.index(name)
        mean = _numbers(ring.window(ring.mean[which], last))
        low = mean if ring.step == 1 else _numbers(ring.window(ring.low[which], last))
        high = mean if ring.step == 1 else _numbers(ring.window(ring.high[which], last))
        return f'{{"min":{low},"mean":{mean},"max":{high}}}'

    def encode(self, node: str) -> bytes:
        """The bytes of the file: a line of JSON, then the arrays, 4 bytes a value, little-endian."""
        body = b"".join(_ordered(one).tobytes() for one in self._arrays())
        head = {
            "format": _FORMAT,
            "node": node,
            "figures": self.figures,
            "restarts": self.restarts,
            "rings": {
                name: {"newest": ring.newest, "samples": ring.samples} for name, ring in self._rings.items()
            },
            "crc": zlib.crc32(body),
        }
        return json.dumps(head).encode() + b"\n" + body

    def _arrays(self) -> Iterator[array[float]]:
        for ring in self._rings.values():
            yield from ring.arrays()


def decode_history(data: bytes, figures: Sequence[str] = FIGURES) -> tuple[str, History]:
    """The node and the history in the bytes of a file; DamagedHistory if they are not one.

    Figures that the file lacks are gaps, and those that it has beyond `figures` are left out.
    """
    head, _, body = data.partition(b"\n")
    try:
        told = json.loads(head)
        if told["format"] != _FORMAT:
            raise DamagedHistory(f"its format is {told['format']!r}, and this version reads {_FORMAT}")
        if zlib.crc32(body) != told["crc"]:
            raise DamagedHistory("its checksum is wrong")
        stored = History([str(name) for name in told["figures"]])
        _fill(stored, told, body)
        node = str(told["node"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DamagedHistory):
            raise
        raise DamagedHistory(f"its first line is not that of a history: {error!r}") from error
    return node, stored if stored.figures == tuple(figures) else _with_figures(stored, figures)


def _fill(history: History, told: Mapping[str, Any], body: bytes) -> None:
    size = 4 * sum(len(one) for one in history._arrays())
    if len(body) != size:
        raise DamagedHistory(f"it has {len(body)} bytes of values instead of {size}")
    start = 0
    for one in history._arrays():
        end = start + 4 * len(one)
        values: array[float] = array("f")
        values.frombytes(body[start:end])
        one[:] = _ordered(values)
        start = end
    for name, ring in history._rings.items():
        newest, samples = told["rings"][name]["newest"], list(map(int, told["rings"][name]["samples"]))
        if len(samples) != len(history.figures):
            raise DamagedHistory(f"it has {len(samples)} counts for {len(history.figures)} figures")
        ring.resume(None if newest is None else int(newest), samples)
    history.restarts = list(map(float, told["restarts"]))[-MOST_RESTARTS:]


def _with_figures(stored: History, figures: Sequence[str]) -> History:
    history = History(figures)
    history.restarts = stored.restarts
    for name, ring in history._rings.items():
        old = stored._rings[name]
        samples = [0] * len(figures)
        for which, figure in enumerate(history.figures):
            if figure in stored.figures:
                where = stored.figures.index(figure)
                samples[which] = old.samples[where]
                for new, kept in ((ring.mean, old.mean), (ring.low, old.low), (ring.high, old.high)):
                    new[which][:] = kept[where]
        ring.resume(old.newest, samples)
    return history


def _ordered(values: array[float]) -> array[float]:
    """The values with the least significant byte first; a copy where this machine has another order."""
    if sys.byteorder == "little":
        return values
    turned = values[:]
    turned.byteswap()
    return turned


def _numbers(values: Sequence[float]) -> str:
    """A JSON array with the 7 digits that 4 bytes hold; gaps, and infinities, are null."""
    return f"[{','.join([f'{value:.7g}' if value - value == 0 else 'null' for value in values])}]"


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat()
