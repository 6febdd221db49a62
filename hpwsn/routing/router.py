"""The router of a node: events in, effects out, with neither I/O nor a clock. Pure.

SIGNATURES, being filled in: every method that takes `now` (seconds of a clock that only grows) returns what is
to be done, in order.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpwsn.routing.effects import Effect, RouterSettings
from hpwsn.routing.messages import Flag, Message, PublicationId
from hpwsn.routing.topology import Topology
from hpwsn_client.wsn.topics import Topic, TopicExpression

Expressions = tuple[TopicExpression, ...]


class Router:
    """One node's part in carrying publications.

    `incarnation` differs for each start of the process (such as the time in microseconds); `epoch` is the life
    of the journal whose offsets are the numbers of publications: random, kept with it, new when it is new.
    """

    def __init__(
        self, name: str, *, incarnation: int, epoch: int, settings: RouterSettings | None = None
    ) -> None:
        raise NotImplementedError

    # Who is there, and who wants what here.

    def topology_changed(self, topology: Topology, now: float) -> list[Effect]:
        """Take up a topology, also the first one; all local interest should be known before."""
        raise NotImplementedError

    def want(self, expressions: Expressions, now: float) -> list[Effect]:
        """Count one more here that wants topics that match all the expressions; with none, everything."""
        raise NotImplementedError

    def release(self, expressions: Expressions, now: float) -> list[Effect]:
        """Count one less."""
        raise NotImplementedError

    # Publications.

    def wanted(self, topic: Topic | None) -> bool:
        """Whether another node wants it, as far as is known: one look-up."""
        raise NotImplementedError

    def publish(
        self, topic: Topic | None, number: int, payload: bytes, now: float, flags: Flag = Flag.NONE
    ) -> list[Effect]:
        """Send a publication of this node on its way; numbers grow (offsets of the journal).

        A reliable one is kept until all have it, its number is in `unacknowledged` and `floor` so long.
        Ask `full` first: beyond the bound it is taken all the same.
        """
        raise NotImplementedError

    @property
    def full(self) -> bool:
        """Whether no more reliable publication should be taken now."""
        raise NotImplementedError

    @property
    def floor(self) -> int | None:
        """The number of the oldest reliable publication that is still kept; None where there is none.

        To be persisted (or the newest number published + 1), so that after a restart the reliable ones from there on are published again.
        """
        raise NotImplementedError

    # What comes from others.

    def received(self, sender: str, message: Message, now: float) -> list[Effect]:
        """A message of another node, whose name the link has made sure of."""
        raise NotImplementedError

    def stored(self, publication: PublicationId, now: float) -> list[Effect]:
        """A reliable publication that was delivered here has been committed."""
        raise NotImplementedError

    def restore(self, seen: Iterable[PublicationId], floors: Iterable[PublicationId] = ()) -> None:
        """After a restart: reliable publications that are stored already, and each origin's floor as the number."""
        raise NotImplementedError

    # Links and time.

    def link_changed(self, member: str, up: bool, now: float) -> list[Effect]:
        """The TCP link to a node came up, or broke."""
        raise NotImplementedError

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: to be called every 20 to 100 ms (or at `due`)."""
        raise NotImplementedError

    def figures(self) -> dict[str, int]:
        """Counts for /metrics and /status."""
        raise NotImplementedError
