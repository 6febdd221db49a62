"""Follows the topics of an LDAP server: reads them all, then is told of each change by syncrepl (RFC 4533).

One thread, one connection. The state of the server (contextCSN) is noted before the tree is read in pages,
and syncrepl goes on from there, so nothing falls between the two. After a lost connection the same again:
what is different is found by comparison, whatever happened meanwhile. A server without syncprov is read
again every `poll` seconds. Entries that are no topics are reported and passed over.
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
from hpwsn.topics.ldap.entries.dn import dn_key
from hpwsn.topics.ldap.entries.mirror import Mirror
from hpwsn.topics.ldap.entries.topic_entry import parse_entry
from hpwsn.topics.ldap.ldap_connection import FILTER, READ_ATTRIBUTES, Location, connect, errors, read_entries
from hpwsn.topics.tree.declarations import Change, Report

FIRST_PAUSE = 0.2
"""Seconds before the first attempt to reach a lost server again; each next one doubles."""
DRAIN_TIMEOUT = 0.001
"""Seconds to wait for one more message before a batch is handed over."""
BATCH = 1000
"""Most messages in a batch."""
CLOSE_WITHIN = 2.0
"""Seconds that the end of a node waits for this thread."""
LISTEN_TIMEOUT = 5.0
"""Seconds between two looks at whether the connection is still there, beside what the server sends."""


class SyncConnection(SimpleLDAPObject, SyncreplConsumer):  # type: ignore[misc]
    """A connection on which a server reports changes into a mirror."""

    def follow(self, mirror: Mirror) -> None:
        """Put what comes into this mirror."""
        self._mirror = mirror
        self._present: set[str] = set()

    def syncrepl_entry(self, dn: str, attributes: dict[str, list[bytes]], uuid: str) -> None:
        """Take an entry that is new, changed or renamed."""
        self._mirror.put(parse_entry(str(uuid), dn, attributes))

    def syncrepl_delete(self, uuids: list[str]) -> None:
        """Forget entries that are gone."""
        self._mirror.discard(map(str, uuids))

    def syncrepl_present(self, uuids: list[str] | None, refreshDeletes: bool = False) -> None:  # noqa: N803
        """Note entries that are still there; at the end of the list forget the others."""
        if uuids is not None:
            self._present.update(map(str, uuids))
            return
        if not refreshDeletes:
            self._mirror.keep(self._present)
        self._present = set()


class LdapWatch(threading.Thread):
    """The thread that follows one directory."""

    def __init__(self, location: Location, access: Access, report: Callable[[Report], None]) -> None:
        super().__init__(name="topic-directory", daemon=True)
        self._location = location
        self._access = access
        self._on_report = report
        self._mirror = Mirror(location.base)
        self._first = True
        self._failures = 0
        self._closing = False
        self._again = threading.Event()
        self._wake_read, self._wake_write = os.pipe()

    def reload(self) -> None:
        """Connect and read the tree again."""
        self._again.set()
        os.write(self._wake_write, b"!")

    def close(self) -> None:
        """End the thread and wait for it; one that waits for a server that is silent ends by itself."""
        self._closing = True
        self.reload()
        if self.is_alive():
            self.join(CLOSE_WITHIN)
        if not self.is_alive():
            os.close(self._wake_read)
            os.close(self._wake_write)

    def run(self) -> None:
        """Follow the directory until it is closed, with growing pauses where it cannot be reached."""
        while not self._closing:
            self._again.clear()
            try:
                self._session()
            except TopicDirectoryError as error:
                self._report(problem=str(error))
                self._pause()
            except Exception as error:  # a thread that ended would leave the tree as it is, and say nothing
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
        """Load the tree and report what is different; the cookie from which changes go on."""
        with errors(self._location):
            cookie = self._cookie(connection)
        found = set()
        for entry in read_entries(connection, self._location, self._access):
            found.add(entry.id)
            self._mirror.put(entry)
        self._mirror.keep(found)
        self._failures = 0
        self._report(self._mirror.changes(), whole=self._first)
        self._first = False
        return cookie

    def _cookie(self, connection: Any) -> str | None:
        """A syncrepl cookie for the server's present state; without one it tells everything once more."""
        base = dn_key(self._location.base)
        for name in self._values(connection, "", "namingContexts"):
            key = dn_key(name)
            if base[len(base) - len(key) :] == key:
                states = sorted(self._values(connection, name, "contextCSN"))
                return f"rid=000,csn={';'.join(states)}" if states else None
        return None

    def _values(self, connection: Any, name: str, attribute: str) -> list[str]:
        """An attribute of one entry, nothing where we may not see it."""
        try:
            found = connection.search_s(name, ldap.SCOPE_BASE, attrlist=[attribute])
        except (ldap.NO_SUCH_OBJECT, ldap.INSUFFICIENT_ACCESS):
            return []
        return [value.decode() for _, attributes in found[:1] for value in attributes.get(attribute, ())]

    def _persist(self, connection: SyncConnection, cookie: str | None) -> bool:
        """Follow changes until told to stop; False where the server cannot report any."""
        connection.follow(self._mirror)
        try:
            message = connection.syncrepl_search(
                self._location.base,
                ldap.SCOPE_SUBTREE,
                mode="refreshAndPersist",
                cookie=cookie,
                filterstr=FILTER,
                attrlist=READ_ATTRIBUTES,
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
                    raise TopicDirectoryError(f"topic directory {self._location}: it ended its reports")
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
            self._on_report(Report(change, whole, problem, self._reported_skipped))

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
