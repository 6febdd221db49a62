"""Detection of duplicate publications, in bounded memory. Pure.

RecentNumbers is for best-effort publications. They are never resent on purpose, so that a window of numbers
per source is enough; a number below the window counts as a duplicate. StoredNumbers is for reliable
publications. They are resent until they are acknowledged, however late, so that all numbers from the floor
of the source on are remembered; the source never resends a number below its floor. Repeats recognises a
message that a publisher sent to two nodes with the same MessageId, for example because the first node died.
It compares id and content. Equal messages from one origin are not duplicates, because the messages of one
Notify share its id.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Generic, TypeVar

from hpwsn.notification import LARGE, Notification
from hpwsn.routing.wire.router_messages import PublicationId

Source = tuple[str, int]
T = TypeVar("T")

_CHUNK_BITS = 10
_CHUNK_MASK = (1 << _CHUNK_BITS) - 1


class _Sources(Generic[T]):
    """A value per source; above the limit, the least recently used source is forgotten."""

    __slots__ = ("_max", "all")

    def __init__(self, most: int) -> None:
        self.all: OrderedDict[Source, T] = OrderedDict()
        self._max = most

    def get(self, source: Source) -> T | None:
        found = self.all.get(source)
        if found is not None:
            self.all.move_to_end(source)
        return found

    def put(self, source: Source, value: T) -> T:
        while len(self.all) >= self._max:
            self.all.popitem(last=False)
        self.all[source] = value
        return value


class _Window:
    __slots__ = ("bits", "newest")

    def __init__(self, newest: int) -> None:
        self.newest = newest
        self.bits = 0


class RecentNumbers:
    """The last `size` numbers of the best-effort publications of each source."""

    def __init__(self, size: int, max_sources: int) -> None:
        self._size = size
        self._mask = (1 << size) - 1
        self._sources: _Sources[_Window] = _Sources(max_sources)

    def __len__(self) -> int:
        return len(self._sources.all)

    def is_new(self, publication: PublicationId) -> bool:
        """Whether a publication is new; the next call with it returns False."""
        origin, epoch, number = publication
        source = (origin, epoch)
        window = self._sources.get(source)
        if window is None:
            window = self._sources.put(source, _Window(number))
        ahead = number - window.newest
        if ahead > 0:
            window.bits = (window.bits << ahead | 1) & self._mask if ahead < self._size else 1
            window.newest = number
            return True
        bit = 1 << -ahead
        if -ahead >= self._size or window.bits & bit:
            return False
        window.bits |= bit
        return True


class _Numbers:
    """A set of numbers from a floor on, as one integer of bits for each 1024 numbers."""

    __slots__ = ("chunks", "floor")

    def __init__(self) -> None:
        self.floor = 0
        self.chunks: dict[int, int] = {}

    def __contains__(self, number: int) -> bool:
        bits = self.chunks.get(number >> _CHUNK_BITS, 0)
        return number < self.floor or bool(bits >> (number & _CHUNK_MASK) & 1)

    def add(self, number: int) -> None:
        chunk = number >> _CHUNK_BITS
        self.chunks[chunk] = self.chunks.get(chunk, 0) | 1 << (number & _CHUNK_MASK)

    def raise_floor(self, floor: int) -> None:
        if floor <= self.floor:
            return
        if floor >> _CHUNK_BITS != self.floor >> _CHUNK_BITS:
            first = floor >> _CHUNK_BITS
            self.chunks = {chunk: bits for chunk, bits in self.chunks.items() if chunk >= first}
        self.floor = floor


class StoredNumbers:
    """The reliable publications that this node has stored, or is storing."""

    def __init__(self, max_sources: int) -> None:
        self._sources: _Sources[_Numbers] = _Sources(max_sources)
        self._storing: dict[PublicationId, None] = {}

    def __len__(self) -> int:
        return sum(len(numbers.chunks) for numbers in self._sources.all.values())

    @property
    def storing(self) -> int:
        """The number of publications that are delivered and not committed yet."""
        return len(self._storing)

    def begin(self, publication: PublicationId) -> bool:
        """Begin to store a publication; False if it is stored or being stored already."""
        if publication in self._storing or self.has(publication):
            return False
        self._storing[publication] = None
        return True

    def has(self, publication: PublicationId) -> bool:
        """Whether a publication is stored."""
        numbers = self._sources.get(publication[:2])
        return numbers is not None and publication.number in numbers

    def stored(self, publication: PublicationId) -> None:
        """Record that a publication is committed."""
        self._storing.pop(publication, None)
        self._numbers(publication).add(publication.number)

    def refused(self, publication: PublicationId) -> None:
        """Record that a publication could not be stored; it may arrive again."""
        self._storing.pop(publication, None)

    def raise_floor(self, publication: PublicationId, floor: int) -> None:
        """Record that the origin will never resend a number below the floor."""
        if floor:
            self._numbers(publication).raise_floor(floor)

    def _numbers(self, publication: PublicationId) -> _Numbers:
        source = publication[:2]
        return self._sources.get(source) or self._sources.put(source, _Numbers())

    def floors(self) -> Iterator[PublicationId]:
        """Yield the floor of each source as the number of an id; lower numbers need not be stored."""
        for (origin, epoch), numbers in self._sources.all.items():
            yield PublicationId(origin, epoch, numbers.floor)


SAMPLE = 64 << 10
MAX_REPEATS = 100_000
"""The most ids in memory; the oldest are forgotten."""


def _sample(notification: Notification) -> bytes:
    """The payload; of a large one its length and its ends, since a hash of all would hold the event loop."""
    content, start, end = notification.content, notification.start, notification.end
    if end - start < LARGE:
        return notification.payload
    ends = content[start : start + SAMPLE], content[end - SAMPLE : end]
    return b"".join((b"%d " % (end - start), *ends))


class Repeats:
    """The first origin of each message id and content."""

    def __init__(self, most: int = MAX_REPEATS) -> None:
        self._max = most
        self._first: OrderedDict[bytes, str] = OrderedDict()

    def is_repeated(self, notification: Notification, origin: str) -> bool:
        """Whether another origin published the same content with the same id before; remember this one."""
        if notification.message_id is None:
            return False
        key = blake2b(
            _sample(notification), digest_size=16, key=blake2b(notification.message_id.encode()).digest()
        ).digest()
        first = self._first.setdefault(key, origin)
        if len(self._first) > self._max:
            self._first.popitem(last=False)
        return first != origin
