"""The newest notifications in memory, shared by every queue, bounded in bytes.

Queues hold offsets; this is where they find most of them. What has been pushed out is read from the journal.
"""

from collections import OrderedDict

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

    def put(self, offset: int, notification: Notification) -> None:
        """Keep one, at the cost of the oldest."""
        if offset in self._kept:
            return
        self._kept[offset] = notification
        self.size += len(notification.content) + OVERHEAD
        while self.size > self.limit and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self.size -= len(oldest.content) + OVERHEAD

    def __len__(self) -> int:
        return len(self._kept)
