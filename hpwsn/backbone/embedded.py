"""The embedded backbone: the append to the journal itself, in the process of the node.

Nothing is queued here, so there is nothing to lose: a send is over when the journal has committed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hpwsn.backbone.interface import Receive, Screen
from hpwsn.errors import BackboneUnavailable
from hpwsn.notification import Notification


class EmbeddedBackbone:
    """Hands every notification straight to the node that sent it."""

    def __init__(self) -> None:
        self._receive: Receive | None = None

    async def start(self, receive: Receive, screen: Screen) -> None:
        """Remember where notifications go."""
        self._receive = receive

    async def send(self, notifications: Sequence[Notification]) -> int:
        """Journal them; returns with the commit."""
        if self._receive is None:
            raise BackboneUnavailable("the backbone is not open: the node is starting or stopping")
        return await self._receive(notifications)

    async def close(self) -> None:
        """Refuse what comes from now on."""
        self._receive = None

    def holds(self) -> bool:
        """Never: what is answered is in the log."""
        return False

    def problem(self) -> str | None:
        """Why this backbone is not ready."""
        return None if self._receive else "the embedded backbone is closed"

    def figures(self) -> Mapping[str, Any]:
        """Nothing of its own: the journal has the figures."""
        return {"kind": "embedded", "state": "ready" if self._receive else "closed"}
