"""The files of a member in its data directory: the last topology, and the identity of the node.

The topology is used if the node starts while the admin node cannot be reached. A damaged file, or one of
another admin node, is ignored. The identity is created once, so that a restarted node can claim its name
again.
"""

from __future__ import annotations

import json
import logging
import secrets
from pathlib import Path

from hpwsn.durable_files import write_atomically
from hpwsn.errors import HpwsnError
from hpwsn.routing.topology.topology import Topology

log = logging.getLogger(__name__)


class LastTopology:
    """The file of the last topology, with the URL of its admin node."""

    def __init__(self, directory: Path, admin: str) -> None:
        self.path = directory / "topology.json"
        self._admin = admin

    def load(self) -> Topology | None:
        """Return the saved topology; None without one of this admin node."""
        try:
            saved = json.loads(self.path.read_text("utf-8"))
            return Topology.parse(saved["topology"]) if saved["admin"] == self._admin else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("ignored the saved topology in %s: %s", self.path, error)
            return None

    def save(self, topology: Topology) -> None:
        """Save the topology atomically."""
        write_atomically(self.path, json.dumps({"admin": self._admin, "topology": topology.encode()}))


def identity_of(directory: Path) -> str:
    """Return the identity in a data directory; the first call creates it."""
    path = directory / "node-id"
    try:
        if not path.exists():
            write_atomically(path, secrets.token_hex(16))
        return path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise HpwsnError(f"the node's identity {path} cannot be used: {error}; remove the file") from error
