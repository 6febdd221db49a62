"""Publications that a publisher sent to two nodes under one MessageId, told by what they hold. Pure.

A publisher whose node died under way sends the same again to another, and both may have stored it. Of the
same id and content, what one origin published is taken, and what another did is a repetition; the messages of
one Notify share its id and may be equal, so the same origin is never its own repetition. Bounded: the oldest
are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from hpwsn.notification import Notification

MOST = 100_000


class Repeats:
    """Who was the first to publish under each id."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._first: OrderedDict[bytes, str] = OrderedDict()

    def is_repeated(self, notification: Notification, origin: str) -> bool:
        """Whether another origin has published the same under the same id; else this one has now."""
        if notification.message_id is None:
            return False
        key = blake2b(
            notification.payload, digest_size=16, key=blake2b(notification.message_id.encode()).digest()
        ).digest()
        first = self._first.setdefault(key, origin)
        if len(self._first) > self._most:
            self._first.popitem(last=False)
        return first != origin
