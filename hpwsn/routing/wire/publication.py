"""A publication between nodes: its id, its leg, and its flags. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple


class Leg(IntEnum):
    """The part of the route that a publication is on; together with the hop count it prevents loops."""

    DIRECT = 1
    """To a node that wants it, where the route ends; also from a representative to its nodes."""
    UP = 2
    """From its origin to the representative of the cluster, which sends it to the clusters that want it."""
    CROSS = 3
    """To the representative of another cluster, for its nodes."""


class Flag(int):
    """How a publication is transported; plain bits, because an enum takes a microsecond for each test."""

    NONE: Final = 0
    RELIABLE: Final = 1
    """Kept by its origin until all targets have stored it."""
    PARTIAL: Final = 2
    """Its pieces may be delivered separately."""
    STREAM: Final = 4
    """Sent over TCP within a cluster too, but not kept."""
    DATAGRAM: Final = 8
    """Sent over UDP between clusters too, unless it is reliable."""


class PublicationId(NamedTuple):
    """An id that is unique in all clusters: the node, the epoch of its journal, and a number.

    Numbers increase; reliable and best-effort publications are numbered separately.
    """

    origin: str
    epoch: int
    number: int


class LargePayload:
    """The payload of a large publication, in parts that are not joined or copied on its way."""

    __slots__ = ("_size", "parts")

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.parts = tuple(parts)
        self._size = sum(map(len, self.parts))

    def __len__(self) -> int:
        return self._size


Payload = bytes | LargePayload


class Publication(NamedTuple):
    """A publication between nodes. `topic` is the text of a Topic, or None without a topic.

    Its origin will never resend a reliable publication with a number below `floor`.
    """

    id: PublicationId
    topic: str | None
    payload: Payload
    flags: int = Flag.NONE
    leg: Leg = Leg.DIRECT
    hops: int = 0
    floor: int = 0

    @property
    def reliable(self) -> bool:
        """Whether it is kept until it is acknowledged."""
        return bool(self.flags & Flag.RELIABLE)

    @property
    def partial(self) -> bool:
        """Whether its pieces may be delivered separately."""
        return bool(self.flags & Flag.PARTIAL)
