"""The services that a node knows, in its data directory: one JSON file, replaced in one step.

A file that cannot be read is set aside and said in the log: the jobs say all of it again with their next
heartbeat, so a node starts without it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

VERSION = 1
Saved = Iterable[tuple[str, dict[str, Any]]]


class ServiceStore:
    """The file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[tuple[str, dict[str, Any]]]:
        """What was saved last; nothing where there is no file that can be used."""
        try:
            saved = json.loads(self.path.read_text("utf-8"))
            if saved["version"] != VERSION:
                raise ValueError(f"its version is {saved['version']}, and this node reads {VERSION}")
            return [(str(uri), dict(document)) for uri, document in saved["services"].items()]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            log.warning("the stream services in %s cannot be used: %s", self.path, error)
            self._set_aside()
            return []

    def _set_aside(self) -> None:
        try:
            self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
        except OSError as error:
            log.warning("%s cannot be set aside: %s", self.path, error)

    def save(self, services: Saved) -> None:
        """Write all of them."""
        text = json.dumps({"version": VERSION, "services": dict(services)}, ensure_ascii=False, indent=1)
        temporary = self.path.with_name(f"{self.path.name}.new")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
