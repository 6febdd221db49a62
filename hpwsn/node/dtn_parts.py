"""The parts of a node for carriers: the key, the exchange and its door.

This is the only place that joins hpwsn.node.carriers with the broker and the doors. A node without
`dtn.key_file` has none of them and loads no library for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from hpwsn.broker.admission.admission import Limit
from hpwsn.door.rest.carriers.carriers_door import CarriersDoor
from hpwsn.dtn.carriers.carried_ids import PREFIX, is_reserved
from hpwsn.errors import SettingError
from hpwsn.journal.store.records import Recovered
from hpwsn.notification import Run
from hpwsn.settings import DtnSettings
from hpwsn_client.wsn.soap import faults

if TYPE_CHECKING:
    from hpwsn.node.carriers.carrier_exchange import CarrierExchange
    from hpwsn.node.carriers.partial_uploads import PartialUploads
    from hpwsn.node.node_parts import Parts

SHORTEST_KEY = 16
LONGEST_KEY = 4096
FOLDER = "dtn"


class DtnParts:
    """The connected parts of one node for carriers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.settings = parts.config.dtn
        self.exchange: CarrierExchange | None = None
        self._uploads: PartialUploads | None = None
        if self.settings.key_file:
            self._build(load_key(self.settings))

    def _build(self, key: bytes) -> None:
        from hpwsn.node.carriers.carrier_exchange import CarrierExchange
        from hpwsn.node.carriers.partial_uploads import PartialUploads

        parts, folder = self._parts, Path(self._parts.config.data.dir) / FOLDER
        self.exchange = CarrierExchange(
            parts.name,
            key,
            self.settings,
            folder=folder,
            journal=parts.journal,
            admission=parts.admission,
            tree=parts.tree,
            clock=parts.clock,
            community=self._community,
            transmissions=parts.transmissions,
        )
        self._uploads = PartialUploads(folder, self.settings.bundle_bytes, parts.clock)
        parts.admission.limits.append(Limit(_check_id))
        if parts.cluster:
            parts.journal.committed.add(self.exchange.foreign.committed)

    def _community(self) -> int:
        """The nodes of this node's cluster that are alive; one without a cluster."""
        cluster = self._parts.cluster
        if cluster is None or cluster.me is None or cluster.topology is None:
            return 1
        own = cluster.me.cluster
        return max(sum(member.alive and member.cluster == own for member in cluster.topology), 1)

    def restore(self, recovered: Recovered) -> None:
        """Take up the state of the journal, before anything runs."""
        if self.exchange is not None:
            self.exchange.restore(recovered.documents)

    async def start(self, running: AsyncExitStack) -> None:
        """Start, once notifications can be stored; `running` stops it before the deliveries."""
        if self.exchange is not None:
            await self.exchange.open(clustered=self._parts.cluster is not None)
            running.push_async_callback(self.exchange.close)

    def open_doors(self, app: web.Application) -> None:
        """Add the addresses of carriers to the node's web application."""
        app.add_routes(CarriersDoor(self.exchange, self._uploads, self.settings.bundle_bytes).routes())

    def needed_from(self) -> int | None:
        """The first offset of the log that a restart needs; None without carriers."""
        return None if self.exchange is None else self.exchange.needed_from


def load_key(settings: DtnSettings) -> bytes:
    """The key of `dtn.key_file`; SettingError if it cannot be used, or if the library is missing."""
    name = settings.key_file
    try:
        with Path(name).open("rb") as file:
            key = file.read(LONGEST_KEY + 1).strip()
    except OSError as error:
        remedy = "name a file that this user can read"
        raise SettingError("dtn.key_file", name, f"cannot be read: {error.strerror}; {remedy}") from error
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        told = f"has {len(key)} bytes; write a secret text of {SHORTEST_KEY} to {LONGEST_KEY} bytes into it"
        raise SettingError("dtn.key_file", name, told)
    if find_spec("cbor2") is None:
        raise SettingError("dtn.key_file", name, "requires cbor2; pip install 'hpwsn[carriers]', or unset it")
    return key


def _check_id(runs: Sequence[Run]) -> None:
    if is_reserved(runs[0].message_id):
        raise faults.SoapFault(
            f"nothing was stored: ids that begin with {PREFIX} are those of events that carriers bring;"
            " choose another id",
            status=400,
        )
