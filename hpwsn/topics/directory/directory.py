"""The port of the topic directory: where declared topics come from, and where an admin's edits go.

Which implementation serves a URL is decided here and nowhere else: a path or `file:` URL names a TOML file
(hpwsn.topics.directory.topic_file), `ldap:` and `ldaps:` an OpenLDAP server (hpwsn.topics.ldap). No
directory at all means an open tree, which is the node's matter and not this port's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from hpwsn.errors import HpwsnError
from hpwsn.topics.tree.declarations import Declaration, Report
from hpwsn_client.wsn.topics.topic_expressions import Topic

__all__ = ["Access", "Declaration", "Directory", "Progress", "TopicDirectoryError", "Watch"]

Progress = Callable[[int, int], None]
"""Told how much of long work is done, and how much there is."""


def no_progress(done: int, total: int) -> None:
    """A progress that tells nobody."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a directory on another machine is reached; a file has no use for it."""

    bind_dn: str = ""
    password_file: str = ""
    start_tls: bool = False
    ca_file: str = ""
    timeout: float = 10.0
    page_size: int = 1000
    poll: float = 5.0
    retry_max: float = 30.0


class TopicDirectoryError(HpwsnError):
    """A directory that cannot be read or changed; the text names it, the place in it and the remedy."""


class Watch(Protocol):
    """Follows a directory in a thread of its own, and reports from there."""

    def start(self) -> None:
        """Begin; the first report tells all topics, or why they cannot be read."""

    def reload(self) -> None:
        """Look again now."""

    def close(self) -> None:
        """End the thread and wait for it; it reports nothing more."""


class Directory(Protocol):
    """A source of declared topics that can be edited; all calls block, so the node makes them in a thread.

    `remote` is whether it can be away while the node is well, so that its last tree is worth keeping;
    `identity` is what such a tree belongs to.
    """

    @property
    def remote(self) -> bool: ...

    @property
    def identity(self) -> str: ...

    def load(self) -> list[Declaration]:
        """All declared topics, breadth-first, each after its parent."""
        ...

    def add(self, declaration: Declaration) -> None:
        """Declare a topic and its missing parents; of one that exists, change what is filled in."""
        ...

    def remove(self, topic: Topic, recursive: bool = False) -> None:
        """Remove a topic; one with topics below it only where `recursive`."""
        ...

    def move(self, topic: Topic, new: Topic) -> None:
        """Give a topic and its subtree another place."""
        ...

    def replace(
        self, declarations: Iterable[Declaration], merge: bool = False, progress: Progress = no_progress
    ) -> None:
        """Declare exactly these topics, or with `merge` add each of them to what is there."""
        ...

    def watch(self, report: Callable[[Report], None]) -> Watch:
        """What tells of all topics and then of every change; `report` is called in its thread."""
        ...
