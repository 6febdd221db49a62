"""Pages of the log for readers: stretches of runs, and their encodings, which all readers share.

A stretch holds entries of one run. New commits reach all waiting readers as the same stretch, so that each is
encoded once. Long work is done in a thread, so that the event loop goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import ParamSpec, TypeVar

from hpwsn.notification import END, Run, split_payloads

P = ParamSpec("P")
T = TypeVar("T")

LOOP_BYTES = 64 << 10
"""More than this is worked on in a thread, so that the loop goes on."""


class Stretch:
    """Entries of one run at their offsets, in order; `offsets` is a range where none is left out."""

    __slots__ = ("__weakref__", "_encodings", "encoded", "offsets", "run")

    def __init__(self, offsets: Sequence[int], run: Run) -> None:
        self.offsets = offsets
        self.run = run
        self.encoded: dict[Encode, list[bytes]] = {}
        """The entries, in each form in which a reader has got them."""
        self._encodings: dict[Encode, asyncio.Future[None]] = {}

    @property
    def payloads(self) -> list[bytes]:
        """The payload of each entry."""
        return split_payloads(self.run.payloads)

    def select(self, chosen: Sequence[bool]) -> Stretch | None:
        """The chosen entries; the stretch itself if all are, and None if none is."""
        if all(chosen):
            return self
        payloads = list(compress(self.payloads, chosen))
        if not payloads:
            return None
        return self._with(list(compress(self.offsets, chosen)), payloads)

    def cut(self, size: int) -> Iterator[Stretch]:
        """The entries in stretches whose payloads have at most so many bytes, or of one larger entry."""
        if self.run.content_size <= size:
            yield self
            return
        payloads = self.payloads
        start = filled = 0
        for end, payload in enumerate(payloads):
            if filled and filled + len(payload) > size:
                yield self._with(self.offsets[start:end], payloads[start:end])
                start, filled = end, 0
            filled += len(payload)
        yield self._with(self.offsets[start:], payloads[start:]) if start else self

    def _with(self, offsets: Sequence[int], payloads: Sequence[bytes]) -> Stretch:
        """Some of the entries."""
        run = self.run
        rest = run.time, run.message_id, run.target, run.routing, run.trace
        return Stretch(offsets, Run(run.topic, run.before, END.join((*payloads, b"")), len(payloads), *rest))

    def between(self, after: int, upto: int | None) -> Iterator[Stretch]:
        """The entries after one offset and up to another, as one stretch or none."""
        if self.offsets[0] > after and (upto is None or self.offsets[-1] <= upto):
            yield self
            return
        last = self.offsets[-1] if upto is None else upto
        part = self.select([after < offset <= last for offset in self.offsets])
        if part is not None:
            yield part


Encode = Callable[[Sequence[Stretch]], list[bytes]]
"""Makes the form of each entry in which a response has it."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what a reader wants, the offset up to which all has been looked at, and whether that is all."""

    stretches: list[Stretch] = field(default_factory=list)
    upto: int = 0
    complete: bool = False

    @property
    def count(self) -> int:
        """The number of entries."""
        return sum([len(each.offsets) for each in self.stretches])

    @property
    def size(self) -> int:
        """The bytes of all contents."""
        return sum([each.run.content_size for each in self.stretches])

    @property
    def offsets(self) -> list[int]:
        """The offsets of all entries."""
        return [offset for each in self.stretches for offset in each.offsets]

    def first(self, limit: int) -> Page:
        """The page cut after its first `limit` entries, and looked at up to there."""
        upto = self.offsets[limit - 1]
        cut = [part for each in self.stretches for part in each.between(-1, upto)]
        return Page(cut, upto)


async def encode_once(stretches: Sequence[Stretch], encode: Encode) -> list[bytes]:
    """All entries encoded; `encode` gets the stretches of which no reader has this form yet."""
    new = [each for each in stretches if encode not in each.encoded and encode not in each._encodings]
    size = sum([each.run.content_size for each in new])
    if size > LOOP_BYTES:
        encoding = asyncio.ensure_future(_encode_in_thread(new, encode))
        for each in new:
            each._encodings[encode] = encoding
    elif new:
        _keep(new, encode, encode(new))
    for each in stretches:
        if encode not in each.encoded and encode in each._encodings:
            await asyncio.shield(each._encodings[encode])
    return [event for each in stretches for event in each.encoded.get(encode, ())]


async def _encode_in_thread(stretches: Sequence[Stretch], encode: Encode) -> None:
    _keep(stretches, encode, await asyncio.to_thread(encode, stretches))


def _keep(stretches: Sequence[Stretch], encode: Encode, encoded: list[bytes]) -> None:
    start = 0
    for each in stretches:
        end = start + len(each.offsets)
        each.encoded[encode], start = encoded[start:end], end


async def off_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work here, or in a thread where the data is large."""
    if size <= LOOP_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
