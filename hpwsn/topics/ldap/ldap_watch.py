"""Follows topics or other entries of an LDAP server: reads all, then receives changes by syncrepl (RFC 4533).

One thread, one connection. The server's state (contextCSN) is read before the paged read of the tree, and
syncrepl continues from that state, so no change is missed. After a lost connection the same steps repeat, and
a comparison finds all differences. A server without syncprov is read every `poll` seconds. Entries that are
not topics are reported and skipped.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import threading
from collections.abc import Callable
from typing import Any

import ldap
from ldap.ldapobject import SimpleLDAPObject
from ldap.syncrepl import SyncreplConsumer

from hpwsn.topics.directory.directory import Access, TopicDirectoryError
from hpwsn.topics.directory.entry_directory import EntryKind, EntryMirror
from hpwsn.topics.ldap.entries.dn import dn_key
from hpwsn.topics.ldap.entries.mirror import Mirror
from hpwsn.topics.ldap.ldap_connection import (
    TOPICS,
    Location,
    attributes_of,
    connect,
    errors,
    filter_of,
    read_entries,
)
from hpwsn.topics.tree.declarations import Change, Report

FIRST_PAUSE = 0.2
"""Seconds before the first reconnection; each further pause doubles."""
DRAIN_TIMEOUT = 0.001
"""Seconds to wait for one more message before a batch is reported."""
BATCH = 1000
"""Maximum number of messages in a batch."""
CLOSE_WITHIN = 2.0
"""Seconds that a stopping node waits for this thread."""
LISTEN_TIMEOUT = 5.0
"""Seconds between two checks of an idle connection."""


class SyncConnection(SimpleLDAPObject, SyncreplConsumer):  # type: ignore[misc]
    """A connection whose server reports changes into a mirror."""

    def follow(self, mirror: EntryMirror, kind: EntryKind) -> None:
        """Set the mirror that receives the changes of entries of a kind."""
        self._mirror = mirror
        self._kind = kind
        self._present: set[str] = set()

    def syncrepl_entry(self, dn: str, attributes: dict[str, list[bytes]], uuid: str) -> None:
        """Store a new, changed or renamed entry."""
        self._mirror.put(self._kind.parse(str(uuid), dn, attributes))

    def syncrepl_delete(self, uuids: list[str]) -> None:
        """Remove deleted entries."""
        self._mirror.discard(map(str, uuids))

    def syncrepl_present(self, uuids: list[str] | None, refreshDeletes: bool = False) -> None:  # noqa: N803
        """Collect entries that still exist; at the end of the list, remove the others."""
        if uuids is not None:
            self._present.update(map(str, uuids))
            return
        if not refreshDeletes:
            self._mirror.keep(self._present)
        self._present = set()


class LdapWatch(threading.Thread):
    """The thread that follows one directory."""

    def __init__(
        self,
        location: Location,
        access: Access,
        report: Callable[[Report], None],
        mirror: EntryMirror | None = None,
        kind: EntryKind = TOPICS,
    ) -> None:
        """Entries of another kind than topics have a mirror of their own, which makes the changes."""
        super().__init__(name="topic-directory" if mirror is None else "entry-directory", daemon=True)
        self._location = location
        self._access = access
        self._on_report = report
        self._mirror: EntryMirror = mirror or Mirror(location.base)
        self._kind = kind
        self._first = True
        self._failures = 0
        self._closing = False
        self._requests = self._read_requests = 0
        self._again = threading.Event()
        self._wake_read, self._wake_write = os.pipe()

    def reload(self) -> int:
        """Reconnect, and read the tree again."""
        self._requests += 1
        self._again.set()
        os.write(self._wake_write, b"!")
        return self._requests

    def close(self) -> None:
        """Stop the thread and wait for it; a thread that waits for a silent server ends later by itself."""
        self._closing = True
        self.reload()
        if self.is_alive():
            self.join(CLOSE_WITHIN)
        if not self.is_alive():
            os.close(self._wake_read)
            os.close(self._wake_write)

    def run(self) -> None:
        """Follow the directory until it is closed, with growing pauses while it is unreachable."""
        while not self._closing:
            self._again.clear()
            try:
                self._session()
            except TopicDirectoryError as error:
                self._report(problem=str(error))
                self._pause()
            except Exception as error:  # an uncaught exception would end the thread silently
                self._report(problem=f"topic directory {self._location}: {error!r}")
                self._pause()

    def _session(self) -> None:
        connection = connect(self._location, self._access, SyncConnection)
        try:
            while not self._stopped():
                cookie = self._read_all(connection)
                if self._persist(connection, cookie):
                    return
                self._wait(self._access.poll)
        finally:
            with contextlib.suppress(ldap.LDAPError):
                connection.unbind_s()

    def _stopped(self) -> bool:
        return self._closing or self._again.is_set()

    def _read_all(self, connection: SyncConnection) -> str | None:
        """Read the tree and report the differences; return the cookie from which changes continue."""
        requests = self._requests
        with errors(self._location):
            cookie = self._cookie(connection)
        found = set()
        for entry in read_entries(connection, self._location, self._access, self._kind):
            found.add(entry.id)
            self._mirror.put(entry)
        self._mirror.keep(found)
        self._failures = 0
        self._read_requests = requests
        self._report(self._mirror.changes(), whole=self._first)
        self._first = False
        return cookie

    def _cookie(self, connection: Any) -> str | None:
        """Return a syncrepl cookie for the server's current state; without one it sends everything again."""
        base = dn_key(self._location.base)
        for name in self._values(connection, "", "namingContexts"):
            key = dn_key(name)
            if base[len(base) - len(key) :] == key:
                states = sorted(self._values(connection, name, "contextCSN"))
                return f"rid=000,csn={';'.join(states)}" if states else None
        return None

    def _values(self, connection: Any, name: str, attribute: str) -> list[str]:
        """Return the values of an attribute of one entry; empty if it is not visible."""
        try:
            found = connection.search_s(name, ldap.SCOPE_BASE, attrlist=[attribute])
        except (ldap.NO_SUCH_OBJECT, ldap.INSUFFICIENT_ACCESS):
            return []
        return [value.decode() for _, attributes in found[:1] for value in attributes.get(attribute, ())]

    def _persist(self, connection: SyncConnection, cookie: str | None) -> bool:
        """Follow changes until stopped; False if the server does not support syncrepl."""
        connection.follow(self._mirror, self._kind)
        try:
            message = connection.syncrepl_search(
                self._location.base,
                ldap.SCOPE_SUBTREE,
                mode="refreshAndPersist",
                cookie=cookie,
                filterstr=filter_of(self._kind),
                attrlist=attributes_of(self._kind),
            )
            while not self._stopped():
                self._drain(connection, message)
                self._flush()
                self._listen(connection)
        except (ldap.UNAVAILABLE_CRITICAL_EXTENSION, ldap.UNWILLING_TO_PERFORM):
            return False
        except ldap.LDAPError as error:
            with errors(self._location):
                raise error
        return True

    def _drain(self, connection: SyncConnection, message: int) -> None:
        try:
            for _ in range(BATCH):
                if not connection.syncrepl_poll(message, timeout=DRAIN_TIMEOUT):
                    raise TopicDirectoryError(
                        f"topic directory {self._location}: the server ended syncrepl; reconnecting"
                    )
        except ldap.TIMEOUT:
            return

    def _listen(self, connection: SyncConnection) -> None:
        select.select([connection.fileno(), self._wake_read], [], [], LISTEN_TIMEOUT)
        self._clear_pipe()

    def _flush(self) -> None:
        change = self._mirror.changes()
        skipped = self._mirror.skipped()
        if change or skipped != self._reported_skipped:
            self._report(change)

    def _report(self, change: Change | None = None, whole: bool = False, problem: str | None = None) -> None:
        self._reported_skipped = self._mirror.skipped()
        if not self._closing:
            self._on_report(Report(change, whole, problem, self._reported_skipped, self._read_requests))

    def _pause(self) -> None:
        self._failures += 1
        step = min(self._access.retry_max, FIRST_PAUSE * 2.0 ** min(self._failures - 1, 30))
        self._wait(step * (0.5 + 0.5 * random.random()))

    def _wait(self, seconds: float) -> None:
        if not self._stopped():
            select.select([self._wake_read], [], [], seconds)
        self._clear_pipe()

    def _clear_pipe(self) -> None:
        while select.select([self._wake_read], [], [], 0)[0]:
            os.read(self._wake_read, 1024)
