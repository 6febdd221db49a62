"""A publication under way between nodes: its id, where on its way it is, and how it is carried. Pure."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class Leg(IntEnum):
    """Where on its way a publication is; each router only ever raises it, so that none can go round."""

    DIRECT = 1
    """To a node that wants it, which is its end; also from a representative down to its nodes."""
    UP = 2
    """From its origin to the representative of its cluster, to be carried to the clusters that want it."""
    CROSS = 3
    """To the representative of another cluster, for its nodes."""


class Flag(int):
    """How a publication wants to be carried; bits, and no enumeration, whose bits cost a microsecond each."""

    NONE: Final = 0
    RELIABLE: Final = 1
    """Kept by its origin until all who want it have stored it."""
    PARTIAL: Final = 2
    """Its pieces may be handed out one by one."""
    STREAM: Final = 4
    """By TCP within a cluster too, without being kept."""


class PublicationId(NamedTuple):
    """Unique among all clusters: the node, the life of its journal, and the number there.

    Numbers grow; those of reliable publications and those of others are told apart.
    """

    origin: str
    epoch: int
    number: int


class Publication(NamedTuple):
    """A publication under way. `topic` is the text of a Topic, None for none.

    Below `floor` its origin will never send a reliable publication again.
    """

    id: PublicationId
    topic: str | None
    payload: bytes
    flags: int = Flag.NONE
    leg: Leg = Leg.DIRECT
    hops: int = 0
    floor: int = 0

    @property
    def reliable(self) -> bool:
        """Whether it must arrive."""
        return bool(self.flags & Flag.RELIABLE)

    @property
    def partial(self) -> bool:
        """Whether its pieces may be handed out one by one."""
        return bool(self.flags & Flag.PARTIAL)
