"""A node that stores nothing: the figure that a journal is measured against. For benchmarks only."""

import sys
from collections.abc import Sequence

from hpwsn.backbone.embedded import EmbeddedBackbone
from hpwsn.commands.main import main
from hpwsn.journal.store.records import Arrival
from hpwsn.node import node
from hpwsn.notification import Run
from hpwsn.settings import Config


class UnjournalledNode(node.Node):
    """Hands runs straight to the processor."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(self.parts.backbone, EmbeddedBackbone)
        self.parts.backbone._append = self._process

    async def _process(self, runs: Sequence[Run], arrival: Arrival | None = None) -> int:
        first = self.parts.delivery.head + 1
        self.parts.processor.process(first, runs)
        return first


if __name__ == "__main__":
    node.Node = UnjournalledNode  # type: ignore[misc]
    sys.exit(main(["serve", *sys.argv[1:]]))
