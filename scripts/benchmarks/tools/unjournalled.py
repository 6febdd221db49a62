"""A node that stores nothing: the figure that a journal is measured against. For benchmarks only."""

import sys
from collections.abc import Sequence

from hpwsn import node
from hpwsn.commands import main as cli
from hpwsn.journal.store.records import Arrival
from hpwsn.notification import Notification


class UnjournalledNode(node.Node):
    """Takes notifications straight to the processor."""

    async def _receive(self, notifications: Sequence[Notification], arrival: Arrival | None = None) -> int:
        first = self.delivery.head + 1
        self.processor.process(first, notifications)
        return first


if __name__ == "__main__":
    node.Node = UnjournalledNode  # type: ignore[misc]
    sys.exit(cli.main(["serve", *sys.argv[1:]]))
