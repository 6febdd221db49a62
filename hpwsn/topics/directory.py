"""The port of the topic directory: where declared topics come from, and where an admin's edits go.

Which implementation serves a URL is decided here and nowhere else: a path or `file:` URL names a TOML file
(hpwsn.topics.file), `ldap:` and `ldaps:` an OpenLDAP server (hpwsn.topics.ldap). No directory at all means an
open tree, which is the node's matter and not this port's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from hpwsn.errors import HpwsnError
from hpwsn.settings import TopicsSettings
from hpwsn.topics.change import Report
from hpwsn.topics.declaration import Declaration
from hpwsn_client.wsn.topics import Topic

__all__ = ["Access", "Declaration", "Directory", "Progress", "TopicDirectoryError", "Watch", "open_directory"]

Progress = Callable[[int, int], None]
"""Told how much of long work is done, and how much there is."""


def quiet(done: int, total: int) -> None:
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


def access_from(topics: TopicsSettings) -> Access:
    """How the settings say that a directory on another machine is reached."""
    return Access(
        bind_dn=topics.bind_dn,
        password_file=topics.password_file,
        start_tls=topics.start_tls,
        ca_file=topics.ca_file,
        timeout=topics.timeout,
        page_size=topics.page_size,
        poll=topics.poll,
        retry_max=topics.retry_max,
    )


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
        self, declarations: Iterable[Declaration], merge: bool = False, progress: Progress = quiet
    ) -> None:
        """Declare exactly these topics, or with `merge` add each of them to what is there."""
        ...

    def watch(self, report: Callable[[Report], None]) -> Watch:
        """What tells of all topics and then of every change; `report` is called in its thread."""
        ...


def open_directory(url: str, access: Access | None = None) -> Directory:
    """The directory that a URL or a path names; it is not read yet."""
    scheme = urlsplit(url).scheme.lower() if "://" in url or url.startswith("file:") else ""
    if scheme in ("ldap", "ldaps"):
        return _open_ldap(url, access or Access())
    if scheme not in ("", "file"):
        raise TopicDirectoryError(
            f"topic directory {url}: unknown scheme {scheme!r}; name a path, or a file:, ldap: or ldaps: URL"
        )
    return _open_file(url, _file_path(url) if scheme else Path(url))


def _open_file(url: str, path: Path) -> Directory:
    from hpwsn.topics.file import FileDirectory

    if path.suffix.lower() != ".toml":
        raise TopicDirectoryError(f"topic directory {url!r}: not a .toml file; name one, such as topics.toml")
    return FileDirectory(path)


def _file_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise TopicDirectoryError(
            f"topic directory {url}: {parts.netloc!r} is taken for a host; write file:///absolute/path.toml"
        )
    return Path(unquote(parts.path))


def _open_ldap(url: str, access: Access) -> Directory:
    try:
        from hpwsn.topics.ldap.directory import LdapDirectory
    except ModuleNotFoundError as error:
        if error.name != "ldap":
            raise
        raise TopicDirectoryError(
            "a topic directory in LDAP needs python-ldap: in the checkout, pip install ./client '.[ldap]'"
        ) from None
    return LdapDirectory(url, access)
