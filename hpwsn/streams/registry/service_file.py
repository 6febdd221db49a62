"""The file in the data directory that keeps the registered services: JSON, replaced atomically.

A file that cannot be read is renamed and logged, and the node starts without it: the jobs register their
services again with their next heartbeat.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpwsn.durable_files import write_atomically

log = logging.getLogger(__name__)

VERSION = 1
Saved = Iterable[tuple[str, dict[str, Any]]]


class ServiceStore:
    """Loads and saves the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[tuple[str, dict[str, Any]]]:
        """The services that were saved last; empty if there is no usable file."""
        try:
            saved = json.loads(self.path.read_text("utf-8"))
            if saved["version"] != VERSION:
                raise ValueError(f"its version is {saved['version']}, this node reads version {VERSION}")
            return [(str(uri), dict(document)) for uri, document in saved["services"].items()]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            log.warning(
                "cannot load the stream services from %s: %s; starting without them", self.path, error
            )
            self._set_aside()
            return []

    def _set_aside(self) -> None:
        try:
            self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
        except OSError as error:
            log.warning("cannot rename %s: %s", self.path, error)

    def save(self, services: Saved) -> None:
        """Replace the file by one with these services."""
        text = json.dumps({"version": VERSION, "services": dict(services)}, ensure_ascii=False, indent=1)
        write_atomically(self.path, text)
