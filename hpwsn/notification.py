"""A notification as the node carries it: from the door through the journal to every queue.

It owns nothing but the shape. The content is the wire form that deliveries are joined from (Topic,
ProducerReference and Message elements, see hpwsn_client.wsn.messages), so no stage builds it twice.
"""

from typing import NamedTuple

from hpwsn_client.wsn.topics import Topic


class Notification(NamedTuple):
    """One accepted message; `start` and `end` mark the payload inside `content`."""

    topic: Topic | None
    content: bytes
    start: int
    end: int
    time: float
    message_id: str | None = None
    target: str | None = None

    @property
    def payload(self) -> bytes:
        """The payload element, self-contained."""
        return self.content[self.start : self.end]
