"""A notification as the node carries it: from the door through the journal to every queue.

It owns nothing but the shape. The content is the wire form that deliveries are joined from (Topic,
ProducerReference and Message elements, see hpwsn_client.wsn.messages), so no stage builds it twice.
"""

from typing import NamedTuple

from hpwsn_client.wsn.topics import Topic

RELIABLE = 1
"""Other nodes must get it, whatever the routing policy would have chosen."""
PARTIAL = 2
"""Other nodes may hand out its pieces one by one."""
ORIGINAL = 4
"""It came from a node of the original, and goes to none from here."""
FOREIGN = 8
"""It came from another node, and goes to no further one from here."""


class Notification(NamedTuple):
    """One accepted message; `start` and `end` mark the payload inside `content`."""

    topic: Topic | None
    content: bytes
    start: int
    end: int
    time: float
    message_id: str | None = None
    target: str | None = None
    routing: int = 0
    """How it travels between nodes: RELIABLE, PARTIAL, ORIGINAL and FOREIGN, added."""

    @property
    def payload(self) -> bytes:
        """The payload element, self-contained."""
        return self.content[self.start : self.end]
