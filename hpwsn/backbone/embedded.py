"""The embedded backbone: appends to the journal directly, in the process of the node.

It has no queue of its own: `send` returns when the journal has committed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hpwsn.backbone.interface import Receive, Screen
from hpwsn.errors import BackboneUnavailable
from hpwsn.notification import Run


class EmbeddedBackbone:
    """Passes every notification directly to the journal of the same node."""

    def __init__(self, append: Receive) -> None:
        self._append = append
        self._open = False

    async def start(self, receive: Receive, screen: Screen) -> None:
        """Accept runs; nothing ever comes from elsewhere."""
        self._open = True

    async def send(self, runs: Sequence[Run]) -> int:
        """Append the runs; returns with the commit."""
        if not self._open:
            raise BackboneUnavailable("the backbone is not open: the node is starting or stopping")
        return await self._append(runs)

    async def close(self) -> None:
        """Reject all later notifications."""
        self._open = False

    def holds(self) -> bool:
        """Always False: an accepted notification is already in the log."""
        return False

    def problem(self) -> str | None:
        """Why this backbone is not ready."""
        return None if self._open else "the embedded backbone is closed"

    def figures(self) -> Mapping[str, Any]:
        """Nothing of its own: the journal has the figures."""
        return {"kind": "embedded", "state": "ready" if self._open else "closed"}
