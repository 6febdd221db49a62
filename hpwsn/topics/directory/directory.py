"""The interface of topic directories: they supply declared topics, and take an administrator's edits.

A path or `file:` URL names a TOML file (hpwsn.topics.directory.topic_file), `ldap:` and `ldaps:` an OpenLDAP
server (hpwsn.topics.ldap); hpwsn.topics.opening chooses the implementation. A node without a directory has an
open tree.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hpwsn.errors import HpwsnError
from hpwsn.topics.editing.edit_plan import EditPlan
from hpwsn.topics.tree.declarations import Declaration, Report
from hpwsn_client.wsn.topics.topic_expressions import Topic

__all__ = ["Access", "Declaration", "Directory", "Planner", "Progress", "TopicDirectoryError", "Watch"]

Progress = Callable[[int, int], None]
"""Called with the number of completed steps and the total."""
Planner = Callable[[Mapping[Topic, Declaration]], EditPlan]
"""Called with the topics of now; raises EditsRefused or EditsConflict."""


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a remote directory; not used for files."""

    bind_dn: str = ""
    password_file: str = ""
    start_tls: bool = False
    ca_file: str = ""
    timeout: float = 10.0
    page_size: int = 1000
    poll: float = 5.0
    retry_max: float = 30.0
    editing: bool = False
    """Whether this is the access of topics.edit_bind_dn; errors name its settings."""


class TopicDirectoryError(HpwsnError):
    """A directory cannot be read or changed; the text names the directory, the place in it and the remedy."""


class Watch(Protocol):
    """A thread that follows a directory and reports changes."""

    def start(self) -> None:
        """Start; the first report contains all topics, or why they cannot be read."""

    def reload(self) -> int:
        """Read the directory now; the report of this or a later read has at least the returned `request`."""
        ...

    def close(self) -> None:
        """Stop the thread and wait for it; no report follows."""


class Directory(Protocol):
    """A source of declared topics that can be edited; all calls block, so the node makes them in a thread.

    `remote` says whether the directory can be unreachable while the node runs, so that its last tree is
    saved; `identity` identifies the directory of a saved tree.
    """

    @property
    def remote(self) -> bool: ...

    @property
    def identity(self) -> str: ...

    @property
    def source(self) -> str:
        """The path or URL of the directory, for people."""
        ...

    def load(self) -> list[Declaration]:
        """Return all declared topics, breadth-first, each after its parent."""
        ...

    def add(self, declaration: Declaration) -> None:
        """Declare a topic and its missing parents; for an existing one, set the non-empty fields."""
        ...

    def remove(self, topic: Topic, recursive: bool = False) -> None:
        """Remove a topic; one with children needs `recursive`."""
        ...

    def move(self, topic: Topic, new: Topic) -> None:
        """Move a topic and its subtree."""
        ...

    def replace(
        self, declarations: Iterable[Declaration], merge: bool = False, progress: Progress = no_progress
    ) -> None:
        """Declare exactly these topics, or with `merge` add them to the existing ones."""
        ...

    def edit(self, plan: Planner, dry_run: bool = False) -> EditPlan:
        """Carry out the plan that `plan` makes for the topics of now: all of its steps or none.

        Retried with a new plan if others edit the same topics meanwhile. The returned plan has the new
        versions, with `dry_run` that of now.
        """
        ...

    def watch(self, report: Callable[[Report], None]) -> Watch:
        """Return a watcher that reports all topics and then every change; it calls `report` in its thread."""
        ...
