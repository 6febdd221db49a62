"""Entries of an LDAP server that are not topics, such as those of sensors: followed by syncrepl, and written.

Changes that belong together share a connection. An attribute is written with all its values, and those that
are not named stay as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import ldap

from hpwsn.topics.directory.directory import Access
from hpwsn.topics.directory.entry_directory import EntryKind, EntryMirror
from hpwsn.topics.ldap.ldap_connection import Location, check_files, connect, errors, parse_location
from hpwsn.topics.ldap.ldap_watch import LdapWatch
from hpwsn.topics.tree.declarations import Report


class LdapEntries:
    """The entries of a kind below one entry of a server."""

    def __init__(self, url: str, base: str, access: Access, edit_access: Access, kind: EntryKind) -> None:
        """`url` names the server; the base in it is that of the topics, and is not used."""
        self._location = parse_location(url).below(base)
        self._access = access
        self._edit_access = edit_access
        self._kind = kind
        check_files(access)
        if edit_access.bind_dn:
            check_files(edit_access)

    @property
    def base(self) -> str:
        """The DN of the entry above all of them."""
        return self._location.base

    def watch(self, mirror: EntryMirror, report: Callable[[Report], None]) -> LdapWatch:
        """Return a watcher thread that loads the entries and follows them."""
        return LdapWatch(self._location, self._access, report, mirror, self._kind)

    @contextmanager
    def writing(self) -> Iterator[LdapEntryWriter]:
        """Changes over one connection."""
        connection = connect(self._location, self._edit_access)
        try:
            yield LdapEntryWriter(connection, self._location)
        finally:
            with contextlib.suppress(ldap.LDAPError):
                connection.unbind_s()


class LdapEntryWriter:
    """Changes entries over a connection."""

    def __init__(self, connection: Any, location: Location) -> None:
        self._connection = connection
        self._location = location

    def put(self, dn: str, attributes: Mapping[str, Sequence[str]]) -> None:
        """Add an entry with these values, or give an existing one these, and keep its others.

        An attribute without a value is removed.
        """
        values = {name: [text.encode() for text in texts] for name, texts in attributes.items()}
        with errors(self._location):
            try:
                self._connection.add_s(dn, [(name, found) for name, found in values.items() if found])
            except ldap.ALREADY_EXISTS:
                changes = [(ldap.MOD_REPLACE, name, found or None) for name, found in values.items()]
                self._connection.modify_s(dn, [each for each in changes if each[1] != "objectClass"])

    def delete(self, dn: str) -> None:
        """Delete an entry, if it exists."""
        with errors(self._location), contextlib.suppress(ldap.NO_SUCH_OBJECT):
            self._connection.delete_s(dn)
