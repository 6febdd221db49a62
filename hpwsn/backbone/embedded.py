"""The embedded backbone: the append to the journal itself, in the process of the node.

Nothing is queued here, so there is nothing to lose: a send is over when the journal has committed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hpwsn.backbone.interface import Receive, Screen
from hpwsn.errors import BackboneUnavailable
from hpwsn.notification import Run


class EmbeddedBackbone:
    """Hands every run straight to the journal."""

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
        """Refuse whatever comes from now on."""
        self._open = False

    def holds(self) -> bool:
        """Never: what is answered is in the log."""
        return False

    def problem(self) -> str | None:
        """Why this backbone is not ready."""
        return None if self._open else "the embedded backbone is closed"

    def figures(self) -> Mapping[str, Any]:
        """Nothing of its own: the journal has the figures."""
        return {"kind": "embedded", "state": "ready" if self._open else "closed"}
