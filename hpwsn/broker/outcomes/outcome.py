"""The outcome of a delivery, as plug-ins and receipts get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hpwsn.notification import Notification


class Result(StrEnum):
    """What became of notifications for one subscription."""

    DELIVERED = "delivered"
    QUEUED = "queued"
    """They are in the subscription's pull point."""
    FAILED = "failed"
    """One attempt failed. The broker tries again; a dead letter that is sent again stays one."""
    DEAD_LETTER = "dead-letter"
    EXPIRED = "expired"
    """They waited longer than the subscription's `expires`."""
    DROPPED = "dropped"
    """The subscription's queue was full, or its discipline dropped them."""

    @property
    def is_final(self) -> bool:
        """Whether the broker does nothing more about these notifications for this subscription."""
        return self is not Result.FAILED


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The outcome of one send, or of the decision not to send; `notifications` are those at `offsets`.

    `notifications` is empty for dead letters and dropped notifications, which need not be in memory.
    """

    result: Result
    subscription: str
    consumer: str
    """The address of the consumer or pull point."""
    offsets: Sequence[int]
    time: float
    """When it was known, in seconds since 1970."""
    notifications: Sequence[Notification] = ()
    attempt: int = 1
    """The number of this attempt, from 1."""
    status: int | None = None
    """The HTTP status of the consumer's reply, if it gave one."""
    kind: str | None = None
    """The class of the error, such as `refused`, `timeout` or `server_error`."""
    reason: str = ""
    """The error in words; it can contain the consumer's address."""
