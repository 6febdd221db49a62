"""Acknowledgements gathered, so that those to one node for one origin travel in one message. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpwsn.routing.effects import Effect, Send
from hpwsn.routing.messages import MAX_NUMBERS, Ack, Again, Leg, PublicationId


class Answers:
    """Acks and requests to send again that are to be sent."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[type[Ack] | type[Again], str, Leg, str, int], list[int]] = {}

    def ack(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """This node is done with it."""
        self._add(Ack, to, leg, publication)

    def again(self, to: str, leg: Leg, publication: PublicationId) -> None:
        """This node wants it once more."""
        self._add(Again, to, leg, publication)

    def _add(self, kind: type[Ack] | type[Again], to: str, leg: Leg, publication: PublicationId) -> None:
        origin, epoch, number = publication
        self._gathered.setdefault((kind, to, leg, origin, epoch), []).append(number)

    def take(self) -> Iterator[Effect]:
        """All that has gathered."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, {}
        for (kind, to, leg, origin, epoch), numbers in gathered.items():
            for at in range(0, len(numbers), MAX_NUMBERS):
                part = tuple(numbers[at : at + MAX_NUMBERS])
                yield Send((to,), kind(leg, origin, epoch, part), stream=True)
