"""Notifications that waited too long for their consumer: `expires` of the policy Delivery.

Owns the arithmetic only. Time counts from the moment at which a notification was accepted, which the journal
has with it, so neither a restart nor a pause begins it anew. What has waited longer is not sent any more: it
is dropped and counted, whatever `overflow` says, since its subscriber said that it is of no use by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.times import Duration

LOOKED_AT = 64
"""Notifications that are looked at in one step, however few go into a send."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Those that may still go out, in order, and the offsets of those that waited too long."""

    offsets: list[int]
    notifications: list[Notification]
    expired: list[int]

    @property
    def done(self) -> int:
        """The last offset before which all have expired; 0 where the first one has not."""
        first = self.offsets[0] if self.offsets else None
        return max((offset for offset in self.expired if first is None or offset < first), default=0)


def sort_out(
    after: Duration, offsets: Iterable[int], notifications: Sequence[Notification], now: float
) -> Sorted:
    """Part the notifications that may still go out from those that waited too long."""
    found = Sorted([], [], [])
    for offset, notification in zip(offsets, notifications, strict=True):
        if has_expired(after, notification.time, now):
            found.expired.append(offset)
        else:
            found.offsets.append(offset)
            found.notifications.append(notification)
    return found


def has_expired(after: Duration, accepted: float, now: float) -> bool:
    """Whether a notification has waited longer than that; one from the future, by the clock, has not."""
    if not after.months:
        return now - accepted > after.seconds
    try:
        return after.after(datetime.fromtimestamp(accepted, UTC)).timestamp() < now
    except ValueError:
        return False  # it ends after the calendar does
