"""What a member keeps in its data directory: the last topology, and who it is among nodes of its name.

The topology is a copy for a start without the admin node; damaged, or of another admin node, it counts as
none. The identity is made once, so that a node that restarts can take its name back from its former process.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from pathlib import Path

from hpwsn.errors import HpwsnError
from hpwsn.routing.topology.topology import Topology

log = logging.getLogger(__name__)


class LastTopology:
    """The file of the topology that was last in force, and the admin node that it is from."""

    def __init__(self, directory: Path, admin: str) -> None:
        self.path = directory / "topology.json"
        self._admin = admin

    def load(self) -> Topology | None:
        """The topology that was saved, None where there is none of this admin node."""
        try:
            saved = json.loads(self.path.read_text("utf-8"))
            return Topology.parse(saved["topology"]) if saved["admin"] == self._admin else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("the saved topology in %s cannot be used: %s", self.path, error)
            return None

    def save(self, topology: Topology) -> None:
        """Write it, in one step."""
        write_atomically(self.path, json.dumps({"admin": self._admin, "topology": topology.encode()}))


def identity_of(directory: Path) -> str:
    """The identity that the data directory gives its node, made at the first call."""
    path = directory / "node-id"
    try:
        if not path.exists():
            write_atomically(path, secrets.token_hex(16))
        return path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise HpwsnError(f"the node's identity {path} cannot be used: {error}; remove the file") from error


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that it is never seen half written, not even after the machine's end."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
