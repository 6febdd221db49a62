"""The newest notifications in memory, shared by every queue, bounded in bytes.

Queues hold offsets; this is where they find most of them. What has been pushed out is read from the journal.
"""

from collections import OrderedDict
from collections.abc import Sequence

from hpwsn.notification import Notification

OVERHEAD = 512
"""Bytes that a notification takes beside its content, in objects and in the index."""


class Recent:
    """Notifications by offset, oldest out first."""

    __slots__ = ("_kept", "get", "limit", "size")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._kept: OrderedDict[int, Notification] = OrderedDict()
        self.get = self._kept.get
        """The notification at an offset, if it is still here."""

    def put(self, first: int, notifications: Sequence[Notification]) -> None:
        """Keep these, at the cost of the oldest."""
        kept, size = self._kept, self.size
        for offset, notification in enumerate(notifications, first):
            if offset not in kept:
                kept[offset] = notification
                size += len(notification.content) + OVERHEAD
        self.size = size
        while self.size > self.limit and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self.size -= len(oldest.content) + OVERHEAD

    def __len__(self) -> int:
        return len(self._kept)
