"""The admin node's state on disk: one JSON file, replaced in one step, and a lock on its directory.

What a registry holds can be told anew by its nodes, so a damaged file is put aside and the admin node begins
without it; a directory that two admin nodes would share is refused.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from pathlib import Path
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.routing.membership.last_topology import write_atomically

log = logging.getLogger(__name__)


class Store:
    """The directory of an admin node."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / "registry.json"
        self._lock: int | None = None

    def open(self) -> None:
        """Make the directory and take it for this process."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise HpwsnError(
                f"the data directory {self._directory} is in use by another admin node: stop that one,"
                " or give this one its own directory with --data"
            ) from error
        except OSError as error:
            raise HpwsnError(
                f"the data directory {self._directory} cannot be used: {error.strerror};"
                " name another with --data"
            ) from error

    def load(self) -> dict[str, Any] | None:
        """The state as it was last saved; None at the first start, and where it cannot be read."""
        try:
            state = json.loads(self.path.read_text("utf-8"))
            if not isinstance(state, dict):
                raise ValueError("it is no JSON object")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.set_aside(error)
            return None
        return state

    def set_aside(self, error: Exception) -> None:
        """Keep a file that cannot be used, under another name."""
        aside = self.path.with_suffix(".damaged")
        log.error("%s cannot be used (%s): it is kept as %s; nodes register again", self.path, error, aside)
        self.path.replace(aside)

    def save(self, state: dict[str, Any]) -> None:
        """Write the state."""
        write_atomically(self.path, json.dumps(state))

    def close(self) -> None:
        """Give the directory back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
