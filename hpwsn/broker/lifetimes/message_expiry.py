"""Expiry of notifications: `expires` of the Delivery policy. Pure arithmetic.

The time counts from the acceptance of a notification, which the journal stores, so a restart or a pause does
not restart it. An expired notification is not sent. It is dropped and counted, regardless of `overflow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.times import Duration

LOOKED_AT = 64
"""Notifications that one step checks, even if fewer go into a send."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The notifications to send, in order, and the offsets of those that leave the queue unsent."""

    offsets: list[int]
    notifications: list[Notification]
    unsent: list[int]

    @property
    def done(self) -> int:
        """The last offset up to which all notifications leave unsent; 0 if the first one does not."""
        first = self.offsets[0] if self.offsets else None
        return max((offset for offset in self.unsent if first is None or offset < first), default=0)


def sort_out(
    after: Duration, offsets: Iterable[int], notifications: Sequence[Notification], now: float
) -> Sorted:
    """Separate the expired notifications from those that can still be sent."""
    return without(lambda notification: has_expired(after, notification.time, now), offsets, notifications)


def without(
    leaves: Callable[[Notification], bool], offsets: Iterable[int], notifications: Sequence[Notification]
) -> Sorted:
    """Separate the notifications that leave the queue unsent from the others."""
    found = Sorted([], [], [])
    for offset, notification in zip(offsets, notifications, strict=True):
        if leaves(notification):
            found.unsent.append(offset)
        else:
            found.offsets.append(offset)
            found.notifications.append(notification)
    return found


def has_expired(after: Duration, accepted: float, now: float) -> bool:
    """Whether a notification is older than `after`; one with a time in the future is not."""
    if not after.months:
        return now - accepted > after.seconds
    try:
        return after.after(datetime.fromtimestamp(accepted, UTC)).timestamp() < now
    except ValueError:
        return False  # the end is outside the calendar
