"""The interface of a backbone, which carries accepted notifications to the journal of the node.

An implementation guarantees two things: `send` returns only when the notifications can no longer be lost, and
the node receives notifications in the order in which they were sent.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hpwsn.journal.store.records import Arrival
from hpwsn.notification import Notification, Run


class Receive(Protocol):
    """Stores notifications that a backbone delivers, all or none."""

    def __call__(self, runs: Sequence[Run], arrival: Arrival | None = None) -> Awaitable[int]:
        """Return the first offset after the commit; `arrival` is stored in the same transaction."""


@dataclass(frozen=True, slots=True)
class Screened:
    """The result of checking notifications from other processes: new, rejected with the reason, repeated."""

    kept: Sequence[Run]
    refused: Sequence[tuple[Notification, str]]
    repeated: int
    stored: Callable[[int], None]
    """Must be called with the offset of the first kept notification, after all of them are stored."""


class Screen(Protocol):
    """Checks notifications that did not arrive through a door of this node."""

    def __call__(self, notifications: Sequence[Notification], *, checked: bool) -> Screened:
        """Return those that can be stored; if a door has `checked` them before, only ids are compared."""


class Backbone(Protocol):
    """The operations of a backbone."""

    async def start(self, receive: Receive, screen: Screen) -> None:
        """Start to pass notifications to `receive`; those of other processes only if `screen` keeps them."""

    async def send(self, runs: Sequence[Run]) -> int | None:
        """Carry runs, all or none; returns when they are safe, with the offset of the first notification.

        None means that they cannot be lost, but their offsets are not known yet.
        """

    async def close(self) -> None:
        """Finish in-flight notifications and stop."""

    def holds(self) -> bool:
        """Whether there are accepted notifications that are not in the log of the journal yet."""

    def problem(self) -> str | None:
        """The reason why this backbone is not ready, as a text for operators, or None if it is ready."""

    def figures(self) -> Mapping[str, Any]:
        """The state and the counters of the backbone, for operators."""
