"""The session of a node at an MQTT broker, which outlives a restart: the client's id and its subscriptions.

Both are in a file of the data directory, since the broker finds the session by the id, and keeps in it what
it has not delivered yet. Topics are remembered so that a node subscribes again only to what is new: a broker
sends retained messages again at each subscription.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from pathlib import Path

from hpwsn.durable_files import write_atomically

FILE = "mqtt.json"


class MqttSession:
    """What is known of the session; ValueError for a file that cannot be read."""

    def __init__(self, data: Path, node: str, url: str) -> None:
        self._path = data / FILE
        self._url = url
        self._subscribed: frozenset[str] = frozenset()
        self.client_id = f"hpwsn-{node}-{secrets.token_hex(4)}"
        if self._path.exists():
            self._load()
        else:
            self._store()

    def differs(self, filters: Collection[str]) -> tuple[set[str], set[str]]:
        """Which topic filters the session lacks, and which it has too many."""
        return set(filters) - self._subscribed, set(self._subscribed) - set(filters)

    def began(self) -> None:
        """The broker has no session of this client: nothing is subscribed to yet. Stored when it returns."""
        self.subscribed(())

    def subscribed(self, filters: Collection[str]) -> None:
        """The session has these subscriptions. Stored when it returns."""
        if self._subscribed != frozenset(filters):
            self._subscribed = frozenset(filters)
            self._store()

    def _load(self) -> None:
        try:
            found = json.loads(self._path.read_bytes())
            self.client_id = str(found["client_id"])
            if found["url"] == self._url:
                self._subscribed = frozenset(map(str, found["subscribed"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self._path} is not readable ({error!r}); remove it, and a new session begins"
            ) from error

    def _store(self) -> None:
        content = {"client_id": self.client_id, "url": self._url, "subscribed": sorted(self._subscribed)}
        write_atomically(self._path, json.dumps(content))
