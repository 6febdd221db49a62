"""Requests of a connection that have no answer yet, from the last byte of their bodies to their answer."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

from hpwsn.background import in_thread
from hpwsn.door.listener.http_exchange import Responses
from hpwsn.door.listener.request_head import Head


class Answering(Protocol):
    """The connection that a request came by."""

    responses: Responses

    def needs_full(self, pending: PendingRequests) -> None:
        """Send these requests to the full SOAP door."""

    def proceed_soon(self) -> None:
        """Schedule the answers that are next in order."""


class PendingRequests:
    """Consecutive requests with one outcome; `reply` is None until the outcome is known.

    The body of a large request is still in the parts that it arrived in.
    """

    __slots__ = ("_parts", "bodies", "full", "heads", "lane", "reply", "since")

    def __init__(
        self,
        lane: Answering,
        heads: list[Head],
        bodies: list[bytes],
        full: bool = False,
        parts: Sequence[bytes] = (),
        since: float | None = None,
    ) -> None:
        self.lane = lane
        self.heads = heads
        self.bodies = bodies
        self.full = full
        self.reply: bytes | None = None
        self.since = perf_counter() if since is None else since
        """When they were complete."""
        self._parts = parts

    @property
    def size(self) -> int:
        """The bytes of all bodies."""
        return sum([head.length for head in self.heads])

    async def body(self) -> bytes:
        """The body of a single request; a large one is joined in a thread."""
        if self._parts:
            parts, self._parts = self._parts, ()
            return await in_thread(b"".join, parts)
        return self.bodies[0]

    def singly(self) -> list[PendingRequests]:
        """Split into single requests for the full door."""
        return [
            PendingRequests(self.lane, [head], [body], full=True, since=self.since)
            for head, body in zip(self.heads, self.bodies, strict=True)
        ]

    def stored(self, stored: bool) -> None:
        """The outcome from the Notify lane: answer if stored, else retry through the full door."""
        if stored:
            self.reply = self.lane.responses.accepted(len(self.heads), self.heads[-1].close)
        else:
            self.lane.needs_full(self)
        self.lane.proceed_soon()
