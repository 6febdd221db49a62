"""The interface to entries of a server that are not topics: followed like topics, and maybe written.

hpwsn.topics.opening opens one; its only implementation is that of LDAP. An entry has an id that survives a
rename. A mirror collects entries as the server reports them, and says what has changed for its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from hpwsn.topics.directory.directory import Watch
from hpwsn.topics.tree.declarations import Report

Attributes = Mapping[str, Sequence[bytes]]
"""The values of an entry by attribute."""


class Identified(Protocol):
    """A parsed entry."""

    @property
    def id(self) -> str:
        """The id that the server gave it."""
        ...


class EntryKind(NamedTuple):
    """Which entries are meant, what is read of them, and how they are parsed."""

    object_class: str
    attributes: Sequence[str]
    parse: Callable[[str, str, Attributes], Any]
    """The parsed entry of an id, a DN and attributes; it does not fail."""


class EntryMirror(Protocol):
    """The entries as they were reported, in any order."""

    def put(self, entry: Any) -> None:
        """Add an entry, or update a changed or renamed one."""

    def discard(self, ids: Iterable[str]) -> None:
        """Remove deleted entries."""

    def keep(self, ids: Iterable[str]) -> None:
        """Remove all entries except these."""

    def changes(self) -> Any:
        """What has changed since the last call; false if nothing has."""

    def skipped(self) -> tuple[str, ...]:
        """The entries that cannot be used, each with the reason."""
        ...


class EntryWriter(Protocol):
    """Changes entries one after another; TopicDirectoryError says why one cannot be."""

    def put(self, dn: str, attributes: Mapping[str, Sequence[str]]) -> None:
        """Add an entry with these values, or give an existing one these, and keep its others."""

    def delete(self, dn: str) -> None:
        """Delete an entry, if it exists."""


class EntryDirectory(Protocol):
    """The entries below a base."""

    @property
    def base(self) -> str:
        """The DN of the entry above all of them."""
        ...

    def watch(self, mirror: EntryMirror, report: Callable[[Report], None]) -> Watch:
        """A thread that keeps the mirror, and reports its changes; the first report has everything."""
        ...

    def writing(self) -> AbstractContextManager[EntryWriter]:
        """Changes over one connection; they block, and so does the context."""
        ...
