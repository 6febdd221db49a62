"""The admin node's state on disk: one JSON file, replaced atomically, and a lock on its directory.

Nodes register again if the state is lost, so a damaged file is renamed and the admin node starts without it.
Two admin nodes cannot use the same directory.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from pathlib import Path
from typing import Any

from hpwsn.durable_files import write_atomically
from hpwsn.errors import HpwsnError

log = logging.getLogger(__name__)


class StateFile:
    """The state file of an admin node, in its data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / "registry.json"
        self._lock: int | None = None

    def open(self) -> None:
        """Create the directory and lock it for this process."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise HpwsnError(
                f"the data directory {self._directory} is in use by another admin node; stop that node,"
                " or give this node another directory with --data"
            ) from error
        except OSError as error:
            raise HpwsnError(
                f"the data directory {self._directory} cannot be used: {error.strerror};"
                " give another directory with --data"
            ) from error

    def load(self) -> dict[str, Any] | None:
        """The last saved state; None if there is none, or if the file cannot be read."""
        try:
            state = json.loads(self.path.read_text("utf-8"))
            if not isinstance(state, dict):
                raise ValueError("it is not a JSON object")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.set_aside(error)
            return None
        return state

    def set_aside(self, error: Exception) -> None:
        """Rename a file that cannot be used."""
        aside = self.path.with_suffix(".damaged")
        log.error(
            "%s cannot be used (%s) and is renamed to %s; the nodes will register again",
            self.path,
            error,
            aside,
        )
        self.path.replace(aside)

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file with this state."""
        write_atomically(self.path, json.dumps(state))

    def close(self) -> None:
        """Unlock the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
